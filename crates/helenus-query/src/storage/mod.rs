//! Rows in the store: what a table's partitions and rows are as keys and operands, read back with every deletion
//! applied. Planning and execution stand on this; SlateDB is out of sight.

mod headers;
mod hooks;
pub mod index_entry;
mod locks;
pub mod read;
mod write_epochs;

pub use headers::HeaderTables;
pub use hooks::{LiveTables, RowHooks};
pub use locks::{Access, PartitionGuard, PartitionLocks, Wanted};
pub use write_epochs::WriteEpochs;
