//! Keys: `table | token | partition key | kind | clustering`, ordered as bytes exactly as CQL orders rows.

mod bounds;
mod component;
mod layout;
mod murmur3;
mod scalar;

pub use bounds::{ByteRange, ClusteringRange, TupleBound, successor};
pub use layout::{EncodedClustering, KeyLayout, Order};
pub use murmur3::murmur3_token;

use std::borrow::Cow;
use std::ops::Bound;

use bytes::Bytes;

use crate::error::KeyError;

/// A table, or one generation of it: DROP and TRUNCATE give a new id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u32);

/// What a key stands for within its partition; the discriminants are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum KeyKind {
    /// [`crate::header::PartitionHeader`].
    Header = 0,
    /// The static columns: a [`crate::row::Row`] without liveness.
    Static = 1,
    /// A [`crate::row::Row`].
    Row = 2,
}

/// A key, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRef<'a> {
    pub table: TableId,
    pub token: i64,
    pub partition_key: Cow<'a, [u8]>,
    pub kind: KeyKind,
    /// Encoded; empty unless `kind` is `Row`.
    pub clustering: &'a [u8],
}

/// The bytes that all keys of a partition start with, up to the kind.
pub fn partition_prefix(_table: TableId, _token: i64, _partition_key: &[u8]) -> Bytes {
    unimplemented!()
}

/// The key of the partition's header.
pub fn header_key(_table: TableId, _token: i64, _partition_key: &[u8]) -> Bytes {
    unimplemented!()
}

/// The key of the partition's static row.
pub fn static_key(_table: TableId, _token: i64, _partition_key: &[u8]) -> Bytes {
    unimplemented!()
}

/// The key of a row; `clustering` is from [`KeyLayout::encode_clustering`] (empty for tables without clustering
/// columns).
pub fn row_key(_table: TableId, _token: i64, _partition_key: &[u8], _clustering: &[u8]) -> Bytes {
    unimplemented!()
}

/// Takes a key apart.
///
/// # Errors
/// [`KeyError::Corrupt`] if no encoder writes such a key.
pub fn decode_key(_key: &[u8]) -> Result<KeyRef<'_>, KeyError> {
    unimplemented!()
}

/// The kind of a key, which is all that a merge needs.
///
/// # Errors
/// [`KeyError::Corrupt`] if no encoder writes such a key.
pub fn key_kind(_key: &[u8]) -> Result<KeyKind, KeyError> {
    unimplemented!()
}

/// All keys of a table.
pub fn table_range(_table: TableId) -> ByteRange {
    unimplemented!()
}

/// All keys of a table whose tokens lie within the bounds.
pub fn token_range(_table: TableId, _start: Bound<i64>, _end: Bound<i64>) -> ByteRange {
    unimplemented!()
}

/// All keys of a partition: header, static row, rows.
pub fn partition_range(_table: TableId, _token: i64, _partition_key: &[u8]) -> ByteRange {
    unimplemented!()
}

/// Cassandra's serialized partition key: one component as it is, several as a `CompositeType`.
///
/// # Errors
/// [`KeyError::PartitionKeyTooLong`] beyond 65535 bytes.
pub fn compose_partition_key<B: AsRef<[u8]>>(_components: &[B]) -> Result<Bytes, KeyError> {
    unimplemented!()
}

/// The components of a serialized partition key of `count` columns.
///
/// # Errors
/// [`KeyError::Corrupt`] if the bytes aren't such a key.
pub fn split_partition_key(_partition_key: &Bytes, _count: usize) -> Result<Vec<Bytes>, KeyError> {
    unimplemented!()
}
