//! Reading the rows of tables over CQL, with write times and TTLs: the part that all comparisons have in common.
//!
//! - `filter`: the options that choose tables;
//! - `shown`: values in messages;
//! - `statements`: the statements that read ranges of tokens, rows and partitions;
//! - `reader`: the pages of a statement, with further tries after failures that pass.

mod filter;
mod reader;
mod shown;
mod statements;

pub use filter::TableFilter;
pub use reader::{Nodes, RangeScan, Reader, now_s};
pub use shown::shown;
pub use statements::{ReadColumn, ReadStatements};
