//! Requests and responses so large that decoding or encoding them takes about a millisecond. Both are done in the pool of long requests.

use std::task::Context;

use bytes::{Bytes, BytesMut};
use helenus_cql::error::CqlError;
use helenus_cql::frame::response::QueryResult;
use helenus_cql::frame::{
    Decompressor, Envelope, Flags, Opcode, OutputEncoder, Request, RequestMessage, Response, ResponseMessage,
};
use helenus_query::limits::scope;
use helenus_query::measurement::RequestMeasurement;

use super::in_flight::{AdmittedRequest, RequestInfo};
use super::state::StartupOptions;
use super::statements::{StatementOutcome, run_batch, run_execute, run_prepare, run_query};
use super::traced::{RequestTrace, describe};
use super::{Connection, REQUEST_OVERHEAD_BYTES};
use crate::metrics::RequestKind;
use crate::metrics::stage_times::Arrival;
use crate::transport::Backend;
use crate::transport::working_memory::expanded_len;

/// Bytes of a statement, of a BATCH message, and of a message with values above which reading them takes about a millisecond.
const LONG_TEXT_LEN: usize = 32 << 10;
const LONG_BATCH_LEN: usize = 64 << 10;
const LONG_VALUES_LEN: usize = 256 << 10;
/// Bytes of rows above which encoding them takes about a millisecond.
const LONG_ANSWER_LEN: usize = 256 << 10;

impl<B: Backend> Connection<B> {
    /// Begins a request that takes long to decode. It is decoded in the pool of long requests.
    pub(super) fn begin_undecoded(
        &mut self,
        options: &StartupOptions,
        envelope: Envelope,
        arrival: Arrival,
        cx: &mut Context<'_>,
    ) {
        let (version, knows_tablets) = (options.version, options.knows_tablets);
        let header = envelope.header;
        let decompressor = self.input.decoder.decompressor();
        let request_len = decompressor.decompressed_len(&envelope);
        let info = RequestInfo {
            version,
            stream: header.stream,
            kind: RequestKind::of(header.opcode),
            cost_bytes: request_len + REQUEST_OVERHEAD_BYTES + self.memory.answer_len(),
            arrival,
        };
        if let Some(connected) = &self.session.connected {
            match header.opcode {
                Opcode::Query => connected.count_text(),
                Opcode::Execute => connected.count_prepared(),
                _ => {}
            }
        }
        let mut measurement = RequestMeasurement::default();
        let is_traced = header.flags.contains(Flags::TRACING);
        let traced = is_traced
            .then(|| RequestTrace::begin(&self.server, self.peer, request_len, &arrival, &mut measurement));
        let description = traced.as_ref().map(|traced| traced.description());
        let (server, client) = (self.server.clone(), self.session.client.clone());
        let is_warned = self.session.is_warned.clone();
        let run = async move {
            let (request, body) = match decode(decompressor, envelope) {
                Ok(decoded) => decoded,
                Err(error) => return StatementOutcome::refused(error),
            };
            if let Some(description) = description {
                let _ = description.set(describe(&server, &request));
            }
            let working = server.clone();
            let _held = match working.working_memory.reserve(expanded_len(&request)).await {
                Ok(held) => held,
                Err(error) => return StatementOutcome::refused(error),
            };
            match request {
                Request::Query(query) => run_query(server, client, query, body).await,
                Request::Execute(execute) => {
                    run_execute(server, client, execute, body, knows_tablets, is_warned).await
                }
                Request::Batch(batch) => run_batch(server, client, batch, body).await,
                Request::Prepare(prepare) => run_prepare(server, client, prepare, is_warned).await,
                _ => StatementOutcome::refused(CqlError::Server("no request that takes long".to_owned())),
            }
        };
        let accepted = AdmittedRequest {
            info,
            traced,
            // The payload, which may have a parent span, is not decoded yet.
            span: self.sample(None),
            measurement,
            is_long: true,
        };
        self.run_request(accepted, run, cx);
    }
}

/// Returns the request and its body.
fn decode(decompressor: Decompressor, envelope: Envelope) -> Result<(Request, Bytes), CqlError> {
    let envelope = decompressor.decompress(envelope).map_err(|error| error.error)?;
    RequestMessage::decode_with_body(envelope).map(|(message, body)| (message.request, body))
}

/// Returns true if decoding, parsing and planning the request takes about a millisecond or more.
pub(super) fn is_long(opcode: Opcode, len: usize) -> bool {
    match opcode {
        Opcode::Query | Opcode::Prepare => len > LONG_TEXT_LEN,
        Opcode::Batch => len > LONG_BATCH_LEN,
        Opcode::Execute => len > LONG_VALUES_LEN,
        _ => false,
    }
}

/// Encodes a response in the pool of long requests if it is long, and returns its bytes. The rows of `message` are dropped then. `None` if
/// the response is not long.
pub(super) async fn encode_if_long(
    encoder: &OutputEncoder,
    info: &RequestInfo,
    message: &mut ResponseMessage,
) -> Option<BytesMut> {
    let Response::Result(result) = &message.response else {
        return None;
    };
    if result.content_len() < LONG_ANSWER_LEN {
        return None;
    }
    scope::step_aside().await;
    let void: ResponseMessage = Response::Result(QueryResult::Void).into();
    let message = std::mem::replace(message, void);
    let mut envelope = BytesMut::new();
    encoder.response(info.version, info.stream, &message, &mut envelope);
    drop(message);
    if !encoder.is_segmented() {
        return Some(envelope);
    }
    let mut segments = BytesMut::new();
    encoder.wrap(&envelope, &mut segments);
    Some(segments)
}
