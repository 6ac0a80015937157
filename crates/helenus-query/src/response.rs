//! What a statement answers with. Rows, columns and schema changes are the protocol's own
//! ([`helenus_cql::frame`]): they are written once, in the form in which they are sent.

use std::sync::Arc;

use bytes::Bytes;
use helenus_tablet::TokenRange;
use uuid::Uuid;

pub use helenus_cql::frame::response::{ChangeKind, RowsBuilder, RowsContent, SchemaChange, SchemaTarget};
pub use helenus_cql::frame::{ColumnSpec, ResultMetadata};

/// Rows, their columns, and where the next page starts.
#[derive(Clone, Debug)]
pub struct Rows {
    pub metadata: Arc<ResultMetadata>,
    pub content: RowsContent,
    pub paging_state: Option<Bytes>,
}

impl Rows {
    /// Returns the rows of values, none of which is null.
    pub fn of_values(columns: Vec<ColumnSpec>, rows: &[Vec<Bytes>], paging_state: Option<Bytes>) -> Rows {
        let mut builder = RowsBuilder::new(columns.len());
        for row in rows {
            for value in row {
                builder.push(Some(value));
            }
        }
        Rows {
            metadata: Arc::new(ResultMetadata::new(columns)),
            content: builder.finish(),
            paging_state,
        }
    }
}

/// The kinds of result (spec v5, section 4.2.5), PREPARE's apart.
#[derive(Clone, Debug)]
pub enum Response {
    Void,
    Rows(Rows),
    SetKeyspace(String),
    SchemaChange(SchemaChange),
}

/// The tablet of another node that a request was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassedOn {
    pub tokens: TokenRange,
    /// The tablet's owner.
    pub node: Uuid,
}

/// A result and what goes with it.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub response: Response,
    pub warnings: Vec<String>,
    /// Whether a conditional statement was applied; none for other statements, whatever the columns of their rows are called.
    pub is_applied: Option<bool>,
    /// Where the request was passed on to, if this node was not the one to ask: clients that know tablets are told.
    pub passed_on: Option<Box<PassedOn>>,
}

impl Response {
    /// Returns the result with warnings.
    pub fn with(self, warnings: Vec<String>) -> Outcome {
        Outcome {
            response: self,
            warnings,
            is_applied: None,
            passed_on: None,
        }
    }
}

impl From<Response> for Outcome {
    fn from(response: Response) -> Outcome {
        response.with(Vec::new())
    }
}
