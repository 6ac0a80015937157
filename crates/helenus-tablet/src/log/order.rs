//! The order of writes that follow from one another.
//!
//! A write *follows* from another if it was computed from what the other one writes. Both may be on their way at a time, in one group of the log
//! or in several. The other one is queued first, so it is durable first. If a group fails, or the queue is refused, every queued write that
//! follows from any is refused too. A write that is queued later is refused if the log has failed since the one that it follows from was
//! queued. So no write is in the log without those that it follows from. Writes that follow from none are not affected.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::StoreError;
use crate::operation::Op;

/// The numbers of logs that were given, in this process.
static LOGS: AtomicU64 = AtomicU64::new(1);

/// The place of a write in the order of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WritePlace {
    log: u64,
    /// The failures of the log before the write was queued.
    failures: u64,
}

impl WritePlace {
    /// A place that no log has: nothing can follow from a write that was never queued.
    pub const NOWHERE: WritePlace = WritePlace { log: 0, failures: 0 };

    /// Returns the place of two writes from both of which another one follows. No log has it if they are in different logs.
    pub fn of_both(self, other: WritePlace) -> WritePlace {
        match self.log == other.log {
            true => WritePlace {
                log: self.log,
                failures: self.failures.min(other.failures),
            },
            false => WritePlace::NOWHERE,
        }
    }
}

/// The turn of a write among those that it follows from, and those that follow from it. It is dropped once the write has been applied, or never
/// will be.
pub trait WriteTurn: Send + Sync {
    /// Returns the place of the writes that this one follows from. `None` if it follows from none.
    fn follows(&self) -> Option<WritePlace>;

    /// Takes note that the write has been queued: others may follow from it. Called under the log's lock.
    fn queued(&self, place: WritePlace);

    /// Ends what kept others from being queued; called after [`WriteTurn::queued`], under no lock.
    fn passed(&self);
}

/// The failures of a log.
pub(super) struct LogFailures {
    log: u64,
    count: u64,
    last: Option<StoreError>,
}

impl LogFailures {
    pub fn of_new_log() -> LogFailures {
        LogFailures {
            log: LOGS.fetch_add(1, Ordering::Relaxed),
            count: 0,
            last: None,
        }
    }

    /// Adds a failure. What was queued before may be lost.
    pub fn add(&mut self, error: &StoreError) {
        self.count += 1;
        self.last = Some(error.clone());
    }

    /// Returns the place of a write that is queued now.
    pub fn place(&self) -> WritePlace {
        WritePlace {
            log: self.log,
            failures: self.count,
        }
    }

    pub fn are_of_log_of(&self, place: WritePlace) -> bool {
        self.log == place.log
    }

    /// Returns the reason why a write cannot be queued: what it follows from may be lost. `None` if it can.
    pub fn refusal(&self, follows: Option<WritePlace>, ops: &[Op]) -> Option<StoreError> {
        let follows = follows.filter(|follows| *follows != self.place())?;
        let token = ops.first().map_or(0, |op| op.token);
        match &self.last {
            Some(error) if self.are_of_log_of(follows) => Some(error.clone()),
            // The tablets have changed their log since, as those do that were lost and opened again.
            _ => Some(StoreError::NotOwned(token)),
        }
    }
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
