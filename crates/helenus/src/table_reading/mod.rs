//! Reading the rows of tables over CQL, with write times and TTLs: the part that all comparisons have in common.
//!
//! - `statements`: the statements that read ranges of tokens, rows and partitions;
//! - `reader`: the pages of a statement, with further tries after failures that pass.

mod reader;
mod statements;

pub use reader::{Nodes, RangeScan, Reader, now_s};
pub use statements::{ReadColumn, ReadStatements};
