//! Begins the requests of a connection that is ready.

use std::sync::Arc;
use std::task::Context;
use std::time::Instant;

use helenus_cql::error::CqlError;
use helenus_cql::frame::response::{AuthSuccess, Ready};
use helenus_cql::frame::{CustomPayload, Envelope, Request, RequestMessage, Response, ResponseMessage};
use helenus_query::limits::client_memory::{CHARGED_STEP, Charge, ClientMemory};
use helenus_query::measurement::RequestMeasurement;

use super::audited::AuditedRequest;
use super::in_flight::{self, AdmittedRequest, InFlightRequest, ReadyResponse, RequestInfo, ResponseNotes};
use super::large_messages::{encode_if_long, is_long};
use super::memory::overloaded;
use super::state::StartupOptions;
use super::statements::{StatementOutcome, run_batch, run_execute, run_prepare, run_query};
use super::traced::{RequestTrace, describe};
use super::{Connection, REQUEST_OVERHEAD_BYTES};
use crate::metrics::RequestKind;
use crate::metrics::stage_times::Arrival;
use crate::spans::SpanParent;
use crate::transport::Backend;

impl<B: Backend> Connection<B> {
    /// Begins a request. It is answered at once if possible.
    pub(super) fn begin(
        &mut self,
        options: &StartupOptions,
        envelope: Envelope,
        arrival: Arrival,
        cx: &mut Context<'_>,
    ) {
        let version = options.version;
        let header = envelope.header;
        if header.version != version {
            let message = format!(
                "Invalid message version. Got {} but previous messages on this connection had version {version}",
                header.version
            );
            return self.send_error(version, header.stream, CqlError::Protocol(message));
        }
        if options.throw_on_overload && !self.has_room(self.needed(&envelope)) {
            return self.send_error(version, header.stream, overloaded());
        }
        if is_long(header.opcode, self.input.decoder.decompressed_len(&envelope)) {
            return self.begin_undecoded(options, envelope, arrival, cx);
        }
        let envelope = match self.input.decoder.decompress(envelope) {
            Ok(envelope) => envelope,
            Err(error) => return self.refuse_one(error),
        };
        let request_len = envelope.body.len();
        let cost_bytes = request_len + REQUEST_OVERHEAD_BYTES + self.memory.answer_len();
        let (message, body) = match RequestMessage::decode_with_body(envelope) {
            Ok(decoded) => decoded,
            Err(error) => return self.send_error(version, header.stream, error),
        };
        let mut measurement = RequestMeasurement::default();
        let server = self.server.clone();
        let traced = message.tracing.then(|| {
            let traced = RequestTrace::begin(&server, self.peer, request_len, &arrival, &mut measurement);
            let _ = traced.description().set(describe(&server, &message.request));
            traced
        });
        let begun = AdmittedRequest {
            info: RequestInfo {
                version,
                stream: header.stream,
                kind: RequestKind::of(header.opcode),
                cost_bytes,
                arrival,
            },
            traced,
            span: self.sample(message.custom_payload.as_ref()),
            measurement,
            is_long: false,
        };
        match message.request {
            Request::Query(query) => {
                if let Some(connected) = &self.session.connected {
                    connected.count_text();
                }
                let client = self.session.client.clone();
                self.run_request(begun, run_query(server, client, query, body), cx);
            }
            Request::Execute(execute) => {
                if let Some(connected) = &self.session.connected {
                    connected.count_prepared();
                }
                if self.relay(&begun, &execute, &body) {
                    return;
                }
                let client = self.session.client.clone();
                let is_warned = self.session.is_warned.clone();
                let run = run_execute(server, client, execute, body, options.knows_tablets, is_warned);
                self.run_request(begun, run, cx);
            }
            Request::Batch(batch) => {
                let client = self.session.client.clone();
                self.run_request(begun, run_batch(server, client, batch, body), cx);
            }
            Request::Prepare(prepare) => {
                let client = self.session.client.clone();
                let is_warned = self.session.is_warned.clone();
                self.run_request(begun, run_prepare(server, client, prepare, is_warned), cx);
            }
            Request::AuthResponse(response) if self.server.backend.authenticator().is_some() => {
                self.log_in(begun, response.token.unwrap_or_default(), cx);
            }
            request => {
                let response = self.answer(request);
                self.send(version, header.stream, &response.into());
            }
        }
    }

    /// Returns the parent of the span of a request with this payload. `None` if the request is not sampled.
    pub(super) fn sample(&self, payload: Option<&CustomPayload>) -> Option<SpanParent> {
        self.server.config.spans.as_ref()?.sample(payload)
    }

    /// Answers a request that runs no statement.
    fn answer(&mut self, request: Request) -> Response {
        match request {
            Request::Options(_) => self.supported(),
            Request::Register(register) => {
                if self.events.receiver.is_none() {
                    self.events.receiver = Some(self.server.events.listen());
                }
                self.events.types.extend(register.events);
                self.events.types.dedup();
                Response::Ready(Ready)
            }
            // Authentication is off, so any answer is accepted, as by Cassandra's AllowAllAuthenticator.
            Request::AuthResponse(_) => Response::AuthSuccess(AuthSuccess::default()),
            other => Response::Error(CqlError::Protocol(format!(
                "Unexpected message {}, the connection is already initialized",
                other.opcode().name()
            ))),
        }
    }

    pub(super) fn run_request(
        &mut self,
        begun: AdmittedRequest,
        run: impl Future<Output = StatementOutcome<B::Prepared>> + Send + 'static,
        cx: &mut Context<'_>,
    ) {
        let AdmittedRequest {
            info,
            traced,
            span,
            measurement,
            is_long,
        } = begun;
        let server = self.server.clone();
        let encoder = self.output.encoder;
        // A future contains the futures it awaits. This large one is boxed, so that the request stays small.
        let run = Box::pin(run);
        let audited = self.server.audit.running().map(|log| AuditedRequest {
            log,
            client: self.session.client.clone(),
            peer: self.peer,
            is_prepare: info.kind == RequestKind::Prepare,
        });
        let answer = async move {
            let StatementOutcome { summary, result } = run.await;
            if let Some(audited) = audited {
                audited.record(&server, &summary, result.as_ref().err());
            }
            let mut message = result.unwrap_or_else(ResponseMessage::error);
            let at = Instant::now();
            let traced = traced.map(|traced| traced.finish(&server, at));
            message.tracing_id = traced.map(|traced| traced.id);
            let is_slow = server
                .slow
                .is_slow(at.saturating_duration_since(info.arrival.first_byte));
            let is_described = is_slow || span.is_some();
            let describe = || (summary.text(&server.backend), summary.values());
            let notes = (is_described || traced.is_some()).then(|| {
                Box::new(ResponseNotes {
                    statement: is_described.then(describe),
                    is_slow,
                    span,
                    traced,
                })
            });
            let charge = charge(&server.memory, &message);
            let encoded = encode_if_long(&encoder, &info, &mut message).await;
            ReadyResponse {
                // Encoded responses are covered by a reservation instead.
                charge: charge.filter(|_| encoded.is_none()),
                message,
                at,
                notes,
                encoded,
                reserved: None,
            }
        };
        self.running.bytes += info.cost_bytes;
        self.server.acquire(info.cost_bytes);
        match InFlightRequest::begin(info, measurement, answer, &self.server.long_requests, is_long, cx) {
            in_flight::StartOutcome::Done(done) => self.finish(done),
            in_flight::StartOutcome::Running(request) => self.running.requests.push(request),
        }
    }
}

/// Counts the memory of a large response until it is encoded. `None` if the response is small.
fn charge(memory: &Arc<ClientMemory>, message: &ResponseMessage) -> Option<Charge> {
    let Response::Result(result) = &message.response else {
        return None;
    };
    let len = result.content_len();
    (len >= CHARGED_STEP).then(|| memory.charge(len))
}
