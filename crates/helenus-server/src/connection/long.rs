//! Requests and answers that are known to take long: they are read, run and encoded aside.

use std::task::Context;

use bytes::BytesMut;
use helenus_cql::error::CqlError;
use helenus_cql::frame::response::QueryResult;
use helenus_cql::frame::{
    Decompressor, Envelope, Flags, Opcode, OutputEncoder, ProtocolVersion, Request, RequestMessage, Response,
    ResponseMessage,
};
use helenus_query::limits::scope;
use helenus_query::trace::Work;

use super::in_flight::Ticket;
use super::requests::{Accepted, Ran, run_batch, run_execute, run_prepare, run_query};
use super::traced::{Traced, describe};
use super::{Connection, REQUEST_OVERHEAD_BYTES};
use crate::backend::Backend;
use crate::breakdown::Arrival;
use crate::metrics::RequestKind;
use crate::working_memory::expanded_len;

/// Bytes of a statement, of a BATCH message and of a message with values that take about a millisecond to be read.
const LONG_TEXT_LEN: usize = 32 << 10;
const LONG_BATCH_LEN: usize = 64 << 10;
const LONG_VALUES_LEN: usize = 256 << 10;
/// Bytes of rows that take about a millisecond to be encoded.
const LONG_ANSWER_LEN: usize = 256 << 10;

impl<B: Backend> Connection<B> {
    /// Begins a request that takes long already to be read.
    pub(super) fn begin_undecoded(
        &mut self,
        version: ProtocolVersion,
        envelope: Envelope,
        arrival: Arrival,
        cx: &mut Context<'_>,
    ) {
        let header = envelope.header;
        let decompressor = self.decoder.decompressor();
        let request_len = decompressor.decompressed_len(&envelope);
        let ticket = Ticket {
            version,
            stream: header.stream,
            kind: RequestKind::of(header.opcode),
            cost_bytes: request_len + REQUEST_OVERHEAD_BYTES + self.memory.answer_len(),
            arrival,
        };
        if let Some(connected) = &self.connected {
            match header.opcode {
                Opcode::Query => connected.count_text(),
                Opcode::Execute => connected.count_prepared(),
                _ => {}
            }
        }
        let mut work = Work::default();
        let is_traced = header.flags.contains(Flags::TRACING);
        let traced =
            is_traced.then(|| Traced::begin(&self.shared, self.peer, request_len, &arrival, &mut work));
        let description = traced.as_ref().map(|traced| traced.description());
        let (shared, client) = (self.shared.clone(), self.client.clone());
        let (is_warned, knows_tablets) = (self.is_warned.clone(), self.knows_tablets);
        let run = async move {
            let request = match decode(decompressor, envelope) {
                Ok(request) => request,
                Err(error) => return Ran::refused(error),
            };
            if let Some(description) = description {
                let _ = description.set(describe(&shared, &request));
            }
            let working = shared.clone();
            let _held = match working.working_memory.reserve(expanded_len(&request)).await {
                Ok(held) => held,
                Err(error) => return Ran::refused(error),
            };
            match request {
                Request::Query(query) => run_query(shared, client, version, query).await,
                Request::Execute(execute) => {
                    run_execute(shared, client, version, execute, knows_tablets, is_warned).await
                }
                Request::Batch(batch) => run_batch(shared, client, version, batch).await,
                Request::Prepare(prepare) => run_prepare(shared, client, prepare, is_warned).await,
                _ => Ran::refused(CqlError::Server("no request that takes long".to_owned())),
            }
        };
        let accepted = Accepted {
            ticket,
            traced,
            work,
            is_long: true,
        };
        self.run_request(accepted, run, cx);
    }
}

fn decode(decompressor: Decompressor, envelope: Envelope) -> Result<Request, CqlError> {
    let envelope = decompressor.decompress(envelope).map_err(|error| error.error)?;
    RequestMessage::decode(envelope).map(|message| message.request)
}

/// True for a request that takes about a millisecond to be read, parsed and planned.
pub(super) fn is_long(opcode: Opcode, len: usize) -> bool {
    match opcode {
        Opcode::Query | Opcode::Prepare => len > LONG_TEXT_LEN,
        Opcode::Batch => len > LONG_BATCH_LEN,
        Opcode::Execute => len > LONG_VALUES_LEN,
        _ => false,
    }
}

/// The bytes to send of an answer that is long: to encode it takes a while too. What is left of the message is its kind.
pub(super) async fn encode_if_long(
    encoder: &OutputEncoder,
    ticket: &Ticket,
    message: &mut ResponseMessage,
) -> Option<BytesMut> {
    let Response::Result(QueryResult::Rows(rows)) = &message.response else {
        return None;
    };
    if rows.content.len_bytes() < LONG_ANSWER_LEN {
        return None;
    }
    scope::step_aside().await;
    let void: ResponseMessage = Response::Result(QueryResult::Void).into();
    let message = std::mem::replace(message, void);
    let mut envelope = BytesMut::new();
    encoder.response(ticket.version, ticket.stream, &message, &mut envelope);
    drop(message);
    if !encoder.is_segmented() {
        return Some(envelope);
    }
    let mut segments = BytesMut::new();
    encoder.wrap(&envelope, &mut segments);
    Some(segments)
}
