//! The times of a connection: its time slice on a thread, and the deadlines of a silent client.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;
use std::time::{Duration, Instant};

use tokio::time::Sleep;

use super::{Connection, LINGER};
use crate::transport::Backend;

/// Minimum time since the last request before the connection of a stopping node is closed.
const QUIET: Duration = Duration::from_millis(20);

/// The deadlines after which a silent client is disconnected.
pub(super) struct Timers {
    /// Timer for the login deadline, and then for the idle timeout.
    pub deadline: Pin<Box<Sleep>>,
    /// Time at which a client that has not logged in is disconnected.
    pub login_deadline: Instant,
    /// Time at which the last request began.
    pub last_request: Instant,
}

impl Timers {
    pub fn new(login_deadline: Instant) -> Timers {
        Timers {
            deadline: Box::pin(tokio::time::sleep_until(login_deadline.into())),
            login_deadline,
            last_request: Instant::now(),
        }
    }
}

/// The time for which a connection is served before other connections get their turn.
#[derive(Default)]
pub(super) struct TimeSlice {
    /// End of the slice. `None` if nothing was served in it yet.
    pub end: Option<Instant>,
    pub is_over: bool,
}

impl<B: Backend> Connection<B> {
    /// Returns true if the client has sent no request for a moment. A request that is on its way when the connection closes gets no
    /// response. Most requests are sent as soon as the previous one is answered, so that waiting a moment avoids this.
    pub(super) fn is_quiet(&mut self, cx: &mut Context<'_>) -> bool {
        let quiet_at = self.timers.last_request + QUIET;
        if quiet_at <= Instant::now() {
            return true;
        }
        self.timers.deadline.as_mut().reset(quiet_at.into());
        self.timers.deadline.as_mut().poll(cx).is_ready()
    }

    /// Closes a connection that has been idle for too long. Wakes the task when the login deadline has passed.
    pub(super) fn check_deadline(&mut self, cx: &mut Context<'_>) {
        if !self.session.state.is_ready() {
            if self.timers.deadline.as_mut().poll(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
            return;
        }
        let Some(idle_timeout) = self.server.config.idle_timeout else {
            return;
        };
        while !self.lifecycle.is_closing() && self.timers.deadline.as_mut().poll(cx).is_ready() {
            let expires = self.timers.last_request + idle_timeout;
            if expires <= Instant::now() && self.running_count() == 0 {
                self.lifecycle.close();
            } else {
                let again = expires.max(Instant::now() + LINGER);
                self.timers.deadline.as_mut().reset(again.into());
            }
        }
    }
}
