//! Relayed requests: forwarded requests that no future waits for. The connection to the owner hands the answer to the client's connection.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::Waker;

use super::RemoteError;
use crate::response::Outcome;

/// The owner's answer to a relayed request. [`CqlError::Unprepared`](helenus_cql::error::CqlError::Unprepared) means that the owner does not
/// know the statement.
pub type RelayAnswer = Result<Outcome, RemoteError>;

/// Receives the answers to the relayed requests of one client connection.
pub trait RelayReceiver: Send + Sync {
    /// Puts the answer to the request with this number. Returns the waker of the receiver's task, if the task sleeps. The caller wakes it once
    /// all answers that have arrived together are put.
    #[must_use]
    fn put(&self, number: u32, answer: RelayAnswer) -> Option<Waker>;
}

/// A request that was relayed. It is sent at once if `waker` is woken, which must happen soon.
#[must_use]
pub struct Sent {
    /// The waker of the task that sends the request. `None` if that task is awake. Requests that are relayed together should share a wake.
    pub waker: Option<Waker>,
}

/// Destination of the answer to a relayed request.
pub struct ReturnAddress {
    pub receiver: Arc<dyn RelayReceiver>,
    /// Number of the request within the client's connection.
    pub number: u32,
    /// True once the client has disconnected.
    pub is_left: Arc<AtomicBool>,
}
