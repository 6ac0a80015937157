//! Reading the rows of tables over CQL, with write times and TTLs: the part that all comparisons have in common.
//!
//! - `filter`: the options that choose tables;
//! - `shown`: values in messages;
//! - `statements`: the statements that read ranges of tokens, rows and partitions;
//! - `scan`: the rows of a range of tokens, page by page.

mod filter;
mod scan;
mod shown;
mod statements;

pub use filter::TableFilter;
pub use scan::RangeScan;
pub use shown::shown;
pub use statements::{ReadColumn, ReadStatements};
