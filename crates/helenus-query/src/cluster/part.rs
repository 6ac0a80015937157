//! The part of a read of a token range that the owner of the tokens executes.

use std::sync::Arc;

use bytes::Bytes;

use crate::analysis::selection::NamedGroup;
use crate::response::{ResultMetadata, RowsContent};
use crate::rows::RowCounts;

/// The result of a part, computed by the owner of its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartAnswer {
    pub rows: PartRows,
    /// Counts of the rows that were read.
    pub met: RowCounts,
}

/// The result of those rows of a part that pass the statement's conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartRows {
    /// Number of rows, for a statement that only counts them.
    Counted(u64),
    Group(NamedGroup),
    /// Rows of the result.
    Page(PartPage),
}

/// Rows of the result from one part, in order, as many as fit into the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartPage {
    /// The columns. The coordinator compares them with its own, to be sure that both nodes understand the statement alike.
    pub metadata: Arc<ResultMetadata>,
    pub content: RowsContent,
    /// The paging state of the last row. `None` if there are no rows.
    pub last: Option<Bytes>,
    /// True if the page was full, so that more rows may follow in the part.
    pub is_cut: bool,
}
