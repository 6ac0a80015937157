//! A running request: polled in its connection's task first, moved to a task of its own when it computes for long.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use futures::FutureExt;
use futures::future::BoxFuture;
use helenus_cql::error::CqlError;
use helenus_cql::frame::{ProtocolVersion, Response, ResponseMessage};
use helenus_query::limits::answers::Reservation;
use helenus_query::limits::client_memory::Charge;
use helenus_query::limits::scope::Scope;
use helenus_query::trace::Work;
use tokio::task::{JoinHandle, coop};

use super::traced::{RequestTrace, ResponseTrace};
use crate::long_requests::{LongRequestPool, RunningLongRequest};
use crate::metrics::RequestKind;
use crate::spans::SpanParent;
use crate::stage_times::Arrival;
use crate::stall;

/// A request that held the thread for longer than this at a stretch goes on in a task of its own.
const POLL_MAX: Duration = Duration::from_millis(1);

/// A running request's identity and cost.
#[derive(Clone, Copy)]
pub(super) struct RequestInfo {
    pub version: ProtocolVersion,
    pub stream: i16,
    pub kind: RequestKind,
    pub cost_bytes: usize,
    pub arrival: Arrival,
}

/// A response that is ready to be sent.
pub(super) struct ReadyResponse {
    pub message: ResponseMessage,
    /// When it was ready.
    pub at: Instant,
    pub notes: Option<Box<ResponseNotes>>,
    /// What it takes until it is encoded, if that is much.
    pub charge: Option<Charge>,
    /// A long answer as it is to be sent; `message` has the rest.
    pub encoded: Option<BytesMut>,
    /// The memory that it takes until it has been sent.
    pub reserved: Option<Reservation>,
}

/// Entries of the slow log and of traces, made when the response has been sent.
#[derive(Default)]
pub(super) struct ResponseNotes {
    /// The statement and how many values it had, if the request was slow or is sampled.
    pub statement: Option<(String, usize)>,
    pub is_slow: bool,
    pub span: Option<SpanParent>,
    pub traced: Option<ResponseTrace>,
}

/// A request that has its answer.
pub(super) struct CompletedRequest {
    pub info: RequestInfo,
    pub answered: ReadyResponse,
    pub work: Work,
}

/// A request that is about to run.
pub(super) struct AdmittedRequest {
    pub info: RequestInfo,
    pub traced: Option<Box<RequestTrace>>,
    /// Where its span belongs, if it is sampled.
    pub span: Option<SpanParent>,
    pub work: Work,
    /// It takes long already to be read and parsed.
    pub is_long: bool,
}

impl AdmittedRequest {
    /// Returns one that leaves no trace.
    pub fn untraced(info: RequestInfo) -> AdmittedRequest {
        AdmittedRequest {
            info,
            traced: None,
            span: None,
            work: Work::default(),
            is_long: false,
        }
    }
}

/// A running request. One that has used up its connection's budget of steps goes on in a task of its own too; one that has more to
/// compute goes on aside. It resolves whatever happens inside: a panic becomes a server error.
pub(super) struct InFlightRequest {
    info: RequestInfo,
    long_requests: Arc<LongRequestPool>,
    state: RunState,
}

#[allow(clippy::large_enum_variant, reason = "most requests stay where they began")]
enum RunState {
    Inline(TrackedRequest),
    Moved(TaskHandle),
}

/// A request that has a task of its own.
struct TaskHandle {
    task: JoinHandle<(ReadyResponse, Work)>,
    is_left: Arc<AtomicBool>,
}

/// A request with what it has done so far and what it may take, both of which lie in the thread while it is polled.
struct TrackedRequest {
    work: Work,
    scope: Scope,
    answer: BoxFuture<'static, ReadyResponse>,
}

impl TrackedRequest {
    fn poll_at(&mut self, now: Instant, cx: &mut Context<'_>) -> Poll<(ReadyResponse, Work)> {
        self.scope.polled_at(now);
        self.work.swap();
        self.scope.swap();
        let polled = self.answer.as_mut().poll(cx);
        self.scope.swap();
        self.work.swap();
        polled.map(|mut answered| {
            answered.reserved = self.scope.take_reservation();
            (answered, self.work)
        })
    }

    /// Returns the request; nothing is left in its place.
    fn take(&mut self) -> TrackedRequest {
        let nothing = TrackedRequest {
            work: Work::default(),
            scope: Scope::default(),
            answer: Box::pin(std::future::pending()),
        };
        std::mem::replace(self, nothing)
    }

    /// Goes on with it in a task of its own: aside if it has more to compute.
    fn run_apart(mut self, long_requests: &Arc<LongRequestPool>) -> TaskHandle {
        let is_left = self.scope.left();
        if self.scope.has_more() {
            self.scope.go_aside();
        }
        let is_aside = self.scope.is_aside();
        let apart = |request| SpawnedRequest {
            request,
            long_requests: long_requests.clone(),
            is_aside,
            moved: None,
            busy: RunningLongRequest::new(long_requests.clone()),
        };
        let task = match is_aside {
            true => long_requests.spawn(apart(self)),
            false => tokio::spawn(apart(self)),
        };
        TaskHandle { task, is_left }
    }
}

/// A request in a task of its own.
struct SpawnedRequest {
    request: TrackedRequest,
    long_requests: Arc<LongRequestPool>,
    /// True on a thread that serves no socket.
    is_aside: bool,
    /// Where the request has gone on, having had more to compute than it should here.
    moved: Option<TaskHandle>,
    busy: RunningLongRequest,
}

impl Future for SpawnedRequest {
    type Output = (ReadyResponse, Work);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if this.moved.is_none() {
            let mut poll = || this.request.poll_at(Instant::now(), cx);
            let polled = match this.is_aside {
                true => poll(),
                false => stall::watch(poll),
            };
            // What could go on if it were allowed to computes; everything else waits for something.
            let has_more = this.request.scope.has_more();
            let is_busy = polled.is_pending() && (has_more || !coop::has_budget_remaining());
            this.busy.set(is_busy);
            if polled.is_ready() || !has_more || this.request.scope.is_aside() {
                return polled;
            }
            this.busy.set(false);
            this.moved = Some(this.request.take().run_apart(&this.long_requests));
        }
        match &mut this.moved {
            Some(moved) => moved.poll(cx),
            None => Poll::Pending,
        }
    }
}

impl TaskHandle {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(ReadyResponse, Work)> {
        let joined = Pin::new(&mut self.task).poll(cx);
        joined.map(|joined| joined.unwrap_or_else(|_| (broken(), Work::default())))
    }
}

/// A request that has been polled for the first time.
pub(super) enum StartOutcome {
    Done(CompletedRequest),
    Running(InFlightRequest),
}

impl InFlightRequest {
    /// Begins a request, aside if it is known to take long. `work` is what has been done for it already.
    pub fn begin(
        info: RequestInfo,
        work: Work,
        answer: impl Future<Output = ReadyResponse> + Send + 'static,
        long_requests: &Arc<LongRequestPool>,
        is_long: bool,
        cx: &mut Context<'_>,
    ) -> StartOutcome {
        let guarded = AssertUnwindSafe(answer).catch_unwind();
        let answer = Box::pin(guarded.map(|answered| answered.unwrap_or_else(|_| broken())));
        let mut request = TrackedRequest {
            work,
            scope: Scope::default(),
            answer,
        };
        let begun = match is_long {
            true => {
                request.scope.go_aside();
                PollOutcome::Moved(request.take().run_apart(long_requests))
            }
            false => poll_inline(&mut request, long_requests, cx),
        };
        let state = match begun {
            PollOutcome::Done((answered, work)) => {
                return StartOutcome::Done(CompletedRequest { info, answered, work });
            }
            PollOutcome::Waits => RunState::Inline(request),
            PollOutcome::Moved(moved) => RunState::Moved(moved),
        };
        StartOutcome::Running(InFlightRequest {
            info,
            long_requests: long_requests.clone(),
            state,
        })
    }

    /// Nobody waits for the answer any more: what computes for long, here or on another node, ends at its next checkpoint.
    pub fn abandon(&mut self) {
        let is_left = match &mut self.state {
            RunState::Inline(request) => request.scope.left(),
            RunState::Moved(moved) => moved.is_left.clone(),
        };
        is_left.store(true, Ordering::Relaxed);
    }

    fn done(&self, (answered, work): (ReadyResponse, Work)) -> CompletedRequest {
        CompletedRequest {
            info: self.info,
            answered,
            work,
        }
    }
}

/// Returns the panic itself is in the log, where the hook has put it.
fn broken() -> ReadyResponse {
    let message = "Internal error: the request could not be completed; see the server's log".to_owned();
    ReadyResponse {
        message: Response::Error(CqlError::Server(message)).into(),
        at: Instant::now(),
        notes: None,
        charge: None,
        encoded: None,
        reserved: None,
    }
}

/// What has become of a request that was polled in its connection's task.
#[expect(clippy::large_enum_variant, reason = "it is taken apart where it is returned")]
enum PollOutcome {
    Done((ReadyResponse, Work)),
    Waits,
    Moved(TaskHandle),
}

fn poll_inline(
    request: &mut TrackedRequest,
    long_requests: &Arc<LongRequestPool>,
    cx: &mut Context<'_>,
) -> PollOutcome {
    let before = Instant::now();
    if let Poll::Ready(answered) = request.poll_at(before, cx) {
        return PollOutcome::Done(answered);
    }
    let has_more = request.scope.has_more() || !coop::has_budget_remaining();
    match has_more || before.elapsed() >= POLL_MAX {
        true => PollOutcome::Moved(request.take().run_apart(long_requests)),
        false => PollOutcome::Waits,
    }
}

impl Future for InFlightRequest {
    type Output = CompletedRequest;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CompletedRequest> {
        if !coop::has_budget_remaining() {
            // Others have used it up; whatever is polled now could not go on.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let this = self.get_mut();
        if let RunState::Inline(request) = &mut this.state {
            match poll_inline(request, &this.long_requests, cx) {
                PollOutcome::Done(answered) => return Poll::Ready(this.done(answered)),
                PollOutcome::Waits => return Poll::Pending,
                PollOutcome::Moved(moved) => this.state = RunState::Moved(moved),
            }
        }
        let RunState::Moved(moved) = &mut this.state else {
            return Poll::Pending;
        };
        match moved.poll(cx) {
            Poll::Ready(answered) => Poll::Ready(this.done(answered)),
            Poll::Pending => Poll::Pending,
        }
    }
}
