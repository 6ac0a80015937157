//! Slows writers down before the tree has to stop them.
//!
//! Flushes and compactions give way to requests, so that under full load they fall behind. Left alone, that would end in SlateDB's
//! back-pressure: nothing for half a second, then everything. Instead the log waits a little between two groups, the longer the more a
//! tablet has yet to flush or to compact, until writers and background are in balance.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// Up to here, in thousandths of what a tablet may owe, nobody waits: a memtable that fills and one that is flushed are not behind.
const FREE: u32 = 350;
/// What a tablet may owe.
const ALL: u32 = 1000;
/// How long the log waits between two groups when a tablet owes all it may.
const PAUSE_MAX: Duration = Duration::from_millis(10);

#[derive(Default)]
struct Unflushed {
    /// The last record of each drained batch that is not in an SSTable, and the batch's bytes.
    batches: VecDeque<(u64, u64)>,
    bytes: u64,
}

/// What a tablet has yet to write to SSTables and to merge.
pub(crate) struct Debt {
    unflushed: Mutex<Unflushed>,
    /// In thousandths of what it may be.
    permille: AtomicU32,
    memtable_bytes: u64,
    level0_max: u64,
}

impl Debt {
    /// For a tablet that may hold `memtable_bytes` in memory and `level0_max` files at level 0.
    pub fn new(memtable_bytes: u64, level0_max: usize) -> Debt {
        Debt {
            unflushed: Mutex::default(),
            permille: AtomicU32::new(0),
            memtable_bytes: memtable_bytes.max(1),
            level0_max: level0_max.max(1) as u64,
        }
    }

    /// Takes note of a batch that was drained, and of what has been flushed since: all records up to `flushed`.
    pub fn drained(&self, last_lsn: u64, bytes: u64, flushed: u64, level0_files: usize) {
        let mut unflushed = self.unflushed.lock();
        unflushed.batches.push_back((last_lsn, bytes));
        unflushed.bytes += bytes;
        while let Some(&(lsn, bytes)) = unflushed.batches.front()
            && lsn <= flushed
        {
            unflushed.bytes -= bytes;
            unflushed.batches.pop_front();
        }
        let memory = permille(unflushed.bytes, self.memtable_bytes);
        let files = permille(level0_files as u64, self.level0_max);
        self.permille.store(memory.max(files), Ordering::Relaxed);
    }

    /// How long the log has to wait before it takes the next group.
    pub fn pause(&self) -> Duration {
        let above = self.permille.load(Ordering::Relaxed).saturating_sub(FREE);
        PAUSE_MAX.mul_f64((f64::from(above) / f64::from(ALL - FREE)).powi(2))
    }
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
        let debt = Debt::new(1000, 16);
        debt.drained(1, 300, 0, 0);
        assert_eq!(debt.pause(), Duration::ZERO);
        debt.drained(2, 300, 0, 0);
        let some = debt.pause();
        assert!(some > Duration::ZERO && some < PAUSE_MAX, "{some:?}");
        debt.drained(3, 5000, 0, 0);
        assert_eq!(debt.pause(), PAUSE_MAX);
        debt.drained(4, 1, 3, 0);
        assert_eq!(debt.pause(), Duration::ZERO);
    }

    #[test]
    fn files_that_wait_for_compaction_count_too() {
        let debt = Debt::new(1000, 16);
        debt.drained(1, 1, 1, 16);
        assert_eq!(debt.pause(), PAUSE_MAX);
        debt.drained(2, 1, 2, 5);
        assert_eq!(debt.pause(), Duration::ZERO);
    }
}
