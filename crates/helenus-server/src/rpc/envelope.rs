//! Results as envelopes or bodies of the native protocol.

use bytes::{Bytes, BytesMut};
use helenus_cql::error::CqlError;
use helenus_cql::frame::envelope::{Flags, Header};
use helenus_cql::frame::response::{PageMetadata, QueryResult};
use helenus_cql::frame::{self, Decoder, Direction, Opcode, OutputEncoder, ProtocolVersion, ResponseMessage};
use helenus_query::response::{Outcome, Response, Rows};

/// Version of envelopes that only nodes read, and of errors. It has all errors.
pub(super) const VERSION: ProtocolVersion = ProtocolVersion::V5;

/// Returns a body as an envelope.
pub(super) fn envelope_of(version: ProtocolVersion, opcode: Opcode, body: Bytes) -> frame::Envelope {
    let header = Header {
        version,
        flags: Flags::default(),
        stream: 0,
        opcode,
    };
    frame::Envelope { header, body }
}

/// Returns the result in a body.
///
/// # Errors
/// The error in the body, or an error that the body is invalid.
pub(super) fn decoded_response(
    version: ProtocolVersion,
    opcode: Opcode,
    body: Bytes,
) -> Result<Response, CqlError> {
    response_of(ResponseMessage::decode(envelope_of(version, opcode, body))?.response)
}

/// Divides bytes into the header and the body of an envelope.
///
/// # Errors
/// The bytes are not one complete envelope.
fn envelope(bytes: &Bytes, direction: Direction) -> Result<frame::Envelope, CqlError> {
    let mut input = BytesMut::from(bytes.as_ref());
    let mut decoder = Decoder::new(direction, frame::MAX_BODY_LEN);
    match decoder.decode(&mut input) {
        Ok(Some(envelope)) => Ok(envelope),
        Ok(None) => Err(CqlError::Protocol(
            "a message between nodes is cut off".to_owned(),
        )),
        Err(error) => Err(error.error),
    }
}

/// Encodes a result for the sender.
pub(super) fn answer(result: Result<Outcome, CqlError>) -> Bytes {
    let message = match result {
        Ok(outcome) => ResponseMessage {
            tracing_id: None,
            warnings: outcome.warnings,
            custom_payload: None,
            response: frame::Response::Result(query_result(outcome.response, |rows| PageMetadata {
                paging_state: rows.paging_state.clone(),
                ..PageMetadata::default()
            })),
        },
        Err(error) => ResponseMessage::error(error),
    };
    let mut out = BytesMut::new();
    OutputEncoder::unstarted().response(VERSION, 0, &message, &mut out);
    out.freeze()
}

/// Returns a result as a message. `page` gives the metadata of a page of rows.
pub(super) fn query_result(response: Response, page: impl FnOnce(&Rows) -> PageMetadata) -> QueryResult {
    match response {
        Response::Void => QueryResult::Void,
        Response::SetKeyspace(keyspace) => QueryResult::SetKeyspace(keyspace),
        Response::SchemaChange(change) => QueryResult::SchemaChange(change),
        Response::Encoded(body) => QueryResult::Encoded(body),
        Response::Rows(rows) => {
            let page = page(&rows);
            QueryResult::Rows(frame::Rows {
                page,
                ..frame::Rows::new(rows.metadata, rows.content)
            })
        }
    }
}

/// Decodes the result of [`answer`].
///
/// # Errors
/// The error that the other node sent, or an error that the result is invalid.
pub(super) fn outcome(message: &Bytes) -> Result<Outcome, CqlError> {
    let message = ResponseMessage::decode(envelope(message, Direction::Response)?)?;
    match response_of(message.response) {
        Ok(response) => Ok(response.with(message.warnings)),
        Err(error) => Err(error.warned(message.warnings)),
    }
}

fn response_of(response: frame::Response) -> Result<Response, CqlError> {
    match response {
        frame::Response::Error(error) => Err(error),
        frame::Response::Result(QueryResult::Void) => Ok(Response::Void),
        frame::Response::Result(QueryResult::SetKeyspace(keyspace)) => Ok(Response::SetKeyspace(keyspace)),
        frame::Response::Result(QueryResult::SchemaChange(change)) => Ok(Response::SchemaChange(change)),
        frame::Response::Result(QueryResult::Rows(rows)) => Ok(Response::Rows(Rows {
            metadata: rows.metadata,
            content: rows.content,
            paging_state: rows.page.paging_state,
        })),
        other => {
            let name = other.opcode().name();
            Err(CqlError::Server(format!("a node has answered with {name}")))
        }
    }
}
