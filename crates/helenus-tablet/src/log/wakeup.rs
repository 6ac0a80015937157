//! Wakes the log thread, or the task that replaces it in a simulation.

use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

use crate::threads::is_stepped;

/// Notification of the log thread by writers. Only one thread waits.
pub(super) enum Wakeup {
    /// The waiting thread sleeps. Unlike a runtime's timer, this ends waits within microseconds.
    Thread(Condvar),
    /// The waiting task is polled again.
    Task(Notify),
}

impl Wakeup {
    pub fn new() -> Wakeup {
        match is_stepped() {
            true => Wakeup::Task(Notify::new()),
            false => Wakeup::Thread(Condvar::new()),
        }
    }

    /// Wakes the waiting thread, which checks its condition again.
    pub fn wake(&self) {
        match self {
            Wakeup::Thread(condvar) => {
                condvar.notify_one();
            }
            Wakeup::Task(notify) => notify.notify_one(),
        }
    }

    /// Waits until `is_ready` returns true.
    pub async fn wait<T>(&self, shared: &Mutex<T>, mut is_ready: impl FnMut(&mut T) -> bool) {
        match self {
            Wakeup::Thread(condvar) => condvar.wait_while(&mut shared.lock(), |state| !is_ready(state)),
            Wakeup::Task(notify) => {
                while !is_ready(&mut shared.lock()) {
                    notify.notified().await;
                }
            }
        }
    }

    /// Waits until `is_ready` returns true, or until that time.
    pub async fn wait_until<T>(
        &self,
        shared: &Mutex<T>,
        mut is_ready: impl FnMut(&mut T) -> bool + Send,
        until: Instant,
    ) {
        match self {
            Wakeup::Thread(condvar) => {
                condvar.wait_while_until(&mut shared.lock(), |state| !is_ready(state), until);
            }
            Wakeup::Task(_) => {
                let _ = tokio::time::timeout_at(until.into(), Box::pin(self.wait(shared, is_ready))).await;
            }
        }
    }
}
