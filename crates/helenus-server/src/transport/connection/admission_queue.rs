//! The waiting requests of a connection, and the rule by which those that have waited too long are refused.
//!
//! A queue that empties now and then holds a burst. A queue that has not been empty for a while means that clients send more than the node
//! can serve. Then each request that has waited longer than a target is refused, at little cost, until the queue is short again. The idea
//! is CoDel's, with the last time at which the queue was empty in place of its minimum. A client that sends its next request only after a
//! response keeps its queue full too, but never with more than its requests in flight. So no request is refused while few requests wait on
//! the whole node.

use std::collections::VecDeque;
use std::time::Instant;

use helenus_cql::frame::{Envelope, EnvelopeError, Opcode};

use crate::transport::config::OverloadConfig;
use crate::transport::server_state::QueueSize;

/// Bytes of waiting requests of one connection above which it is not read.
const BYTES_MAX: usize = 512 * 1024;
/// Bytes that a waiting request takes beyond its body.
const OVERHEAD_BYTES: usize = size_of::<QueuedRequest>();

/// A request that has arrived and waits.
pub(super) struct QueuedRequest {
    pub envelope: Envelope,
    /// Times at which the first and the last of its bytes were read.
    pub first_byte: Instant,
    pub last_byte: Instant,
}

/// The end of a connection's input.
pub(super) enum EndOfInput {
    /// The client has closed its side.
    Closed,
    /// The client has sent bytes that are no request.
    Garbage(EnvelopeError),
}

/// The waiting requests of a connection, in order.
#[derive(Default)]
pub(super) struct AdmissionQueue {
    requests: VecDeque<QueuedRequest>,
    bytes: usize,
    /// Time since which the queue has never been seen empty. `None` if it was empty when last checked.
    busy_since: Option<Instant>,
    /// The end of the input. `None` while more may arrive.
    pub last: Option<EndOfInput>,
    /// The size of this queue that was last reported to the node.
    reported: QueueSize,
}

impl AdmissionQueue {
    pub fn push(&mut self, waiting: QueuedRequest) {
        self.busy_since.get_or_insert(waiting.last_byte);
        self.bytes += cost_bytes(&waiting);
        self.requests.push_back(waiting);
    }

    pub fn pop(&mut self) -> Option<QueuedRequest> {
        let waiting = self.requests.pop_front()?;
        self.bytes -= cost_bytes(&waiting);
        Some(waiting)
    }

    /// Returns the next request.
    pub fn front(&self) -> Option<&QueuedRequest> {
        self.requests.front()
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.bytes >= BYTES_MAX
    }

    /// Records that the socket has no more bytes. If no request waits either, all requests were served.
    pub fn has_all(&mut self) {
        if self.is_empty() {
            self.busy_since = None;
        }
    }

    /// Returns true if the next request has waited for too long. `on_node` returns the number of requests that wait on the node. It is only
    /// called if all other conditions are true.
    pub fn is_next_stale(
        &self,
        overload: &OverloadConfig,
        on_node: impl FnOnce() -> usize,
        now: Instant,
    ) -> bool {
        let (Some(target), Some(busy_since), Some(next)) =
            (overload.wait_target, self.busy_since, self.requests.front())
        else {
            return false;
        };
        now.saturating_duration_since(next.last_byte) > target
            && now.saturating_duration_since(busy_since) > overload.interval
            && is_refusable(next.envelope.header.opcode)
            && on_node().max(self.requests.len()) > overload.waiting_min
    }

    /// Returns the size that was last reported and the present one, and remembers the present one. `None` if both are equal. `held` is the
    /// connection's other bytes.
    pub fn report(&mut self, held: usize) -> Option<(QueueSize, QueueSize)> {
        let now = QueueSize {
            requests: self.requests.len(),
            bytes: self.bytes + held,
        };
        let before = std::mem::replace(&mut self.reported, now);
        (before != now).then_some((before, now))
    }

    /// Drops all waiting requests.
    pub fn clear(&mut self) {
        self.requests.clear();
        self.bytes = 0;
    }
}

fn cost_bytes(waiting: &QueuedRequest) -> usize {
    waiting.envelope.body.len() + OVERHEAD_BYTES
}

/// Returns true for statements. Messages that a driver needs to connect and to prepare are not refused, because it would give up the node.
fn is_refusable(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Query | Opcode::Execute | Opcode::Batch)
}

#[cfg(test)]
#[path = "admission_queue_tests.rs"]
mod tests;
