//! A request that is being run.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use helenus_cql::error::CqlError;
use helenus_cql::frame::{ProtocolVersion, Response, ResponseMessage};
use helenus_query::client_memory::Charge;
use helenus_query::trace::Work;
use tokio::task::{JoinHandle, coop};

use super::traced::TracedAnswer;
use crate::breakdown::Arrival;
use crate::metrics::RequestKind;

/// A request that held the thread for longer than this at a stretch goes on in a task of its own, and so does one that has used up
/// its connection's budget of steps.
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

/// How many requests of the node have more to compute at this moment, of those with tasks of their own.
#[derive(Default)]
pub(crate) struct Busy(AtomicUsize);

impl Busy {
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// A running request. It resolves whatever happens inside: a panic becomes a server error.
pub(super) struct InFlight {
    ticket: Ticket,
    busy: Arc<Busy>,
    state: State,
}

enum State {
    Inline(Measured),
    Moved(JoinHandle<(Answered, Work)>),
}

/// A request and what it has done so far, which lies in the thread while it is polled.
struct Measured {
    work: Work,
    answer: BoxFuture<'static, Answered>,
}

impl Future for Measured {
    type Output = (Answered, Work);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.work.swap();
        let polled = self.answer.as_mut().poll(cx);
        self.work.swap();
        polled.map(|answered| (answered, self.work))
    }
}

/// A request in a task of its own.
struct Apart {
    request: Measured,
    busy: Arc<Busy>,
    is_busy: bool,
}

impl Apart {
    fn new(request: Measured, busy: Arc<Busy>, is_busy: bool) -> Apart {
        let mut apart = Apart {
            request,
            busy,
            is_busy: false,
        };
        apart.set_busy(is_busy);
        apart
    }

    fn set_busy(&mut self, is_busy: bool) {
        match (self.is_busy, is_busy) {
            (false, true) => self.busy.0.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.busy.0.fetch_sub(1, Ordering::Relaxed),
            _ => return,
        };
        self.is_busy = is_busy;
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.set_busy(false);
    }
}

impl Future for Apart {
    type Output = (Answered, Work);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = Pin::new(&mut self.request).poll(cx);
        // What could go on if it were allowed to computes; everything else waits for something.
        let is_busy = polled.is_pending() && !coop::has_budget_remaining();
        self.set_busy(is_busy);
        polled
    }
}

/// A request that has been polled for the first time.
pub(super) enum Begun {
    Done(Done),
    Running(InFlight),
}

impl InFlight {
    /// Begins a request. `work` is what has been done for it already.
    pub fn begin(
        ticket: Ticket,
        work: Work,
        answer: impl Future<Output = Answered> + Send + 'static,
        busy: &Arc<Busy>,
        cx: &mut Context<'_>,
    ) -> Begun {
        let guarded = AssertUnwindSafe(answer).catch_unwind();
        let answer = Box::pin(async move { guarded.await.unwrap_or_else(|_| broken()) });
        let mut request = Measured { work, answer };
        let state = match poll_inline(&mut request, busy, cx) {
            Inline::Done((answered, work)) => {
                return Begun::Done(Done {
                    ticket,
                    answered,
                    work,
                });
            }
            Inline::Waits => State::Inline(request),
            Inline::Moved(task) => State::Moved(task),
        };
        Begun::Running(InFlight {
            ticket,
            busy: busy.clone(),
            state,
        })
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
    }
}

/// What has become of a request that was polled in its connection's task.
#[expect(clippy::large_enum_variant, reason = "it is taken apart where it is returned")]
enum Inline {
    Done((Answered, Work)),
    Waits,
    Moved(JoinHandle<(Answered, Work)>),
}

fn poll_inline(request: &mut Measured, busy: &Arc<Busy>, cx: &mut Context<'_>) -> Inline {
    let before = Instant::now();
    if let Poll::Ready(answered) = Pin::new(&mut *request).poll(cx) {
        return Inline::Done(answered);
    }
    let is_busy = !coop::has_budget_remaining();
    if !is_busy && before.elapsed() < POLL_MAX {
        return Inline::Waits;
    }
    let nothing = Measured {
        work: Work::default(),
        answer: Box::pin(std::future::pending()),
    };
    let request = std::mem::replace(request, nothing);
    Inline::Moved(tokio::spawn(Apart::new(request, busy.clone(), is_busy)))
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
            match poll_inline(request, &this.busy, cx) {
                Inline::Done(answered) => return Poll::Ready(this.done(answered)),
                Inline::Waits => return Poll::Pending,
                Inline::Moved(task) => this.state = State::Moved(task),
            }
        }
        let State::Moved(task) = &mut this.state else {
            return Poll::Pending;
        };
        match Pin::new(task).poll(cx) {
            Poll::Ready(joined) => {
                let answered = joined.unwrap_or_else(|_| (broken(), Work::default()));
                Poll::Ready(this.done(answered))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}
