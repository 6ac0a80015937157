//! Relayed requests: forwarded requests that no future waits for. The connection to the owner hands the answer to the client's connection.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::RemoteError;
use crate::response::Outcome;

/// The owner's answer to a relayed request. [`CqlError::Unprepared`](helenus_cql::error::CqlError::Unprepared) means that the owner does not
/// know the statement.
pub type RelayAnswer = Result<Outcome, RemoteError>;

/// Receives the answers to the relayed requests of one client connection.
pub trait RelayReceiver: Send + Sync {
    /// Puts the answer to the request with this number. Returns true if the receiver sleeps. The caller wakes it once all answers that have
    /// arrived together are put.
    fn put(&self, number: u32, answer: RelayAnswer) -> bool;
    fn wake(&self);
}

/// Destination of the answer to a relayed request.
pub struct ReturnAddress {
    pub receiver: Arc<dyn RelayReceiver>,
    /// Number of the request within the client's connection.
    pub number: u32,
    /// True once the client has disconnected.
    pub is_left: Arc<AtomicBool>,
}
