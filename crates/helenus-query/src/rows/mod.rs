//! Rows and partitions as values: keys, stored rows, and the columns that selectors and filters see.

pub(crate) mod cells;
pub(crate) mod counts;
pub(crate) mod partition_key;
pub(crate) mod row_selection;
pub(crate) mod stored_row;
pub(crate) mod view;

pub use counts::RowCounts;
pub use partition_key::PartitionKey;
pub use row_selection::RowSelection;
pub use stored_row::{OwnedRow, RowAt, StoredRow};
pub(crate) use stored_row::{corrupt, corrupt_key};
pub use view::{CellView, RowView};
