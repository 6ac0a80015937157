//! Statements that clients have prepared.

use std::sync::Arc;

use arc_swap::ArcSwap;

use super::Planned;
use crate::request::BoundValue;
use crate::response::ResultMetadata;

/// A prepared statement. What every request looks at comes first.
#[derive(Debug)]
#[repr(C)]
pub struct Prepared {
    pub(crate) planned: ArcSwap<Planned>,
    pub(crate) is_write: bool,
    /// The result's columns when the statement was first prepared; none if it answers without rows.
    pub first_result: Arc<ResultMetadata>,
    pub keyspace: Option<String>,
    /// md5 of the query and, if that names tables without theirs, the keyspace: the same on every node.
    pub id: [u8; 16],
    /// The statement. It is parsed again when the schema has changed: the syntax tree would take more memory than the plan.
    pub query: Arc<str>,
    pub(crate) names: TableNames,
}

/// How a statement names its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableNames {
    /// It names none.
    None,
    /// All with their keyspace: it means the same in every keyspace.
    Qualified,
    /// One at least without its keyspace.
    Unqualified {
        /// The statement is a batch.
        is_batch: bool,
    },
}

impl TableNames {
    pub fn are_qualified(self) -> bool {
        self == TableNames::Qualified
    }
}

impl Prepared {
    /// Returns the result's columns as of the newest plan; none if it does not always answer with rows.
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
