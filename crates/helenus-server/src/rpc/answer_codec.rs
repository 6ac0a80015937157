//! Encodes and decodes the answers to forwarded statements: the body that the client will get, behind a header
//! ([`helenus_cql::frame::forwarded`]).

use bytes::{Bytes, BytesMut};
use helenus_cql::error::CqlError;
use helenus_cql::frame::forwarded::{AnswerKind, ForwardedAnswer, ForwardedStep};
use helenus_cql::frame::{self, Opcode};
use helenus_query::cluster::{RelayAnswer, RemoteError, Request, Source};
use helenus_query::failure::ExecutionError;
use helenus_query::response::{Outcome, Response};

use super::envelope::{VERSION, decoded_response, query_result};
use super::statement_codec::ReceivedStatement;

/// Bytes of most answers besides the cells of rows.
const ANSWER_LEN_USUAL: usize = 128;

/// Appends the answer to a statement. `has_texts` is true if the texts of its prepared statements came with it.
pub(super) fn encode_execute_answer(
    result: Result<(ReceivedStatement, Outcome), ExecutionError>,
    has_texts: bool,
    steps: Vec<ForwardedStep>,
    out: &mut BytesMut,
) {
    let of = |kind| ForwardedAnswer {
        steps,
        ..ForwardedAnswer::of(kind)
    };
    match result {
        Ok((received, outcome)) => {
            let answer = ForwardedAnswer {
                is_applied: outcome.is_applied,
                warnings: outcome.warnings,
                ..of(AnswerKind::Result)
            };
            let result = query_result(outcome.response, |rows| received.page(rows));
            out.reserve(ANSWER_LEN_USUAL + result.content_len());
            answer.encode(out);
            frame::Response::Result(result).encode(received.parameters.version, out);
        }
        Err(ExecutionError::NotOwned) => of(AnswerKind::NotOwned).encode(out),
        Err(ExecutionError::Failed(CqlError::Unprepared(_))) if !has_texts => {
            of(AnswerKind::Unprepared).encode(out);
        }
        Err(ExecutionError::Failed(error)) => {
            let (error, warnings) = error.split();
            let answer = ForwardedAnswer {
                warnings,
                ..of(AnswerKind::Error)
            };
            answer.encode(out);
            frame::Response::Error(error).encode(VERSION, out);
        }
    }
}

/// The answer to a forwarded statement.
pub(super) struct ExecuteAnswer {
    pub result: Result<Outcome, RemoteError>,
    pub steps: Vec<ForwardedStep>,
}

/// Decodes the result of [`encode_execute_answer`]. The body stays as it is if the client gets it.
///
/// # Errors
/// The answer is invalid.
pub(super) fn decode_execute_answer(
    message: Bytes,
    request: &Request<'_>,
) -> Result<ExecuteAnswer, RemoteError> {
    let (mut answer, body) = ForwardedAnswer::decode(message).map_err(invalid)?;
    let steps = std::mem::take(&mut answer.steps);
    let version = request.frame.parameters.version;
    let response = |body| match request.frame.body {
        Some(_) => Ok(Response::Encoded(body)),
        None => decoded_response(version, Opcode::Result, body).map_err(invalid),
    };
    let result = match result_of(answer, body, response) {
        Err(RemoteError::Failed(CqlError::Unprepared(_))) => {
            Err(RemoteError::Failed(CqlError::Unprepared(prepared_id(request))))
        }
        result => result,
    };
    Ok(ExecuteAnswer { result, steps })
}

/// Decodes the answer to a relayed request, whose body the client gets as it is.
pub(super) fn decode_relayed_answer(message: Bytes) -> RelayAnswer {
    let (answer, body) = ForwardedAnswer::decode(message).map_err(invalid)?;
    result_of(answer, body, |body| Ok(Response::Encoded(body)))
}

fn invalid(error: CqlError) -> RemoteError {
    RemoteError::NoAnswer(error.to_string())
}

/// Returns the result of an answer. `response` reads the body of a RESULT. The id of a statement that the owner does not know is empty.
fn result_of(
    answer: ForwardedAnswer,
    body: Bytes,
    response: impl FnOnce(Bytes) -> Result<Response, RemoteError>,
) -> Result<Outcome, RemoteError> {
    match answer.kind {
        AnswerKind::Result => Ok(Outcome {
            is_applied: answer.is_applied,
            ..response(body)?.with(answer.warnings)
        }),
        AnswerKind::Error => match decoded_response(VERSION, Opcode::Error, body) {
            Ok(_) => Err(RemoteError::NoAnswer("an error was expected".to_owned())),
            Err(error) => Err(RemoteError::Failed(error.warned(answer.warnings))),
        },
        AnswerKind::NotOwned => Err(RemoteError::NotOwned),
        AnswerKind::Unprepared => Err(RemoteError::Failed(CqlError::Unprepared(Vec::new()))),
    }
}

/// Returns the id that the client prepares again. Empty for a batch, whose unknown statement is not known here.
fn prepared_id(request: &Request<'_>) -> Vec<u8> {
    match request.source {
        Source::Prepared(prepared) => prepared.id.to_vec(),
        Source::Text(_) | Source::Batch(..) => Vec::new(),
    }
}
