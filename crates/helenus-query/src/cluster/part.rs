//! A part of a read of a range of tokens at the node that owns its tokens.

use std::sync::Arc;

use bytes::Bytes;

use crate::analysis::selection::NamedGroup;
use crate::request::QueryOptions;
use crate::response::{ResultMetadata, RowsContent};
use crate::rows::RowCounts;

use super::Source;

/// A statement as its client sent it: what of it other nodes are to do is sent to them so.
#[derive(Clone, Copy)]
pub struct Origin<'a> {
    /// Where unqualified names are.
    pub keyspace: Option<&'a str>,
    pub source: Source<'a>,
    pub options: &'a QueryOptions,
}

/// What the rows of a part come to, as their owner says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartAnswer {
    pub rows: PartRows,
    /// The rows that were met.
    pub met: RowCounts,
}

/// What the rows that pass come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartRows {
    /// They are nothing but counted.
    Counted(u64),
    Group(NamedGroup),
    /// They are rows of the result.
    Page(PartPage),
}

/// Rows of the result from one part, in their order, as many as there was room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartPage {
    /// The columns, by which the asking node tells that both mean the same statement.
    pub metadata: Arc<ResultMetadata>,
    pub content: RowsContent,
    /// The paging state of the last row; none if there are no rows.
    pub last: Option<Bytes>,
    /// There was no room for the rows that may follow in the part.
    pub is_cut: bool,
}
