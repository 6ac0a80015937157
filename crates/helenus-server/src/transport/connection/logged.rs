//! A request that is written to the full query log when it has succeeded.

use std::collections::HashMap;
use std::sync::Arc;

use helenus_cql::frame::QueryParameters;
use helenus_cql::frame::request::{BatchKind, BatchStatement, StatementRef};
use helenus_cql::query_log::{Entry, LoggedStatement, Statements};

use super::statement_summary::text;
use crate::logs::audit::without_password;
use crate::logs::full_query_log::RunningQueryLog;
use crate::transport::Backend;
use crate::transport::server_state::ServerState;

/// The log entry of a request, made before it runs. The text of a single statement is added later.
pub(super) struct LoggedRequest {
    log: Arc<RunningQueryLog>,
    entry: Entry,
}

impl LoggedRequest {
    /// Begins the log entry of a request. `None` if the log is off. The entry is boxed, so that requests stay small while the log is off.
    pub fn begin<B: Backend>(
        server: &ServerState<B>,
        keyspace: Option<&str>,
        parameters: &QueryParameters,
    ) -> Option<Box<LoggedRequest>> {
        let log = server.full_query_log.running()?;
        let times = log.times();
        let is_dated = parameters.timestamp_us.is_some();
        let entry = Entry {
            start_ms: times.start_ms,
            protocol_version: parameters.version,
            generated_timestamp_us: (!is_dated).then_some(times.timestamp_us),
            generated_now_s: times.now_s,
            keyspace: keyspace.map(str::to_owned),
            parameters: QueryParameters {
                paging_state: None,
                ..parameters.clone()
            },
            statements: Statements::Single("".into()),
        };
        Some(Box::new(LoggedRequest { log, entry }))
    }

    /// Adds the statements of a batch.
    pub fn with_batch<B: Backend>(
        mut self: Box<Self>,
        server: &ServerState<B>,
        kind: BatchKind,
        statements: &[BatchStatement],
    ) -> Box<Self> {
        self.entry.keyspace = batch_keyspace(server, self.entry.keyspace.take(), statements);
        // Texts of prepared statements are shared, because they may be long, and a batch may contain the same statement many times.
        let mut prepared: HashMap<&[u8], Arc<str>> = HashMap::new();
        let mut text = |statement| -> Arc<str> {
            let text = || text(&server.backend, statement).into();
            match statement {
                StatementRef::Query(_) => text(),
                StatementRef::Prepared(id) => prepared.entry(id).or_insert_with(text).clone(),
            }
        };
        let logged = statements
            .iter()
            .map(|BatchStatement { statement, values }| LoggedStatement {
                text: text(statement),
                values: values.clone(),
            });
        self.entry.statements = Statements::Batch(kind, logged.collect());
        self
    }

    /// Logs a single statement that has succeeded.
    pub async fn record_single(mut self: Box<Self>, text: &str) {
        self.entry.statements = Statements::Single(without_password(text).into());
        self.log.record(&self.entry).await;
    }

    /// Logs a batch that has succeeded.
    pub async fn record(self: Box<Self>) {
        self.log.record(&self.entry).await;
    }
}

/// Returns the keyspace of a batch. If it contains texts, this is the keyspace in use. If it contains only prepared statements, this is the
/// keyspace in which they were prepared.
fn batch_keyspace<B: Backend>(
    server: &ServerState<B>,
    in_use: Option<String>,
    statements: &[BatchStatement],
) -> Option<String> {
    let prepared_in = |one: &BatchStatement| match &one.statement {
        StatementRef::Query(_) => None,
        StatementRef::Prepared(id) => {
            let prepared = server.backend.prepared(id).ok()?;
            server.backend.keyspace(&prepared).map(str::to_owned)
        }
    };
    let has_texts = statements
        .iter()
        .any(|one| matches!(one.statement, StatementRef::Query(_)));
    let prepared_in = || statements.iter().find_map(prepared_in);
    match has_texts {
        true => in_use.or_else(prepared_in),
        false => prepared_in().or(in_use),
    }
}
