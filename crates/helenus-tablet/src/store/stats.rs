//! Counters that operators and metrics read.

use std::time::Duration;

use crate::bucket::metered_object_store::BucketStats;
use crate::cache::disk::DiskCacheStats;
use crate::cache::row_cache::RowCacheStats;
use crate::log::stats::LogStats;
use crate::tablet::stats::{TabletStats, TabletTotals};

/// All counters of a store. Their size does not grow with the number of tables.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreStats {
    pub log: LogStats,
    pub tablets: Vec<TabletStats>,
    pub totals: TabletTotals,
    /// Bytes of writes between their submission and their acknowledgement.
    pub in_flight_bytes: u64,
    /// Approximate bytes that are staged or in memtables.
    pub memtable_bytes: u64,
    pub flushes: u64,
    pub compactions_running: u64,
    pub compacted_bytes: u64,
    /// Number of times that writes waited for memtables to be flushed.
    pub back_pressure: u64,
    pub row_cache: RowCacheStats,
    pub block_cache_bytes: u64,
    pub block_cache_hits: u64,
    pub block_cache_misses: u64,
    /// Blocks of data, and indexes and filters of SSTables, that were read from files.
    pub block_reads: u64,
    pub index_reads: u64,
    /// Free bytes on the disk of a local store. `None` for a store in a bucket.
    pub disk_free_bytes: Option<u64>,
    /// Counters of requests to the bucket. `None` for a local store.
    pub bucket: Option<BucketStats>,
    /// Counters of the disk cache. `None` if the store has none.
    pub disk_cache: Option<DiskCacheStats>,
    /// Time since the last successful refresh of a read-only store began. `None` for other stores.
    pub refresh_age: Option<Duration>,
}
