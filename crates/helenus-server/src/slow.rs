//! The log of slow requests: one line for each, at a limited rate.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use helenus_query::statement_shape::without_values;
use helenus_query::trace::{Work, shorten};

use crate::log_rate_limit::LogRateLimiter;
use crate::stage_times::StageTimes;

/// A request that took long, as far as it is known when its answer is ready.
#[derive(Debug)]
pub(crate) struct SlowRequest {
    pub statement: String,
    /// Values bound to its markers.
    pub values: usize,
    pub client: SocketAddr,
    /// The keyspace and the name of the table that it was about last, if it is about any.
    pub table: Option<(String, String)>,
    pub work: Work,
    pub stage_times: StageTimes,
}

/// Decides which requests are slow, and logs them.
#[derive(Debug)]
pub(crate) struct SlowLog {
    /// In microseconds; [`NEVER`] without a timeout.
    timeout_us: AtomicU64,
    /// Whether statements are shown with the values that are written into them.
    shows_values: bool,
    limit: LogRateLimiter,
}

const NEVER: u64 = u64::MAX;

impl SlowLog {
    /// Requests that take longer are slow; none are without a timeout.
    pub fn new(timeout: Option<Duration>, shows_values: bool) -> SlowLog {
        let log = SlowLog {
            timeout_us: AtomicU64::new(NEVER),
            shows_values,
            limit: LogRateLimiter::default(),
        };
        log.set_timeout(timeout);
        log
    }

    /// From now on, requests that take longer are slow; none are without a timeout.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        let timeout_us = timeout.map_or(NEVER, |timeout| {
            u64::try_from(timeout.as_micros()).unwrap_or(NEVER)
        });
        self.timeout_us.store(timeout_us, Ordering::Relaxed);
    }

    pub fn is_slow(&self, took: Duration) -> bool {
        took.as_micros() > u128::from(self.timeout_us.load(Ordering::Relaxed))
    }

    /// Logs a request whose answer was sent.
    pub fn log(&self, slow: &SlowRequest, total: Duration, sending: Duration) {
        let Some(suppressed) = self.limit.take() else {
            return;
        };
        let SlowRequest {
            statement,
            values,
            client,
            table,
            work: Work {
                statement: read,
                store,
            },
            stage_times,
        } = slow;
        let statement = match self.shows_values {
            true => shorten(statement).to_owned(),
            false => without_values(shorten(statement)),
        };
        let (keyspace, table) = table.clone().unwrap_or_default();
        // Of a request that was passed on.
        let owner = read.owner.map(|owner| owner.to_string()).unwrap_or_default();
        tracing::warn!(
            total_ms = rounded_ms(total),
            stages_ms = %format_args!("{stage_times}, send {:.1}", sending.as_secs_f64() * 1e3),
            %client,
            keyspace,
            table,
            owner,
            statement,
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
