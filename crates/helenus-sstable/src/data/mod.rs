//! Data.db: partitions with their rows, as a stream of events (`db.rows.UnfilteredSerializer`, `io.sstable.format.SortedTablePartitionWriter`).
//!
//! ```text
//! partition: key with a length of 2 bytes | partition deletion | static row, if the header has static columns | rows and markers | 01
//! row:       flags (1) [extended flags (1)] clustering | size (vint) | size of the previous item (vint) | body
//! body:      [liveness] [row deletion] [columns] | for each column: cells
//! marker:    02 | bound | size (vint) | size of the previous item (vint) | one or two deletions
//! ```

pub(crate) mod cell;
mod columns;
mod decoder;
mod deletion;
mod event;
pub(crate) mod row;

pub use decoder::{Decoder, Limits, Step};
pub use deletion::DeletionTime;
pub use event::{
    Cell, CellKind, ComplexDeletion, EXPIRED_LIVENESS_TTL_S, Event, Expiry, Liveness, Partition,
    RangeTombstoneMarker, Row, RowDeletion,
};
