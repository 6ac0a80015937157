//! Compaction of a tablet: which runs are compacted, when, and which entries are purged.
//!
//! SlateDB's size-tiered scheduler keeps the number of runs low. [`scheduler`] adds compactions that remove tombstones. Young runs are
//! compacted when reads pass too many dead rows ([`read_trigger`]). All runs are compacted when the young ones cover enough of the older
//! ones. [`filter`] purges a tombstone not only at the last run but wherever the Bloom filters of the older runs ([`overlap`]) show that
//! they lack its key.
//!
//! A tombstone stays while data newer than the compacted files may hold an entry that it shadows ([`write_times`]). While a compaction
//! purges the deletion of a partition, rows of that partition are not cached ([`crate::cache::generations`]).
//!
//! [`CompactionState`] connects these parts. The state is not stored: after a restart, the statistics of a run are unknown until it is
//! compacted again.

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

/// Minimum number of keys of an SSTable with a Bloom filter. Even a tiny SSTable gets one, because a key that the filter excludes needs no
/// read.
pub(crate) const MIN_FILTER_KEYS: u32 = 1;
/// Bytes that a compaction reads ahead of each input. Two such buffers are used for each.
const READ_AHEAD_BYTES: usize = 512 << 10;
/// Maximum bytes of an output file. The filter and the index of a file are in memory until the file is complete.
const FILE_BYTES: usize = 128 << 20;
/// Interval at which a worker renews its claims of compactions.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
/// Time without a renewal after which a worker's compactions are given to another worker. Meanwhile files accumulate at level 0, and
/// writers wait once the limit of files is reached.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(15);

/// Returns the number of parts of compactions that run concurrently, over all tablets.
pub(crate) fn slots(config: &StoreConfig) -> usize {
    config.background_threads + 1
}

/// Returns the options of a tablet's compactor. If `are_elsewhere`, this process only schedules and commits compactions.
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

/// Returns the options of a process that executes compactions.
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
