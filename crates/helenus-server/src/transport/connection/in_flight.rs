//! A running request. It is first polled in its connection's task, and moves to a task of its own if it computes for long.

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
use helenus_query::measurement::RequestMeasurement;
use tokio::task::{JoinHandle, coop};

use super::traced::{RequestTrace, ResponseTrace};
use crate::metrics::RequestKind;
use crate::metrics::stage_times::Arrival;
use crate::spans::SpanParent;
use crate::threads::long_requests::{LongRequestPool, RunningLongRequest};
use crate::threads::stall;

/// Time of one poll above which a request moves to a task of its own.
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
    /// Time at which the response was ready.
    pub at: Instant,
    pub notes: Option<Box<ResponseNotes>>,
    /// Memory counted for the response until it is encoded. `None` if the response is small.
    pub charge: Option<Charge>,
    /// The encoded bytes of a long response. `message` then has only the other parts of the response.
    pub encoded: Option<BytesMut>,
    /// Memory reserved for the response until it has been sent.
    pub reserved: Option<Reservation>,
}

/// Facts for the slow log, spans and traces, which are written when the response has been sent.
#[derive(Default)]
pub(super) struct ResponseNotes {
    /// The statement and the number of its values. `None` if the request was neither slow nor sampled.
    pub statement: Option<(String, usize)>,
    pub is_slow: bool,
    pub span: Option<SpanParent>,
    pub traced: Option<ResponseTrace>,
}

/// A request whose response is ready.
pub(super) struct CompletedRequest {
    pub info: RequestInfo,
    pub answered: ReadyResponse,
    pub measurement: RequestMeasurement,
}

/// A request that is about to run.
pub(super) struct AdmittedRequest {
    pub info: RequestInfo,
    pub traced: Option<Box<RequestTrace>>,
    /// The parent of the request's span. `None` if the request is not sampled.
    pub span: Option<SpanParent>,
    pub measurement: RequestMeasurement,
    /// True if even reading and parsing the request takes long.
    pub is_long: bool,
}

impl AdmittedRequest {
    /// Returns a request without a trace and a span.
    pub fn untraced(info: RequestInfo) -> AdmittedRequest {
        AdmittedRequest {
            info,
            traced: None,
            span: None,
            measurement: RequestMeasurement::default(),
            is_long: false,
        }
    }
}

/// A running request. It moves to a task of its own if it computes for long or has used up its connection's budget of steps. It moves to
/// the pool of long requests if it yields with more to compute. It always resolves: a panic becomes a server error.
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

/// Handle to a request that has a task of its own.
struct TaskHandle {
    task: JoinHandle<(ReadyResponse, RequestMeasurement)>,
    is_left: Arc<AtomicBool>,
}

/// A request with its record and its scope. Both are swapped into thread-local variables while it is polled.
struct TrackedRequest {
    measurement: RequestMeasurement,
    scope: Scope,
    answer: BoxFuture<'static, ReadyResponse>,
}

impl TrackedRequest {
    fn poll_at(&mut self, now: Instant, cx: &mut Context<'_>) -> Poll<(ReadyResponse, RequestMeasurement)> {
        self.scope.polled_at(now);
        self.measurement.swap();
        self.scope.swap();
        let polled = self.answer.as_mut().poll(cx);
        self.scope.swap();
        self.measurement.swap();
        polled.map(|mut answered| {
            answered.reserved = self.scope.take_reservation();
            (answered, self.measurement)
        })
    }

    /// Takes the request out and leaves an empty one.
    fn take(&mut self) -> TrackedRequest {
        let nothing = TrackedRequest {
            measurement: RequestMeasurement::default(),
            scope: Scope::default(),
            answer: Box::pin(std::future::pending()),
        };
        std::mem::replace(self, nothing)
    }

    /// Moves the request to a task of its own. The task is in the pool of long requests if the request has more to compute.
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

/// The future of a request that has a task of its own.
struct SpawnedRequest {
    request: TrackedRequest,
    long_requests: Arc<LongRequestPool>,
    /// True if the task runs in the pool of long requests.
    is_aside: bool,
    /// The request's task in the pool of long requests. `None` if the request still runs in this task.
    moved: Option<TaskHandle>,
    busy: RunningLongRequest,
}

impl Future for SpawnedRequest {
    type Output = (ReadyResponse, RequestMeasurement);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if this.moved.is_none() {
            let mut poll = || this.request.poll_at(Instant::now(), cx);
            let polled = match this.is_aside {
                true => poll(),
                false => stall::watch(poll),
            };
            // A pending request computes if it yielded voluntarily or for lack of budget. Otherwise it waits for something.
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
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(ReadyResponse, RequestMeasurement)> {
        let joined = Pin::new(&mut self.task).poll(cx);
        joined.map(|joined| joined.unwrap_or_else(|_| (broken(), RequestMeasurement::default())))
    }
}

/// The result of the first poll of a request.
pub(super) enum StartOutcome {
    Done(CompletedRequest),
    Running(InFlightRequest),
}

impl InFlightRequest {
    /// Begins a request. It begins in the pool of long requests if it `is_long`. `measurement` is its record so far.
    pub fn begin(
        info: RequestInfo,
        measurement: RequestMeasurement,
        answer: impl Future<Output = ReadyResponse> + Send + 'static,
        long_requests: &Arc<LongRequestPool>,
        is_long: bool,
        cx: &mut Context<'_>,
    ) -> StartOutcome {
        let guarded = AssertUnwindSafe(answer).catch_unwind();
        let answer = Box::pin(guarded.map(|answered| answered.unwrap_or_else(|_| broken())));
        let mut request = TrackedRequest {
            measurement,
            scope: Scope::default(),
            answer,
        };
        let begun = match is_long {
            true => {
                request.scope.go_aside();
                PollOutcome::Moved(request.take().run_apart(long_requests))
            }
            // The request was decoded in the same stretch, so the reading of the clock that began it serves here too.
            false => poll_inline(&mut request, long_requests, info.arrival.begun, cx),
        };
        let state = match begun {
            PollOutcome::Done((answered, measurement)) => {
                return StartOutcome::Done(CompletedRequest {
                    info,
                    answered,
                    measurement,
                });
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

    /// Records that no client waits for the response any more. A long computation, here or on another node, ends at its next checkpoint.
    pub fn abandon(&mut self) {
        let is_left = match &mut self.state {
            RunState::Inline(request) => request.scope.left(),
            RunState::Moved(moved) => moved.is_left.clone(),
        };
        is_left.store(true, Ordering::Relaxed);
    }

    fn done(&self, (answered, measurement): (ReadyResponse, RequestMeasurement)) -> CompletedRequest {
        CompletedRequest {
            info: self.info,
            answered,
            measurement,
        }
    }
}

/// Returns the response to a request that panicked. The panic hook has written the panic to the log.
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

/// The result of a poll in the connection's task.
#[expect(clippy::large_enum_variant, reason = "it is taken apart where it is returned")]
enum PollOutcome {
    Done((ReadyResponse, RequestMeasurement)),
    Waits,
    Moved(TaskHandle),
}

/// Polls a request in the connection's task. `before` is the time at which this stretch of its work began.
fn poll_inline(
    request: &mut TrackedRequest,
    long_requests: &Arc<LongRequestPool>,
    before: Instant,
    cx: &mut Context<'_>,
) -> PollOutcome {
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
            // Other requests have used up the budget, so that a poll of this one would make no progress.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let this = self.get_mut();
        if let RunState::Inline(request) = &mut this.state {
            match poll_inline(request, &this.long_requests, Instant::now(), cx) {
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
