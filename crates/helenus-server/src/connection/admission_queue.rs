//! The requests of a connection that wait, and the rule by which those that have waited too long are refused.
//!
//! A queue that empties now and then holds a burst. One that has not emptied for a while means that clients ask for more than the node can
//! serve: then each request that has waited for longer than a target is refused, at little cost, until the queue is short again. The idea is
//! CoDel's, with the last time at which the queue was empty in place of its minimum. A closed loop keeps its queue full too, but never fuller
//! than its requests in flight: while few requests wait on the whole node, none is refused.

use std::collections::VecDeque;
use std::time::Instant;

use helenus_cql::frame::{Envelope, EnvelopeError, Opcode};

use crate::config::OverloadConfig;
use crate::server_state::QueueSize;

/// Bytes of requests that wait on one connection, above which it is not read.
const BYTES_MAX: usize = 512 * 1024;
/// The memory of a waiting request beyond its bytes.
const OVERHEAD_BYTES: usize = size_of::<QueuedRequest>();

/// A request that has arrived.
pub(super) struct QueuedRequest {
    pub envelope: Envelope,
    /// When the first and the last of its bytes were read.
    pub first_byte: Instant,
    pub last_byte: Instant,
}

/// The end of a connection's input.
pub(super) enum EndOfInput {
    /// The client has closed its side.
    Closed,
    /// Bytes that are no request.
    Garbage(EnvelopeError),
}

/// The requests of a connection that wait, in order.
#[derive(Default)]
pub(super) struct AdmissionQueue {
    requests: VecDeque<QueuedRequest>,
    bytes: usize,
    /// Since when there was always something waiting.
    busy_since: Option<Instant>,
    /// Set when nothing more will come.
    pub last: Option<EndOfInput>,
    /// The size of this queue that was reported to the node.
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

    /// What is next.
    pub fn front(&self) -> Option<&QueuedRequest> {
        self.requests.front()
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.bytes >= BYTES_MAX
    }

    /// The socket has no more bytes: if no request waits either, all requests were served.
    pub fn has_all(&mut self) {
        if self.is_empty() {
            self.busy_since = None;
        }
    }

    /// Returns true if the next request has waited for too long. `on_node` tells how many wait on the node; it is seldom asked.
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

    /// Returns the size that was reported the last time and the present one (with `held`, the connection's other bytes), if they differ.
    pub fn tell(&mut self, held: usize) -> Option<(QueueSize, QueueSize)> {
        let now = QueueSize {
            requests: self.requests.len(),
            bytes: self.bytes + held,
        };
        let before = std::mem::replace(&mut self.reported, now);
        (before != now).then_some((before, now))
    }

    /// Forgets all that waits.
    pub fn clear(&mut self) {
        self.requests.clear();
        self.bytes = 0;
    }
}

fn cost_bytes(waiting: &QueuedRequest) -> usize {
    waiting.envelope.body.len() + OVERHEAD_BYTES
}

/// Statements are refused. What a driver needs to connect and to prepare is not, since it would give the node up.
fn is_refusable(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Query | Opcode::Execute | Opcode::Batch)
}

#[cfg(test)]
#[path = "admission_queue_tests.rs"]
mod tests;
