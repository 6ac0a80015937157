//! Counters that operators and metrics read.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::cache::RowCacheStats;
use crate::layout::TokenRange;
use crate::remote::BucketStats;

#[derive(Debug, Default)]
pub(crate) struct LogCounters {
    pub groups: AtomicU64,
    pub records: AtomicU64,
    pub syncs: AtomicU64,
    pub bytes: AtomicU64,
    pub sync_nanos: AtomicU64,
    pub failures: AtomicU64,
}

/// The log since the store was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Group commits; `records / groups` is the mean size of a group.
    pub groups: u64,
    pub records: u64,
    pub syncs: u64,
    pub bytes: u64,
    /// Time spent in writing and syncing, in ns.
    pub sync_nanos: u64,
    /// Groups that could not be written.
    pub failures: u64,
    /// Segments in the folder, and the bytes of frames in them.
    pub segments: u64,
    pub live_bytes: u64,
}

impl LogCounters {
    pub fn read(&self) -> LogStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LogStats {
            groups: get(&self.groups),
            records: get(&self.records),
            syncs: get(&self.syncs),
            bytes: get(&self.bytes),
            sync_nanos: get(&self.sync_nanos),
            failures: get(&self.failures),
            segments: 0,
            live_bytes: 0,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct TabletCounters {
    pub batches: AtomicU64,
    pub operands: AtomicU64,
    /// Rows written as a whole because the row cache knew them.
    pub folded: AtomicU64,
    pub gets: AtomicU64,
    pub scans: AtomicU64,
}

/// One tablet.
#[derive(Debug, Clone, PartialEq)]
pub struct TabletStats {
    pub id: u32,
    pub tokens: TokenRange,
    /// SlateDB batches written, and the operands in them.
    pub batches: u64,
    pub operands: u64,
    pub folded: u64,
    pub gets: u64,
    pub scans: u64,
    /// Files and bytes of the LSM tree, as of its manifest.
    pub level0_files: u64,
    pub sorted_runs: u64,
    pub data_bytes: u64,
    /// Reads of slices of partitions, the rows that they gave, and the rows that they stepped over because nothing of them is alive.
    pub slices: u64,
    pub rows_live: u64,
    pub rows_dead: u64,
    pub row_cache: RowCacheStats,
}

/// What tablets have counted while they were open here, those that are open no more too, so that it never goes back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TabletTotals {
    pub batches: u64,
    pub operands: u64,
    pub gets: u64,
    pub scans: u64,
    pub slices: u64,
    pub rows_live: u64,
    pub rows_dead: u64,
    pub row_cache_hits: u64,
    pub row_cache_misses: u64,
}

impl TabletTotals {
    pub(crate) fn add(&mut self, tablet: &TabletStats) {
        self.batches += tablet.batches;
        self.operands += tablet.operands;
        self.gets += tablet.gets;
        self.scans += tablet.scans;
        self.slices += tablet.slices;
        self.rows_live += tablet.rows_live;
        self.rows_dead += tablet.rows_dead;
        self.row_cache_hits += tablet.row_cache.hits;
        self.row_cache_misses += tablet.row_cache.misses;
    }
}

/// All that a store counts. Its size does not grow with the number of tables.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreStats {
    pub log: LogStats,
    pub tablets: Vec<TabletStats>,
    pub totals: TabletTotals,
    /// Bytes of writes between their submission and their acknowledgement.
    pub in_flight_bytes: u64,
    /// Bytes that are staged or in memtables, about.
    pub memtable_bytes: u64,
    pub flushes: u64,
    pub compactions_running: u64,
    pub compacted_bytes: u64,
    /// Times that writes waited for memtables to be flushed.
    pub back_pressure: u64,
    pub block_cache_bytes: u64,
    pub block_cache_hits: u64,
    pub block_cache_misses: u64,
    /// Blocks of data that were read from files, and indexes and filters of SSTables.
    pub block_reads: u64,
    pub index_reads: u64,
    /// Of a local store.
    pub disk_free_bytes: Option<u64>,
    /// Of a store in a bucket.
    pub bucket: Option<BucketStats>,
}
