//! Requests of a connection that wait for their turn, and when they have waited for too long.
//!
//! A queue that empties now and then is a burst being worked off. One that has not emptied for a while means that more is asked
//! than can be done, and then waiting helps nobody: whatever has waited for longer than a target is refused, at little cost, until
//! the queue is short again. That is CoDel's idea, with the queue's last empty moment for its minimum. A closed loop keeps its
//! queue full too, but never fuller than its requests in flight: while few requests wait on the whole node, none is refused.

use std::collections::VecDeque;
use std::time::Instant;

use helenus_cql::frame::{Envelope, EnvelopeError, Opcode};

use crate::config::OverloadConfig;

/// Bytes of requests that wait on one connection, above which it is not read.
const BYTES_MAX: usize = 512 * 1024;
/// What a waiting request takes beyond its bytes.
const OVERHEAD_BYTES: usize = size_of::<Waiting>();

/// A request that has arrived.
pub(super) struct Waiting {
    pub envelope: Envelope,
    /// When the first and the last of its bytes were read.
    pub first_byte: Instant,
    pub last_byte: Instant,
}

/// What comes after the last request of a connection.
pub(super) enum Last {
    /// The client has closed its side.
    Closed,
    /// Bytes that are no request.
    Garbage(EnvelopeError),
}

/// The requests of a connection that wait, in order.
#[derive(Default)]
pub(super) struct Queue {
    requests: VecDeque<Waiting>,
    bytes: usize,
    /// Since when there was always something waiting.
    busy_since: Option<Instant>,
    /// Set when nothing more will come.
    pub last: Option<Last>,
    /// What the node was told of this queue.
    told: Backlog,
}

/// How much waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backlog {
    pub requests: usize,
    pub bytes: usize,
}

impl Queue {
    pub fn push(&mut self, waiting: Waiting) {
        self.busy_since.get_or_insert(waiting.last_byte);
        self.bytes += cost_bytes(&waiting);
        self.requests.push_back(waiting);
    }

    pub fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.requests.pop_front()?;
        self.bytes -= cost_bytes(&waiting);
        Some(waiting)
    }

    /// What is next.
    pub fn front(&self) -> Option<&Waiting> {
        self.requests.front()
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.bytes >= BYTES_MAX
    }

    /// The socket has nothing more: if nothing waits here either, all that came was served.
    pub fn has_all(&mut self) {
        if self.is_empty() {
            self.busy_since = None;
        }
    }

    /// True if the next request has waited for too long. `on_node` tells how many wait on the node; it is seldom asked.
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

    /// How much waits now, with what the connection holds beside, and how much was said to wait the last time, if that differs.
    pub fn tell(&mut self, held: usize) -> Option<(Backlog, Backlog)> {
        let now = Backlog {
            requests: self.requests.len(),
            bytes: self.bytes + held,
        };
        let before = std::mem::replace(&mut self.told, now);
        (before != now).then_some((before, now))
    }

    /// Forgets all that waits.
    pub fn clear(&mut self) {
        self.requests.clear();
        self.bytes = 0;
    }
}

fn cost_bytes(waiting: &Waiting) -> usize {
    waiting.envelope.body.len() + OVERHEAD_BYTES
}

/// Statements are refused. What a driver needs to connect and to prepare is not, since it would give the node up.
fn is_refusable(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Query | Opcode::Execute | Opcode::Batch)
}

#[cfg(test)]
#[path = "waiting_tests.rs"]
mod tests;
