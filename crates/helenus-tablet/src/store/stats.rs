//! Counters that operators and metrics read.

use std::time::Duration;

use crate::bucket::metered_object_store::BucketStats;
use crate::cache::disk::DiskCacheStats;
use crate::cache::row_cache::RowCacheStats;
use crate::log::stats::LogStats;
use crate::tablet::stats::{TabletStats, TabletTotals};

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
    pub row_cache: RowCacheStats,
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
    /// Of a store in a bucket that has a disk cache.
    pub disk_cache: Option<DiskCacheStats>,
    /// Of a store that is only read: the time since which nothing new was read from the bucket.
    pub refresh_age: Option<Duration>,
}
