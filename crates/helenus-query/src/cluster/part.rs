//! A part of a whole-table aggregate at the node that owns its tokens.

use crate::analysis::selection::NamedGroup;
use crate::request::QueryOptions;
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
}
