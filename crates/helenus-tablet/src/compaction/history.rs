//! The running compactions of a store, and those that have ended recently.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Maximum number of ended compactions that are kept.
const KEPT_MAX: usize = 1000;

/// Identifies a compaction within a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionId {
    /// Time at which the compaction was scheduled, in ms since the Unix epoch.
    pub began_ms: u64,
    /// Serial number within the process.
    pub number: u64,
}

impl CompactionId {
    pub(crate) fn next(now_ms: u64) -> CompactionId {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        CompactionId {
            began_ms: now_ms,
            number: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }
}

/// A compaction that is scheduled or running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunningCompaction {
    pub id: CompactionId,
    pub tablet: u32,
    /// Number of input files.
    pub files: usize,
    /// Bytes of rows processed so far, at most `input_bytes`. 0 if another process does the compaction.
    pub done_bytes: u64,
    /// Bytes of the input files. 0 if an earlier process scheduled the compaction.
    pub input_bytes: u64,
}

/// A compaction that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedCompaction {
    pub id: CompactionId,
    pub tablet: u32,
    /// Time of the end, in ms since the Unix epoch.
    pub ended_ms: u64,
    pub input_bytes: u64,
    pub output_bytes: u64,
}

/// The most recent compactions of a store.
#[derive(Debug, Default)]
pub(crate) struct CompactionHistory {
    ended: Mutex<VecDeque<EndedCompaction>>,
}

impl CompactionHistory {
    pub fn add(&self, compaction: EndedCompaction) {
        let mut ended = self.ended.lock();
        if ended.len() >= KEPT_MAX {
            ended.pop_front();
        }
        ended.push_back(compaction);
    }

    /// Returns the ended compactions, oldest first.
    pub fn list(&self) -> Vec<EndedCompaction> {
        self.ended.lock().iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten() {
        let history = CompactionHistory::default();
        for ended_ms in 0..KEPT_MAX as u64 + 3 {
            history.add(EndedCompaction {
                id: CompactionId::next(0),
                tablet: 1,
                ended_ms,
                input_bytes: 2,
                output_bytes: 1,
            });
        }
        let list = history.list();
        assert_eq!((list.len(), list[0].ended_ms), (KEPT_MAX, 3));
        assert!(list[0].id.number < list[1].id.number);
    }
}
