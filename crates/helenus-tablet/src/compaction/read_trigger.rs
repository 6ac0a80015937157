//! Decides from the tombstones that reads pass whether a compaction is due.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::CompactionState;

/// One dead row in this many slices is too much.
const SLICES_PER_DEAD: u64 = 20;
/// Fewer dead rows are not worth a compaction.
const DEAD_MIN: u64 = 100;
/// The least pause between compactions. Tombstones are kept for a grace period, so more frequent compactions would purge little.
const INTERVAL: Duration = Duration::from_secs(4);
/// The period over which reads are counted.
const WINDOW: Duration = Duration::from_secs(2);

/// One tablet's reads when they were last looked at.
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

    /// Returns true if reads have met too much that is dead, and compactions have rested.
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
