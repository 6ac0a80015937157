//! Throttles writers before the tree has to stop them.
//!
//! Flushes and compactions have a lower priority than requests and fall behind under full load. Without throttling, SlateDB's backpressure
//! would stop all writes for half a second at a time. Instead the log pauses between two groups. The pause grows with the backlog of a
//! tablet, until writers and background work are in balance.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Backlog, in thousandths of the largest, up to which writers do not wait: half of a tablet's memory is flushed while more gathers.
const FREE: u32 = 600;
/// The largest backlog, in thousandths.
const ALL: u32 = 1000;
/// Pause of the log between two groups at the largest backlog.
const PAUSE_MAX: Duration = Duration::from_millis(10);
/// The rows that a tablet has yet to flush and the files that it has yet to compact.
pub(crate) struct CompactionBacklog {
    /// The backlog in thousandths of the largest.
    permille: AtomicU32,
    memtable_bytes: u64,
    level0_max: u64,
}

impl CompactionBacklog {
    /// Creates the backlog of a tablet that may hold `memtable_bytes` in memory and `level0_max` files at level 0.
    pub fn new(memtable_bytes: u64, level0_max: usize) -> CompactionBacklog {
        CompactionBacklog {
            permille: AtomicU32::new(0),
            memtable_bytes: memtable_bytes.max(1),
            level0_max: level0_max.max(1) as u64,
        }
    }

    /// Records the bytes in memory and the number of files at level 0.
    pub fn update(&self, bytes: usize, level0_files: usize) {
        let memory = permille(bytes as u64, self.memtable_bytes);
        let files = permille(level0_files as u64, self.level0_max);
        self.permille.store(memory.max(files), Ordering::Relaxed);
    }

    /// Returns the time that the log has to wait before it takes the next group.
    pub fn pause(&self) -> Duration {
        pause(self.permille.load(Ordering::Relaxed), PAUSE_MAX)
    }
}

fn pause(owed_permille: u32, longest: Duration) -> Duration {
    let above = owed_permille.saturating_sub(FREE);
    longest.mul_f64((f64::from(above) / f64::from(ALL - FREE)).powi(2))
}

fn permille(part: u64, whole: u64) -> u32 {
    let permille = part.saturating_mul(u64::from(ALL)) / whole;
    u32::try_from(permille).unwrap_or(ALL).min(ALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_with_what_is_not_flushed_and_end_with_it() {
        let backlog = CompactionBacklog::new(1000, 16);
        backlog.update(500, 0);
        assert_eq!(backlog.pause(), Duration::ZERO);
        backlog.update(800, 0);
        let some = backlog.pause();
        assert!(some > Duration::ZERO && some < PAUSE_MAX, "{some:?}");
        backlog.update(5000, 0);
        assert_eq!(backlog.pause(), PAUSE_MAX);
        backlog.update(1, 0);
        assert_eq!(backlog.pause(), Duration::ZERO);
    }

    #[test]
    fn files_that_wait_for_compaction_count_too() {
        let backlog = CompactionBacklog::new(1000, 16);
        backlog.update(1, 16);
        assert_eq!(backlog.pause(), PAUSE_MAX);
        backlog.update(2, 5);
        assert_eq!(backlog.pause(), Duration::ZERO);
    }
}
