//! One client's connection: a single task that reads, runs requests side by side, and writes.
//!
//! A request's future is polled as soon as it is decoded. What a store answers from memory is thus answered
//! without any task switch; what has to wait joins the others of the connection in one set, and all answers that
//! are ready together leave in one write. A request that keeps the thread for long is moved to a task of its own
//! ([`in_flight`]), so that the others of the connection don't wait for it.
//!
//! Reading stops while too many bytes are in flight or the client does not take its answers: then TCP makes it wait.

mod authentication;
mod handshake;
mod in_flight;
mod input;
mod long;
mod memory;
mod report;
mod requests;
mod socket;
mod subject;
mod tablets;
mod traced;
mod waiting;

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use futures::StreamExt;
use futures::future::poll_fn;
use futures::stream::FuturesUnordered;
use helenus_cql::frame::response::{Event, EventType, QueryResult};
use helenus_cql::frame::{Decoder, Direction, EnvelopeError, OutputEncoder, ProtocolVersion, Response};
use helenus_query::engine::clients::{Client, Connected};
use helenus_query::request::ClientState;
use helenus_query::request::User;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::coop;
use tokio::time::Sleep;

use self::in_flight::{Done, InFlight};
use self::memory::{Memory, STRANGERS_BODY_LEN_MAX};
use self::report::Unsent;
use self::socket::LongAnswer;
pub(crate) use self::waiting::Backlog;
use self::waiting::{Queue, Waiting};
use crate::backend::Backend;
use crate::breakdown::Arrival;
use crate::listener::Stopping;
use crate::shared::Shared;
use crate::tls::Stream;

/// Bytes of answers that the client has not taken, above which it is not read any more.
const OUTPUT_LEN_MAX: usize = 1024 * 1024;
const READ_LEN_MIN: usize = 4 * 1024;
/// What a request costs beyond its bytes, as far as limits on bytes in flight go.
const REQUEST_OVERHEAD_BYTES: usize = 512;
/// How long a client that was refused may take to read why.
const LINGER: Duration = Duration::from_millis(500);
/// How long a client must have asked nothing for its connection to be ended because the node stops.
const QUIET: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Before STARTUP.
    Starting,
    /// The client is asked who it is.
    Authenticating(ProtocolVersion),
    Started(ProtocolVersion),
}

pub(crate) struct Connection<B: Backend> {
    shared: Arc<Shared<B>>,
    socket: Stream,
    peer: SocketAddr,
    phase: Phase,
    /// A STARTUP came and was refused.
    was_refused: bool,
    decoder: Decoder,
    encoder: OutputEncoder,
    client: Arc<ClientState>,
    /// Who the client is once its credentials are found right.
    logging_in: Option<oneshot::Receiver<Arc<User>>>,
    /// As others see the connection.
    connected: Option<Connected>,
    /// The client was told of statements that mean another thing in another keyspace.
    is_warned: Arc<AtomicBool>,
    throw_on_overload: bool,
    knows_tablets: bool,
    input: BytesMut,
    read_len: usize,
    /// Answers of a v5 connection before they are put in segments.
    envelopes: BytesMut,
    /// Bytes ready to be sent.
    output: BytesMut,
    /// Long answers, sent one at a time between what is in `output`, with the memory that they have reserved.
    long: VecDeque<LongAnswer>,
    is_sending_long: bool,
    waiting: Queue,
    in_flight: FuturesUnordered<InFlight>,
    in_flight_bytes: usize,
    events: Option<mpsc::Receiver<Event>>,
    event_types: Vec<EventType>,
    /// No more is read: what runs is answered, then the connection ends.
    ending: bool,
    /// The node stops: when nothing runs the connection ends.
    stopping: Stopping,
    /// Why the client was cut off, if it was.
    refused: bool,
    deadline: Pin<Box<Sleep>>,
    /// When a client that has not logged in by then is cut off.
    login_deadline: Instant,
    memory: Memory,
    /// When others shall get their turn; none when nothing was served since they had it.
    slice_end: Option<Instant>,
    slice_is_over: bool,
    last_request: Instant,
    /// When the client was last read from.
    last_read: Instant,
    /// When the first bytes came of a request that is not yet there as a whole.
    partial_since: Option<Instant>,
    /// Counts answers.
    answered: u32,
    /// What is to be told once the answers have left.
    unsent: Vec<Unsent>,
}

impl<B: Backend> Connection<B> {
    pub fn new(
        socket: Stream,
        peer: SocketAddr,
        login_deadline: Instant,
        shared: Arc<Shared<B>>,
    ) -> Connection<B> {
        let deadline = Box::pin(tokio::time::sleep_until(login_deadline.into()));
        Connection {
            decoder: Decoder::new(Direction::Request, STRANGERS_BODY_LEN_MAX),
            encoder: OutputEncoder::unstarted(),
            connected: shared
                .backend
                .clients()
                .map(|clients| clients.connect(peer, socket.encryption())),
            shared,
            socket,
            peer,
            phase: Phase::Starting,
            was_refused: false,
            client: Arc::default(),
            logging_in: None,
            is_warned: Arc::default(),
            throw_on_overload: false,
            knows_tablets: false,
            input: BytesMut::new(),
            read_len: READ_LEN_MIN,
            envelopes: BytesMut::new(),
            output: BytesMut::new(),
            long: VecDeque::new(),
            is_sending_long: false,
            waiting: Queue::default(),
            in_flight: FuturesUnordered::new(),
            in_flight_bytes: 0,
            events: None,
            event_types: Vec::new(),
            ending: false,
            stopping: Stopping::No,
            refused: false,
            deadline,
            login_deadline,
            memory: Memory::default(),
            slice_end: None,
            slice_is_over: false,
            last_request: Instant::now(),
            last_read: Instant::now(),
            partial_since: None,
            answered: 0,
            unsent: Vec::new(),
        }
    }

    /// Serves the connection until either side ends it.
    pub async fn run(mut self, mut stopping: watch::Receiver<Stopping>) {
        tracing::debug!(peer = %self.peer, "connection opened");
        let client = self.connected.as_ref().map(Connected::client);
        let client = client.filter(|_| self.shared.backend.authenticator().is_some());
        let served = loop {
            let before = self.stopping;
            tokio::select! {
                biased;
                served = poll_fn(|cx| self.poll(cx)) => break served,
                Ok(now) = stopping.wait_for(|now| *now > before) => self.stopping = *now,
                () = ended(client.as_deref()) => {
                    tracing::info!(peer = %self.peer, "connection ended: its role may not log in any more");
                    self.ending = true;
                }
            }
            self.ending |= !matches!(self.phase, Phase::Started(_));
        };
        if let Err(error) = &served {
            tracing::debug!(peer = %self.peer, %error, "connection broke");
        } else if self.refused || self.stopping > Stopping::No {
            self.linger().await;
        } else {
            self.close().await;
        }
        tracing::debug!(peer = %self.peer, "connection closed");
    }

    /// Does what can be done now, for a slice of time. Ready when the connection is over.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.slice_end = None;
        self.slice_is_over = false;
        let served = self.serve_slice(cx);
        self.tell_held();
        self.shared.show_in_flight();
        served
    }

    fn serve_slice(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !matches!(self.phase, Phase::Started(_)) && Instant::now() >= self.login_deadline {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        loop {
            let mut progress = self.collect_finished(cx);
            progress |= self.collect_events(cx);
            match self.serve_input(cx) {
                Ok(served) => progress |= served,
                Err(error) => return Poll::Ready(Err(error)),
            }
            let flushed = match self.flush(cx) {
                Poll::Ready(Ok(wrote)) => {
                    progress |= wrote;
                    true
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => false,
            };
            if self.is_over(cx) && flushed {
                return Poll::Ready(Ok(()));
            }
            if self.slice_is_over || !coop::has_budget_remaining() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if !progress {
                self.check_deadline(cx);
                if let Err(error) = self.check_stall(cx) {
                    return Poll::Ready(Err(error));
                }
                if self.is_over(cx) && flushed {
                    return Poll::Ready(Ok(()));
                }
                return Poll::Pending;
            }
        }
    }

    /// True if nothing is left to be answered and nothing more will be.
    fn is_over(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.in_flight.is_empty() || self.stopping == Stopping::No {
            return self.ending && self.in_flight.is_empty();
        }
        // What comes now is turned away: the sooner the client goes elsewhere the better.
        let may_end = self.stopping == Stopping::Now || self.is_quiet(cx);
        self.ending || self.waiting.is_empty() && may_end
    }

    /// True if the client has asked nothing for a moment: a request that is on its way when the connection ends has no answer, and most are
    /// sent as soon as the one before is answered.
    fn is_quiet(&mut self, cx: &mut Context<'_>) -> bool {
        let quiet_at = self.last_request + QUIET;
        if quiet_at <= Instant::now() {
            return true;
        }
        self.deadline.as_mut().reset(quiet_at.into());
        self.deadline.as_mut().poll(cx).is_ready()
    }

    fn collect_finished(&mut self, cx: &mut Context<'_>) -> bool {
        let mut progress = false;
        while !self.in_flight.is_empty()
            && coop::has_budget_remaining()
            && let Poll::Ready(Some(done)) = self.in_flight.poll_next_unpin(cx)
        {
            progress = true;
            self.finish(done);
        }
        progress
    }

    fn collect_events(&mut self, cx: &mut Context<'_>) -> bool {
        let Phase::Started(version) = self.phase else {
            return false;
        };
        let mut progress = false;
        while self.output_len() < OUTPUT_LEN_MAX
            && let Some(events) = &mut self.events
            && let Poll::Ready(Some(event)) = events.poll_recv(cx)
        {
            progress = true;
            if self.event_types.contains(&event.event_type()) {
                self.send(version, -1, &Response::Event(event).into());
            }
        }
        progress
    }

    /// Answers what is no request, but can be told from what follows.
    fn refuse_one(&mut self, error: EnvelopeError) {
        let version = match self.phase {
            Phase::Starting => error.version,
            Phase::Authenticating(version) | Phase::Started(version) => version,
        };
        self.send_error(version, error.stream, error.error);
    }

    /// Answers bytes that are no request, and reads no further: what follows them can't be trusted.
    fn refuse(&mut self, error: EnvelopeError) {
        tracing::debug!(peer = %self.peer, error = %error.error, "connection refused");
        self.refuse_one(error);
        self.input.clear();
        self.ending = true;
        self.refused = true;
    }

    fn serve(&mut self, waiting: Waiting, begun: Instant, cx: &mut Context<'_>) {
        let Waiting {
            envelope,
            first_byte,
            last_byte,
        } = waiting;
        self.last_request = begun;
        if let Some(connected) = &self.connected {
            connected.count_request();
        }
        let arrival = Arrival {
            first_byte,
            last_byte,
            begun,
        };
        match self.phase {
            Phase::Starting => self.start_up(envelope),
            Phase::Authenticating(version) => self.authenticate(version, envelope, arrival, cx),
            Phase::Started(version) => self.begin(version, envelope, arrival, cx),
        }
    }

    fn finish(&mut self, mut done: Done) {
        let ticket = done.ticket;
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(ticket.cost_bytes);
        self.shared.release(1, ticket.cost_bytes);
        let message = &done.answered.message;
        if let Response::Result(QueryResult::SetKeyspace(keyspace)) = &message.response {
            self.client = Arc::new(ClientState {
                keyspace: Some(keyspace.clone()),
                user: self.client.user.clone(),
            });
            if let Some(connected) = &self.connected {
                connected.uses(keyspace);
            }
        }
        if matches!(message.response, Response::AuthSuccess(_)) {
            self.logged_in(ticket.version);
        }
        let before = self.output_len();
        match done.answered.encoded.take() {
            Some(bytes) => self.long.push_back(LongAnswer {
                bytes,
                reserved: done.answered.reserved.take(),
            }),
            None => {
                self.send(ticket.version, ticket.stream, message);
                self.memory.answered(self.output_len() - before);
            }
        }
        self.measure(&done);
        if let Some(remarks) = done.answered.remarks.take() {
            self.remember(*remarks, &done, self.output_len() - before);
        }
        // From here on the answer is counted with those that were not taken.
        drop(done.answered.charge.take());
    }

    /// Ends a connection that has been silent for too long, and looks again when one must have logged in.
    fn check_deadline(&mut self, cx: &mut Context<'_>) {
        let Phase::Started(_) = self.phase else {
            if self.deadline.as_mut().poll(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
            return;
        };
        let Some(idle_timeout) = self.shared.config.idle_timeout else {
            return;
        };
        while !self.ending && self.deadline.as_mut().poll(cx).is_ready() {
            let expires = self.last_request + idle_timeout;
            if expires <= Instant::now() && self.in_flight.is_empty() {
                self.ending = true;
            } else {
                let again = expires.max(Instant::now() + LINGER);
                self.deadline.as_mut().reset(again.into());
            }
        }
    }
}

/// Returns when the connection shall end; never where nobody logs in.
async fn ended(client: Option<&Client>) {
    match client {
        Some(client) => client.ended().await,
        None => std::future::pending().await,
    }
}

impl<B: Backend> Drop for Connection<B> {
    /// What has begun runs to its end: a client that goes away must not leave a change half made. What computes for long ends at its next
    /// checkpoint, of which there are none within a change.
    fn drop(&mut self) {
        self.shared.release(self.in_flight.len(), self.in_flight_bytes);
        self.waiting.clear();
        if let Some((before, now)) = self.waiting.tell(0) {
            self.shared.now_waiting(before, now);
        }
        // Whoever has not logged in has changed nothing.
        if self.in_flight.is_empty() || !matches!(self.phase, Phase::Started(_)) {
            return;
        }
        let mut left = std::mem::take(&mut self.in_flight);
        left.iter_mut().for_each(InFlight::abandon);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { while left.next().await.is_some() {} });
        }
    }
}
