//! A summary of a request's statements, kept while it runs for the log of slow requests.

use std::sync::Arc;

use helenus_cql::frame::request::{Batch, StatementRef};
use helenus_query::trace::shorten;

use crate::backend::Backend;

/// A request's statements.
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
        /// All statements, if the audit log is on.
        audited: Vec<StatementRef>,
    },
    /// A log-in, by the name that was given.
    Login {
        user: String,
    },
    /// A statement that is not known here.
    Unknown,
}

impl<P> StatementSummary<P> {
    /// Returns a batch, by its first statement, and with all of them if it `is_audited`.
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

    /// How many values are bound.
    pub fn values(&self) -> usize {
        match self {
            StatementSummary::Text { values, .. }
            | StatementSummary::Prepared { values, .. }
            | StatementSummary::Batch { values, .. } => *values,
            StatementSummary::Login { .. } | StatementSummary::Unknown => 0,
        }
    }

    /// Returns the statement's text.
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

/// Returns the text of a batch's statement; none of one that is not known here.
pub(super) fn text<B: Backend>(backend: &B, statement: &StatementRef) -> String {
    match statement {
        StatementRef::Query(text) => text.clone(),
        StatementRef::Prepared(id) => match backend.prepared(id) {
            Ok(prepared) => backend.statement(&prepared).to_owned(),
            Err(_) => String::new(),
        },
    }
}
