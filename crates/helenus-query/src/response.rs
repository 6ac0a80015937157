//! Answers to statements. Rows, columns and schema changes are the protocol's own types ([`helenus_cql::frame`]): they are encoded once, as
//! they are sent.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use helenus_tablet::TokenRange;
use uuid::Uuid;

pub use helenus_cql::frame::response::{ChangeKind, RowsBuilder, RowsContent, SchemaChange, SchemaTarget};
pub use helenus_cql::frame::{ColumnSpec, ResultMetadata};

/// Rows, their columns, and the start of the next page.
#[derive(Clone, Debug)]
pub struct Rows {
    pub metadata: Arc<ResultMetadata>,
    pub content: RowsContent,
    pub paging_state: Option<Bytes>,
}

impl Rows {
    /// Returns rows of the given values. None of them is null.
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

/// The kinds of result (spec v5, section 4.2.5), except PREPARE's.
#[derive(Clone, Debug)]
pub enum Response {
    Void,
    Rows(Rows),
    SetKeyspace(String),
    SchemaChange(SchemaChange),
    /// The body of a RESULT from the owner of the rows, in the version of the client's protocol. The transport passes it on. Only requests with
    /// a client's body ([`ClientFrame`](crate::request::ClientFrame)) get it.
    Encoded(Bytes),
}

/// The tablet of another node to which a request was forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassedOn {
    pub tokens: TokenRange,
    /// The tablet's owner.
    pub node: Uuid,
}

/// A result with its warnings and notes.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub response: Response,
    pub warnings: Vec<String>,
    /// True if a conditional statement was applied. `None` for other statements, whatever the columns of their rows are called.
    pub is_applied: Option<bool>,
    /// The tablet to which the request was forwarded. `None` if this node served it. Clients that know tablets are notified.
    pub passed_on: Option<Box<PassedOn>>,
    /// Time at which the statement had run, here or at its owner. `None` if the clock was not read then. Each caller that records the
    /// statement uses this reading.
    pub ended: Option<Instant>,
}

impl Response {
    /// Returns the result with warnings.
    pub fn with(self, warnings: Vec<String>) -> Outcome {
        Outcome {
            response: self,
            warnings,
            is_applied: None,
            passed_on: None,
            ended: None,
        }
    }
}

impl From<Response> for Outcome {
    fn from(response: Response) -> Outcome {
        response.with(Vec::new())
    }
}
