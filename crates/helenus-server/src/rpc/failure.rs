//! Failures of requests between nodes. What matters to a caller is whether the request may have been executed.

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_query::cluster::RemoteError;

use super::frame::flags;

/// Maximum bytes of another node's text that are kept.
const TEXT_BYTES_MAX: usize = 1000;

/// The reason for which a node refuses another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The caller does not know the cluster's secret.
    Stranger,
    /// The caller is not a member of the store's cluster, or means another node. This may change soon, because members come and go.
    NotMember,
    /// The nodes have no version of the protocol in common, or are of clusters of different names.
    Incompatible,
}

/// A refusal of a node by another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub reason: Reason,
    pub text: String,
}

impl Refusal {
    pub fn new(reason: Reason, text: impl Into<String>) -> Refusal {
        Refusal {
            reason,
            text: text.into(),
        }
    }
}

/// The error of a request to another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallError {
    /// The request was not sent, or not executed.
    Unreachable(String),
    /// The other node has refused this one. The request was not executed.
    Refused(Refusal),
    /// The request was sent, and may have been executed.
    NoAnswer(String),
}

impl CallError {
    /// Returns the error in a failure frame.
    pub fn received(flags: u8, text: &Bytes) -> CallError {
        let text = received_text(text);
        match flags {
            flags if flags & flags::UNDONE != 0 => CallError::Unreachable(text),
            flags if flags & flags::REFUSED != 0 => {
                CallError::Refused(Refusal::new(Reason::Incompatible, text))
            }
            _ => CallError::NoAnswer(text),
        }
    }

    /// Returns the text, without what the error means for the request.
    pub fn text(&self) -> &str {
        match self {
            CallError::Unreachable(text) | CallError::NoAnswer(text) => text,
            CallError::Refused(refusal) => &refusal.text,
        }
    }
}

impl From<CallError> for RemoteError {
    fn from(error: CallError) -> RemoteError {
        match error {
            CallError::Unreachable(text) => RemoteError::Unreachable(text),
            CallError::NoAnswer(text) => RemoteError::NoAnswer(text),
            CallError::Refused(refusal) => match refusal.reason {
                Reason::NotMember => RemoteError::Unreachable(refusal.text),
                Reason::Stranger | Reason::Incompatible => RemoteError::Failed(CqlError::Server(format!(
                    "another node has refused: {}",
                    refusal.text
                ))),
            },
        }
    }
}

/// Returns another node's text for errors and log lines: shortened, and without control characters.
pub(super) fn received_text(bytes: &[u8]) -> String {
    let bytes = bytes.get(..TEXT_BYTES_MAX).unwrap_or(bytes);
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    String::from_utf8_lossy(bytes).chars().map(printable).collect()
}

/// The reason why this node does not answer another node's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub flags: u8,
    pub text: String,
}

impl Failure {
    /// Returns the failure of a request that may have been executed.
    pub fn new(text: impl Into<String>) -> Failure {
        Failure {
            flags: 0,
            text: text.into(),
        }
    }

    /// Returns the failure of a request that was not executed.
    pub fn undone(text: impl Into<String>) -> Failure {
        Failure {
            flags: flags::UNDONE,
            text: text.into(),
        }
    }

    /// Returns the failure of a request from a node of another cluster.
    pub fn refused(text: impl Into<String>) -> Failure {
        Failure {
            flags: flags::REFUSED,
            text: text.into(),
        }
    }

    /// Returns the failure of a request that has panicked.
    pub fn broken() -> Failure {
        Failure::new("the request could not be completed; see the node's log")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_say_whether_requests_were_executed() {
        let received = |failure: Failure| {
            let error = CallError::received(failure.flags, &Bytes::from(failure.text));
            RemoteError::from(error)
        };
        let text = "why".to_owned();
        assert_eq!(received(Failure::new("why")), RemoteError::NoAnswer(text.clone()));
        assert_eq!(received(Failure::undone("why")), RemoteError::Unreachable(text));
        let refused = received(Failure::refused("why"));
        assert!(matches!(refused, RemoteError::Failed(_)), "{refused:?}");
    }

    #[test]
    fn texts_of_other_nodes_cannot_spoil_a_log() {
        assert_eq!(received_text(b"a\nb\x1b[31m\xff"), "a b [31m\u{fffd}");
        assert_eq!(received_text(&[b'x'; 5000]).len(), TEXT_BYTES_MAX);
    }
}
