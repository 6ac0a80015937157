//! Requests of a connection that has started up.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt;
use helenus_cql::error::{Consistency, CqlError};
use helenus_cql::frame::request::{Batch, Execute, Prepare, Query};
use helenus_cql::frame::response::{AuthSuccess, PageMetadata, QueryResult, Ready};
use helenus_cql::frame::{
    Envelope, Header, ProtocolVersion, QueryParameters, Request, RequestMessage, Response, ResponseMessage,
    ResultMetadata, Rows,
};
use helenus_query::request::{BoundValues, ClientState, QueryOptions};
use helenus_query::response::{Outcome, Response as Answer};
use helenus_query::trace::Trace;
use uuid::Uuid;

use super::in_flight::{InFlight, Ticket};
use super::{Connection, REQUEST_OVERHEAD_BYTES};
use crate::backend::Backend;
use crate::metrics::RequestKind;
use crate::shared::Shared;

impl<B: Backend> Connection<B> {
    /// Begins a request: answers it at once if that is possible.
    pub(super) fn begin(&mut self, version: ProtocolVersion, envelope: Envelope, cx: &mut Context<'_>) {
        let header = envelope.header;
        let cost_bytes = envelope.body.len() + REQUEST_OVERHEAD_BYTES;
        if header.version != version {
            let message = format!(
                "Invalid message version. Got {} but previous messages on this connection had version {version}",
                header.version
            );
            return self.send_error(version, header.stream, CqlError::Protocol(message));
        }
        if self.throw_on_overload && !self.has_room() {
            let message =
                "Server is in overloaded state. Cannot accept more requests at this point".to_owned();
            return self.send_error(version, header.stream, CqlError::Overloaded(message));
        }
        let message = match RequestMessage::decode(envelope) {
            Ok(message) => message,
            Err(error) => return self.send_error(version, header.stream, error),
        };
        let trace = message.tracing.then(|| self.trace(&message.request));
        match message.request {
            Request::Query(query) => {
                let keyspace = query.parameters.keyspace.clone();
                let client = self.client_in(keyspace);
                let run = run_query(self.shared.clone(), client, version, query);
                self.run_request(header, cost_bytes, trace, run, cx);
            }
            Request::Execute(execute) => {
                let run = run_execute(self.shared.clone(), self.client.clone(), version, execute);
                self.run_request(header, cost_bytes, trace, run, cx);
            }
            Request::Batch(batch) => {
                let keyspace = batch.parameters.keyspace.clone();
                let client = self.client_in(keyspace);
                let run = run_batch(self.shared.clone(), client, version, batch);
                self.run_request(header, cost_bytes, trace, run, cx);
            }
            Request::Prepare(prepare) => {
                let run = run_prepare(self.shared.clone(), self.client.clone(), prepare);
                self.run_request(header, cost_bytes, trace, run, cx);
            }
            request => {
                let response = self.answer(request);
                self.send(version, header.stream, &response.into());
            }
        }
    }

    /// Answers what needs no statement to be run.
    fn answer(&mut self, request: Request) -> Response {
        match request {
            Request::Options(_) => self.supported(),
            Request::Register(register) => {
                if self.events.is_none() {
                    self.events = Some(self.shared.events.listen());
                }
                self.event_types.extend(register.events);
                self.event_types.dedup();
                Response::Ready(Ready)
            }
            // Nobody is asked to authenticate; Cassandra's AllowAllAuthenticator is content with any answer too.
            Request::AuthResponse(_) => Response::AuthSuccess(AuthSuccess::default()),
            other => Response::Error(CqlError::Protocol(format!(
                "Unexpected message {}, the connection is already initialized",
                other.opcode().name()
            ))),
        }
    }

    /// The connection's state, with the keyspace that a v5 request brings along.
    fn client_in(&self, keyspace: Option<String>) -> Arc<ClientState> {
        match keyspace {
            Some(keyspace) => Arc::new(ClientState {
                keyspace: Some(keyspace),
            }),
            None => self.client.clone(),
        }
    }

    /// What the trace of a request begins with.
    fn trace(&self, request: &Request) -> Trace {
        let (what, query, parameters) = match request {
            Request::Query(query) => ("Execute CQL3 query", Some(&query.query), Some(&query.parameters)),
            Request::Execute(execute) => ("Execute CQL3 prepared query", None, Some(&execute.parameters)),
            Request::Batch(batch) => ("Execute batch of CQL3 queries", None, Some(&batch.parameters)),
            Request::Prepare(prepare) => ("Preparing CQL3 query", Some(&prepare.query), None),
            _ => ("Request", None, None),
        };
        let mut shown = BTreeMap::new();
        if let Some(query) = query {
            shown.insert("query".to_owned(), query.clone());
        }
        if let Some(parameters) = parameters {
            let serial = parameters.serial_consistency.unwrap_or(Consistency::Serial);
            shown.insert("consistency_level".to_owned(), parameters.consistency.to_string());
            shown.insert("serial_consistency_level".to_owned(), serial.to_string());
            if let Some(page_size) = parameters.page_size {
                shown.insert("page_size".to_owned(), page_size.to_string());
            }
        }
        Trace {
            id: self.shared.trace_id(),
            client: self.peer.ip(),
            command: "QUERY",
            request: what,
            parameters: shown,
            started_at_us: self.shared.now_us(),
            duration: Duration::ZERO,
            answered_id: Uuid::nil(),
        }
    }

    fn run_request(
        &mut self,
        header: Header,
        cost_bytes: usize,
        trace: Option<Trace>,
        run: impl Future<Output = Result<ResponseMessage, CqlError>> + Send + 'static,
        cx: &mut Context<'_>,
    ) {
        let ticket = Ticket {
            version: header.version,
            stream: header.stream,
            kind: RequestKind::of(header.opcode),
            cost_bytes,
            began: Instant::now(),
        };
        let shared = self.shared.clone();
        let answer = run.map(move |result| {
            let mut message = result.unwrap_or_else(|error| Response::Error(error).into());
            if let Some(mut trace) = trace {
                message.tracing_id = Some(trace.id);
                trace.duration = ticket.began.elapsed();
                trace.answered_id = shared.trace_id();
                shared.backend.record_trace(trace);
            }
            message
        });
        self.in_flight_bytes += cost_bytes;
        self.shared.acquire(cost_bytes);
        let mut request = InFlight::new(ticket, answer);
        match pin!(&mut request).poll(cx) {
            Poll::Ready(done) => self.finish(done),
            Poll::Pending => self.in_flight.push(request),
        }
    }
}

/// The options of a request, without what is answered by the transport itself.
fn options(parameters: QueryParameters, version: ProtocolVersion) -> QueryOptions {
    let values = match parameters.names {
        Some(names) => BoundValues::Named(names.into_iter().zip(parameters.values).collect()),
        None if parameters.values.is_empty() => BoundValues::None,
        None => BoundValues::Positional(parameters.values),
    };
    QueryOptions {
        consistency: parameters.consistency,
        serial_consistency: parameters.serial_consistency,
        page_size: parameters.page_size,
        paging_state: parameters.paging_state,
        timestamp_us: parameters.default_timestamp,
        now_s: parameters.now_in_seconds.map(i64::from),
        values,
        protocol_version: version.number(),
    }
}

/// The outcome as a message; `page` decides on the metadata of rows.
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

async fn run_query<B: Backend>(
    shared: Arc<Shared<B>>,
    client: Arc<ClientState>,
    version: ProtocolVersion,
    query: Box<Query>,
) -> Result<ResponseMessage, CqlError> {
    let Query { query, parameters } = *query;
    let skip = parameters.skip_metadata;
    let options = options(parameters, version);
    let outcome = shared.backend.query(&client, &query, &options).await?;
    Ok(answer(outcome, |_| PageMetadata {
        skip,
        ..PageMetadata::default()
    }))
}

async fn run_execute<B: Backend>(
    shared: Arc<Shared<B>>,
    client: Arc<ClientState>,
    version: ProtocolVersion,
    execute: Box<Execute>,
) -> Result<ResponseMessage, CqlError> {
    let Execute {
        id,
        result_metadata_id,
        parameters,
    } = *execute;
    let prepared = shared.backend.prepared(&id)?;
    let skip = parameters.skip_metadata;
    let options = options(parameters, version);
    let outcome = shared.backend.execute(&client, &prepared, &options).await?;
    let known = || shared.backend.prepared_metadata(&prepared);
    Ok(answer(outcome, |rows| {
        executed_metadata(rows, skip, result_metadata_id, version, known)
    }))
}

/// What a client that executes a prepared statement is told of its columns (Cassandra's `ExecuteMessage`).
///
/// A v5 client says what it knows, and is sent the metadata anew when it has changed. An older one can't, so that
/// the metadata may only be left out if it never changed since the statement was prepared. Rows of what is not a
/// SELECT (a transaction's outcome) always describe themselves, and a client shall not remember them.
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

async fn run_batch<B: Backend>(
    shared: Arc<Shared<B>>,
    client: Arc<ClientState>,
    version: ProtocolVersion,
    batch: Box<Batch>,
) -> Result<ResponseMessage, CqlError> {
    let Batch {
        kind,
        statements,
        parameters,
    } = *batch;
    let options = options(parameters, version);
    let outcome = shared.backend.batch(&client, kind, statements, &options).await?;
    Ok(answer(outcome, |_| PageMetadata::default()))
}

async fn run_prepare<B: Backend>(
    shared: Arc<Shared<B>>,
    client: Arc<ClientState>,
    prepare: Prepare,
) -> Result<ResponseMessage, CqlError> {
    let keyspace = prepare.keyspace.as_deref().or(client.keyspace.as_deref());
    let (prepared, warnings) = shared.backend.prepare(keyspace, &prepare.query)?;
    Ok(ResponseMessage {
        tracing_id: None,
        warnings,
        custom_payload: None,
        response: Response::Result(QueryResult::Prepared(prepared)),
    })
}
