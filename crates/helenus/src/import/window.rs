//! The gate through which senders pass: it limits the batches in flight and the bytes a second.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::args::Rate;
use super::pace::Adaptive;
use crate::token_bucket::TokenBucket;

/// Batches in flight at a fixed rate.
const IN_FLIGHT_FIXED: usize = 8;
/// Maximum time between two checks for the end of the import.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The gate, which all senders share.
pub struct Window {
    started: Instant,
    state: Mutex<State>,
    left: Condvar,
}

struct State {
    in_flight: usize,
    pace: Pace,
}

enum Pace {
    Adaptive(Adaptive),
    Fixed(TokenBucket),
}

impl Window {
    pub fn new(rate: Rate, senders: usize) -> Window {
        let pace = match rate {
            Rate::Adaptive => Pace::Adaptive(Adaptive::new(senders)),
            Rate::Fixed(bytes_per_s) => Pace::Fixed(TokenBucket::new(bytes_per_s)),
        };
        Window {
            started: Instant::now(),
            state: Mutex::new(State { in_flight: 0, pace }),
            left: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until another batch may be in flight. Returns false if `is_over` becomes true first.
    pub fn enter(&self, is_over: impl Fn() -> bool) -> bool {
        let mut state = self.lock();
        loop {
            if is_over() {
                return false;
            }
            let limit = match &state.pace {
                Pace::Adaptive(adaptive) => adaptive.limit(),
                Pace::Fixed(_) => IN_FLIGHT_FIXED,
            };
            if state.in_flight < limit {
                state.in_flight += 1;
                return true;
            }
            let waited = self.left.wait_timeout(state, CHECK_INTERVAL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns the time to wait before a blob is sent.
    pub fn delay(&self, bytes: usize) -> Duration {
        let now = self.started.elapsed();
        match &mut self.lock().pace {
            Pace::Adaptive(_) => Duration::ZERO,
            Pace::Fixed(bucket) => bucket.take(bytes, now),
        }
    }

    /// Notes the time of an acknowledgement.
    pub fn acknowledged(&self, time: Duration) {
        let now = self.started.elapsed();
        if let Pace::Adaptive(adaptive) = &mut self.lock().pace {
            adaptive.acknowledged(time, now);
        }
    }

    /// Notes an overload or a timeout.
    pub fn overloaded(&self) {
        let now = self.started.elapsed();
        if let Pace::Adaptive(adaptive) = &mut self.lock().pace {
            adaptive.overloaded(now);
        }
    }

    /// Ends the flight of a batch.
    pub fn leave(&self) {
        let mut state = self.lock();
        state.in_flight = state.in_flight.saturating_sub(1);
        drop(state);
        self.left.notify_one();
    }
}
