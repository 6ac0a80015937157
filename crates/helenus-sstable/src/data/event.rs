//! The events of a stream, in file order.

use std::sync::Arc;

use bytes::Bytes;

use super::deletion::DeletionTime;
use crate::clustering::BoundKind;
use crate::statistics::Column;

/// TTL of a row's liveness that has expired in a materialized view (`LivenessInfo.EXPIRED_LIVENESS_TTL`).
pub const EXPIRED_LIVENESS_TTL_S: i32 = i32::MAX;

/// One item of Data.db.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Partition(Partition),
    /// The static row of the partition. Absent if the row is empty.
    StaticRow(Row),
    Row(Row),
    RangeTombstoneMarker(RangeTombstoneMarker),
    /// The end of the partition.
    PartitionEnd,
}

/// The start of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The serialized partition key, whose type is [`crate::SerializationHeader::key_type`].
    pub key: Bytes,
    /// `None` if the partition isn't deleted.
    pub deletion: Option<DeletionTime>,
}

/// A row, or the part of it that the SSTable contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Values of the clustering columns. Empty for static rows. `None` is a null of a compact table.
    pub clustering: Vec<Option<Bytes>>,
    /// `None` if no INSERT wrote the row.
    pub liveness: Option<Liveness>,
    pub deletion: Option<RowDeletion>,
    /// Deletions of whole collections and user types.
    pub complex_deletions: Vec<ComplexDeletion>,
    /// Cells in order of their columns and paths.
    pub cells: Vec<Cell>,
}

impl Row {
    /// Returns true if the row contains nothing but its clustering.
    pub fn is_empty(&self) -> bool {
        self.liveness.is_none()
            && self.deletion.is_none()
            && self.complex_deletions.is_empty()
            && self.cells.is_empty()
    }
}

/// The TTL and the time of expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Expiry {
    /// The TTL in s, above 0.
    pub ttl_s: i32,
    /// Time of expiry in s since 1970. Negative if the TTL overflowed in an old version (CASSANDRA-14092).
    pub expires_at_s: i64,
}

/// The liveness of a row's primary key (`db.LivenessInfo`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Liveness {
    pub timestamp_us: i64,
    /// `None` if written without TTL.
    pub expiry: Option<Expiry>,
}

/// The deletion of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowDeletion {
    pub time: DeletionTime,
    /// True if a newer liveness of the row revokes the deletion. Only old materialized views have such deletions.
    pub is_shadowable: bool,
}

/// The deletion of all older cells of a column with many cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComplexDeletion {
    pub column: Arc<Column>,
    pub time: DeletionTime,
}

/// The kind of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CellKind {
    Live,
    Expiring(Expiry),
    Deleted {
        /// Time of the deletion in s since 1970.
        local_deletion_s: i64,
    },
}

/// One value, or its tombstone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    pub column: Arc<Column>,
    /// Path within a column with many cells: the key of a map, the element of a set, the time UUID of a list's element, or the position of a
    /// field in two bytes. `None` for columns with one cell.
    pub path: Option<Bytes>,
    pub timestamp_us: i64,
    pub kind: CellKind,
    /// The serialized value. Empty for tombstones and elements of sets. Counters have a context (see [`crate::counter`]).
    pub value: Bytes,
}

/// A start, an end or a boundary of range tombstones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstoneMarker {
    pub kind: BoundKind,
    /// Values of the first clustering columns. Empty for the bound before or after all rows.
    pub prefix: Vec<Option<Bytes>>,
    /// The deletion of the range that ends here. `None` if none ends.
    pub end: Option<DeletionTime>,
    /// The deletion of the range that starts here. `None` if none starts.
    pub start: Option<DeletionTime>,
}
