//! What a connection holds of the node's memory for clients: requests of which a part has come, those that wait or run, and answers that
//! the client has not taken. All connections share one budget (`node_in_flight_bytes`).
//!
//! Whoever finds the budget used up waits, so that TCP makes the client wait. Nobody waits for ever: a connection that holds little may
//! always run one request; a request that is half read is given up and answered OVERLOADED; and a client that neither sends what it has
//! begun nor takes its answers loses its connection.

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
use crate::backend::Backend;

/// The longest body of a request of a client that has not logged in.
pub(super) const STRANGERS_BODY_LEN_MAX: usize = 8 * 1024;
/// Bytes of answers that such a client may leave untaken before it is not read any more.
const STRANGERS_OUTPUT_LEN_MAX: usize = 4 * 1024;
/// What a connection may hold however much others hold: enough for requests of single rows.
const HELD_ALWAYS: usize = 16 * 1024;
/// Less than this is not told to the node: it would cost requests that come in pieces.
const UNTOLD_MAX: usize = 4 * 1024;
/// How long a request that is half read waits for memory.
const PARTIAL_TIMEOUT: Duration = Duration::from_secs(1);
/// While memory is short, a connection that holds some must send or take so many bytes in that time.
const STALL_INTERVAL: Duration = Duration::from_secs(5);
const STALL_BYTES_MIN: usize = 256 * 1024;
/// How often a connection looks again when others use up what the node has.
const ROOM_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// What a connection knows of the memory it holds.
#[derive(Default)]
pub(super) struct Memory {
    /// How long its answers are lately; what runs is taken to make another one like that.
    answer_len: usize,
    /// Since when a half-read request waits for memory.
    short_since: Option<Instant>,
    /// Bytes that went through the socket since `stall_timer` was set.
    moved: usize,
    stall_timer: Option<Pin<Box<Sleep>>>,
    room_timer: Option<Pin<Box<Sleep>>>,
}

impl Memory {
    /// So many bytes went through the socket.
    pub fn moved(&mut self, len: usize) {
        self.moved = self.moved.saturating_add(len);
    }

    /// An answer was that long. The longest counts, and is forgotten slowly.
    pub fn answered(&mut self, len: usize) {
        self.answer_len = len.max(self.answer_len - self.answer_len / 64);
    }

    /// What a request is charged beyond its own bytes.
    pub fn answer_len(&self) -> usize {
        self.answer_len
    }
}

impl<B: Backend> Connection<B> {
    /// Returns the bytes of a request of which a part has come.
    fn partial_len(&self) -> usize {
        self.input.bytes.len() + self.input.decoder.buffered_len()
    }

    /// Tells the node what waits here, if that has changed.
    pub(super) fn tell_held(&mut self) {
        let held = self.partial_len() + self.short_output_len();
        let held = if held > UNTOLD_MAX { held } else { 0 };
        if let Some((before, now)) = self.input.queue.tell(held) {
            self.server.now_waiting(before, now);
        }
    }

    /// Returns the bytes of untaken answers above which the client is not read.
    pub(super) fn output_len_max(&self) -> usize {
        match self.session.state {
            SessionState::Ready(_) => OUTPUT_LEN_MAX,
            SessionState::Greeting { .. } | SessionState::Authenticating(_) => STRANGERS_OUTPUT_LEN_MAX,
        }
    }

    /// What a request takes beyond what it takes while it waits.
    pub(super) fn needed(&self, envelope: &Envelope) -> usize {
        let decompressed = self.input.decoder.decompressed_len(envelope);
        decompressed.saturating_sub(envelope.body.len()) + self.memory.answer_len
    }

    /// Whether there is memory for another request that needs so much.
    pub(super) fn has_room(&self, needed: usize) -> bool {
        if self.running.bytes >= self.server.config.connection_in_flight_bytes {
            return false;
        }
        let is_small = self.running.requests.is_empty() && needed + self.output_len() <= HELD_ALWAYS;
        // If nothing runs, nothing would make room.
        is_small || self.server.has_room(needed) || self.server.is_idle()
    }

    /// Looks again in a moment: nobody tells a connection that others have made room.
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

    /// Whether more may be read of a request of which a part is there. One that gets no memory for long is given up.
    pub(super) fn may_grow(&mut self, cx: &mut Context<'_>) -> bool {
        if self.partial_len() <= HELD_ALWAYS {
            return true;
        }
        self.tell_held();
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

    /// Of what lies in a first segment, which is short, the header has not come yet: that goes on.
    fn give_up_partial(&mut self) {
        if let Some(header) = self.input.decoder.give_up(&mut self.input.bytes) {
            self.server.metrics.shed();
            self.send_error(header.version, header.stream, overloaded());
        }
    }

    /// Fails for a client that keeps memory which others lack, by requests that it does not finish or answers that it does not take.
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

/// As Cassandra says it.
pub(super) fn overloaded() -> CqlError {
    CqlError::Overloaded(
        "Server is in overloaded state. Cannot accept more requests at this point".to_owned(),
    )
}
