//! The partition header: the deletions that reach beyond one row.

use bytes::Bytes;

use crate::error::RowError;
use crate::row::Deletion;

/// Deletes the clusterings in `[start, end)`, both positions in the encoded clustering space (see
/// [`crate::key::KeyLayout::slice`]); no end means to the end of the partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    pub start: Bytes,
    pub end: Option<Bytes>,
    pub deletion: Deletion,
}

/// What the header key of a partition holds: a merge operand and a stored value alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartitionHeader {
    /// Deletes the whole partition, static row included.
    pub deletion: Option<Deletion>,
    /// Ascending, not overlapping, each stronger than `deletion`; static rows are not touched.
    pub range_tombstones: Vec<RangeTombstone>,
}

impl PartitionHeader {
    /// A header that deletes the whole partition.
    pub fn deleting_partition(deletion: Deletion) -> PartitionHeader {
        PartitionHeader {
            deletion: Some(deletion),
            range_tombstones: Vec::new(),
        }
    }

    /// A header that deletes the clusterings of these ranges, which may overlap and come in any order.
    pub fn deleting_ranges(
        _ranges: impl IntoIterator<Item = crate::key::ClusteringRange>,
        _deletion: Deletion,
    ) -> PartitionHeader {
        unimplemented!()
    }

    pub fn encode(&self) -> Bytes {
        unimplemented!()
    }

    /// # Errors
    /// [`RowError`] if the bytes aren't a packed header.
    pub fn decode(_packed: &[u8]) -> Result<PartitionHeader, RowError> {
        unimplemented!()
    }

    /// The deletion that applies to the row of this encoded clustering: the stronger of the partition's and
    /// the range tombstone's.
    pub fn deletion_at(&self, _clustering: &[u8]) -> Option<Deletion> {
        unimplemented!()
    }

    /// Both headers' deletions; where they overlap, the stronger.
    pub fn merge(&self, _other: &PartitionHeader) -> PartitionHeader {
        unimplemented!()
    }
}
