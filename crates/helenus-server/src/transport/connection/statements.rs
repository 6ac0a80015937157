//! Runs statements: a decoded QUERY, EXECUTE, BATCH or PREPARE becomes a response.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::frame::request::{Batch, Execute, Prepare, Query};
use helenus_cql::frame::response::{PageMetadata, QueryResult};
use helenus_cql::frame::{ProtocolVersion, QueryParameters, Response, ResponseMessage, ResultMetadata, Rows};
use helenus_query::request::{BoundValues, ClientState, Place, QueryOptions};
use helenus_query::response::{Outcome, Response as Answer};

use super::logged::LoggedRequest;
use super::statement_summary::StatementSummary;
use super::tablets;
use crate::transport::Backend;
use crate::transport::server_state::ServerState;

/// The outcome of a request that has run.
pub(super) struct StatementOutcome<P> {
    pub summary: StatementSummary<P>,
    pub result: Result<ResponseMessage, CqlError>,
}

impl<P> StatementOutcome<P> {
    pub fn refused(error: CqlError) -> StatementOutcome<P> {
        StatementOutcome {
            summary: StatementSummary::Unknown,
            result: Err(error),
        }
    }
}

/// Refuses a v5 request whose own keyspace does not exist.
fn check_keyspace<B: Backend>(server: &ServerState<B>, keyspace: Option<&str>) -> Result<(), CqlError> {
    keyspace.map_or(Ok(()), |keyspace| server.backend.check_keyspace(keyspace))
}

/// Returns the values of a request.
pub(super) fn values(parameters: QueryParameters) -> BoundValues {
    match parameters.names {
        Some(names) => BoundValues::Named(names.into_iter().zip(parameters.values).collect()),
        None if parameters.values.is_empty() => BoundValues::None,
        None => BoundValues::Positional(parameters.values),
    }
}

/// Returns the options of a request for the engine, without those that the transport handles itself.
fn options(mut parameters: QueryParameters, version: ProtocolVersion) -> QueryOptions {
    QueryOptions {
        consistency: parameters.consistency,
        serial_consistency: parameters.serial_consistency,
        page_size: parameters.page_size,
        paging_state: parameters.paging_state.take(),
        timestamp_us: parameters.default_timestamp,
        now_s: parameters.now_in_seconds.map(i64::from),
        keyspace: parameters.keyspace.take(),
        values: values(parameters),
        protocol_version: version.number(),
        place: Place::Coordinator,
        masks: false,
    }
}

/// Returns the response for an outcome. `page` decides which metadata is sent with rows.
fn answer(outcome: Outcome, page: impl FnOnce(&Rows) -> PageMetadata) -> ResponseMessage {
    let result = match outcome.response {
        Answer::Void => QueryResult::Void,
        Answer::SetKeyspace(keyspace) => QueryResult::SetKeyspace(keyspace),
        Answer::SchemaChange(change) => QueryResult::SchemaChange(change),
        Answer::Rows(answered) => {
            let mut rows = Rows::new(answered.metadata, answered.content);
            rows.page = PageMetadata {
                paging_state: answered.paging_state,
                ..page(&rows)
            };
            QueryResult::Rows(rows)
        }
    };
    ResponseMessage {
        tracing_id: None,
        warnings: outcome.warnings,
        custom_payload: None,
        response: Response::Result(result),
    }
}

pub(super) async fn run_query<B: Backend>(
    server: Arc<ServerState<B>>,
    client: Arc<ClientState>,
    version: ProtocolVersion,
    query: Box<Query>,
) -> StatementOutcome<B::Prepared> {
    let Query { query, parameters } = *query;
    let skip = parameters.skip_metadata;
    let checked = check_keyspace(&server, parameters.keyspace.as_deref());
    let logged = LoggedRequest::begin(&server, client.keyspace.as_deref(), version, &parameters);
    let options = options(parameters, version);
    let outcome = match checked {
        Ok(()) => server.backend.query(&client, &query, &options).await,
        Err(error) => Err(error),
    };
    if let Some(logged) = logged.filter(|_| outcome.is_ok()) {
        logged.record_single(&query).await;
    }
    let page = |_: &Rows| PageMetadata {
        skip,
        ..PageMetadata::default()
    };
    StatementOutcome {
        summary: StatementSummary::Text {
            text: query,
            values: options.values.len(),
        },
        result: outcome.map(|outcome| answer(outcome, page)),
    }
}

pub(super) async fn run_execute<B: Backend>(
    server: Arc<ServerState<B>>,
    client: Arc<ClientState>,
    version: ProtocolVersion,
    execute: Box<Execute>,
    knows_tablets: bool,
    is_warned: Arc<AtomicBool>,
) -> StatementOutcome<B::Prepared> {
    let Execute {
        id,
        result_metadata_id,
        parameters,
    } = *execute;
    let prepared = match server.backend.prepared(&id) {
        Ok(prepared) => prepared,
        Err(error) => {
            return StatementOutcome::refused(error);
        }
    };
    let skip = parameters.skip_metadata;
    // Unqualified names refer to the keyspace in which the statement was prepared.
    let keyspace = server.backend.keyspace(&prepared).or(client.keyspace.as_deref());
    let logged = LoggedRequest::begin(&server, keyspace, version, &parameters);
    let options = options(parameters, version);
    let warning = match is_warned.load(Ordering::Relaxed) {
        true => None,
        false => server.backend.use_warning(&client, &prepared),
    };
    let warning = warning.filter(|_| !is_warned.swap(true, Ordering::Relaxed));
    let outcome = server.backend.execute(&client, &prepared, &options).await;
    if let Some(logged) = logged.filter(|_| outcome.is_ok()) {
        logged.record_single(server.backend.statement(&prepared)).await;
    }
    let known = || server.backend.prepared_metadata(&prepared);
    let page = |rows: &Rows| executed_metadata(rows, skip, result_metadata_id, version, known);
    let answer = |mut outcome: Outcome| {
        if let Some(warning) = warning {
            outcome.warnings.insert(0, warning);
        }
        let passed_on = outcome.passed_on.clone().filter(|_| knows_tablets);
        ResponseMessage {
            custom_payload: passed_on.map(|passed_on| tablets::payload(&passed_on)),
            ..answer(outcome, page)
        }
    };
    StatementOutcome {
        result: outcome.map(answer),
        summary: StatementSummary::Prepared {
            prepared,
            values: options.values.len(),
        },
    }
}

/// Decides which metadata of columns is sent to a client that executes a prepared statement (Cassandra's `ExecuteMessage`).
///
/// A v5 client sends the id of the metadata that it knows, and receives the metadata again if that has changed. An older client cannot. Its
/// metadata may only be left out if it never changed since the statement was prepared. Rows of a statement other than SELECT (a
/// transaction's outcome) always carry their metadata, which a client must not remember.
fn executed_metadata(
    rows: &Rows,
    skip: bool,
    client_knows: Option<Bytes>,
    version: ProtocolVersion,
    prepared: impl FnOnce() -> Arc<ResultMetadata>,
) -> PageMetadata {
    let prepared = prepared();
    if prepared.columns.is_empty() {
        return PageMetadata::default();
    }
    if version >= ProtocolVersion::V5 {
        let current = rows.metadata.id();
        if client_knows.as_deref() == Some(&current[..]) {
            return PageMetadata {
                skip,
                ..PageMetadata::default()
            };
        }
        let new_metadata_id = Some(Bytes::copy_from_slice(&current));
        return PageMetadata {
            new_metadata_id,
            ..PageMetadata::default()
        };
    }
    let unchanged = || Arc::ptr_eq(&prepared, &rows.metadata) || prepared.id() == rows.metadata.id();
    PageMetadata {
        skip: skip && unchanged(),
        ..PageMetadata::default()
    }
}

pub(super) async fn run_batch<B: Backend>(
    server: Arc<ServerState<B>>,
    client: Arc<ClientState>,
    version: ProtocolVersion,
    batch: Box<Batch>,
) -> StatementOutcome<B::Prepared> {
    let summary = StatementSummary::batch(&batch, server.audit.is_on());
    let Batch {
        kind,
        statements,
        parameters,
    } = *batch;
    let checked = check_keyspace(&server, parameters.keyspace.as_deref());
    let logged = LoggedRequest::begin(&server, client.keyspace.as_deref(), version, &parameters)
        .map(|logged| logged.with_batch(&server, kind, &statements));
    let options = options(parameters, version);
    let outcome = match checked {
        Ok(()) => server.backend.batch(&client, kind, statements, &options).await,
        Err(error) => Err(error),
    };
    if let Some(logged) = logged.filter(|_| outcome.is_ok()) {
        logged.record().await;
    }
    StatementOutcome {
        summary,
        result: outcome.map(|outcome| answer(outcome, |_| PageMetadata::default())),
    }
}

pub(super) async fn run_prepare<B: Backend>(
    server: Arc<ServerState<B>>,
    client: Arc<ClientState>,
    prepare: Prepare,
    is_warned: Arc<AtomicBool>,
) -> StatementOutcome<B::Prepared> {
    let keyspace = prepare.keyspace.as_deref().or(client.keyspace.as_deref());
    let prepared = async {
        check_keyspace(&server, prepare.keyspace.as_deref())?;
        server.backend.prepare(&client, keyspace, &prepare.query).await
    };
    let prepared = prepared.await;
    let once = |warnings: Vec<String>| {
        let is_reported =
            !warnings.is_empty() && prepare.keyspace.is_none() && is_warned.swap(true, Ordering::Relaxed);
        if is_reported { Vec::new() } else { warnings }
    };
    let message = |(prepared, warnings)| ResponseMessage {
        tracing_id: None,
        warnings: once(warnings),
        custom_payload: None,
        response: Response::Result(QueryResult::Prepared(prepared)),
    };
    StatementOutcome {
        result: prepared.map(message),
        summary: StatementSummary::Text {
            text: prepare.query,
            values: 0,
        },
    }
}
