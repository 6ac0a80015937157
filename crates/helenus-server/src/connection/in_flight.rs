//! A request that is being run.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use helenus_cql::error::CqlError;
use helenus_cql::frame::{ProtocolVersion, Response, ResponseMessage};
use helenus_query::trace::Work;
use tokio::task::JoinHandle;

use super::traced::TracedAnswer;
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

/// A running request. It resolves whatever happens inside: a panic becomes a server error.
pub(super) struct InFlight {
    ticket: Ticket,
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

impl InFlight {
    /// `work` is what has been done for the request already.
    pub fn new(
        ticket: Ticket,
        work: Work,
        answer: impl Future<Output = Answered> + Send + 'static,
    ) -> InFlight {
        let guarded = AssertUnwindSafe(answer).catch_unwind();
        let answer = Box::pin(async move { guarded.await.unwrap_or_else(|_| broken()) });
        InFlight {
            ticket,
            state: State::Inline(Measured { work, answer }),
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
    }
}

impl Future for InFlight {
    type Output = Done;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Done> {
        if let State::Inline(request) = &mut self.state {
            let before = Instant::now();
            if let Poll::Ready(answered) = Pin::new(&mut *request).poll(cx) {
                return Poll::Ready(self.done(answered));
            }
            if before.elapsed() < POLL_MAX {
                return Poll::Pending;
            }
            let nothing = Measured {
                work: Work::default(),
                answer: Box::pin(std::future::pending()),
            };
            let request = std::mem::replace(request, nothing);
            self.state = State::Moved(tokio::spawn(request));
        }
        let State::Moved(task) = &mut self.state else {
            return Poll::Pending;
        };
        match Pin::new(task).poll(cx) {
            Poll::Ready(joined) => {
                let answered = joined.unwrap_or_else(|_| (broken(), Work::default()));
                Poll::Ready(self.done(answered))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}
