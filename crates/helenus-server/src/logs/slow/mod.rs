//! Slow requests. Each has a line in the log, at a limited rate, and the latest are kept in memory.

mod kept;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use helenus_query::clock::{Clock, SystemClock};
use helenus_query::measurement::RequestMeasurement;
use helenus_query::metrics::slow_statements::{SlowStatement, SlowStatementSource};
use helenus_query::statement_shape::without_values;
use helenus_query::trace::shorten;

use self::kept::KeptRequests;
use crate::logs::rate_limit::LogRateLimiter;
use crate::metrics::stage_times::StageTimes;

pub(crate) use self::kept::KeptRequest;

/// The known facts of a slow or sampled request when its response is ready.
#[derive(Debug)]
pub(crate) struct FinishedRequest {
    pub statement: String,
    /// Number of values that are bound to its markers.
    pub values: usize,
    pub client: SocketAddr,
    /// Keyspace and name of the last table that the request used. `None` if it used none.
    pub table: Option<(String, String)>,
    pub measurement: RequestMeasurement,
    pub stage_times: StageTimes,
}

/// Decides which requests are slow, logs them, and keeps the latest.
#[derive(Debug)]
pub(crate) struct SlowLog {
    /// Duration in microseconds above which a request is slow. [`NEVER`] if there is no such limit.
    timeout_us: AtomicU64,
    /// True if statements are shown with their literal values.
    shows_values: bool,
    limit: LogRateLimiter,
    kept: KeptRequests,
}

const NEVER: u64 = u64::MAX;

impl SlowLog {
    /// Returns a log of requests that take longer than `timeout`. `None` logs no request. The latest `kept` of them are kept in memory.
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

    /// Sets the duration above which requests are slow. `None` makes no request slow.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        let timeout_us = timeout.map_or(NEVER, |timeout| {
            u64::try_from(timeout.as_micros()).unwrap_or(NEVER)
        });
        self.timeout_us.store(timeout_us, Ordering::Relaxed);
    }

    /// Sets the number of requests that are kept.
    pub fn set_kept(&self, kept: usize) {
        self.kept.set_most(kept);
    }

    pub fn is_slow(&self, took: Duration) -> bool {
        took.as_micros() > u128::from(self.timeout_us.load(Ordering::Relaxed))
    }

    /// Returns the slow requests that are kept, the newest first.
    pub fn kept(&self) -> Vec<KeptRequest> {
        self.kept.all()
    }

    /// Logs and keeps a request whose response was sent.
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
            owner: slow.measurement.statement.owner,
            statement,
            values: slow.values,
            measurement: slow.measurement,
        };
        if let Some(suppressed) = logged {
            log(&request, &slow.stage_times, sending, suppressed);
        }
        self.kept.add(request);
    }
}

impl SlowStatementSource for SlowLog {
    fn latest(&self) -> Vec<SlowStatement> {
        let kept = self.kept().into_iter();
        kept.map(KeptRequest::into_statement).collect()
    }
}

/// Returns the stages that took at least 50 µs.
fn stages(times: &StageTimes, sending: Duration) -> Vec<(&'static str, Duration)> {
    let known = times.stages().map(|(stage, took)| (stage.name(), took));
    let all = known.chain([("send", sending)]);
    all.filter(|(_, took)| took.as_micros() >= 50).collect()
}

fn log(request: &KeptRequest, stage_times: &StageTimes, sending: Duration, suppressed: u64) {
    let RequestMeasurement {
        statement: read,
        store,
    } = &request.measurement;
    // Owner of the tablet, if the request was forwarded to another node. Empty otherwise.
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

/// Returns milliseconds, rounded to a tenth.
fn rounded_ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e4).round() / 10.0
}

#[cfg(test)]
#[path = "slow_tests.rs"]
mod tests;
