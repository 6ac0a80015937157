//! Compaction of a tablet: which runs are compacted, when, and which entries are purged.
//!
//! SlateDB's size-tiered scheduler keeps the number of runs low. [`scheduler`] adds the needs of tombstones: young runs are compacted when
//! reads pass too many dead rows ([`read_trigger`]), and all runs when the young ones cover enough of the older ones. [`filter`] purges a
//! tombstone not only at the last run but wherever the Bloom filters of the older runs ([`overlap`]) show that they lack its key.
//!
//! A tombstone stays while data newer than the compacted files may hold an entry that it shadows ([`write_times`]). While a compaction
//! purges the deletion of a partition, rows of that partition are not cached ([`crate::cache::generations`]).
//!
//! [`CompactionState`] connects these parts. It is not stored: after a restart the statistics of a run are unknown until it is compacted
//! again.

mod document;
mod elsewhere;
mod filter;
mod history;
mod overlap;
mod read_trigger;
mod scheduler;
mod state;
mod write_times;

use std::time::Duration;

use slatedb::config::{CompactionWorkerOptions, CompactorOptions, CompressionCodec};

use crate::config::StoreConfig;
pub(crate) use document::check as check_document;
pub(crate) use elsewhere::CompactorPresence;
pub(crate) use filter::Filters;
pub(crate) use history::CompactionHistory;
pub use history::{CompactionId, EndedCompaction, RunningCompaction};
pub(crate) use overlap::Tables;
pub(crate) use read_trigger::TombstoneTrigger;
pub(crate) use scheduler::SchedulerFactory;
pub(crate) use state::CompactionState;
pub(crate) use write_times::{OldestByTable, see};

/// SSTables of fewer keys have no filter. Each has one, since a key that the filter excludes needs no read.
pub(crate) const MIN_FILTER_KEYS: u32 = 1;
/// Bytes that a compaction reads ahead of each of its inputs, twice.
const READ_AHEAD_BYTES: usize = 512 << 10;
/// Compactions' output is cut into files of this size. Of one its filter and its index are in memory until it is whole.
const FILE_BYTES: usize = 128 << 20;
/// How often a worker shows that it still does a compaction that it has claimed.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
/// A worker that has shown nothing for so long is gone, and its compactions are given to another. Meanwhile files pile up at level 0, and
/// writers wait once these are as many as there may be.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(15);

/// Parts of compactions that run at a time, of all tablets.
pub(crate) fn slots(config: &StoreConfig) -> usize {
    config.background_threads + 1
}

/// How compactions run. Those that compactors elsewhere do are only scheduled and committed here.
pub(crate) fn options(config: &StoreConfig, are_elsewhere: bool) -> CompactorOptions {
    CompactorOptions {
        poll_interval: config.compaction_poll_interval,
        commit_compacted_interval: config.compaction_poll_interval.min(Duration::from_secs(1)),
        max_concurrent_compactions: 2,
        checkpoint_lifetime: config.garbage_age,
        worker_heartbeat_timeout: HEARTBEAT_TIMEOUT,
        worker: (!are_elsewhere).then(|| worker_options(config)),
        ..CompactorOptions::default()
    }
}

/// How one process does compactions.
pub(crate) fn worker_options(config: &StoreConfig) -> CompactionWorkerOptions {
    CompactionWorkerOptions {
        max_concurrent_compactions: 2,
        heartbeat_interval: HEARTBEAT_INTERVAL,
        compactions_poll_interval: config.compaction_poll_interval,
        max_subcompactions: config.background_threads.clamp(1, 4),
        max_sst_size: FILE_BYTES,
        bytes_to_fetch: READ_AHEAD_BYTES,
        max_fetch_tasks: 2,
        min_filter_keys: MIN_FILTER_KEYS,
        compression_codec: Some(CompressionCodec::Lz4),
        ..CompactionWorkerOptions::default()
    }
}
