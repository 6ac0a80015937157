//! A client's connection: one task that reads requests, runs them concurrently, and writes responses.
//!
//! A request's future is polled as soon as it is decoded. So a request that the store serves from memory is answered without a task switch.
//! Requests that wait join one set of futures. All responses that are ready together are sent in one write. A request that keeps the thread
//! for long moves to a task of its own ([`in_flight`]). There it does not delay the connection's other requests.
//!
//! Reading stops while too many bytes are in flight, or while the client does not read its responses. Then TCP makes the client wait.

mod admission_queue;
mod audited;
mod authentication;
mod completion_log;
mod handshake;
mod in_flight;
mod input;
mod large_messages;
mod logged;
mod memory;
mod relay;
mod requests;
mod socket;
mod state;
mod statement_summary;
mod statements;
mod tablets;
mod timing;
mod traced;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::poll_fn;
use futures::stream::FuturesUnordered;
use helenus_cql::frame::response::{Event, EventType, QueryResult};
use helenus_cql::frame::{EnvelopeError, Response};
use helenus_query::engine::clients::{Client, Connected};
use helenus_query::request::ClientState;
use tokio::sync::{mpsc, watch};
use tokio::task::coop;

use self::admission_queue::QueuedRequest;
use self::in_flight::{CompletedRequest, InFlightRequest};
use self::input::Input;
use self::memory::Memory;
use self::relay::RelayedRequests;
use self::socket::{LargeResponse, Output};
use self::state::{Drain, Lifecycle, Session, SessionState, SocketClose};
use self::timing::{TimeSlice, Timers};
use crate::metrics::stage_times::Arrival;
use crate::threads::stall;
use crate::tls::Stream;
use crate::transport::Backend;
use crate::transport::server_state::{ServerState, Stopping};

/// Bytes of responses above which the client is not read until it has received some.
const OUTPUT_LEN_MAX: usize = 1024 * 1024;
const READ_LEN_MIN: usize = 4 * 1024;
/// Bytes that a request counts beyond its body in limits on bytes in flight.
const REQUEST_OVERHEAD_BYTES: usize = 512;
/// Maximum time for a refused client to read the reason.
const LINGER: Duration = Duration::from_millis(500);

/// A client's connection. [`state`] describes its states.
pub(crate) struct Connection<B: Backend> {
    server: Arc<ServerState<B>>,
    socket: Stream,
    peer: SocketAddr,
    lifecycle: Lifecycle,
    session: Session,
    input: Input,
    output: Output,
    running: RunningRequests,
    relayed: RelayedRequests<B>,
    events: EventSubscription,
    timers: Timers,
    slice: TimeSlice,
    memory: Memory,
}

/// The running requests of a connection.
#[derive(Default)]
struct RunningRequests {
    requests: FuturesUnordered<InFlightRequest>,
    /// Bytes that the requests are charged.
    bytes: usize,
}

/// The events that the client has registered for.
#[derive(Default)]
struct EventSubscription {
    /// `None` before the first REGISTER.
    receiver: Option<mpsc::Receiver<Event>>,
    types: Vec<EventType>,
}

impl<B: Backend> Connection<B> {
    pub fn new(
        socket: Stream,
        peer: SocketAddr,
        login_deadline: Instant,
        server: Arc<ServerState<B>>,
    ) -> Connection<B> {
        let clients = server.backend.clients();
        let connected = clients.map(|clients| clients.connect(peer, socket.encryption()));
        Connection {
            server,
            socket,
            peer,
            lifecycle: Lifecycle::Open,
            session: Session::new(connected),
            input: Input::new(),
            output: Output::new(),
            running: RunningRequests::default(),
            relayed: RelayedRequests::default(),
            events: EventSubscription::default(),
            timers: Timers::new(login_deadline),
            slice: TimeSlice::default(),
            memory: Memory::default(),
        }
    }

    /// Serves the connection until either side ends it.
    pub async fn run(mut self, mut stopping: watch::Receiver<Stopping>) {
        tracing::debug!(peer = %self.peer, "connection opened");
        let client = self.session.connected.as_ref().map(Connected::client);
        let client = client.filter(|_| self.server.backend.authenticator().is_some());
        let mut before = Stopping::No;
        let served = loop {
            tokio::select! {
                biased;
                served = poll_fn(|cx| self.poll(cx)) => break served,
                Ok(now) = stopping.wait_for(|now| *now > before) => {
                    before = *now;
                    self.lifecycle.node_stops(before);
                }
                () = ended(client.as_deref()) => {
                    tracing::info!(peer = %self.peer, "connection ended: its role may not log in any more");
                    self.lifecycle.close();
                }
            }
            if !self.session.state.is_ready() {
                self.lifecycle.close();
            }
        };
        if let Err(error) = &served {
            tracing::debug!(peer = %self.peer, %error, "connection broke");
        } else {
            match self.lifecycle.socket_close() {
                SocketClose::DrainInput => self.drain_input_before_close().await,
                SocketClose::Plain => self.close().await,
            }
        }
        tracing::debug!(peer = %self.peer, "connection closed");
    }

    /// Does the work that is possible now, for one time slice. Ready when the connection is over.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.slice = TimeSlice::default();
        let served = stall::watch(|| self.serve_slice(cx));
        self.report_held();
        self.server.show_in_flight();
        served
    }

    fn serve_slice(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.session.state.is_ready() && Instant::now() >= self.timers.login_deadline {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        loop {
            let mut progress = self.collect_finished(cx);
            progress |= self.collect_relayed(cx);
            progress |= self.collect_events(cx);
            match self.serve_input(cx) {
                Ok(served) => progress |= served,
                Err(error) => return Poll::Ready(Err(error)),
            }
            self.relayed.send();
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
            if self.slice.is_over || !coop::has_budget_remaining() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            if !progress && self.relayed.fall_asleep(cx) {
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

    /// Returns the number of requests that run or were relayed.
    fn running_count(&self) -> usize {
        self.running.requests.len() + self.relayed.len()
    }

    /// Records that no client waits for the responses of the running requests any more.
    fn abandon(&mut self) {
        let running = self.running.requests.iter_mut();
        running.for_each(InFlightRequest::abandon);
        self.relayed.abandon();
    }

    /// Returns true if all requests are answered and no more will be read.
    fn is_over(&mut self, cx: &mut Context<'_>) -> bool {
        if self.running_count() > 0 {
            return false;
        }
        match self.lifecycle {
            Lifecycle::Open => false,
            // Requests that arrive now are refused, so there is no need to wait until the client is quiet.
            Lifecycle::Draining(Drain::Reject) => self.input.queue.is_empty(),
            Lifecycle::Draining(Drain::Serve) => self.is_quiet(cx) && self.input.queue.is_empty(),
            Lifecycle::Closing(_) => true,
        }
    }

    fn collect_finished(&mut self, cx: &mut Context<'_>) -> bool {
        let mut progress = false;
        while !self.running.requests.is_empty()
            && coop::has_budget_remaining()
            && let Poll::Ready(Some(done)) = self.running.requests.poll_next_unpin(cx)
        {
            progress = true;
            self.finish(done);
        }
        progress
    }

    fn collect_events(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(version) = self.session.state.ready_version() else {
            return false;
        };
        let mut progress = false;
        while self.output_len() < OUTPUT_LEN_MAX
            && let Some(events) = &mut self.events.receiver
            && let Poll::Ready(Some(event)) = events.poll_recv(cx)
        {
            progress = true;
            if self.events.types.contains(&event.event_type()) {
                self.send(version, -1, &Response::Event(event).into());
            }
        }
        progress
    }

    /// Answers an invalid request. The bytes that follow it are still read.
    fn refuse_one(&mut self, error: EnvelopeError) {
        let options = self.session.state.options();
        let version = options.map_or(error.version, |options| options.version);
        let is_negotiation = error.is_negotiation && options.is_none();
        let answer = Response::Error(error.error).into();
        if is_negotiation {
            self.server.metrics.negotiated();
            self.put(version, error.stream, &answer);
        } else {
            self.send(version, error.stream, &answer);
        }
    }

    /// Answers invalid bytes and closes the connection, because the start of the next request is unknown.
    fn refuse(&mut self, error: EnvelopeError) {
        tracing::debug!(peer = %self.peer, error = %error.error, "connection refused");
        self.refuse_one(error);
        self.input.bytes.clear();
        self.lifecycle.refuse();
    }

    fn serve(&mut self, waiting: QueuedRequest, begun: Instant, cx: &mut Context<'_>) {
        let QueuedRequest {
            envelope,
            first_byte,
            last_byte,
        } = waiting;
        self.timers.last_request = begun;
        if let Some(connected) = &self.session.connected {
            connected.count_request();
        }
        let arrival = Arrival {
            first_byte,
            last_byte,
            begun,
        };
        match self.session.state {
            SessionState::Greeting { startup_refused } => self.start_up(envelope, startup_refused),
            SessionState::Authenticating(options) => {
                self.authenticate(options.version, envelope, arrival, cx)
            }
            SessionState::Ready(options) => self.begin(&options, envelope, arrival, cx),
        }
    }

    fn finish(&mut self, mut done: CompletedRequest) {
        let info = done.info;
        self.release(&info);
        let message = &done.answered.message;
        if let Response::Result(QueryResult::SetKeyspace(keyspace)) = &message.response {
            self.session.client = Arc::new(ClientState {
                keyspace: Some(keyspace.clone()),
                ..ClientState::clone(&self.session.client)
            });
            if let Some(connected) = &self.session.connected {
                connected.uses(keyspace);
            }
        }
        if matches!(message.response, Response::AuthSuccess(_)) {
            self.logged_in();
        }
        let before = self.output_len();
        match done.answered.encoded.take() {
            Some(bytes) => self.output.large.push_back(LargeResponse {
                bytes,
                reserved: done.answered.reserved.take(),
            }),
            None => {
                self.send(info.version, info.stream, message);
                self.memory.answered(self.output_len() - before);
            }
        }
        self.measure(&done);
        if let Some(notes) = done.answered.notes.take() {
            self.remember(*notes, &done, self.output_len() - before);
        }
        // The response is now counted with the connection's output.
        drop(done.answered.charge.take());
    }
}

/// Waits until the connection shall be ended from outside. Never returns if authentication is off.
async fn ended(client: Option<&Client>) {
    match client {
        Some(client) => client.ended().await,
        None => std::future::pending().await,
    }
}

impl<B: Backend> Drop for Connection<B> {
    /// Lets running requests continue: a client that disconnects must not leave a change half done. Long computations end at their next
    /// checkpoint; there is none within a change.
    fn drop(&mut self) {
        self.server.release(self.running_count(), self.running.bytes);
        self.input.queue.clear();
        if let Some((before, now)) = self.input.queue.report(0) {
            self.server.now_waiting(before, now);
        }
        // A client that has not logged in has changed nothing, so its requests may be dropped.
        if self.running_count() == 0 || !self.session.state.is_ready() {
            return;
        }
        self.abandon();
        let mut left = std::mem::take(&mut self.running.requests);
        let relayed = std::mem::take(&mut self.relayed);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { while left.next().await.is_some() {} });
            runtime.spawn(relayed.run_to_end(self.server.clone()));
        }
    }
}
