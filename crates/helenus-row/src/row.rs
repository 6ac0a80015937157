//! Rows as plain data: what a write is made of, before it is packed.
//!
//! The names and the rules follow `org.apache.cassandra.db.{LivenessInfo, DeletionTime}` and
//! `org.apache.cassandra.db.rows.*`. Timestamps are the client's, in microseconds; deletion and
//! expiration times are the server's clock, in seconds since 1970.

use bytes::Bytes;

use crate::error::RowError;

/// Identifies a column of a table for ever: it survives ALTER TABLE … RENAME, and a column that is dropped
/// and added again gets a new one, so that old cells are never read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnId(pub u32);

/// A row's primary key liveness: an INSERT was here, whatever becomes of its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Liveness {
    pub timestamp_us: i64,
    /// `None` when written without TTL.
    pub expiry: Option<Expiry>,
}

/// The TTL of a cell or of a liveness, and when it runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Expiry {
    /// As given in `USING TTL`; above 0.
    pub ttl_s: i32,
    /// Alive while `now < expires_at_s` (Cassandra's local deletion time of an expiring cell).
    pub expires_at_s: i64,
}

/// A deletion: shadows everything written at or before its timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Deletion {
    pub timestamp_us: i64,
    /// When the server performed it.
    pub local_deletion_s: i64,
}

impl Deletion {
    /// True if something written at `timestamp_us` is gone (`DeletionTime.deletes`).
    pub fn deletes(&self, timestamp_us: i64) -> bool {
        timestamp_us <= self.timestamp_us
    }

    /// The stronger of two deletions; the order is that of `DeletionTime.supersedes`.
    pub fn max(a: Option<Deletion>, b: Option<Deletion>) -> Option<Deletion> {
        Ord::max(a, b)
    }
}

impl Liveness {
    /// True if the row is alive through this liveness at `now_s`.
    pub fn is_live(&self, now_s: i64) -> bool {
        self.expiry.is_none_or(|expiry| now_s < expiry.expires_at_s)
    }
}

/// What a cell is, besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CellKind {
    Live,
    Expiring(Expiry),
    /// Has no value.
    Tombstone {
        local_deletion_s: i64,
    },
    /// A counter's total: 8 bytes, big-endian.
    Counter,
}

/// One value, or the deletion of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    pub timestamp_us: i64,
    pub kind: CellKind,
    /// The serialized value; empty for tombstones.
    pub value: Bytes,
}

impl Cell {
    pub fn live(timestamp_us: i64, value: impl Into<Bytes>) -> Cell {
        Cell {
            timestamp_us,
            kind: CellKind::Live,
            value: value.into(),
        }
    }

    pub fn expiring(timestamp_us: i64, expiry: Expiry, value: impl Into<Bytes>) -> Cell {
        Cell {
            timestamp_us,
            kind: CellKind::Expiring(expiry),
            value: value.into(),
        }
    }

    pub fn tombstone(timestamp_us: i64, local_deletion_s: i64) -> Cell {
        Cell {
            timestamp_us,
            kind: CellKind::Tombstone { local_deletion_s },
            value: Bytes::new(),
        }
    }

    pub fn counter(timestamp_us: i64, total: i64) -> Cell {
        Cell {
            timestamp_us,
            kind: CellKind::Counter,
            value: Bytes::copy_from_slice(&total.to_be_bytes()),
        }
    }
}

/// The cells of a collection or user type that isn't frozen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Complex {
    /// Shadows older elements; an overwrite (`SET c = {…}`) deletes at its timestamp minus one.
    pub deletion: Option<Deletion>,
    /// By path, ascending as unsigned bytes, no path twice. The path is a list's timeuuid, a set's element, a map's
    /// key (both serialized), or a user type's field position as a big-endian u16.
    pub cells: Vec<(Bytes, Cell)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnData {
    Simple(Cell),
    Complex(Complex),
}

/// Clustering values whose bytes aren't those that the key decodes to (for example the decimal `1.0`, whose
/// key is that of `1`). The newest writer's are kept.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExactClustering {
    pub timestamp_us: i64,
    pub components: Vec<Bytes>,
}

/// A row, or a part of one: what one write says, or what all writes so far amount to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub liveness: Option<Liveness>,
    pub deletion: Option<Deletion>,
    pub exact_clustering: Option<ExactClustering>,
    /// By column, ascending, no column twice.
    pub columns: Vec<(ColumnId, ColumnData)>,
}

impl Row {
    /// True if the row says nothing at all.
    pub fn is_empty(&self) -> bool {
        self.liveness.is_none() && self.deletion.is_none() && self.columns.is_empty()
    }

    /// The packed bytes, which are both a merge operand and a stored value.
    pub fn encode(&self) -> Bytes {
        unimplemented!()
    }

    /// Unpacks everything. Reads go through [`crate::packed::RowRef`] instead.
    ///
    /// # Errors
    /// [`RowError`] if the bytes aren't a packed row.
    pub fn decode(_packed: &Bytes) -> Result<Row, RowError> {
        unimplemented!()
    }
}

/// Gathers what one write says of one row, in any order; what is said twice is reconciled.
#[derive(Clone, Debug, Default)]
pub struct RowBuilder {
    row: Row,
}

impl RowBuilder {
    pub fn new() -> RowBuilder {
        RowBuilder::default()
    }

    /// INSERT: the row exists.
    pub fn liveness(&mut self, _liveness: Liveness) -> &mut Self {
        unimplemented!()
    }

    /// Deletes the row: everything at or before the deletion's timestamp.
    pub fn delete_row(&mut self, _deletion: Deletion) -> &mut Self {
        unimplemented!()
    }

    /// Remembers the clustering values as the client wrote them; needed only when
    /// [`crate::key::EncodedClustering::canonical`] is false.
    pub fn exact_clustering(&mut self, _timestamp_us: i64, _components: Vec<Bytes>) -> &mut Self {
        unimplemented!()
    }

    /// Writes or deletes (with a tombstone) a column of one cell.
    pub fn cell(&mut self, _column: ColumnId, _cell: Cell) -> &mut Self {
        unimplemented!()
    }

    /// Deletes all elements of a column of many cells.
    pub fn delete_complex(&mut self, _column: ColumnId, _deletion: Deletion) -> &mut Self {
        unimplemented!()
    }

    /// Writes or deletes one element of a column of many cells.
    pub fn complex_cell(&mut self, _column: ColumnId, _path: Bytes, _cell: Cell) -> &mut Self {
        unimplemented!()
    }

    /// The row so far.
    pub fn row(&self) -> &Row {
        &self.row
    }

    /// The packed operand.
    pub fn build(&self) -> Bytes {
        self.row.encode()
    }
}
