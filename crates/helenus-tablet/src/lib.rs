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
//! What rows mean (merge, compaction) is passed in as [`Hooks`]. The bytes on disk are described in `docs/data-layout.md`.

mod block_cache;
mod books;
mod cache;
mod checked;
mod clock;
mod compaction;
mod config;
mod database;
mod disk;
mod dispatch;
mod drain;
mod erase;
mod error;
mod fences;
mod files;
mod filters;
mod flush;
mod hooks;
mod inventory;
mod late;
mod layout;
pub mod log;
mod machine;
mod maintenance;
mod meta;
mod often;
mod open;
mod pace;
mod priority;
mod private;
mod remote;
mod room;
mod scan;
mod sealed;
mod slices;
mod sst_filter;
mod stage;
mod stats;
mod store;
mod sweep;
mod tablet;
pub mod trace;
mod tree;
mod upload;
mod wal;
mod work;

pub use cache::RowCacheStats;
pub use config::{StoreConfig, StoreUrl};
pub use error::StoreError;
pub use hooks::{
    Archives, Below, CompactFilter, CompactionContext, Decision, HookError, Hooks, Newer, Verdict,
};
pub use late::LateWrites;
pub use layout::{FORMAT_VERSION, TokenRange};
pub use machine::machine_memory_bytes;
pub use meta::{MetaDoc, MetaExpect, MetaStamp, MetaVersion};
pub use priority::compute_aside;
#[doc(hidden)]
pub use remote::set_memory_store;
pub use remote::{Adoption, BucketStats, Copied, TabletEvent, migrate};
pub use scan::Scan;
pub use stats::{LogStats, StoreStats, TabletStats, TabletTotals};
pub use store::{Op, OpenTablets, Store, WriteBatch};
pub use tablet::Tablet;
pub use work::{StoreWork, nanos};
