//! The lines of the audit log (Cassandra's `AuditLogEntry`, `AuditLogEntryType` and `AuditLogEntryCategory`).

use std::borrow::Cow;
use std::fmt::Write;

use helenus_cql::error::CqlError;
use helenus_query::trace;
use uuid::Uuid;

use super::Requester;

/// Text that replaces a password.
const OBSCURED: &str = "*******";

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    /// A statement, with its name in Cassandra and its category.
    Statement(&'static str, &'static str),
    Batch,
    PrepareStatement,
    RequestFailure,
    LoginSuccess,
    LoginError,
    UnauthorizedAttempt,
}

impl EntryKind {
    fn name(self) -> &'static str {
        match self {
            EntryKind::Statement(name, _) => name,
            EntryKind::Batch => "BATCH",
            EntryKind::PrepareStatement => "PREPARE_STATEMENT",
            EntryKind::RequestFailure => "REQUEST_FAILURE",
            EntryKind::LoginSuccess => "LOGIN_SUCCESS",
            EntryKind::LoginError => "LOGIN_ERROR",
            EntryKind::UnauthorizedAttempt => "UNAUTHORIZED_ATTEMPT",
        }
    }

    pub fn category(self) -> &'static str {
        match self {
            EntryKind::Statement(_, category) => category,
            EntryKind::Batch => "DML",
            EntryKind::PrepareStatement => "PREPARE",
            EntryKind::RequestFailure => "ERROR",
            EntryKind::LoginSuccess | EntryKind::LoginError | EntryKind::UnauthorizedAttempt => "AUTH",
        }
    }
}

/// An entry of the log, which is one line.
#[derive(Debug)]
pub(super) struct Entry {
    pub kind: EntryKind,
    pub batch: Option<Uuid>,
    pub keyspace: Option<String>,
    /// Name of the table, type, function or role that the entry is about. `None` if it is about none.
    pub scope: Option<String>,
    pub operation: String,
}

impl Entry {
    pub fn new(kind: EntryKind, operation: String) -> Entry {
        Entry {
            kind,
            batch: None,
            keyspace: None,
            scope: None,
            operation,
        }
    }

    /// Makes this the entry of a request that has failed.
    pub fn fail(&mut self, error: &CqlError) {
        let (error, _) = error.clone().split();
        self.kind = match &error {
            CqlError::Unauthorized(_) => EntryKind::UnauthorizedAttempt,
            CqlError::BadCredentials(_) => EntryKind::LoginError,
            _ => EntryKind::RequestFailure,
        };
        let _ = write!(self.operation, "; {error}");
    }

    /// Returns the line, including its newline.
    pub fn line(&self, by: &Requester<'_>, user: &str, now_ms: u128) -> String {
        let mut line = format!(
            "user:{}|host:{}|source:/{}|port:{}|timestamp:{now_ms}|type:{}|category:{}",
            on_one_line(user),
            by.node,
            by.peer.ip(),
            by.peer.port(),
            self.kind.name(),
            self.kind.category()
        );
        let mut field = |name: &str, value: &str| {
            if !value.trim().is_empty() {
                let _ = write!(line, "|{name}:{}", on_one_line(value));
            }
        };
        if let Some(batch) = self.batch {
            field("batch", &batch.to_string());
        }
        field("ks", self.keyspace.as_deref().unwrap_or_default());
        field("scope", self.scope.as_deref().unwrap_or_default());
        field("operation", &without_password(&self.operation));
        line.push('\n');
        line
    }
}

/// Returns a statement for the logs of requests, without the text from a password on.
pub(crate) fn without_password(statement: &str) -> Cow<'_, str> {
    let shown = trace::without_password(statement);
    match shown.len() < statement.len() {
        true => Cow::Owned(format!("{shown} {OBSCURED}")),
        false => Cow::Borrowed(statement),
    }
}

/// Removes line breaks from a client's text, which could otherwise fake another entry.
fn on_one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
