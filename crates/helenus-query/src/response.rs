//! What a statement answers with. Rows, columns and schema changes are the protocol's own
//! ([`helenus_cql::frame`]): they are written once, in the form in which they are sent.

use std::sync::Arc;

use bytes::Bytes;

pub use helenus_cql::frame::response::{ChangeKind, RowsBuilder, RowsContent, SchemaChange, SchemaTarget};
pub use helenus_cql::frame::{ColumnSpec, ResultMetadata};

/// Rows, their columns, and where the next page starts.
#[derive(Clone, Debug)]
pub struct Rows {
    pub metadata: Arc<ResultMetadata>,
    pub content: RowsContent,
    pub paging_state: Option<Bytes>,
}

/// The kinds of result (spec v5, section 4.2.5), PREPARE's apart.
#[derive(Clone, Debug)]
pub enum Response {
    Void,
    Rows(Rows),
    SetKeyspace(String),
    SchemaChange(SchemaChange),
}

/// A result and the warnings that go with it.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub response: Response,
    pub warnings: Vec<String>,
}

impl From<Response> for Outcome {
    fn from(response: Response) -> Outcome {
        Outcome {
            response,
            warnings: Vec::new(),
        }
    }
}
