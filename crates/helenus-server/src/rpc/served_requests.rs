//! The requests of another node's connection that this node runs.
//!
//! A request is polled once when it arrives. Most requests are answered from memory in that poll. The others join a set of futures, which
//! the connection's task polls. A request that computes for long moves to the pool of long requests, and a scan runs in a task of its own.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use helenus_query::metrics::internode::InboundTraffic;
use tokio::sync::Semaphore;
use tokio::task::coop;
use uuid::Uuid;

use super::frame::Header;
use super::mailbox::Mailbox;
use super::messages::Request;
use super::node_service::NodeService;
use super::peer_auth::PeerGuard;
use super::proto::ScanRequest;
use super::replies::{Ends, Replier, Replies, Reply};
use super::running::{RunningGuard, RunningRequests};
use super::{CHUNKS_AHEAD, OPEN_MAX, scoped, served_scan};

/// Number of running requests of a connection above which further ones are declined. The caller waits for at most [`OPEN_MAX`] answers, and
/// as many requests may still run that it has given up.
const RUNNING_MAX: usize = 2 * OPEN_MAX;

/// State that the connections of a server share.
pub(super) struct ServedBy {
    pub service: NodeService,
    pub guard: PeerGuard,
}

/// The requests of one connection.
pub(super) struct ServedRequests {
    server: Arc<ServedBy>,
    pub traffic: Arc<InboundTraffic>,
    pub replies: Arc<Mailbox<Replies>>,
    running: RunningRequests,
    /// The requests that were not answered in their first poll.
    waiting: FuturesUnordered<WaitingRequest>,
    /// Number of requests whose answers have not been collected, and of the scans among them.
    open: usize,
    open_scans: usize,
}

impl ServedRequests {
    pub fn new(server: Arc<ServedBy>, caller: Uuid) -> ServedRequests {
        ServedRequests {
            traffic: server.service.handler.engine.metrics().inbound.of(caller),
            server,
            replies: Arc::new(Mailbox::new(Replies::default())),
            running: RunningRequests::default(),
            waiting: FuturesUnordered::new(),
            open: 0,
            open_scans: 0,
        }
    }

    /// Returns true if no more requests may begin until others have been answered.
    pub fn are_too_many(&self) -> bool {
        self.open - self.open_scans >= RUNNING_MAX
    }

    /// Returns true if all requests have been answered.
    pub fn are_done(&self) -> bool {
        self.open == 0
    }

    /// Begins a request whose body has that number of bytes.
    pub fn begin(&mut self, header: Header, request: Request, bytes: usize, cx: &mut Context<'_>) {
        self.open += 1;
        match request {
            Request::Scan(scan) => self.begin_scan(header.id, scan, bytes),
            request => self.begin_request(header, request, bytes, cx),
        }
    }

    fn begin_request(&mut self, header: Header, request: Request, bytes: usize, cx: &mut Context<'_>) {
        let replier = Replier::new(header.id, self.replies.clone(), Ends::Request);
        let is_left = Arc::<AtomicBool>::default();
        let (server, left, traffic) = (self.server.clone(), is_left.clone(), self.traffic.clone());
        let timeout = Duration::from_millis(header.timeout_ms.into());
        let answering = async move {
            let (answer, reserved) = server.service.answer(request, timeout, left).await;
            traffic.ended(bytes, answer.is_ok());
            replier.finish(answer, reserved);
        };
        // The panic hook logs a panic, and the replier sends a failure.
        let mut answering = AssertUnwindSafe(answering).catch_unwind().map(drop).boxed();
        if answering.as_mut().poll(cx).is_pending() {
            self.waiting.push(WaitingRequest {
                answering,
                _running: self.running.begin(header.id, is_left, None),
            });
        }
    }

    fn begin_scan(&mut self, id: u32, scan: ScanRequest, bytes: usize) {
        self.open_scans += 1;
        self.traffic.processed.add(bytes);
        self.server.service.handler.count();
        let replier = Replier::new(id, self.replies.clone(), Ends::Scan);
        let (is_left, credit) = (
            Arc::<AtomicBool>::default(),
            Arc::new(Semaphore::new(CHUNKS_AHEAD)),
        );
        let running = self.running.begin(id, is_left.clone(), Some(credit.clone()));
        let server = self.server.clone();
        tokio::spawn(async move {
            let handler = &server.service.handler;
            let work = served_scan::serve(handler.engine.clone(), scan, credit, replier);
            // After a panic, the replier has sent a failure.
            let _ = scoped::run(&handler.long_requests, is_left, scoped::LONGEST, work).await;
            drop(running);
        });
    }

    /// Polls the waiting requests that can go on.
    pub fn poll(&mut self, cx: &mut Context<'_>) {
        while coop::has_budget_remaining() {
            if !matches!(self.waiting.poll_next_unpin(cx), Poll::Ready(Some(()))) {
                return;
            }
        }
        cx.waker().wake_by_ref();
    }

    /// Moves the answers that are ready into an empty vector.
    pub fn collect(&mut self, collected: &mut Vec<Reply>) {
        self.replies
            .take(|replies| std::mem::swap(&mut replies.ready, collected));
        for reply in collected {
            match reply.ends {
                Ends::Nothing => {}
                Ends::Request => self.open -= 1,
                Ends::Scan => {
                    self.open -= 1;
                    self.open_scans -= 1;
                }
            }
        }
    }

    /// Ends a request whose caller does not wait for the answer any more.
    pub fn leave(&self, id: u32) {
        self.running.leave(id);
    }

    /// Lets a scan send one more chunk.
    pub fn grant(&self, id: u32) {
        self.running.grant(id, CHUNKS_AHEAD);
    }

    /// Drops all answers. Requests that can be ended are, and the others run to their ends.
    pub fn abandon(self) {
        self.running.leave_all();
        self.replies.take(Replies::close);
        if !self.waiting.is_empty() {
            tokio::spawn(self.waiting.for_each(std::future::ready));
        }
    }
}

/// A request that was not answered in its first poll.
struct WaitingRequest {
    answering: BoxFuture<'static, ()>,
    _running: RunningGuard,
}

impl Future for WaitingRequest {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.answering.as_mut().poll(cx)
    }
}
