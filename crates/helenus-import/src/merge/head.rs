//! The next item of an SSTable, and its place in the order of the merge.

use std::cmp::Ordering;

use bytes::Bytes;
use helenus_row::Deletion;
use helenus_sstable::{BoundKind, RangeTombstoneMarker, Row};

/// An item of one input.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) token: i64,
    pub(super) key: Bytes,
    pub(super) position: Position,
    pub(super) content: Content,
    /// Index of the input.
    pub(super) input: usize,
}

/// The content of an item.
#[derive(Debug)]
pub(super) enum Content {
    /// The start of a partition, with its deletion.
    Partition(Option<Deletion>),
    StaticRow(Row),
    Marker(RangeTombstoneMarker),
    Row(Row),
    End,
}

/// The position of an item within its partition. The order of the variants is that of the items.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Position {
    Start,
    Static,
    /// Encoded clustering, and true for a row. A bound before rows of the same clustering comes before them.
    Clustering(Bytes, bool),
    /// The bound after all rows.
    AfterRows,
    End,
}

impl Head {
    fn place(&self) -> (i64, &Bytes, &Position) {
        (self.token, &self.key, &self.position)
    }

    /// Returns true if both items are at the same place.
    pub(super) fn is_same_place(&self, other: &Head) -> bool {
        self.place() == other.place()
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> Ordering {
        self.place()
            .cmp(&other.place())
            .then(self.input.cmp(&other.input))
    }
}

/// Returns true if the bound lies after the rows that begin with its values.
pub(super) fn is_after_rows(kind: BoundKind) -> bool {
    matches!(
        kind,
        BoundKind::InclusiveEnd | BoundKind::ExclusiveStart | BoundKind::InclusiveEndExclusiveStart
    )
}

/// Returns true if the range that ends at the bound includes the rows that begin with its values.
pub(super) fn ends_inclusive(kind: BoundKind) -> bool {
    matches!(
        kind,
        BoundKind::InclusiveEnd | BoundKind::InclusiveEndExclusiveStart
    )
}

/// Returns true if the range that starts at the bound includes the rows that begin with its values.
pub(super) fn starts_inclusive(kind: BoundKind) -> bool {
    matches!(
        kind,
        BoundKind::InclusiveStart | BoundKind::ExclusiveEndInclusiveStart
    )
}
