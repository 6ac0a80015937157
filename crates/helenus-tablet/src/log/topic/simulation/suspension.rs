//! Pauses of a process, as caused by SIGSTOP: other processes continue, and its own timers expire meanwhile.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, Sleep};

/// End of a process's suspension. `None` if it was never suspended.
#[derive(Clone, Default)]
pub(super) struct Suspension(Arc<Mutex<Option<Instant>>>);

impl Suspension {
    pub fn suspend_for(&self, duration: Duration) {
        *self.0.lock() = Some(Instant::now() + duration);
    }

    /// Wraps the process's task, so that it can be suspended.
    pub fn of<F: Future<Output = ()>>(self, task: F) -> Suspended<F> {
        Suspended {
            suspension: self,
            task: Box::pin(task),
            timer: Box::pin(tokio::time::sleep(Duration::ZERO)),
        }
    }
}

pub(super) struct Suspended<F> {
    suspension: Suspension,
    task: Pin<Box<F>>,
    timer: Pin<Box<Sleep>>,
}

impl<F: Future<Output = ()>> Future for Suspended<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let until = *self.suspension.0.lock();
        if let Some(until) = until.filter(|until| *until > Instant::now()) {
            self.timer.as_mut().reset(until);
            if self.timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
        self.task.as_mut().poll(context)
    }
}
