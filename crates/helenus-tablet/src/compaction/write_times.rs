//! The oldest timestamps of data that is newer than the inputs of a compaction.
//!
//! A tombstone shadows by timestamp, regardless of where the shadowed entry lies: in memory, in the log, or in files that were written
//! later. All data newer than the inputs of a compaction has greater sequence numbers. So the oldest timestamp is kept for each range of
//! sequence numbers, by table.

use std::collections::VecDeque;

use hashbrown::HashMap;
use parking_lot::Mutex;

/// Maximum number of ranges. Beyond it, the older half is joined in pairs.
const RANGES_MAX: usize = 256;
/// Number of the latest flushes whose ends stay boundaries of ranges. For a compaction of older files, the result covers more writes than
/// necessary, which is safe.
const FLUSHES_MAX: usize = 16;

/// The oldest timestamp of writes, in µs, by table.
pub(crate) type OldestByTable = HashMap<u32, i64>;

/// Records a write.
pub(crate) fn see(oldest: &mut OldestByTable, table: u32, timestamp_us: i64) {
    let oldest = oldest.entry(table).or_insert(timestamp_us);
    *oldest = timestamp_us.min(*oldest);
}

/// Oldest timestamps of the writes up to a sequence number, from the end of the previous range.
struct SequenceRange {
    up_to: u64,
    oldest: OldestByTable,
}

#[derive(Default)]
struct SequenceRanges {
    /// Sequence number up to which writes are unknown. `None` if all are unknown, as before the log is replayed.
    unknown_up_to: Option<u64>,
    ranges: VecDeque<SequenceRange>,
    /// Last sequence numbers of the latest flushes.
    flushes: VecDeque<u64>,
}

/// Write times of a tablet.
#[derive(Default)]
pub(crate) struct WriteTimes(Mutex<SequenceRanges>);

impl WriteTimes {
    /// Begins the recording: all writes newer than `seq` are known from now on.
    pub fn begin(&self, seq: u64) {
        self.0.lock().unknown_up_to = Some(seq);
    }

    /// Ends the recording: writes are unknown from now on.
    pub fn end(&self) {
        self.0.lock().unknown_up_to = None;
    }

    /// Records the writes up to the sequence number `up_to`, which is the last one so far.
    pub fn record(&self, up_to: u64, oldest: OldestByTable) {
        if oldest.is_empty() {
            return;
        }
        let mut state = self.0.lock();
        state.ranges.push_back(SequenceRange { up_to, oldest });
        if state.ranges.len() > RANGES_MAX {
            state.join_older_half();
        }
    }

    /// Records that writes up to `seq` are in files.
    pub fn flushed(&self, seq: u64) {
        let mut state = self.0.lock();
        if state.flushes.back() == Some(&seq) {
            return;
        }
        state.flushes.push_back(seq);
        if state.flushes.len() > FLUSHES_MAX {
            state.flushes.pop_front();
        }
        let Some(past) = state.flushes.front().copied() else {
            return;
        };
        while let [first, second, ..] = state.ranges.make_contiguous()
            && first.up_to <= past
            && second.up_to <= past
        {
            state.join(0);
        }
    }

    /// Returns the oldest timestamps of writes newer than `seq`. `None` if unknown.
    pub fn newer_than(&self, seq: u64) -> Option<OldestByTable> {
        let state = self.0.lock();
        state.unknown_up_to.filter(|unknown| *unknown <= seq)?;
        let mut oldest = OldestByTable::new();
        for range in state.ranges.iter().rev().take_while(|range| range.up_to > seq) {
            range
                .oldest
                .iter()
                .for_each(|(table, us)| see(&mut oldest, *table, *us));
        }
        Some(oldest)
    }
}

impl SequenceRanges {
    /// Joins the range at index `at` with the next one.
    fn join(&mut self, at: usize) {
        let Some(first) = self.ranges.remove(at) else {
            return;
        };
        if let Some(second) = self.ranges.get_mut(at) {
            for (table, us) in first.oldest {
                see(&mut second.oldest, table, us);
            }
        }
    }

    /// Joins the older half of the ranges in pairs. The ends of flushes stay boundaries, because compactions begin there.
    fn join_older_half(&mut self) {
        let mut at = 0;
        while at < self.ranges.len() / 2 {
            let ends_flush = |range: &SequenceRange| self.flushes.contains(&range.up_to);
            if !self.ranges.get(at).is_none_or(ends_flush) {
                self.join(at);
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(table: u32, us: i64) -> OldestByTable {
        OldestByTable::from([(table, us)])
    }

    #[test]
    fn newer_write_times_are_reported_by_table() {
        let times = WriteTimes::default();
        times.record(11, one(1, 500));
        assert_eq!(times.newer_than(u64::MAX), None, "the log is being replayed");
        times.begin(10);
        times.record(12, one(2, 90));
        times.record(13, one(1, 600));
        assert_eq!(times.newer_than(9), None);
        assert_eq!(
            times.newer_than(10),
            Some(OldestByTable::from([(1, 500), (2, 90)]))
        );
        assert_eq!(
            times.newer_than(11),
            Some(OldestByTable::from([(1, 600), (2, 90)]))
        );
        assert_eq!(times.newer_than(13), Some(OldestByTable::new()));
        times.end();
        assert_eq!(times.newer_than(13), None);
    }

    #[test]
    fn many_stretches_become_few_and_never_tell_too_young_a_time() {
        let times = WriteTimes::default();
        times.begin(0);
        let written: Vec<i64> = (0..5000)
            .map(|seq| seq * 10 - 700 * i64::from(seq % 97 == 0))
            .collect();
        for (seq, us) in written.iter().enumerate() {
            times.record(seq as u64, one(1, *us));
            if seq % 500 == 0 {
                times.flushed(seq as u64);
            }
        }
        assert!(times.0.lock().ranges.len() <= RANGES_MAX);
        for flushed in (0..5000).step_by(250) {
            let reported = times.newer_than(flushed as u64).unwrap()[&1];
            let oldest = written[flushed + 1..].iter().min().unwrap();
            assert!(reported <= *oldest);
            if flushed % 500 == 0 {
                assert_eq!(reported, *oldest, "compactions begin at flushes");
            }
        }
        for seq in 5000..5000 + FLUSHES_MAX as u64 {
            times.flushed(seq);
        }
        assert_eq!(times.0.lock().ranges.len(), 1);
    }
}
