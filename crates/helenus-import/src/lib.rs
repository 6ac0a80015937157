//! Moves tables of Apache Cassandra into Helenus: finds SSTables and schemas in folders, merges the files of each table, and converts their
//! rows. The crate has no network and no terminal; the command `helenus import` sends what it returns.
//!
//! - [`source`]: the SSTables and schemas of folders and of backups of Medusa, by table;
//! - [`schema`]: the statements of schema.cql, the statements that the target lacks, and the differences to what it has;
//! - [`table`]: the columns of a table's SSTables, and their places in the target's table;
//! - [`merge`]: the k-way merge of a table's SSTables, in order of tokens, keys and clusterings;
//! - [`batch`]: the merged rows as blobs for `INSERT … ROWS ?`, with statistics and the token to resume at.
//!
//! - [`verify`]: the comparison of merged rows with those of a target.
//!
//! Another layout of backups belongs beside `source::medusa`, and storage other than folders behind [`source::SourceFolder`].
//!
//! Memory is bounded by one row of each SSTable and one batch, whatever the length of partitions.

pub mod batch;
mod counters;
mod error;
pub mod merge;
pub mod schema;
pub mod source;
mod system_keyspaces;
pub mod table;
mod table_name;
pub mod verify;

pub use error::ImportError;
pub use table_name::TableName;
