//! Reads the SSTables of Apache Cassandra: format `big` in versions `md`, `me` (3.11), `na`, `nb` (4.0, 4.1) and `oa` (5.0), and format
//! `bti` in version `da` (5.0). Other versions are refused by name.
//!
//! A file is read from front to back, so the indexes and the filter aren't needed. Data.db and Statistics.db are, and CompressionInfo.db if
//! the data is compressed. Every checksum is verified.
//!
//! - [`list`]: the SSTables of a table's folder, and their missing components;
//! - [`SsTable`]: an open SSTable, whose [`Events`] are its partitions, rows, cells and deletions in file order;
//! - [`Decoder`], [`Statistics`], [`CompressionInfo`]: the same without I/O, from bytes;
//! - [`Folder`]: the storage;
//! - [`ColumnType`]: types of CQL from the names of Cassandra's classes;
//! - [`counter`]: the shards of counters, and their merge.
//!
//! The schema is not in an SSTable. [`SerializationHeader`] has the names and types of the columns that the file contains, and the types of
//! the key. Names of key columns and dropped columns are in the schema, for example in a snapshot's `schema.cql`.
//!
//! Events are those of one file. A partition's data is the merge of all files of the table, by timestamps.

mod clustering;
mod column_type;
pub mod counter;
mod cursor;
mod data;
mod error;
mod file_name;
mod folder;
mod listing;
mod statistics;
mod storage;
mod table;
mod version;

#[cfg(any(test, feature = "test-writer"))]
pub mod test_writer;

pub use clustering::{Bound, BoundKind};
pub use column_type::ColumnType;
pub use data::{
    Cell, CellKind, ComplexDeletion, Decoder, DeletionTime, EXPIRED_LIVENESS_TTL_S, Event, Expiry, Limits,
    Liveness, Partition, RangeTombstoneMarker, Row, RowDeletion, Step,
};
pub use error::{ErrorKind, SstableError};
pub use file_name::{Descriptor, FileName, SstableId, parse_file_name};
pub use folder::{ComponentFile, Folder, LocalFolder, MemoryFolder};
pub use listing::{Listed, Listing, list};
pub use statistics::{
    Column, ColumnKind, CoveredClusterings, EncodingStats, NO_DELETION_TIME_S, SerializationHeader,
    Statistics, Summary,
};
pub use storage::{Chunk, CompressionInfo, Compressor};
pub use table::{Events, SsTable};
pub use version::{Format, Version};
