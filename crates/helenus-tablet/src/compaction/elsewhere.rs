//! Compactions by other processes ([`crate::store::bucket::compactor`]).
//!
//! A tablet's owner schedules and commits all compactions. While a compactor is present, the owner leaves the work to it. A compactor
//! purges nothing, because only the owner knows the content of memory and log. So the owner itself runs the compactions that shall purge,
//! and those that no compactor has claimed in time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use slatedb::compactor::{Compaction, CompactionStatus};

/// Time after which the owner runs a scheduled compaction that no compactor has claimed.
const UNCLAIMED_MAX: Duration = Duration::from_secs(20);

/// Presence of a compactor process beside the nodes of the store.
#[derive(Debug, Default)]
pub(crate) struct CompactorPresence(AtomicBool);

impl CompactorPresence {
    pub fn is_present(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Records whether a compactor is present. Returns true if that has changed.
    pub fn set(&self, is_present: bool) -> bool {
        self.0.swap(is_present, Ordering::AcqRel) != is_present
    }
}

/// Decides whether the owner or other processes run the compactions of a tablet.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere {
    is_on: AtomicBool,
    needs_owner: AtomicBool,
    /// The oldest unclaimed compaction at the owner's last look, and the time since when it is known. `None` if all were claimed.
    unclaimed: Mutex<Option<(u128, Instant)>>,
}

impl Elsewhere {
    /// Begins a compactor instance of the owner. Returns true if compactors elsewhere shall do its work.
    pub fn begin(&self, presence: &CompactorPresence) -> bool {
        let is_on = !self.needs_owner.swap(false, Ordering::AcqRel) && presence.is_present();
        *self.unclaimed.lock() = None;
        self.is_on.store(is_on, Ordering::Release);
        is_on
    }

    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// Requests that the owner itself runs the next compactions.
    pub fn need_owner(&self) {
        self.needs_owner.store(true, Ordering::Release);
    }

    pub fn needs_owner(&self) -> bool {
        self.needs_owner.load(Ordering::Acquire)
    }

    /// Checks the scheduled compactions. If one stays unclaimed for too long, the owner takes over.
    pub fn watch<'a>(&self, jobs: impl Iterator<Item = &'a Compaction>) {
        let unclaimed = jobs.filter(|job| job.status() == CompactionStatus::Scheduled);
        let oldest = unclaimed.map(|job| job.id().0).min();
        let mut since = self.unclaimed.lock();
        match (oldest, *since) {
            (None, _) => *since = None,
            (Some(id), Some((before, began))) if id == before => {
                if began.elapsed() > UNCLAIMED_MAX {
                    self.need_owner();
                }
            }
            (Some(id), _) => *since = Some((id, Instant::now())),
        }
    }
}
