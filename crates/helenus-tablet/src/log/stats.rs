//! Counters of the log.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::measurement::nanos;

#[derive(Debug, Default)]
pub(crate) struct LogCounters {
    pub groups: AtomicU64,
    pub records: AtomicU64,
    pub syncs: AtomicU64,
    pub bytes: AtomicU64,
    pub sync_nanos: AtomicU64,
    pub failures: AtomicU64,
}

/// Counters of the log since the store was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Number of group commits. `records / groups` is the mean size of a group.
    pub groups: u64,
    pub records: u64,
    /// Number of writes that wait for the next group.
    pub queued: u64,
    pub syncs: u64,
    pub bytes: u64,
    /// Time spent on writing and syncing, in ns.
    pub sync_nanos: u64,
    /// Number of groups that could not be written.
    pub failures: u64,
    /// Current segments, and the bytes of frames in them.
    pub segments: u64,
    pub live_bytes: u64,
}

impl LogStats {
    /// Adds the counters of another log.
    pub(crate) fn add(&mut self, other: &LogStats) {
        self.groups += other.groups;
        self.records += other.records;
        self.queued += other.queued;
        self.syncs += other.syncs;
        self.bytes += other.bytes;
        self.sync_nanos += other.sync_nanos;
        self.failures += other.failures;
        self.segments += other.segments;
        self.live_bytes += other.live_bytes;
    }
}

impl LogCounters {
    /// Counts a group that was written and synced.
    pub fn add_sync(&self, bytes: u64, took: Duration) {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.sync_nanos.fetch_add(nanos(took), Ordering::Relaxed);
    }

    pub fn read(&self) -> LogStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LogStats {
            groups: get(&self.groups),
            records: get(&self.records),
            queued: 0,
            syncs: get(&self.syncs),
            bytes: get(&self.bytes),
            sync_nanos: get(&self.sync_nanos),
            failures: get(&self.failures),
            segments: 0,
            live_bytes: 0,
        }
    }
}
