//! A connection's part of the memory for clients: partly read, waiting and running requests, and responses that the client has not
//! received. All connections share one budget (`node_in_flight_bytes`).
//!
//! If the budget is used up, a connection waits, so that TCP makes its client wait. No connection waits for ever:
//!
//! - A connection that holds little may always run one request.
//! - A partly read request is given up and answered OVERLOADED.
//! - A client that neither completes its request nor receives its responses loses its connection.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::Context;
use std::time::{Duration, Instant};

use helenus_cql::error::CqlError;
use helenus_cql::frame::Envelope;
use tokio::time::Sleep;

use super::socket::LargeResponse;
use super::state::SessionState;
use super::{Connection, OUTPUT_LEN_MAX};
use crate::transport::Backend;

/// Maximum length of a request's body before the client has logged in.
pub(super) const STRANGERS_BODY_LEN_MAX: usize = 8 * 1024;
/// Bytes of responses above which a client that has not logged in is not read.
const STRANGERS_OUTPUT_LEN_MAX: usize = 4 * 1024;
/// Bytes that a connection may always hold, however much others hold. It is enough for requests of single rows.
const HELD_ALWAYS: usize = 16 * 1024;
/// Bytes up to which a connection's held memory is not reported to the node. Reports of less would slow down requests that arrive in
/// pieces.
const UNREPORTED_MAX: usize = 4 * 1024;
/// Maximum time that a partly read request waits for memory.
const PARTIAL_TIMEOUT: Duration = Duration::from_secs(1);
/// While memory is short, a connection that holds some must transfer at least `STALL_BYTES_MIN` bytes in each such interval.
const STALL_INTERVAL: Duration = Duration::from_secs(5);
const STALL_BYTES_MIN: usize = 256 * 1024;
/// Interval at which a waiting connection checks whether other connections have released memory.
const ROOM_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The memory figures of a connection.
#[derive(Default)]
pub(super) struct Memory {
    /// Estimated bytes of the next response, from the latest responses. A running request is charged this much.
    answer_len: usize,
    /// Time since which a partly read request has waited for memory. `None` if none waits.
    short_since: Option<Instant>,
    /// Bytes transferred through the socket since `stall_timer` was set.
    moved: usize,
    stall_timer: Option<Pin<Box<Sleep>>>,
    room_timer: Option<Pin<Box<Sleep>>>,
}

impl Memory {
    /// Adds bytes that were transferred through the socket.
    pub fn moved(&mut self, len: usize) {
        self.moved = self.moved.saturating_add(len);
    }

    /// Updates the estimate by a response of `len` bytes. The estimate is the maximum, which decays slowly.
    pub fn answered(&mut self, len: usize) {
        self.answer_len = len.max(self.answer_len - self.answer_len / 64);
    }

    /// Returns the bytes that a request is charged for its response.
    pub fn answer_len(&self) -> usize {
        self.answer_len
    }
}

impl<B: Backend> Connection<B> {
    /// Returns the bytes of a partly read request.
    fn partial_len(&self) -> usize {
        self.input.bytes.len() + self.input.decoder.buffered_len()
    }

    /// Reports the memory of waiting requests and held bytes to the node, if it has changed.
    pub(super) fn report_held(&mut self) {
        let held = self.partial_len() + self.short_output_len();
        let held = if held > UNREPORTED_MAX { held } else { 0 };
        if let Some((before, now)) = self.input.queue.report(held) {
            self.server.now_waiting(before, now);
        }
    }

    /// Returns the bytes of responses above which the client is not read.
    pub(super) fn output_len_max(&self) -> usize {
        match self.session.state {
            SessionState::Ready(_) => OUTPUT_LEN_MAX,
            SessionState::Greeting { .. } | SessionState::Authenticating(_) => STRANGERS_OUTPUT_LEN_MAX,
        }
    }

    /// Returns the bytes that a running request takes beyond those that it takes while it waits.
    pub(super) fn needed(&self, envelope: &Envelope) -> usize {
        let decompressed = self.input.decoder.decompressed_len(envelope);
        decompressed.saturating_sub(envelope.body.len()) + self.memory.answer_len
    }

    /// Returns true if there is memory for another running request that needs `needed` bytes.
    pub(super) fn has_room(&self, needed: usize) -> bool {
        if self.running.bytes >= self.server.config.connection_in_flight_bytes {
            return false;
        }
        let is_small = self.running_count() == 0 && needed + self.output_len() <= HELD_ALWAYS;
        // If no request runs on the node, no memory would be released, so that waiting would not help.
        is_small || self.server.has_room(needed) || self.server.is_idle()
    }

    /// Schedules another check soon. Polling is needed because connections are not notified when others release memory.
    pub(super) fn wait_for_room(&mut self, cx: &mut Context<'_>) {
        let timer = self
            .memory
            .room_timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(ROOM_POLL_INTERVAL)));
        if timer.as_mut().poll(cx).is_ready() {
            self.memory.room_timer = None;
            cx.waker().wake_by_ref();
        }
    }

    /// Returns true if more of a partly read request may be read. A request that waits too long for memory is given up.
    pub(super) fn may_grow(&mut self, cx: &mut Context<'_>) -> bool {
        if self.partial_len() <= HELD_ALWAYS {
            return true;
        }
        self.report_held();
        if self.server.may_hold(self.input.read_len) {
            self.memory.short_since = None;
            return true;
        }
        let since = *self.memory.short_since.get_or_insert_with(Instant::now);
        if since.elapsed() < PARTIAL_TIMEOUT {
            self.wait_for_room(cx);
            return false;
        }
        self.memory.short_since = None;
        self.give_up_partial();
        true
    }

    /// Gives up a partly read request, if its header has been read. Otherwise the request is still in its first segment, which is short,
    /// and reading goes on.
    fn give_up_partial(&mut self) {
        if let Some(header) = self.input.decoder.give_up(&mut self.input.bytes) {
            self.server.metrics.shed();
            self.send_error(header.version, header.stream, overloaded());
        }
    }

    /// Fails if memory is short and the client makes no progress: it does not complete its request or does not receive its responses.
    pub(super) fn check_stall(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let held = self.partial_len() + self.output_len();
        if held <= HELD_ALWAYS {
            self.memory.stall_timer = None;
            return Ok(());
        }
        let lacks_answers = self.output.large.iter().any(LargeResponse::is_missed);
        let memory = &mut self.memory;
        let timer = memory.stall_timer.get_or_insert_with(|| {
            memory.moved = 0;
            Box::pin(tokio::time::sleep(STALL_INTERVAL))
        });
        while timer.as_mut().poll(cx).is_ready() {
            let is_short = lacks_answers || !self.server.may_hold(0);
            if memory.moved < STALL_BYTES_MIN && is_short {
                if let Some(suppressed) = self.server.refusals.take() {
                    tracing::warn!(peer = %self.peer, held, suppressed, "connection closed: the client makes no progress and memory for clients is short");
                }
                return Err(io::ErrorKind::TimedOut.into());
            }
            memory.moved = 0;
            timer.as_mut().reset(tokio::time::Instant::now() + STALL_INTERVAL);
        }
        Ok(())
    }
}

/// Returns the error for a lack of memory, with Cassandra's text.
pub(super) fn overloaded() -> CqlError {
    CqlError::Overloaded(
        "Server is in overloaded state. Cannot accept more requests at this point".to_owned(),
    )
}
