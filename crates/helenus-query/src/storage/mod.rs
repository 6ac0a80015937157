//! The layer below reads and writes of rows ([`ExecutionContext`]). It has the store and the meaning of its rows, and reads rows of any
//! node with all deletions applied. It also has partition locks, pending writes, partition headers and the schema epochs of writes. Other
//! layers do not see the storage engine.

pub(crate) mod agreement;
pub(crate) mod change_streams;
pub(crate) mod context;
pub(crate) mod flush_periods;
pub(crate) mod headers;
pub(crate) mod hooks;
pub(crate) mod key_reads;
pub(crate) mod locks;
mod obstruction;
pub(crate) mod partition_meter;
pub(crate) mod partition_scan;
pub(crate) mod pending;
pub mod row_reads;
pub(crate) mod schema_epochs;
mod shared_document;
mod tablet_streams;
pub(crate) mod turn;
pub(crate) mod undecided;
pub(crate) mod virtual_tables;
pub(crate) mod writes;

pub use context::ExecutionContext;
pub(crate) use headers::DOCUMENT as HEADERS_DOCUMENT;
pub use headers::HeaderTables;
pub use hooks::{LiveTables, RowHooks};
pub use locks::{Access, LockRequest, PartitionGuard, PartitionLocks};
pub(crate) use partition_meter::{MeasuredPartition, PartitionThresholds};
pub use schema_epochs::{SchemaEpochs, WriteEpoch};
pub(crate) use virtual_tables::NoVirtualTables;
pub use virtual_tables::{VirtualRow, VirtualTables};
