//! Decides whether a compaction is due, from the number of tombstones that reads pass.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::CompactionState;

/// Threshold of slices for each dead row. With fewer slices than this, a compaction is due.
const SLICES_PER_DEAD: u64 = 20;
/// Minimum number of dead rows that justifies a compaction.
const DEAD_MIN: u64 = 100;
/// Minimum pause between compactions. Tombstones are kept for a grace period, so more frequent compactions would purge little.
const INTERVAL: Duration = Duration::from_secs(4);
/// The period over which reads are counted.
const WINDOW: Duration = Duration::from_secs(2);

/// Counters of a tablet's reads at the last check.
pub(crate) struct TombstoneTrigger {
    slices: u64,
    dead: u64,
    at: Instant,
}

impl TombstoneTrigger {
    pub fn new() -> TombstoneTrigger {
        TombstoneTrigger {
            slices: 0,
            dead: 0,
            at: Instant::now(),
        }
    }

    /// Returns true if reads have passed too many dead rows since the last check, and the last compaction is long enough ago.
    pub fn is_due(&mut self, compactions: &CompactionState) -> bool {
        if self.at.elapsed() < WINDOW || !compactions.is_rested(INTERVAL) {
            return false;
        }
        let slices = compactions.reads.slices.load(Ordering::Relaxed);
        let dead = compactions.reads.dead.load(Ordering::Relaxed);
        let (new_slices, new_dead) = (slices - self.slices, dead - self.dead);
        *self = TombstoneTrigger {
            slices,
            dead,
            at: Instant::now(),
        };
        new_dead >= DEAD_MIN && new_dead * SLICES_PER_DEAD > new_slices
    }
}
