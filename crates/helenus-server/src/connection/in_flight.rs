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
use tokio::task::JoinHandle;

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
    pub began: Instant,
}

/// A request that has its answer.
pub(super) struct Done {
    pub version: ProtocolVersion,
    pub stream: i16,
    pub kind: RequestKind,
    pub cost_bytes: usize,
    pub began: Instant,
    pub message: ResponseMessage,
}

/// A running request. It resolves whatever happens inside: a panic becomes a server error.
pub(super) struct InFlight {
    ticket: Ticket,
    state: State,
}

enum State {
    Inline(BoxFuture<'static, ResponseMessage>),
    Moved(JoinHandle<ResponseMessage>),
}

impl InFlight {
    pub fn new(ticket: Ticket, answer: impl Future<Output = ResponseMessage> + Send + 'static) -> InFlight {
        let guarded = AssertUnwindSafe(answer).catch_unwind();
        let answer = async move { guarded.await.unwrap_or_else(|_| broken()) };
        InFlight {
            ticket,
            state: State::Inline(Box::pin(answer)),
        }
    }

    fn done(&self, message: ResponseMessage) -> Done {
        let Ticket {
            version,
            stream,
            kind,
            cost_bytes,
            began,
        } = self.ticket;
        Done {
            version,
            stream,
            kind,
            cost_bytes,
            began,
            message,
        }
    }
}

/// The panic itself is in the log, where the hook has put it.
fn broken() -> ResponseMessage {
    let message = "Internal error: the request could not be completed; see the server's log".to_owned();
    Response::Error(CqlError::Server(message)).into()
}

impl Future for InFlight {
    type Output = Done;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Done> {
        if let State::Inline(answer) = &mut self.state {
            let before = Instant::now();
            if let Poll::Ready(message) = answer.as_mut().poll(cx) {
                return Poll::Ready(self.done(message));
            }
            if before.elapsed() < POLL_MAX {
                return Poll::Pending;
            }
            let answer = std::mem::replace(answer, Box::pin(std::future::pending()));
            self.state = State::Moved(tokio::spawn(answer));
        }
        let State::Moved(task) = &mut self.state else {
            return Poll::Pending;
        };
        match Pin::new(task).poll(cx) {
            Poll::Ready(joined) => Poll::Ready(self.done(joined.unwrap_or_else(|_| broken()))),
            Poll::Pending => Poll::Pending,
        }
    }
}
