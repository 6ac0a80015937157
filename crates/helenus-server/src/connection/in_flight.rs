//! A request that is being run.

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

use super::traced::TracedAnswer;
use crate::aside::{Aside, BusyRequest};
use crate::breakdown::Arrival;
use crate::metrics::RequestKind;

/// A request that held the thread for longer than this at a stretch goes on in a task of its own.
const POLL_MAX: Duration = Duration::from_millis(1);

/// What is known of a request while it runs.
#[derive(Clone, Copy)]
pub(super) struct Ticket {
    pub version: ProtocolVersion,
    pub stream: i16,
    pub kind: RequestKind,
    pub cost_bytes: usize,
    pub arrival: Arrival,
}

/// An answer.
pub(super) struct Answered {
    pub message: ResponseMessage,
    /// When it was ready.
    pub at: Instant,
    pub remarks: Option<Box<Remarks>>,
    /// What it takes until it is encoded, if that is much.
    pub charge: Option<Charge>,
    /// A long answer as it is to be sent; `message` has the rest.
    pub encoded: Option<BytesMut>,
    /// The memory that it takes until it has been sent.
    pub reserved: Option<Reservation>,
}

/// What is to be told of a request when its answer has left.
#[derive(Default)]
pub(super) struct Remarks {
    /// The statement and how many values it had, if the request was slow.
    pub slow: Option<(String, usize)>,
    pub traced: Option<TracedAnswer>,
}

/// A request that has its answer.
pub(super) struct Done {
    pub ticket: Ticket,
    pub answered: Answered,
    pub work: Work,
}

/// A running request. One that has used up its connection's budget of steps goes on in a task of its own too; one that has more to
/// compute goes on aside. It resolves whatever happens inside: a panic becomes a server error.
pub(super) struct InFlight {
    ticket: Ticket,
    aside: Arc<Aside>,
    /// Its client has gone.
    is_left: bool,
    state: State,
}

#[allow(clippy::large_enum_variant, reason = "most requests stay where they began")]
enum State {
    Inline(Measured),
    Moved(Moved),
}

/// A request that has a task of its own.
struct Moved {
    task: JoinHandle<(Answered, Work)>,
    is_left: Arc<AtomicBool>,
}

/// A request with what it has done so far and what it may take, both of which lie in the thread while it is polled.
struct Measured {
    work: Work,
    scope: Scope,
    answer: BoxFuture<'static, Answered>,
}

impl Measured {
    fn poll_at(&mut self, now: Instant, cx: &mut Context<'_>) -> Poll<(Answered, Work)> {
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

    /// The request; nothing is left in its place.
    fn take(&mut self) -> Measured {
        let nothing = Measured {
            work: Work::default(),
            scope: Scope::default(),
            answer: Box::pin(std::future::pending()),
        };
        std::mem::replace(self, nothing)
    }

    /// Goes on with it in a task of its own: aside if it has more to compute.
    fn run_apart(mut self, aside: &Arc<Aside>) -> Moved {
        let is_left = self.scope.left();
        let apart = |request| Apart {
            request,
            aside: aside.clone(),
            moved: None,
            busy: BusyRequest::new(aside.clone()),
        };
        if self.scope.has_more() {
            self.scope.go_aside();
        }
        let task = match self.scope.is_aside() {
            true => aside.spawn(apart(self)),
            false => tokio::spawn(apart(self)),
        };
        Moved { task, is_left }
    }
}

/// A request in a task of its own.
struct Apart {
    request: Measured,
    aside: Arc<Aside>,
    /// Where the request has gone on, having had more to compute than it should here.
    moved: Option<Moved>,
    busy: BusyRequest,
}

impl Future for Apart {
    type Output = (Answered, Work);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if this.moved.is_none() {
            let polled = this.request.poll_at(Instant::now(), cx);
            // What could go on if it were allowed to computes; everything else waits for something.
            let has_more = this.request.scope.has_more();
            let is_busy = polled.is_pending() && (has_more || !coop::has_budget_remaining());
            this.busy.set(is_busy);
            if polled.is_ready() || !has_more || this.request.scope.is_aside() {
                return polled;
            }
            this.busy.set(false);
            this.moved = Some(this.request.take().run_apart(&this.aside));
        }
        match &mut this.moved {
            Some(moved) => moved.poll(cx),
            None => Poll::Pending,
        }
    }
}

impl Moved {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(Answered, Work)> {
        let joined = Pin::new(&mut self.task).poll(cx);
        joined.map(|joined| joined.unwrap_or_else(|_| (broken(), Work::default())))
    }
}

/// A request that has been polled for the first time.
pub(super) enum Begun {
    Done(Done),
    Running(InFlight),
}

impl InFlight {
    /// Begins a request, aside if it is known to take long. `work` is what has been done for it already.
    pub fn begin(
        ticket: Ticket,
        work: Work,
        answer: impl Future<Output = Answered> + Send + 'static,
        aside: &Arc<Aside>,
        is_long: bool,
        cx: &mut Context<'_>,
    ) -> Begun {
        let guarded = AssertUnwindSafe(answer).catch_unwind();
        let answer = Box::pin(async move { guarded.await.unwrap_or_else(|_| broken()) });
        let mut request = Measured {
            work,
            scope: Scope::default(),
            answer,
        };
        let begun = match is_long {
            true => {
                request.scope.go_aside();
                Inline::Moved(request.take().run_apart(aside))
            }
            false => poll_inline(&mut request, aside, cx),
        };
        let state = match begun {
            Inline::Done((answered, work)) => {
                return Begun::Done(Done {
                    ticket,
                    answered,
                    work,
                });
            }
            Inline::Waits => State::Inline(request),
            Inline::Moved(moved) => State::Moved(moved),
        };
        Begun::Running(InFlight {
            ticket,
            aside: aside.clone(),
            is_left: false,
            state,
        })
    }

    /// Nobody waits for the answer any more: if it computes for long it ends at its next checkpoint.
    pub fn abandon(&mut self) {
        self.is_left = true;
        if let State::Moved(moved) = &self.state {
            moved.is_left.store(true, Ordering::Relaxed);
        }
    }

    fn done(&self, (answered, work): (Answered, Work)) -> Done {
        Done {
            ticket: self.ticket,
            answered,
            work,
        }
    }
}

/// The panic itself is in the log, where the hook has put it.
fn broken() -> Answered {
    let message = "Internal error: the request could not be completed; see the server's log".to_owned();
    Answered {
        message: Response::Error(CqlError::Server(message)).into(),
        at: Instant::now(),
        remarks: None,
        charge: None,
        encoded: None,
        reserved: None,
    }
}

/// What has become of a request that was polled in its connection's task.
#[expect(clippy::large_enum_variant, reason = "it is taken apart where it is returned")]
enum Inline {
    Done((Answered, Work)),
    Waits,
    Moved(Moved),
}

fn poll_inline(request: &mut Measured, aside: &Arc<Aside>, cx: &mut Context<'_>) -> Inline {
    let before = Instant::now();
    if let Poll::Ready(answered) = request.poll_at(before, cx) {
        return Inline::Done(answered);
    }
    let has_more = request.scope.has_more() || !coop::has_budget_remaining();
    match has_more || before.elapsed() >= POLL_MAX {
        true => Inline::Moved(request.take().run_apart(aside)),
        false => Inline::Waits,
    }
}

impl Future for InFlight {
    type Output = Done;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Done> {
        if !coop::has_budget_remaining() {
            // Others have used it up; whatever is polled now could not go on.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let this = self.get_mut();
        if let State::Inline(request) = &mut this.state {
            match poll_inline(request, &this.aside, cx) {
                Inline::Done(answered) => return Poll::Ready(this.done(answered)),
                Inline::Waits => return Poll::Pending,
                Inline::Moved(moved) => {
                    moved.is_left.store(this.is_left, Ordering::Relaxed);
                    this.state = State::Moved(moved);
                }
            }
        }
        let State::Moved(moved) = &mut this.state else {
            return Poll::Pending;
        };
        match moved.poll(cx) {
            Poll::Ready(answered) => Poll::Ready(this.done(answered)),
            Poll::Pending => Poll::Pending,
        }
    }
}
