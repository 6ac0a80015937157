//! Compactions that other processes do ([`crate::store::bucket::compactor`]).
//!
//! A tablet's owner schedules and commits all compactions; while a compactor is present it leaves the work to it. A compactor purges
//! nothing, because only the owner knows what memory and log hold. So compactions that are to purge are the owner's own, and so are those
//! that no compactor has claimed in time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use slatedb::compactor::{Compaction, CompactionStatus};

/// A scheduled compaction that no compactor has claimed for so long is done by the owner.
const UNCLAIMED_MAX: Duration = Duration::from_secs(20);

/// Whether any compactor runs beside the nodes of the store.
#[derive(Debug, Default)]
pub(crate) struct CompactorPresence(AtomicBool);

impl CompactorPresence {
    pub fn is_present(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Records it; true if it was otherwise before.
    pub fn set(&self, is_present: bool) -> bool {
        self.0.swap(is_present, Ordering::AcqRel) != is_present
    }
}

/// Who does the compactions of one tablet.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere {
    is_on: AtomicBool,
    needs_owner: AtomicBool,
    /// The oldest compaction that was not claimed when the owner looked last, and since when.
    unclaimed: Mutex<Option<(u128, Instant)>>,
}

impl Elsewhere {
    /// Returns a compactor instance of the owner begins: true if compactors elsewhere are to do its work.
    pub fn begin(&self, presence: &CompactorPresence) -> bool {
        let is_on = !self.needs_owner.swap(false, Ordering::AcqRel) && presence.is_present();
        *self.unclaimed.lock() = None;
        self.is_on.store(is_on, Ordering::Release);
        is_on
    }

    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// The owner is to do the next compactions.
    pub fn need_owner(&self) {
        self.needs_owner.store(true, Ordering::Release);
    }

    pub fn needs_owner(&self) -> bool {
        self.needs_owner.load(Ordering::Acquire)
    }

    /// Takes note of the compactions that are scheduled.
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
