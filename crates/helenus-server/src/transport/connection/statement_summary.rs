//! A summary of a request's statements. It is kept while the request runs, for the slow log and the audit log.

use std::sync::Arc;

use helenus_cql::frame::request::{Batch, StatementRef};
use helenus_query::trace::shorten;

use crate::transport::Backend;

/// The statements of a request.
pub(super) enum StatementSummary<P> {
    Text {
        text: String,
        values: usize,
    },
    Prepared {
        prepared: Arc<P>,
        values: usize,
    },
    Batch {
        statements: usize,
        first: Option<StatementRef>,
        values: usize,
        /// All statements of the batch. Empty if the audit log is off.
        audited: Vec<StatementRef>,
    },
    /// A log-in, with the name that the client gave.
    Login {
        user: String,
    },
    /// A statement that this node does not know.
    Unknown,
}

impl<P> StatementSummary<P> {
    /// Returns the summary of a batch: its first statement, and all of them if it `is_audited`.
    pub fn batch(batch: &Batch, is_audited: bool) -> StatementSummary<P> {
        let audited = match is_audited {
            true => batch.statements.iter().map(|one| one.statement.clone()).collect(),
            false => Vec::new(),
        };
        let first = batch.statements.first().map(|first| match &first.statement {
            StatementRef::Query(text) => StatementRef::Query(shorten(text).to_owned()),
            StatementRef::Prepared(id) => StatementRef::Prepared(id.clone()),
        });
        StatementSummary::Batch {
            statements: batch.statements.len(),
            first,
            values: batch.statements.iter().map(|one| one.values.len()).sum(),
            audited,
        }
    }

    /// Returns the number of bound values.
    pub fn values(&self) -> usize {
        match self {
            StatementSummary::Text { values, .. }
            | StatementSummary::Prepared { values, .. }
            | StatementSummary::Batch { values, .. } => *values,
            StatementSummary::Login { .. } | StatementSummary::Unknown => 0,
        }
    }

    /// Returns the shortened text of the statement. Empty for log-ins and unknown statements.
    pub fn text<B: Backend<Prepared = P>>(&self, backend: &B) -> String {
        match self {
            StatementSummary::Text { text, .. } => shorten(text).to_owned(),
            StatementSummary::Prepared { prepared, .. } => shorten(backend.statement(prepared)).to_owned(),
            StatementSummary::Batch {
                statements, first, ..
            } => {
                let first = first.as_ref().map(|first| text(backend, first));
                let first = first.unwrap_or_default();
                format!("BATCH of {statements} statements: {}", shorten(&first))
            }
            StatementSummary::Login { .. } | StatementSummary::Unknown => String::new(),
        }
    }
}

/// Returns the text of a batch's statement. Empty if it is a prepared statement that this node does not know.
pub(super) fn text<B: Backend>(backend: &B, statement: &StatementRef) -> String {
    match statement {
        StatementRef::Query(text) => text.clone(),
        StatementRef::Prepared(id) => match backend.prepared(id) {
            Ok(prepared) => backend.statement(&prepared).to_owned(),
            Err(_) => String::new(),
        },
    }
}
