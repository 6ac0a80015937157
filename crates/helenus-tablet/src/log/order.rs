//! The order of writes that follow from one another.
//!
//! A write *follows* from another if it was computed from the result of the other one. Both may be pending at a time, in one group of the
//! log or in several. The other one is queued first, so it is durable first. If a group fails, or the queue is refused, every queued write
//! that follows from any write is refused too. A write that is queued later is refused if the log has failed since the write that it
//! follows from was queued. So no write is in the log without those that it follows from. Writes that follow from none are not affected.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::StoreError;
use crate::operation::Op;

/// The next number of a log in this process.
static LOGS: AtomicU64 = AtomicU64::new(1);

/// The place of a write in the order of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WritePlace {
    log: u64,
    /// Number of failures of the log before the write was queued.
    failures: u64,
}

impl WritePlace {
    /// The place of a write that was never queued. No log has this place, so no write can follow from it.
    pub const NOWHERE: WritePlace = WritePlace { log: 0, failures: 0 };

    /// Returns the common place of two writes from both of which another one follows. If the two are in different logs, no log has that
    /// place.
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

/// The turn of a write relative to writes that it follows from or that follow from it. The turn is dropped once the write has been applied,
/// or can never be applied.
pub trait WriteTurn: Send + Sync {
    /// Returns the place of the writes that this one follows from. `None` if it follows from none.
    fn follows(&self) -> Option<WritePlace>;

    /// Returns the reason why the write must not be queued. Called under the log's lock, before [`WriteTurn::queued`]. `None` if it may be.
    fn refusal(&self) -> Option<StoreError> {
        None
    }

    /// Records that the write has been queued, so that other writes may follow from it. Called under the log's lock.
    fn queued(&self, place: WritePlace);

    /// Lets other writes be queued again. Called after [`WriteTurn::queued`], without a lock.
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

    /// Adds a failure. Writes that were queued before it may be lost.
    pub fn add(&mut self, error: &StoreError) {
        self.count += 1;
        self.last = Some(error.clone());
    }

    /// Returns the place of a write that is queued at this time.
    pub fn place(&self) -> WritePlace {
        WritePlace {
            log: self.log,
            failures: self.count,
        }
    }

    pub fn are_of_log_of(&self, place: WritePlace) -> bool {
        self.log == place.log
    }

    /// Returns the reason why a write cannot be queued: a write that it follows from may be lost. `None` if it can be queued.
    pub fn refusal(&self, follows: Option<WritePlace>, ops: &[Op]) -> Option<StoreError> {
        let follows = follows.filter(|follows| *follows != self.place())?;
        let token = ops.first().map_or(0, |op| op.token);
        match &self.last {
            Some(error) if self.are_of_log_of(follows) => Some(error.clone()),
            // The tablets have moved to another log since, for instance because they were lost and opened again.
            _ => Some(StoreError::NotOwned(token)),
        }
    }
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
