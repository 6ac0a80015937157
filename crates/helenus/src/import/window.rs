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
    /// Time of the next batch, if the pace has a pause.
    next_at: Option<Instant>,
}

enum Pace {
    Adaptive(Adaptive),
    Fixed(TokenBucket),
}

impl Window {
    /// Creates the gate of that many senders to a number of nodes.
    pub fn new(rate: Rate, senders: usize, nodes: usize) -> Window {
        let pace = match rate {
            Rate::Adaptive => Pace::Adaptive(Adaptive::new(senders, nodes)),
            Rate::Fixed(bytes_per_s) => Pace::Fixed(TokenBucket::new(bytes_per_s)),
        };
        Window {
            started: Instant::now(),
            state: Mutex::new(State {
                in_flight: 0,
                pace,
                next_at: None,
            }),
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
            let pause = state
                .next_at
                .map(|at| at.saturating_duration_since(Instant::now()));
            let pause = pause.filter(|pause| !pause.is_zero());
            if state.in_flight < limit && pause.is_none() {
                state.in_flight += 1;
                return true;
            }
            let longest = pause.unwrap_or(CHECK_INTERVAL).min(CHECK_INTERVAL);
            let waited = self.left.wait_timeout(state, longest);
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
        let state = &mut *self.lock();
        if let Pace::Adaptive(adaptive) = &mut state.pace {
            adaptive.acknowledged(time, now);
            state.next_at = Some(Instant::now() + adaptive.pause(time));
        }
    }

    /// Returns true if the pace depends on the times of probes.
    pub fn needs_probes(&self) -> bool {
        matches!(self.lock().pace, Pace::Adaptive(_))
    }

    /// Notes the time of a probe of a node.
    pub fn probed(&self, node: usize, time: Duration) {
        let now = self.started.elapsed();
        if let Pace::Adaptive(adaptive) = &mut self.lock().pace {
            adaptive.probed(node, time, now);
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
