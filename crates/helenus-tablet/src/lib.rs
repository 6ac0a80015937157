//! Tablets over SlateDB: the storage of one node.
//!
//! A [`Store`] holds every tablet of the node. A [`Tablet`] is a range of Murmur3 tokens in one SlateDB database. Writes are blind merge
//! operands. In a local store all tablets share one log ([`log`]). A write reaches the tablets only after its log record is durable, so a
//! failed write is never visible and an acknowledged one is never lost:
//!
//! ```text
//! Store::write → log queue → log thread (append, one fdatasync for the group)
//!              → each tablet's stage and row cache → the writer is notified
//!              … later, in the background: stage → memtables → one sorted SlateDB batch
//! ```
//!
//! A record's log sequence number is also its SlateDB sequence number and its "WAL file id". Replay is therefore exact: a tablet replays
//! each record above its manifest's `replay_after_wal_id` once.
//!
//! The modules, from the lowest layer up; each uses only the modules before it:
//!
//! | module | contents |
//! |---|---|
//! | `checksum`, `machine`, `object_store_layers`, `priority`, `threads`, `trace`, `error`, `failure_streak`, `throttle`, `config`, `clock`, `operation` | shared basics |
//! | `data_model` | the callbacks by which the crates above define merge and purge ([`DataModel`]) |
//! | `disk` | files on the local disk: SSTables, checksums, free space, permissions |
//! | `log` | the commit log of a local store |
//! | `metadata` | records of a store about itself: format, inventory, small documents |
//! | `bucket` | object stores that nodes share: connection, checks, identity, object store wrappers |
//! | `history` | kept parts of the log, for reads as of an earlier time |
//! | `cache` | row cache, its generations, small partitions, hot keys; disk cache |
//! | `tree` | memtables, SSTables, block cache and merged reads of a tablet |
//! | `stage` | writes that are in the log and not yet in the memtables; backpressure |
//! | `compaction` | what to compact, when, and what to purge |
//! | `database` | settings and setup of a tablet's SlateDB database and its compactor |
//! | `tablet` | one tablet: reads, scans, group commit, flush, late writes, origins, obsolete files |
//! | `store` | all tablets of a node; `store/local` in a folder, `store/bucket` in a bucket |
//! | `backup` | copies of stores in other places: written, verified, opened |
//!
//! The stored bytes are described in `docs/data-layout.md`.
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "unit tests run on the machine")
)]

mod backup;
mod bucket;
mod cache;
mod checksum;
mod clock;
mod compaction;
mod config;
mod data_model;
mod database;
mod disk;
mod error;
mod failure_streak;
mod history;
pub mod log;
mod machine;
mod measurement;
mod metadata;
mod object_store_layers;
mod operation;
mod priority;
mod stage;
mod store;
mod tablet;
pub mod threads;
mod throttle;
pub mod trace;
mod tree;

/// Boxes the future of an `async fn` that other crates call.
///
/// An unboxed future is compiled by each crate that polls it, together with all futures inside it: by the next crate, the binary and each
/// test. A boxed one is compiled once, in the crate of its function. The price is one allocation for each call.
pub(crate) use async_recursion::async_recursion as boxed;

pub use backup::copying::{BackupOrder, BackupReport};
pub use backup::document::{
    BackupContent, BackupDocument, BackupFile, BackupHistory, BackupSchemaChange, BackupTablet, backup_name,
    check_backup_name,
};
pub use backup::key::BackupKey;
pub use backup::location::{BackupLocation, Listed, refuse_unless_empty};
pub use backup::retention::Keep;
pub use backup::verification::{BackupChecks, BackupProblem, VerifiedBackups, VerifiedTimes, manifest_of};
pub use bucket::availability::{may_pass, why_unavailable};
pub use bucket::connection::plain_client;
#[doc(hidden)]
pub use bucket::connection::set_memory_store;
pub use bucket::metered_object_store::{BUCKET_LATENCY_MS, BucketLatency, BucketStats};
pub use bucket::restore_copy::CopyRestore;
pub use bucket::store_documents::StoreDocuments;
pub use cache::disk::DiskCacheStats;
pub use cache::partition_cache::KeptRows;
pub use cache::row_cache::RowCacheStats;
pub use clock::CommitTime;
pub use compaction::{CompactionId, EndedCompaction, RunningCompaction};
pub use config::{SaslMechanism, StoreConfig, StoreUrl, TopicConfig, TopicUrl};
pub use data_model::{
    ArchiveKeys, CompactFilter, CompactionContext, DataModel, DataModelError, Decision, FilterOutcome,
    KeptPartition, KeyLayout, MinNewerTimestamp, OlderOverlap, PartitionMeter, RowCachePolicy, RowMerge,
    SstableRules, TombstoneArchive,
};
pub use error::StoreError;
pub use failure_streak::FailureStreak;
pub use helenus_row::TokenRange;
pub use history::HistoryPosition;
pub use history::archive::TrimmedHistory;
pub use history::span::{HistoryUntil, SetBack};
pub use log::stats::LogStats;
pub use log::{WritePlace, WriteTurn};
pub use machine::{machine_memory_bytes, resident_memory_bytes};
pub use measurement::{StoreMeasurement, nanos};
pub use metadata::documents::{MetaDoc, MetaExpect, MetaStamp, MetaVersion};
pub use metadata::format::{BUCKET_FORMAT_VERSION, FORMAT_VERSION};
pub use operation::Op;
pub use priority::set_long_running;
pub use store::Store;
pub use store::bucket::{
    Copied, LogMove, RefreshRound, TabletEvent, TabletPreparation, compact, log_place, migrate,
};
pub use store::cut::HeldCut;
pub use store::stats::StoreStats;
pub use store::write_batch::WriteBatch;
pub use tablet::extents::{FileBlocks, TableFile};
pub use tablet::late_writes::LateWrites;
pub use tablet::origins::TableOrigin;
pub use tablet::pin::PinnedTablet;
pub use tablet::scan::Scan;
pub use tablet::stats::{TabletStats, TabletTotals};
pub use tablet::{CacheMiss, CachedRead, OpenTablets, Tablet, check_open};
pub use throttle::{Throttle, Throttles};
pub use tree::Visit;
