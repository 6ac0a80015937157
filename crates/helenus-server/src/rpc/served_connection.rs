//! A connection of another node, as the accepting node has it. One task reads requests, runs them ([`super::served_requests`]) and writes
//! answers. Answers that are ready together share a write.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use futures::future::BoxFuture;
use helenus_query::limits::answers::Reservation;
use tokio::sync::watch;
use tokio::task::coop;
use tokio::time::Sleep;

use super::failure::Failure;
use super::frame::{Frame, Header, Kind};
use super::handshake::Hello;
use super::messages::Request;
use super::peer_auth::PeerClaim;
use super::replies::{Ends, Replies, Reply};
use super::served_requests::{ServedBy, ServedRequests};
use super::stopping::Stopping;
use super::wire::Wire;
use crate::network::Connection;

/// Time without any bytes from the caller after which the connection is closed. The caller pings once a second.
const SILENCE_MAX: Duration = Duration::from_secs(6);
const SILENCE_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Unwritten bytes of answers above which no more requests are read.
const OUTPUT_LEN_MAX: usize = 8 << 20;
/// Number of requests that are begun before answers are written, and before other tasks have their turn.
const BEGUN_MAX: usize = 64;
/// Maximum time for the caller to read the last answers.
const LINGER: Duration = Duration::from_millis(500);

/// A connection of another node.
pub(super) struct ServedConnection {
    server: Arc<ServedBy>,
    caller: PeerClaim,
    wire: Wire,
    requests: ServedRequests,
    /// Empty, with room for the answers that are moved into the output.
    collected: Vec<Reply>,
    /// Number of frames that were taken since answers were last written.
    begun: usize,
    /// Memory that is reserved for answers in the output, each with the position of the answer's end.
    reserved: VecDeque<(u64, Reservation)>,
    /// The reason for which new requests are not executed. `None` while they are.
    declines: Option<String>,
    stopping: watch::Receiver<Stopping>,
    /// Ready when the server stops further.
    stops: BoxFuture<'static, ()>,
    timer: Pin<Box<Sleep>>,
    /// Time at which bytes were last read or written.
    last_progress: Instant,
}

/// The end of a connection.
enum End {
    /// The caller has closed the connection, or is not reached any more.
    Closed(String),
    /// The caller has violated the protocol.
    Invalid(String),
    /// The running requests have been answered, and no others are served.
    Idle,
    Stopped,
}

impl ServedConnection {
    pub fn new(
        server: Arc<ServedBy>,
        socket: Connection,
        hello: Hello,
        stopping: watch::Receiver<Stopping>,
    ) -> ServedConnection {
        let caller = hello.claim;
        ServedConnection {
            requests: ServedRequests::new(server.clone(), caller.from.host_id.0),
            server,
            caller,
            wire: Wire::new(socket),
            collected: Vec::new(),
            begun: 0,
            reserved: VecDeque::new(),
            declines: None,
            stops: Stopping::WhenIdle.reached(stopping.clone()),
            stopping,
            timer: Box::pin(tokio::time::sleep(SILENCE_CHECK_INTERVAL)),
            last_progress: Instant::now(),
        }
    }

    /// Serves requests until either side ends the connection. Running requests go on to their ends.
    pub async fn run(mut self) {
        let end = std::future::poll_fn(|cx| self.poll(cx)).await;
        self.requests.abandon();
        let node = &self.caller.name;
        match end {
            End::Closed(reason) => tracing::debug!(node, reason, "a connection of another node has ended"),
            End::Invalid(reason) => {
                let host_id = self.caller.from.host_id.0;
                let refusals = &self.server.guard.refusals;
                if refusals.should_log(host_id, "invalid frames", Duration::ZERO) {
                    tracing::warn!(node, %host_id, reason, "a connection of another node was closed: it has violated the protocol");
                }
            }
            End::Idle => {
                let _ = tokio::time::timeout(LINGER, close(self.wire)).await;
            }
            End::Stopped => {}
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        match self.serve(cx) {
            Ok(()) => Poll::Pending,
            Err(end) => Poll::Ready(end),
        }
    }

    /// Does what is possible now. Begins the requests that were read, and then writes answers and reads from the socket.
    fn serve(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        loop {
            let is_paused = !self.may_read();
            let has_turn = self.begun < BEGUN_MAX && coop::has_budget_remaining();
            if has_turn && !is_paused && self.begin_next(cx)? {
                self.begun += 1;
                continue;
            }
            self.requests.poll(cx);
            self.collect();
            let is_flushed = self.flush(cx)?;
            self.begun = 0;
            if !has_turn {
                // Other tasks of the thread have their turn before the next requests.
                cx.waker().wake_by_ref();
                return Ok(());
            }
            if is_paused && self.may_read() {
                continue;
            }
            if is_flushed && self.declines.is_some() && self.requests.are_done() {
                return Err(End::Idle);
            }
            if self.read(cx)? || self.stop_further(cx)? || self.check_silence(cx)? {
                continue;
            }
            if self.requests.replies.fall_asleep(cx, Replies::is_empty) {
                return Ok(());
            }
        }
    }

    /// Returns true if frames may be read. Otherwise the caller must first read answers.
    fn may_read(&self) -> bool {
        self.wire.output.len() < OUTPUT_LEN_MAX
    }

    /// Handles the next frame. Returns false if no complete frame is left.
    fn begin_next(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        let frame = self
            .wire
            .decode()
            .map_err(|error| End::Invalid(error.to_string()))?;
        let Some(Frame { header, body }) = frame else {
            return Ok(false);
        };
        match header.kind {
            Kind::Ping => self.push(&Header::new(Kind::Pong, 0), BytesMut::new()),
            Kind::GiveUp => self.requests.leave(header.id),
            Kind::Next => self.requests.grant(header.id),
            kind => {
                let bytes = body.len();
                let request = Request::decode(kind, body).map_err(End::Invalid)?;
                self.requests.traffic.received.add(bytes);
                match self.declines() {
                    None => self.requests.begin(header, request, bytes, cx),
                    Some(reason) => {
                        let reply = Reply::failure(header.id, &Failure::undone(reason), Ends::Nothing);
                        self.push(&reply.header, reply.body);
                        self.requests.traffic.failed.add(bytes);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Returns the reason for which no request may begin. `None` if requests may begin.
    fn declines(&self) -> Option<&str> {
        match &self.declines {
            Some(reason) => Some(reason),
            None if self.requests.are_too_many() => Some("too many requests of this node are running there"),
            None => None,
        }
    }

    fn push(&mut self, header: &Header, body: BytesMut) {
        self.wire.output.push(header, body);
    }

    /// Moves answers into the output.
    fn collect(&mut self) {
        self.requests.collect(&mut self.collected);
        for reply in self.collected.drain(..) {
            self.wire.output.push(&reply.header, reply.body);
            if let Some(reserved) = reply.reserved {
                self.reserved.push_back((self.wire.output.pushed(), reserved));
            }
        }
    }

    /// Writes the output. Returns true if all of it was written.
    fn flush(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        let before = self.wire.output.len();
        let flushed = self.wire.poll_flush(cx);
        if self.wire.output.len() < before {
            self.last_progress = Instant::now();
            let written = self.wire.output.written();
            while self.reserved.front().is_some_and(|(end, _)| *end <= written) {
                self.reserved.pop_front();
            }
        }
        match flushed {
            Poll::Pending => Ok(false),
            Poll::Ready(Ok(())) => Ok(true),
            Poll::Ready(Err(error)) => Err(End::Closed(error.to_string())),
        }
    }

    /// Reads from the socket. Returns false if there is nothing to read, or if nothing may be read.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        if !self.may_read() {
            return Ok(false);
        }
        match self.wire.poll_read(cx) {
            Poll::Pending => return Ok(false),
            Poll::Ready(Ok(0)) => return Err(End::Closed("the caller has closed it".to_owned())),
            Poll::Ready(Ok(_)) => self.last_progress = self.wire.last_read,
            Poll::Ready(Err(error)) => return Err(End::Closed(error.to_string())),
        }
        let guard = &self.server.guard;
        let PeerClaim { from, to, name, .. } = &self.caller;
        let known = guard
            .check_meant(*to)
            .and_then(|()| guard.check_member(*from, name));
        if let Err(refusal) = known {
            self.declines = Some(refusal.text);
        }
        Ok(true)
    }

    /// Follows the server when it stops. Returns true if it has stopped further.
    fn stop_further(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        if self.stops.as_mut().poll(cx).is_pending() {
            return Ok(false);
        }
        let is_dropped = self.stopping.has_changed().is_err();
        if is_dropped || *self.stopping.borrow() == Stopping::Now {
            return Err(End::Stopped);
        }
        self.stops = Stopping::Now.reached(self.stopping.clone());
        self.declines = Some("the node is being stopped".to_owned());
        Ok(true)
    }

    /// Ends the connection if the caller is silent. Returns true if the timer must be polled again.
    fn check_silence(&mut self, cx: &mut Context<'_>) -> Result<bool, End> {
        if self.timer.as_mut().poll(cx).is_pending() {
            return Ok(false);
        }
        if self.last_progress.elapsed() > SILENCE_MAX {
            return Err(End::Closed("the caller is silent".to_owned()));
        }
        let next = tokio::time::Instant::now() + SILENCE_CHECK_INTERVAL;
        self.timer.as_mut().reset(next);
        Ok(true)
    }
}

/// Ends the output, and discards input until the caller closes its side. Closing a socket with unread input would reset the connection, and
/// the last answers could be lost.
async fn close(mut wire: Wire) {
    if std::future::poll_fn(|cx| wire.poll_shutdown(cx)).await.is_err() {
        return;
    }
    while let Ok(1..) = std::future::poll_fn(|cx| wire.poll_read(cx)).await {
        while let Ok(Some(_)) = wire.decode() {}
    }
}
