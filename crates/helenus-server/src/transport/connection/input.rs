//! Reads requests from the socket, and begins, refuses or sheds them.

use std::io;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use helenus_cql::error::CqlError;
use helenus_cql::frame::{Decoder, Direction};
use tokio::task::coop;

use super::admission_queue::{AdmissionQueue, EndOfInput, QueuedRequest};
use super::memory::{STRANGERS_BODY_LEN_MAX, overloaded};
use super::{Connection, OUTPUT_LEN_MAX, READ_LEN_MIN};
use crate::transport::Backend;

/// Bytes of responses above which the connection writes to the socket before it begins more requests.
const FLUSH_LEN: usize = 64 * 1024;
/// Bytes that are read from a connection before other connections get their turn. Without this limit, a large request that has fully
/// arrived would be read at once.
const READ_TURN_LEN: usize = 512 * 1024;
/// Maximum time for which a connection serves requests before other connections get their turn.
const SLICE: Duration = Duration::from_millis(1);
/// Number of requests that a connection may always run, however many run on the node.
const RUNNING_ALWAYS: usize = 32;
/// Number of computing requests on the whole node above which a connection begins no second request. More of them would only compete for
/// the threads.
const BUSY_MAX: usize = 128;

/// The input of a connection that was read and has not begun to run.
pub(super) struct Input {
    pub decoder: Decoder,
    /// Bytes that are not decoded yet.
    pub bytes: BytesMut,
    /// Maximum bytes of the next read from the socket.
    pub read_len: usize,
    /// The waiting requests.
    pub queue: AdmissionQueue,
    /// Time of the last read from the socket.
    pub last_read: Instant,
    /// Time at which the first bytes of a partly read request were read. `None` if there is no such request.
    pub partial_since: Option<Instant>,
}

impl Input {
    pub fn new() -> Input {
        Input {
            decoder: Decoder::new(Direction::Request, STRANGERS_BODY_LEN_MAX),
            bytes: BytesMut::new(),
            read_len: READ_LEN_MIN,
            queue: AdmissionQueue::default(),
            last_read: Instant::now(),
            partial_since: None,
        }
    }
}

impl<B: Backend> Connection<B> {
    /// Reads requests, and begins those that may begin. Returns true if there was any progress.
    pub(super) fn serve_input(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut progress = self.read_requests(cx)?;
        while !self.lifecycle.is_closing() && self.output_len() < OUTPUT_LEN_MAX {
            let now = Instant::now();
            if self.slice.end.is_some_and(|end| now >= end) || !coop::has_budget_remaining() {
                self.slice.is_over = true;
                break;
            }
            let on_node = || self.server.waiting_requests();
            let is_stale = self
                .input
                .queue
                .is_next_stale(&self.server.config.overload, on_node, now);
            let rejects = self.lifecycle.rejects();
            let may_go_on = is_stale || rejects || self.input.queue.is_empty() || self.may_begin(cx);
            if !may_go_on {
                break;
            }
            match self.input.queue.pop() {
                Some(waiting) if rejects => self.reject(&waiting),
                Some(waiting) if is_stale => self.shed_expired(&waiting),
                Some(waiting) => self.serve(waiting, now, cx),
                None => {
                    progress |= self.end();
                    break;
                }
            }
            progress = true;
            self.slice.end.get_or_insert(now + SLICE);
            if self.output_len() >= FLUSH_LEN {
                break;
            }
        }
        Ok(progress)
    }

    /// Reads and decodes the available input. Returns true if anything was read, including the end of the input.
    fn read_requests(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let mut progress = false;
        let mut read_len = 0;
        while self.may_read_requests() {
            match self.input.decoder.decode_as_sent(&mut self.input.bytes) {
                Ok(Some(envelope)) => {
                    progress = true;
                    self.input.queue.push(QueuedRequest {
                        envelope,
                        first_byte: self.input.partial_since.take().unwrap_or(self.input.last_read),
                        last_byte: self.input.last_read,
                    });
                }
                Ok(None) if read_len >= READ_TURN_LEN => {
                    self.slice.is_over = true;
                    break;
                }
                Ok(None) if !self.may_grow(cx) => break,
                Ok(None) => match self.read_more(cx)? {
                    Poll::Ready(0) => {
                        progress = true;
                        self.input.queue.last = Some(EndOfInput::Closed);
                    }
                    Poll::Ready(len) => {
                        progress = true;
                        read_len += len;
                    }
                    Poll::Pending => {
                        // If the budget is used up, the socket may still have bytes, because it was not read.
                        if coop::has_budget_remaining() {
                            self.input.queue.has_all();
                        }
                        break;
                    }
                },
                Err(error) if self.may_skip(error.len) => {
                    progress = true;
                    self.refuse_one(error);
                }
                Err(error) => {
                    progress = true;
                    self.input.queue.last = Some(EndOfInput::Garbage(error));
                }
            }
        }
        Ok(progress)
    }

    fn may_read_requests(&self) -> bool {
        // Until the client is ready, requests are read one by one. The framing of the bytes after STARTUP is only known once it has been
        // served.
        let is_patient = self.input.queue.is_empty()
            || (self.session.state.is_ready() && !self.input.queue.is_full() && self.server.may_hold(0));
        !self.lifecycle.is_closing()
            && self.input.queue.last.is_none()
            && is_patient
            && self.output_len() < self.output_len_max()
    }

    /// Returns true if an invalid request of `len` bytes may be skipped. `None` if its length is unknown.
    fn may_skip(&self, len: Option<usize>) -> bool {
        let is_started = self.session.state.is_ready();
        len.is_some_and(|len| is_started || len <= STRANGERS_BODY_LEN_MAX)
    }

    /// Returns true if the next request may begin now. A client that prefers OVERLOADED does not wait for memory here.
    fn may_begin(&mut self, cx: &mut Context<'_>) -> bool {
        let has_room = self.session.state.throws_on_overload() || {
            let needed = self
                .input
                .queue
                .front()
                .map_or(0, |next| self.needed(&next.envelope));
            self.has_room(needed)
        };
        let own = self.running_count();
        let may_run = own < RUNNING_ALWAYS || self.server.may_run_more();
        let may_compute = own == 0 || self.server.long_requests.busy_count() < BUSY_MAX;
        if has_room && may_run && may_compute {
            return true;
        }
        // The timer is also needed because waiting requests become stale.
        self.wait_for_room(cx);
        false
    }

    /// Refuses a request that has waited for too long.
    fn shed_expired(&mut self, waiting: &QueuedRequest) {
        let header = &waiting.envelope.header;
        self.server.metrics.shed();
        self.send_error(header.version, header.stream, overloaded());
    }

    /// Refuses a request because the node stops. The driver sends it to another node.
    fn reject(&mut self, waiting: &QueuedRequest) {
        let header = &waiting.envelope.header;
        let stopping = CqlError::IsBootstrapping("This node is being stopped".to_owned());
        self.send_error(header.version, header.stream, stopping);
    }

    /// Handles the end of the input. Returns false if the input has not ended.
    fn end(&mut self) -> bool {
        match self.input.queue.last.take() {
            Some(EndOfInput::Garbage(error)) => self.refuse(error),
            Some(EndOfInput::Closed) => {
                self.lifecycle.close();
                self.abandon();
            }
            None => return false,
        }
        true
    }
}
