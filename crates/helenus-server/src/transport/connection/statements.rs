//! Runs statements: a decoded QUERY, EXECUTE, BATCH or PREPARE becomes a response.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::frame::request::{Batch, Execute, Prepare, Query};
use helenus_cql::frame::response::{PageMetadata, QueryResult};
use helenus_cql::frame::{ProtocolVersion, QueryParameters, Response, ResponseMessage, ResultMetadata, Rows};
use helenus_query::request::{ClientFrame, ClientState};
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

/// Returns the parameters of a request with its body.
pub(super) fn frame<'f>(parameters: &'f QueryParameters, body: &'f Bytes) -> ClientFrame<'f> {
    ClientFrame {
        parameters,
        body: Some(body),
    }
}

/// Returns the response for an outcome. `page` decides which metadata is sent with rows.
fn answer(outcome: Outcome, page: impl FnOnce(&Rows) -> PageMetadata) -> ResponseMessage {
    let result = match outcome.response {
        Answer::Void => QueryResult::Void,
        Answer::SetKeyspace(keyspace) => QueryResult::SetKeyspace(keyspace),
        Answer::SchemaChange(change) => QueryResult::SchemaChange(change),
        Answer::Encoded(body) => QueryResult::Encoded(body),
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
    query: Box<Query>,
    body: Bytes,
) -> StatementOutcome<B::Prepared> {
    let Query { query, parameters } = *query;
    let skip = parameters.skip_metadata;
    let checked = check_keyspace(&server, parameters.keyspace.as_deref());
    let logged = LoggedRequest::begin(&server, client.keyspace.as_deref(), &parameters);
    let frame = frame(&parameters, &body);
    let outcome = match checked {
        Ok(()) => server.backend.query(&client, &query, frame).await,
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
            values: parameters.values.len(),
        },
        result: outcome.map(|outcome| answer(outcome, page)),
    }
}

pub(super) async fn run_execute<B: Backend>(
    server: Arc<ServerState<B>>,
    client: Arc<ClientState>,
    execute: Box<Execute>,
    body: Bytes,
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
    // Unqualified names refer to the keyspace in which the statement was prepared.
    let keyspace = server.backend.keyspace(&prepared).or(client.keyspace.as_deref());
    let logged = LoggedRequest::begin(&server, keyspace, &parameters);
    let warning = match is_warned.load(Ordering::Relaxed) {
        true => None,
        false => server.backend.use_warning(&client, &prepared),
    };
    let warning = warning.filter(|_| !is_warned.swap(true, Ordering::Relaxed));
    let outcome = server
        .backend
        .execute(&client, &prepared, frame(&parameters, &body))
        .await;
    if let Some(logged) = logged.filter(|_| outcome.is_ok()) {
        logged.record_single(server.backend.statement(&prepared)).await;
    }
    let page = |rows: &Rows| {
        let metadata = server.backend.prepared_metadata(&prepared);
        executed_metadata(rows, &metadata, result_metadata_id.as_ref(), &parameters)
    };
    let answer = |mut outcome: Outcome| {
        if let Some(warning) = warning {
            outcome.warnings.insert(0, warning);
        }
        executed_answer(outcome, knows_tablets, page)
    };
    StatementOutcome {
        result: outcome.map(answer),
        summary: StatementSummary::Prepared {
            prepared,
            values: parameters.values.len(),
        },
    }
}

/// Returns the response for the outcome of a prepared statement, which names the tablet's owner if the client knows tablets.
pub(super) fn executed_answer(
    mut outcome: Outcome,
    knows_tablets: bool,
    page: impl FnOnce(&Rows) -> PageMetadata,
) -> ResponseMessage {
    let passed_on = outcome.passed_on.take().filter(|_| knows_tablets);
    ResponseMessage {
        custom_payload: passed_on.map(|passed_on| tablets::payload(&passed_on)),
        ..answer(outcome, page)
    }
}

/// Goes on with an EXECUTE that was relayed without success. `body` is that of the request.
pub(super) async fn run_resumed<B: Backend>(
    server: Arc<ServerState<B>>,
    prepared: Arc<B::Prepared>,
    unsettled: B::Unsettled,
    (version, body): (ProtocolVersion, Bytes),
    knows_tablets: bool,
) -> StatementOutcome<B::Prepared> {
    let execute = match Execute::decode_body(body.clone(), version) {
        Ok(execute) => execute,
        Err(error) => return StatementOutcome::refused(error),
    };
    let parameters = &execute.parameters;
    let outcome = server.backend.resume(unsettled, frame(parameters, &body)).await;
    let page = |rows: &Rows| {
        let metadata = server.backend.prepared_metadata(&prepared);
        executed_metadata(rows, &metadata, execute.result_metadata_id.as_ref(), parameters)
    };
    StatementOutcome {
        result: outcome.map(|outcome| executed_answer(outcome, knows_tablets, page)),
        summary: StatementSummary::Prepared {
            values: parameters.values.len(),
            prepared,
        },
    }
}

/// Returns the metadata that is sent with the rows of a prepared statement. `client_knows` is the id of the columns that a v5 client knows.
///
/// Rows of a statement other than SELECT (a transaction's outcome) always carry their metadata, which a client must not remember.
fn executed_metadata(
    rows: &Rows,
    prepared: &ResultMetadata,
    client_knows: Option<&Bytes>,
    parameters: &QueryParameters,
) -> PageMetadata {
    if prepared.columns.is_empty() {
        return PageMetadata::default();
    }
    let (version, skip) = (parameters.version, parameters.skip_metadata);
    let prepared_id = prepared.id();
    let known_id: Option<&[u8]> = match version >= ProtocolVersion::V5 {
        true => client_knows.map(AsRef::as_ref),
        false => Some(&prepared_id),
    };
    PageMetadata::of_executed(&rows.metadata, known_id, skip, version)
}

pub(super) async fn run_batch<B: Backend>(
    server: Arc<ServerState<B>>,
    client: Arc<ClientState>,
    batch: Box<Batch>,
    body: Bytes,
) -> StatementOutcome<B::Prepared> {
    let summary = StatementSummary::batch(&batch, server.audit.is_on());
    let Batch {
        kind,
        statements,
        parameters,
    } = *batch;
    let checked = check_keyspace(&server, parameters.keyspace.as_deref());
    let logged = LoggedRequest::begin(&server, client.keyspace.as_deref(), &parameters)
        .map(|logged| logged.with_batch(&server, kind, &statements));
    let frame = frame(&parameters, &body);
    let outcome = match checked {
        Ok(()) => server.backend.batch(&client, kind, statements, frame).await,
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
