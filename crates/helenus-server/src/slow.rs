//! The log of slow requests: a line for each, of which there are only so many in a while.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use helenus_query::trace::{Work, shorten};
use parking_lot::Mutex;

use crate::breakdown::Breakdown;

/// Lines at most in a window; the requests beyond are counted.
const LINES_MAX: usize = 20;
const WINDOW: Duration = Duration::from_secs(5);

/// A request that took long, as far as it is known when its answer is ready.
#[derive(Debug)]
pub(crate) struct SlowRequest {
    pub statement: String,
    /// Values bound to its markers.
    pub values: usize,
    pub client: SocketAddr,
    pub work: Work,
    pub breakdown: Breakdown,
}

/// Lines of the window that has begun last.
#[derive(Debug)]
struct Window {
    began: Instant,
    lines: usize,
    suppressed: u64,
}

impl Window {
    /// Takes a line if there is one left; gives the number of those that were refused before it.
    fn take(&mut self, now: Instant) -> Option<u64> {
        if now.saturating_duration_since(self.began) >= WINDOW {
            self.began = now;
            self.lines = 0;
        }
        if self.lines >= LINES_MAX {
            self.suppressed += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.suppressed))
    }
}

/// Decides which requests are slow, and logs them.
#[derive(Debug)]
pub(crate) struct SlowLog {
    timeout: Option<Duration>,
    window: Mutex<Window>,
}

impl SlowLog {
    /// Requests that take longer are slow; none are without a timeout.
    pub fn new(timeout: Option<Duration>) -> SlowLog {
        SlowLog {
            timeout,
            window: Mutex::new(Window {
                began: Instant::now(),
                lines: 0,
                suppressed: 0,
            }),
        }
    }

    pub fn is_slow(&self, took: Duration) -> bool {
        self.timeout.is_some_and(|timeout| took > timeout)
    }

    /// Logs a request whose answer was sent.
    pub fn log(&self, slow: &SlowRequest, total: Duration, sending: Duration) {
        let Some(suppressed) = self.window.lock().take(Instant::now()) else {
            return;
        };
        let SlowRequest {
            statement,
            values,
            client,
            work: Work {
                statement: read,
                store,
            },
            breakdown,
        } = slow;
        tracing::warn!(
            total_ms = rounded_ms(total),
            stages_ms = %format_args!("{breakdown}, send {:.1}", sending.as_secs_f64() * 1e3),
            %client,
            statement = shorten(statement),
            values,
            live_rows = read.live_rows,
            tombstones = read.tombstones,
            row_cache_hits = store.row_cache_hits,
            row_cache_misses = store.row_cache_misses,
            scans = store.scans,
            rows_written = store.operands,
            suppressed,
            "slow request"
        );
    }
}

/// To a tenth.
fn rounded_ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e4).round() / 10.0
}

#[cfg(test)]
#[path = "slow_tests.rs"]
mod tests;
