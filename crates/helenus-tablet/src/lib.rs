//! Tablets over SlateDB: one node's storage.
//!
//! A [`Store`] holds every tablet of the node. A [`Tablet`] is a range of Murmur3 tokens kept in one SlateDB database. Writes are
//! blind merge operands. They become durable in one node-wide log ([`log`]) that all tablets share, and only then reach the
//! tablets, so that a failed write is never seen and an acknowledged one never lost:
//!
//! ```text
//! Store::write → log queue → log thread (append, one fdatasync for the group)
//!              → each tablet's stage and row cache → the writer is woken
//!              … later, in the background: stage → one sorted SlateDB batch
//! ```
//!
//! A record's log sequence number is also its SlateDB sequence number and its "WAL file id", which makes replay exact: a tablet
//! replays the records above its manifest's `replay_after_wal_id`, none twice.
//!
//! What rows mean (merge, compaction) is passed in as [`DataModel`]. The bytes on disk are described in `docs/data-layout.md`.

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
pub mod log;
mod machine;
mod metadata;
mod priority;
mod stage;
mod store;
mod tablet;
mod token_range;
pub mod trace;
mod tree;
mod work;
mod write_batch;

#[doc(hidden)]
pub use bucket::connection::set_memory_store;
pub use bucket::metered_object_store::BucketStats;
pub use bucket::restore_copy::CopyRestore;
pub use cache::row_cache::RowCacheStats;
pub use config::{StoreConfig, StoreUrl};
pub use data_model::{
    ArchiveKeys, CompactFilter, CompactionContext, DataModel, DataModelError, Decision, FilterOutcome,
    MinNewerTimestamp, OlderOverlap,
};
pub use error::StoreError;
pub use log::stats::LogStats;
pub use machine::machine_memory_bytes;
pub use metadata::documents::{MetaDoc, MetaExpect, MetaStamp, MetaVersion};
pub use metadata::format::FORMAT_VERSION;
pub use priority::set_long_running;
pub use store::Store;
pub use store::bucket::{Copied, TabletEvent, migrate};
pub use store::stats::StoreStats;
pub use tablet::late_writes::LateWrites;
pub use tablet::scan::Scan;
pub use tablet::stats::{TabletStats, TabletTotals};
pub use tablet::{CachedRead, Tablet};
pub use token_range::TokenRange;
pub use work::{StoreWork, nanos};
pub use write_batch::{Op, WriteBatch};
