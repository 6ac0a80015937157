//! Requests of a connection that has started up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Context;
use std::time::Instant;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::frame::request::{Batch, Execute, Prepare, Query};
use helenus_cql::frame::response::{AuthSuccess, PageMetadata, QueryResult, Ready};
use helenus_cql::frame::{
    Envelope, ProtocolVersion, QueryParameters, Request, RequestMessage, Response, ResponseMessage,
    ResultMetadata, Rows,
};
use helenus_query::limits::client_memory::{CHARGED_STEP, Charge, ClientMemory};
use helenus_query::request::{BoundValues, ClientState, Place, QueryOptions};
use helenus_query::response::{Outcome, Response as Answer};
use helenus_query::trace::Work;

use super::in_flight::{self, Answered, InFlight, Remarks, Ticket};
use super::long::{encode_if_long, is_long};
use super::memory::overloaded;
use super::subject::Subject;
use super::tablets;
use super::traced::{Traced, describe};
use super::{Connection, REQUEST_OVERHEAD_BYTES};
use crate::backend::Backend;
use crate::breakdown::Arrival;
use crate::metrics::RequestKind;
use crate::shared::Shared;

impl<B: Backend> Connection<B> {
    /// Begins a request: answers it at once if that is possible.
    pub(super) fn begin(
        &mut self,
        version: ProtocolVersion,
        envelope: Envelope,
        arrival: Arrival,
        cx: &mut Context<'_>,
    ) {
        let header = envelope.header;
        if header.version != version {
            let message = format!(
                "Invalid message version. Got {} but previous messages on this connection had version {version}",
                header.version
            );
            return self.send_error(version, header.stream, CqlError::Protocol(message));
        }
        if self.throw_on_overload && !self.has_room(self.needed(&envelope)) {
            return self.send_error(version, header.stream, overloaded());
        }
        if is_long(header.opcode, self.decoder.decompressed_len(&envelope)) {
            return self.begin_undecoded(version, envelope, arrival, cx);
        }
        let envelope = match self.decoder.decompress(envelope) {
            Ok(envelope) => envelope,
            Err(error) => return self.refuse_one(error),
        };
        let request_len = envelope.body.len();
        let cost_bytes = request_len + REQUEST_OVERHEAD_BYTES + self.memory.answer_len();
        let message = match RequestMessage::decode(envelope) {
            Ok(message) => message,
            Err(error) => return self.send_error(version, header.stream, error),
        };
        let mut work = Work::default();
        let shared = self.shared.clone();
        let traced = message.tracing.then(|| {
            let traced = Traced::begin(&shared, self.peer, request_len, &arrival, &mut work);
            let _ = traced.description().set(describe(&shared, &message.request));
            traced
        });
        let begun = Accepted {
            ticket: Ticket {
                version,
                stream: header.stream,
                kind: RequestKind::of(header.opcode),
                cost_bytes,
                arrival,
            },
            traced,
            work,
            is_long: false,
        };
        match message.request {
            Request::Query(query) => {
                if let Some(connected) = &self.connected {
                    connected.count_text();
                }
                let client = self.client.clone();
                self.run_request(begun, run_query(shared, client, version, query), cx);
            }
            Request::Execute(execute) => {
                if let Some(connected) = &self.connected {
                    connected.count_prepared();
                }
                let client = self.client.clone();
                let is_warned = self.is_warned.clone();
                let run = run_execute(shared, client, version, execute, self.knows_tablets, is_warned);
                self.run_request(begun, run, cx);
            }
            Request::Batch(batch) => {
                let client = self.client.clone();
                self.run_request(begun, run_batch(shared, client, version, batch), cx);
            }
            Request::Prepare(prepare) => {
                let client = self.client.clone();
                let is_warned = self.is_warned.clone();
                self.run_request(begun, run_prepare(shared, client, prepare, is_warned), cx);
            }
            Request::AuthResponse(response) if self.shared.backend.authenticator().is_some() => {
                self.log_in(begun, response.token.unwrap_or_default(), cx);
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

    pub(super) fn run_request(
        &mut self,
        begun: Accepted,
        run: impl Future<Output = Ran<B::Prepared>> + Send + 'static,
        cx: &mut Context<'_>,
    ) {
        let Accepted {
            ticket,
            traced,
            work,
            is_long,
        } = begun;
        let shared = self.shared.clone();
        let encoder = self.encoder;
        let answer = async move {
            let Ran { subject, result } = run.await;
            let mut message = result.unwrap_or_else(ResponseMessage::error);
            let at = Instant::now();
            let traced = traced.map(|traced| traced.finish(&shared, at));
            message.tracing_id = traced.map(|traced| traced.id);
            let is_slow = shared
                .slow
                .is_slow(at.saturating_duration_since(ticket.arrival.first_byte));
            let slow = is_slow.then(|| (subject.text(&shared.backend), subject.values()));
            let remarks = (is_slow || traced.is_some()).then(|| Box::new(Remarks { slow, traced }));
            let charge = charge(&shared.memory, &message);
            let encoded = encode_if_long(&encoder, &ticket, &mut message).await;
            Answered {
                // What is encoded is reserved.
                charge: charge.filter(|_| encoded.is_none()),
                message,
                at,
                remarks,
                encoded,
                reserved: None,
            }
        };
        self.in_flight_bytes += ticket.cost_bytes;
        self.shared.acquire(ticket.cost_bytes);
        match InFlight::begin(ticket, work, answer, &self.shared.aside, is_long, cx) {
            in_flight::Begun::Done(done) => self.finish(done),
            in_flight::Begun::Running(request) => self.in_flight.push(request),
        }
    }
}

/// Counts an answer that takes much until it is encoded.
fn charge(memory: &Arc<ClientMemory>, message: &ResponseMessage) -> Option<Charge> {
    let Response::Result(QueryResult::Rows(rows)) = &message.response else {
        return None;
    };
    let len = rows.content.len_bytes();
    (len >= CHARGED_STEP).then(|| memory.charge(len))
}

/// A request that is about to run.
pub(super) struct Accepted {
    pub ticket: Ticket,
    pub traced: Option<Box<Traced>>,
    pub work: Work,
    /// It takes long already to be read and parsed.
    pub is_long: bool,
}

impl Accepted {
    /// One that leaves no trace.
    pub fn untraced(ticket: Ticket) -> Accepted {
        Accepted {
            ticket,
            traced: None,
            work: Work::default(),
            is_long: false,
        }
    }
}

/// A request that has run.
pub(super) struct Ran<P> {
    pub subject: Subject<P>,
    pub result: Result<ResponseMessage, CqlError>,
}

impl<P> Ran<P> {
    pub fn refused(error: CqlError) -> Ran<P> {
        Ran {
            subject: Subject::Unknown,
            result: Err(error),
        }
    }
}

/// Refuses a keyspace that a v5 request brings along and that does not exist.
fn check_keyspace<B: Backend>(shared: &Shared<B>, keyspace: Option<&str>) -> Result<(), CqlError> {
    keyspace.map_or(Ok(()), |keyspace| shared.backend.check_keyspace(keyspace))
}

/// The values of a request.
pub(super) fn values(parameters: QueryParameters) -> BoundValues {
    match parameters.names {
        Some(names) => BoundValues::Named(names.into_iter().zip(parameters.values).collect()),
        None if parameters.values.is_empty() => BoundValues::None,
        None => BoundValues::Positional(parameters.values),
    }
}

/// The options of a request, without what is answered by the transport itself.
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

pub(super) async fn run_query<B: Backend>(
    shared: Arc<Shared<B>>,
    client: Arc<ClientState>,
    version: ProtocolVersion,
    query: Box<Query>,
) -> Ran<B::Prepared> {
    let Query { query, parameters } = *query;
    let skip = parameters.skip_metadata;
    let checked = check_keyspace(&shared, parameters.keyspace.as_deref());
    let options = options(parameters, version);
    let outcome = match checked {
        Ok(()) => shared.backend.query(&client, &query, &options).await,
        Err(error) => Err(error),
    };
    let page = |_: &Rows| PageMetadata {
        skip,
        ..PageMetadata::default()
    };
    Ran {
        subject: Subject::Text {
            text: query,
            values: options.values.len(),
        },
        result: outcome.map(|outcome| answer(outcome, page)),
    }
}

pub(super) async fn run_execute<B: Backend>(
    shared: Arc<Shared<B>>,
    client: Arc<ClientState>,
    version: ProtocolVersion,
    execute: Box<Execute>,
    knows_tablets: bool,
    is_warned: Arc<AtomicBool>,
) -> Ran<B::Prepared> {
    let Execute {
        id,
        result_metadata_id,
        parameters,
    } = *execute;
    let prepared = match shared.backend.prepared(&id) {
        Ok(prepared) => prepared,
        Err(error) => {
            return Ran::refused(error);
        }
    };
    let skip = parameters.skip_metadata;
    let options = options(parameters, version);
    let warning = match is_warned.load(Ordering::Relaxed) {
        true => None,
        false => shared.backend.use_warning(&client, &prepared),
    };
    let warning = warning.filter(|_| !is_warned.swap(true, Ordering::Relaxed));
    let outcome = shared.backend.execute(&client, &prepared, &options).await;
    let known = || shared.backend.prepared_metadata(&prepared);
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
    Ran {
        result: outcome.map(answer),
        subject: Subject::Prepared {
            prepared,
            values: options.values.len(),
        },
    }
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

pub(super) async fn run_batch<B: Backend>(
    shared: Arc<Shared<B>>,
    client: Arc<ClientState>,
    version: ProtocolVersion,
    batch: Box<Batch>,
) -> Ran<B::Prepared> {
    let subject = Subject::batch(&batch);
    let Batch {
        kind,
        statements,
        parameters,
    } = *batch;
    let checked = check_keyspace(&shared, parameters.keyspace.as_deref());
    let options = options(parameters, version);
    let outcome = match checked {
        Ok(()) => shared.backend.batch(&client, kind, statements, &options).await,
        Err(error) => Err(error),
    };
    Ran {
        subject,
        result: outcome.map(|outcome| answer(outcome, |_| PageMetadata::default())),
    }
}

pub(super) async fn run_prepare<B: Backend>(
    shared: Arc<Shared<B>>,
    client: Arc<ClientState>,
    prepare: Prepare,
    is_warned: Arc<AtomicBool>,
) -> Ran<B::Prepared> {
    let keyspace = prepare.keyspace.as_deref().or(client.keyspace.as_deref());
    let prepared = check_keyspace(&shared, prepare.keyspace.as_deref())
        .and_then(|()| shared.backend.prepare(&client, keyspace, &prepare.query));
    let once = |warnings: Vec<String>| {
        let is_told =
            !warnings.is_empty() && prepare.keyspace.is_none() && is_warned.swap(true, Ordering::Relaxed);
        if is_told { Vec::new() } else { warnings }
    };
    let message = |(prepared, warnings)| ResponseMessage {
        tracing_id: None,
        warnings: once(warnings),
        custom_payload: None,
        response: Response::Result(QueryResult::Prepared(prepared)),
    };
    Ran {
        result: prepared.map(message),
        subject: Subject::Text {
            text: prepare.query,
            values: 0,
        },
    }
}
