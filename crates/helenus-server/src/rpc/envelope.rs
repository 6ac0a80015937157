//! Results as envelopes of the native protocol, version 5.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use helenus_cql::error::CqlError;
use helenus_cql::frame::response::{PageMetadata, QueryResult};
use helenus_cql::frame::{
    self, Decoder, Direction, OutputEncoder, ProtocolVersion, ResponseMessage, ResultMetadata,
};
use helenus_query::response::{Outcome, Response, Rows};

/// Version of the native protocol in which nodes send statements and results to each other.
pub(super) const VERSION: ProtocolVersion = ProtocolVersion::V5;

/// Divides bytes into the header and the body of an envelope.
///
/// # Errors
/// The bytes are not one complete envelope.
pub(super) fn envelope(bytes: &Bytes, direction: Direction) -> Result<frame::Envelope, CqlError> {
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

/// Encodes a result for the sender. Leaves out the columns if their id is `known_id`.
pub(super) fn answer(result: Result<Outcome, CqlError>, known_id: &[u8]) -> Bytes {
    let message = match result {
        Ok(outcome) => ResponseMessage {
            tracing_id: None,
            warnings: outcome.warnings,
            custom_payload: None,
            response: frame::Response::Result(query_result(outcome.response, known_id)),
        },
        Err(error) => ResponseMessage::error(error),
    };
    let mut out = BytesMut::new();
    OutputEncoder::unstarted().response(VERSION, 0, &message, &mut out);
    out.freeze()
}

fn query_result(response: Response, known_id: &[u8]) -> QueryResult {
    match response {
        Response::Void => QueryResult::Void,
        Response::SetKeyspace(keyspace) => QueryResult::SetKeyspace(keyspace),
        Response::SchemaChange(change) => QueryResult::SchemaChange(change),
        Response::Rows(rows) => {
            let skip = !known_id.is_empty() && rows.metadata.id() == known_id;
            let mut sent = frame::Rows::new(rows.metadata, rows.content);
            sent.page = PageMetadata {
                skip,
                paging_state: rows.paging_state,
                ..PageMetadata::default()
            };
            QueryResult::Rows(sent)
        }
    }
}

/// Decodes the result of [`answer`]. `known` are the columns whose id was in the request.
///
/// # Errors
/// The error that the other node sent, or an error that the result is invalid.
pub(super) fn outcome(message: &Bytes, known: Option<Arc<ResultMetadata>>) -> Result<Outcome, CqlError> {
    let message = ResponseMessage::decode(envelope(message, Direction::Response)?)?;
    let response = match message.response {
        frame::Response::Error(error) => return Err(error.warned(message.warnings)),
        frame::Response::Result(QueryResult::Void) => Response::Void,
        frame::Response::Result(QueryResult::SetKeyspace(keyspace)) => Response::SetKeyspace(keyspace),
        frame::Response::Result(QueryResult::SchemaChange(change)) => Response::SchemaChange(change),
        frame::Response::Result(QueryResult::Rows(rows)) => Response::Rows(Rows {
            metadata: match known {
                Some(known) if rows.page.skip && known.columns.len() == rows.content.column_count() => known,
                _ => rows.metadata,
            },
            content: rows.content,
            paging_state: rows.page.paging_state,
        }),
        other => {
            let name = other.opcode().name();
            return Err(CqlError::Server(format!("a node has answered with {name}")));
        }
    };
    Ok(response.with(message.warnings))
}
