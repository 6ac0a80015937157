//! Slow requests: a line of the log for each, at a limited rate, and the last of them in memory.

mod kept;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use helenus_query::clock::{Clock, SystemClock};
use helenus_query::statement_shape::without_values;
use helenus_query::trace::{Work, shorten};

use self::kept::KeptRequests;
use crate::log_rate_limit::LogRateLimiter;
use crate::stage_times::StageTimes;

pub(crate) use self::kept::KeptRequest;

/// A request that took long, as far as it is known when its answer is ready.
#[derive(Debug)]
pub(crate) struct FinishedRequest {
    pub statement: String,
    /// Values bound to its markers.
    pub values: usize,
    pub client: SocketAddr,
    /// The keyspace and the name of the table that it was about last, if it is about any.
    pub table: Option<(String, String)>,
    pub work: Work,
    pub stage_times: StageTimes,
}

/// Decides which requests are slow, logs them, and keeps the last.
#[derive(Debug)]
pub(crate) struct SlowLog {
    /// In microseconds; [`NEVER`] without a timeout.
    timeout_us: AtomicU64,
    /// Whether statements are shown with the values that are written into them.
    shows_values: bool,
    limit: LogRateLimiter,
    kept: KeptRequests,
}

const NEVER: u64 = u64::MAX;

impl SlowLog {
    /// Requests that take longer are slow; none are without a timeout. The last `kept` of them are kept.
    pub fn new(timeout: Option<Duration>, shows_values: bool, kept: usize) -> SlowLog {
        let log = SlowLog {
            timeout_us: AtomicU64::new(NEVER),
            shows_values,
            limit: LogRateLimiter::default(),
            kept: KeptRequests::new(kept),
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

    /// From now on, so many are kept.
    pub fn set_kept(&self, kept: usize) {
        self.kept.set_most(kept);
    }

    pub fn is_slow(&self, took: Duration) -> bool {
        took.as_micros() > u128::from(self.timeout_us.load(Ordering::Relaxed))
    }

    /// Returns the last slow requests, the newest first.
    pub fn kept(&self) -> Vec<KeptRequest> {
        self.kept.all()
    }

    /// Keeps and logs a request whose answer was sent.
    pub fn enter(&self, slow: FinishedRequest, total: Duration, sending: Duration) {
        let logged = self.limit.take();
        if logged.is_none() && !self.kept.is_on() {
            return;
        }
        let statement = match self.shows_values {
            true => shorten(&slow.statement).to_owned(),
            false => without_values(shorten(&slow.statement)),
        };
        let (keyspace, table) = slow.table.unwrap_or_default();
        let request = KeptRequest {
            at_ms: SystemClock.now_us().div_euclid(1000),
            total,
            stages: stages(&slow.stage_times, sending),
            client: slow.client,
            keyspace,
            table,
            owner: slow.work.statement.owner,
            statement,
            values: slow.values,
            work: slow.work,
        };
        if let Some(suppressed) = logged {
            log(&request, &slow.stage_times, sending, suppressed);
        }
        self.kept.add(request);
    }
}

/// Returns the stages that took some time.
fn stages(times: &StageTimes, sending: Duration) -> Vec<(&'static str, Duration)> {
    let known = times.stages().map(|(stage, took)| (stage.name(), took));
    let all = known.chain([("send", sending)]);
    all.filter(|(_, took)| took.as_micros() >= 50).collect()
}

fn log(request: &KeptRequest, stage_times: &StageTimes, sending: Duration, suppressed: u64) {
    let Work {
        statement: read,
        store,
    } = &request.work;
    // Of a request that was passed on.
    let owner = request.owner.map(|owner| owner.to_string()).unwrap_or_default();
    tracing::warn!(
        total_ms = rounded_ms(request.total),
        stages_ms = %format_args!("{stage_times}, send {:.1}", sending.as_secs_f64() * 1e3),
        client = %request.client,
        keyspace = request.keyspace,
        table = request.table,
        owner,
        statement = request.statement,
        values = request.values,
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

/// To a tenth.
fn rounded_ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e4).round() / 10.0
}

#[cfg(test)]
#[path = "slow_tests.rs"]
mod tests;
