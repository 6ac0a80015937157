//! The segments of a log that are still needed, and the log's counters. Shared by the log thread and maintenance.

use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::Mutex;

use super::high_water_mark::{HighWaterMark, LogPosition};
use super::stats::{LogCounters, LogStats};

/// A segment of the log: a file, or an object of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SegmentInfo {
    pub number: u64,
    /// Bytes of the header and the valid frames.
    pub bytes: u64,
    /// Number of the last record of each tablet in this segment.
    pub last_lsn: Vec<(u32, u64)>,
    /// True while frames may still be appended.
    pub active: bool,
}

impl SegmentInfo {
    pub fn new(number: u64, bytes: u64) -> SegmentInfo {
        SegmentInfo {
            number,
            bytes,
            last_lsn: Vec::new(),
            active: true,
        }
    }

    /// Records that the segment has a record of a tablet.
    pub fn add(&mut self, tablet: u32, lsn: u64) {
        match self.last_lsn.iter_mut().find(|(id, _)| *id == tablet) {
            Some((_, last)) => *last = lsn.max(*last),
            None => self.last_lsn.push((tablet, lsn)),
        }
    }
}

/// Returns the number of the newest of these segments. 0 if there is none.
pub(crate) fn newest(segments: &[SegmentInfo]) -> u64 {
    segments.last().map_or(0, |segment| segment.number)
}

/// The segments of a log that are still needed, and the log's counters.
#[derive(Default)]
pub(crate) struct Ledger {
    /// Segments, oldest first.
    pub segments: Mutex<Vec<SegmentInfo>>,
    /// End of the frames that are in the log.
    reached: Mutex<LogPosition>,
    pub counters: LogCounters,
    /// The high-water mark of a log in a folder. Unset for other logs.
    pub high_water_mark: OnceLock<HighWaterMark>,
}

impl Ledger {
    /// Adds a new segment without frames.
    pub fn begin_segment(&self, segment: SegmentInfo) {
        self.note_reached(segment.number, segment.bytes);
        self.segments.lock().push(segment);
    }

    /// Records the end of the log's frames.
    pub fn note_reached(&self, segment: u64, offset: u64) {
        *self.reached.lock() = LogPosition { segment, offset };
    }

    /// Returns the end of the log's frames. Exact on the log thread, between two groups.
    pub fn reached(&self) -> LogPosition {
        *self.reached.lock()
    }

    /// Returns the number of the newest segment. 0 if there is none.
    pub fn newest(&self) -> u64 {
        newest(&self.segments.lock())
    }

    /// Records a group that was appended to the newest segment, which now has `bytes` bytes.
    pub fn record(&self, last_lsn: impl Iterator<Item = (u32, u64)>, bytes: u64) {
        let mut segments = self.segments.lock();
        let Some(newest) = segments.last_mut() else { return };
        newest.bytes = bytes;
        self.note_reached(newest.number, bytes);
        for (tablet, lsn) in last_lsn {
            newest.add(tablet, lsn);
        }
    }

    /// Marks the newest segment as closed.
    pub fn end_segment(&self) {
        if let Some(newest) = self.segments.lock().last_mut() {
            newest.active = false;
        }
    }

    /// Records a group that is a segment of its own.
    pub fn add_segment(&self, number: u64, bytes: u64, took: Duration) {
        self.end_segment();
        self.begin_segment(SegmentInfo::new(number, bytes));
        self.counters.add_sync(bytes, took);
    }

    /// Writes the end of the newest segment to the high-water mark, if the log has one.
    pub fn note_end(&self) {
        let Some(high_water_mark) = self.high_water_mark.get() else {
            return;
        };
        let newest = self.segments.lock().last().map(|segment| LogPosition {
            segment: segment.number,
            offset: segment.bytes,
        });
        if let Some(newest) = newest {
            high_water_mark.note(newest);
        }
    }

    /// Returns the counters, with the number and the bytes of the current segments.
    pub fn stats(&self) -> LogStats {
        let mut stats = self.counters.read();
        let segments = self.segments.lock();
        stats.segments = segments.len() as u64;
        stats.live_bytes = segments.iter().map(|segment| segment.bytes).sum();
        stats
    }
}
