//! Stalls: polls that compute for long on a thread that serves sockets. All other connections of the thread wait meanwhile.
//!
//! A stall is measured in CPU time, so that losing the core to another process does not count as a stall. Reading the CPU clock is a system
//! call. It is read at most once a millisecond before a poll. After a poll it is only read if the wall clock says that the poll was long.
#![allow(clippy::disallowed_methods, reason = "measures the CPU time of real threads")]

use std::cell::Cell;
use std::time::{Duration, Instant};

use metrics::histogram;
use rustix::time::{ClockId, clock_gettime};

pub(crate) const STALL_DURATION: &str = "helenus_stall_seconds";
/// CPU time of a poll from which on it is a stall. Code without optimisation takes about ten times as long.
const STALL_MIN: Duration = Duration::from_millis(if cfg!(debug_assertions) { 250 } else { 25 });
/// Maximum age of the CPU time that was read before a poll. A stall is measured too long by this much at most.
const READING_AGE_MAX: Duration = Duration::from_millis(1);

/// CPU time of a thread, and the time at which it was read.
#[derive(Clone, Copy)]
struct Reading {
    at: Instant,
    cpu: Duration,
}

thread_local! {
    /// Latest reading on this thread. `None` before the first.
    static LAST: Cell<Option<Reading>> = const { Cell::new(None) };
}

/// Registers the metric, so that it is shown before the first stall.
pub(crate) fn register() {
    let _ = histogram!(STALL_DURATION);
}

/// Runs a poll on a thread that serves sockets, and records it if it is a stall.
pub(crate) fn watch<T>(poll: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let before = recent_reading(began);
    let polled = poll();
    if began.elapsed() >= STALL_MIN {
        let took = read(Instant::now()).cpu.saturating_sub(before.cpu);
        if took >= STALL_MIN {
            histogram!(STALL_DURATION).record(took);
        }
    }
    polled
}

/// Returns a reading of the thread's CPU time that is younger than `READING_AGE_MAX`.
fn recent_reading(now: Instant) -> Reading {
    match LAST.get() {
        Some(last) if now.saturating_duration_since(last.at) < READING_AGE_MAX => last,
        _ => read(now),
    }
}

fn read(now: Instant) -> Reading {
    let cpu = clock_gettime(ClockId::ThreadCPUTime);
    // The conversion cannot fail, because neither part is negative on this clock.
    let cpu = Duration::try_from(cpu).unwrap_or_default();
    let reading = Reading { at: now, cpu };
    LAST.set(Some(reading));
    reading
}

#[cfg(test)]
#[path = "stall_tests.rs"]
mod tests;
