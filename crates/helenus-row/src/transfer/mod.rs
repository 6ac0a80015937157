//! Rows in transfer: partitions with their rows and deletions in one blob, as `INSERT INTO … ROWS ?` takes them.
//!
//! A tool such as `helenus import` fills a [`TransferWriter`] and sends its blob; the node reads the items with a [`TransferReader`].
//! Packed rows are those of [`crate::packed`], except that a [`crate::ColumnId`] is a position in the statement's list of columns. Keys
//! and clusterings are serialized values, because only the node knows the table's ids. `docs/data-layout.md` describes the bytes.

mod reader;
mod writer;

use bytes::Bytes;

pub use reader::TransferReader;
pub use writer::TransferWriter;

use crate::row::Deletion;

/// The first byte of a blob.
const VERSION: u8 = 1;

/// The first bytes of items.
const END: u8 = 0;
const PARTITION: u8 = 1;
const PARTITION_DELETION: u8 = 2;
const RANGE_DELETION: u8 = 3;
const STATIC_ROW: u8 = 4;
const ROW: u8 = 5;

/// Flag of a range deletion: the clustering at the start is deleted as well.
const START_INCLUSIVE: u8 = 1;
/// Flag of a range deletion: the clustering at the end is deleted as well.
const END_INCLUSIVE: u8 = 1 << 1;

/// Maximum number of values of a clustering or of a bound.
const VALUES_MAX: u64 = 65_535;

/// A part of a blob. All items after a [`TransferItem::Partition`] belong to that partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferItem {
    /// The serialized partition key. A key of several columns is composite: each value with a length of two bytes before and a zero byte
    /// after it.
    Partition(Bytes),
    PartitionDeletion(Deletion),
    RangeDeletion {
        start: TransferBound,
        end: TransferBound,
        deletion: Deletion,
    },
    /// The packed static row.
    StaticRow(Bytes),
    Row {
        /// The serialized clustering values, in the order of the table's clustering columns.
        clustering: Vec<Bytes>,
        /// The packed row.
        row: Bytes,
    },
}

/// A bound of a range deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransferBound {
    /// Serialized values of the first clustering columns. Without values, the bound is the start or the end of the partition.
    pub values: Vec<Bytes>,
    /// Clusterings that begin with the values are within the range.
    pub is_inclusive: bool,
}

#[cfg(test)]
#[path = "transfer_tests.rs"]
mod tests;
