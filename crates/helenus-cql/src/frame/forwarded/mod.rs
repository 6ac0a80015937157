//! Messages between the node that received a request and the owner of its rows: a small header, and behind it the bytes of the client's
//! protocol.
//!
//! The request ([`ForwardedRequest`]) carries the body of QUERY, EXECUTE or BATCH as the client sent it. The answer ([`ForwardedAnswer`])
//! carries the body of RESULT as the client will get it. Only the stream, the tracing id, the warnings and the custom payload are
//! missing: the first node puts them in front.

mod answer;
mod request;

pub use answer::{AnswerKind, ForwardedAnswer, ForwardedStep};
pub use request::{ForwardedRequest, PreparedText, Share};

#[cfg(test)]
#[path = "forwarded_tests.rs"]
mod tests;
