//! The stored data model: how partitions and rows become ordered keys and packed values, and how two versions of a value are merged. The
//! crate does no I/O and reads no clock.
//!
//! - [`key`]: order-preserving keys, slices as byte ranges, Murmur3 tokens;
//! - [`row`]: rows as plain data, their builder, and [`packed`], their stored bytes;
//! - [`header`]: the partition header, which holds partition deletions and range tombstones;
//! - [`merge`]: Cassandra's reconcile rules on packed values;
//! - [`read`]: the live part of a packed row, as a SELECT reads it;
//! - [`compaction_filter`]: the entries that a compaction purges;
//! - [`archive`]: copies of tombstones for late writes;
//! - [`tombstones`]: the number of tombstones in a stored value;
//! - [`transfer`]: rows in transfer, as an import sends them to a node;
//! - [`TokenRange`]: a range of Murmur3 tokens.
//!
//! `docs/data-layout.md` describes the bytes.

pub mod archive;
pub mod compaction_filter;
pub mod error;
pub mod header;
pub mod key;
pub mod merge;
pub mod packed;
pub mod read;
pub mod row;
mod token_range;
pub mod tombstones;
pub mod transfer;
mod varint;

pub use error::{KeyError, RowError};
pub use header::{PartitionHeader, RangeTombstone};
pub use key::{
    ByteRange, ClusteringRange, KeyKind, KeyLayout, Order, TableId, key_with_token, murmur3_token,
};
pub use packed::{CellRef, ColumnRef, RowRef};
pub use row::{
    Cell, CellKind, CellRules, ColumnData, ColumnId, Complex, Deletion, ExactClustering, Expiry, Liveness,
    Row, RowBuilder,
};
pub use token_range::TokenRange;
