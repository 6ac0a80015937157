//! Statements that clients have prepared.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::Planned;
use crate::request::BoundValue;
use crate::response::ResultMetadata;

/// A prepared statement. The fields that every request needs come first.
#[derive(Debug)]
#[repr(C)]
pub struct Prepared {
    pub(crate) planned: ArcSwap<Planned>,
    pub(crate) is_write: bool,
    /// The result's columns when the statement was first prepared. Empty if it returns no rows.
    pub first_result: Arc<ResultMetadata>,
    pub keyspace: Option<String>,
    /// MD5 of the query and, if the query has unqualified table names, of the keyspace. The id is the same on every node.
    pub id: [u8; 16],
    /// The text of the statement. It is parsed again when the schema has changed, because a syntax tree would take more memory than the
    /// plan.
    pub query: Arc<str>,
    pub(crate) names: TableNames,
}

/// The form in which a statement names its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableNames {
    /// The statement names no tables.
    None,
    /// All tables are qualified, so the statement means the same in every keyspace.
    Qualified,
    /// At least one table is named without its keyspace.
    Unqualified {
        /// True if the statement is a batch.
        is_batch: bool,
    },
}

impl TableNames {
    pub fn are_qualified(self) -> bool {
        self == TableNames::Qualified
    }
}

impl Prepared {
    /// Returns the result's columns according to the newest plan. `None` if the statement does not always return rows.
    pub fn result(&self) -> Option<Arc<ResultMetadata>> {
        self.planned.load().result.clone()
    }
}

/// One statement of a BATCH message.
#[derive(Clone, Debug)]
pub enum BatchStatement {
    Text(String, Vec<BoundValue>),
    Prepared(Arc<Prepared>, Vec<BoundValue>),
}
