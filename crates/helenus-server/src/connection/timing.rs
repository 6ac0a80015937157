//! The times of a connection: its slice of a thread, and when a silent client is cut off.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;
use std::time::{Duration, Instant};

use tokio::time::Sleep;

use super::{Connection, LINGER};
use crate::backend::Backend;

/// How long a client must have asked nothing for its connection to be ended because the node stops.
const QUIET: Duration = Duration::from_millis(20);

/// When a silent client is cut off.
pub(super) struct Timers {
    /// Fires at the login deadline, then at the end of the idle time.
    pub deadline: Pin<Box<Sleep>>,
    /// A client that has not logged in by then is cut off.
    pub login_deadline: Instant,
    /// When the last request was begun.
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

/// The time that a connection serves before others get their turn.
#[derive(Default)]
pub(super) struct TimeSlice {
    /// None while nothing was served in this slice.
    pub end: Option<Instant>,
    pub is_over: bool,
}

impl<B: Backend> Connection<B> {
    /// Returns true if the client has asked nothing for a moment: a request that is on its way when the connection ends has no answer, and
    /// most are sent as soon as the one before is answered.
    pub(super) fn is_quiet(&mut self, cx: &mut Context<'_>) -> bool {
        let quiet_at = self.timers.last_request + QUIET;
        if quiet_at <= Instant::now() {
            return true;
        }
        self.timers.deadline.as_mut().reset(quiet_at.into());
        self.timers.deadline.as_mut().poll(cx).is_ready()
    }

    /// Ends a connection that has been silent for too long, and looks again when one must have logged in.
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
            if expires <= Instant::now() && self.running.requests.is_empty() {
                self.lifecycle.close();
            } else {
                let again = expires.max(Instant::now() + LINGER);
                self.timers.deadline.as_mut().reset(again.into());
            }
        }
    }
}
