//! Metrics of the transport. Their number does not depend on the schema or on the clients.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use helenus_cql::error::CqlError;
use helenus_cql::frame::Opcode;
use helenus_query::engine::PreparedFigures;
use helenus_query::engine::history::PastFigures;
use helenus_query::figures::rate_limits::{RateLimitFigures, RateLimitKind};
use helenus_query::index::stale_entry::StaleCounts;
use helenus_tablet::StoreStats;
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use crate::stage_times::{RequestStage, StageTimes};
use crate::stall;

/// Kinds of requests that have separate latency histograms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    Query,
    Prepare,
    Execute,
    Batch,
    Other,
}

impl RequestKind {
    const ALL: [RequestKind; 5] = [
        RequestKind::Query,
        RequestKind::Prepare,
        RequestKind::Execute,
        RequestKind::Batch,
        RequestKind::Other,
    ];

    pub fn of(opcode: Opcode) -> RequestKind {
        match opcode {
            Opcode::Query => RequestKind::Query,
            Opcode::Prepare => RequestKind::Prepare,
            Opcode::Execute => RequestKind::Execute,
            Opcode::Batch => RequestKind::Batch,
            _ => RequestKind::Other,
        }
    }

    fn name(self) -> &'static str {
        match self {
            RequestKind::Query => "query",
            RequestKind::Prepare => "prepare",
            RequestKind::Execute => "execute",
            RequestKind::Batch => "batch",
            RequestKind::Other => "other",
        }
    }
}

/// Returns the name under which an error is counted.
fn error_name(error: &CqlError) -> &'static str {
    match error {
        CqlError::Warned { error, .. } => error_name(error),
        CqlError::Server(_) => "server",
        CqlError::Protocol(_) => "protocol",
        CqlError::BadCredentials(_) => "bad_credentials",
        CqlError::Unavailable { .. } => "unavailable",
        CqlError::Overloaded(_) => "overloaded",
        CqlError::IsBootstrapping(_) => "is_bootstrapping",
        CqlError::Truncate(_) => "truncate",
        CqlError::WriteTimeout { .. } => "write_timeout",
        CqlError::ReadTimeout { .. } => "read_timeout",
        CqlError::ReadFailure { .. } => "read_failure",
        CqlError::FunctionFailure { .. } => "function_failure",
        CqlError::WriteFailure { .. } => "write_failure",
        CqlError::CasWriteUnknown { .. } => "cas_write_unknown",
        CqlError::RateLimited { .. } => "rate_limited",
        CqlError::Syntax(_) => "syntax",
        CqlError::Unauthorized(_) => "unauthorized",
        CqlError::Invalid(_) => "invalid",
        CqlError::Config(_) => "config",
        CqlError::AlreadyExists { .. } => "already_exists",
        CqlError::Unprepared(_) => "unprepared",
    }
}

/// Upper bounds of the latency buckets, in seconds.
pub const LATENCY_BUCKETS_S: [f64; 16] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    10.0,
];

pub const REQUEST_DURATION: &str = "helenus_request_duration_seconds";
const ERRORS: &str = "helenus_request_errors_total";
/// Name of the histogram of time by stage, measured on a sample of the requests.
pub const STAGE_DURATION: &str = "helenus_request_stage_seconds";

/// Handles of the transport's metrics. They are looked up once, because a lookup for each request would be slow.
pub struct Metrics {
    durations: [Histogram; 5],
    stages: [Histogram; RequestStage::ALL.len()],
    slow: Counter,
    in_flight_bytes: Gauge,
    running: Gauge,
    waiting: Gauge,
    overloaded: Counter,
    /// Number of requests that failed through a fault of the server. It is counted here as well, because the recorder's counters cannot be
    /// read.
    server_errors: AtomicU64,
    shed: Counter,
    connections: Gauge,
    connections_refused: Counter,
    negotiations: Counter,
    received_bytes: Counter,
    sent_bytes: Counter,
}

impl Default for Metrics {
    fn default() -> Metrics {
        stall::register();
        Metrics {
            durations: RequestKind::ALL.map(|kind| histogram!(REQUEST_DURATION, "kind" => kind.name())),
            stages: RequestStage::ALL.map(|stage| histogram!(STAGE_DURATION, "stage" => stage.name())),
            slow: counter!("helenus_slow_requests_total"),
            in_flight_bytes: gauge!("helenus_request_in_flight_bytes"),
            running: gauge!("helenus_requests_running"),
            waiting: gauge!("helenus_requests_waiting"),
            // The counter of this error alone is looked up in advance, because an overloaded node must refuse requests at little cost.
            overloaded: counter!(ERRORS, "error" => "overloaded"),
            server_errors: AtomicU64::new(0),
            shed: counter!("helenus_requests_shed_total"),
            connections: gauge!("helenus_connections"),
            connections_refused: counter!("helenus_connections_refused_total"),
            negotiations: counter!("helenus_protocol_negotiations_total"),
            received_bytes: counter!("helenus_received_bytes_total"),
            sent_bytes: counter!("helenus_sent_bytes_total"),
        }
    }
}

impl Metrics {
    pub(crate) fn answered(&self, kind: RequestKind, took: Duration) {
        let [query, prepare, execute, batch, other] = &self.durations;
        match kind {
            RequestKind::Query => query,
            RequestKind::Prepare => prepare,
            RequestKind::Execute => execute,
            RequestKind::Batch => batch,
            RequestKind::Other => other,
        }
        .record(took);
    }

    /// Records the time that a request spent in each stage.
    pub(crate) fn stages(&self, stage_times: &StageTimes) {
        for ((_, took), histogram) in stage_times.stages().zip(&self.stages) {
            if !took.is_zero() {
                histogram.record(took);
            }
        }
    }

    pub(crate) fn slow(&self) {
        self.slow.increment(1);
    }

    pub(crate) fn failed(&self, error: &CqlError) {
        match error {
            CqlError::Warned { error, .. } => return self.failed(error),
            CqlError::Overloaded(_) => return self.overloaded.increment(1),
            CqlError::Server(_) => _ = self.server_errors.fetch_add(1, Ordering::Relaxed),
            _ => {}
        }
        counter!(ERRORS, "error" => error_name(error)).increment(1);
    }

    /// Returns the number of requests that failed through a fault of the server, panics included.
    pub(crate) fn server_errors(&self) -> u64 {
        self.server_errors.load(Ordering::Relaxed)
    }

    /// Counts a request that was refused because it had waited too long.
    pub(crate) fn shed(&self) {
        self.shed.increment(1);
    }

    pub(crate) fn in_flight(&self, requests: usize, bytes: usize) {
        self.running.set(requests as f64);
        self.in_flight_bytes.set(bytes as f64);
    }

    pub(crate) fn waiting(&self, requests: usize) {
        self.waiting.set(requests as f64);
    }

    pub(crate) fn connections(&self, count: usize) {
        self.connections.set(count as f64);
    }

    pub(crate) fn connection_refused(&self) {
        self.connections_refused.increment(1);
    }

    /// Counts a client that must use a lower version of the protocol than it offered.
    pub(crate) fn negotiated(&self) {
        self.negotiations.increment(1);
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.received_bytes.increment(bytes as u64);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.sent_bytes.increment(bytes as u64);
    }
}

/// Sets the counters of stale index entries.
pub(crate) fn record_stale(counts: &StaleCounts) {
    let found = counts.found.load(Ordering::Relaxed);
    counter!("helenus_index_entries_stale_total").absolute(found);
    let removed = counts.removed.load(Ordering::Relaxed);
    counter!("helenus_index_entries_removed_total").absolute(removed);
}

/// Sets the counters of requests that rate limits refused.
pub(crate) fn record_rate_limits(figures: &RateLimitFigures) {
    for kind in RateLimitKind::ALL {
        counter!("helenus_rate_limited_total", "kind" => kind.name()).absolute(figures.count(kind));
    }
}

/// Sets the gauges of prepared statements and their bytes.
pub(crate) fn record_prepared(figures: &PreparedFigures) {
    gauge!("helenus_prepared_statements").set(figures.statements as f64);
    gauge!("helenus_prepared_statement_bytes").set(figures.bytes as f64);
}

/// Sets the gauge of parts of full table scans that are being read.
pub(crate) fn record_scan_parts(running: usize) {
    gauge!("helenus_scan_parts_running").set(running as f64);
}

/// Sets the gauges of the history that is kept. `reach` is how far back it can be read.
pub(crate) fn record_past(figures: &PastFigures, reach: Duration, window: Duration) {
    gauge!("helenus_past_window_seconds").set(window.as_secs_f64());
    gauge!("helenus_past_moments").set(figures.moments as f64);
    gauge!("helenus_past_log_bytes").set(figures.log_bytes as f64);
    gauge!("helenus_past_reach_seconds").set(reach.as_secs_f64());
    counter!("helenus_past_times_opened_total").absolute(figures.times_opened);
}

/// Sets the gauges and counters of the store. Figures are summed over all tablets, so that the number of metrics does not grow with them.
pub(crate) fn record_store(stats: &StoreStats) {
    let sum = |field: fn(&helenus_tablet::TabletStats) -> u64| stats.tablets.iter().map(field).sum::<u64>();
    let gauges = [
        ("helenus_store_tablets", stats.tablets.len() as u64),
        ("helenus_store_in_flight_bytes", stats.in_flight_bytes),
        ("helenus_store_memtable_bytes", stats.memtable_bytes),
        ("helenus_store_data_bytes", sum(|tablet| tablet.data_bytes)),
        ("helenus_store_level0_files", sum(|tablet| tablet.level0_files)),
        ("helenus_store_sorted_runs", sum(|tablet| tablet.sorted_runs)),
        ("helenus_store_compactions_running", stats.compactions_running),
        ("helenus_log_segments", stats.log.segments),
        ("helenus_log_bytes", stats.log.live_bytes),
        ("helenus_block_cache_bytes", stats.block_cache_bytes),
        ("helenus_row_cache_bytes", stats.row_cache.bytes),
        ("helenus_row_cache_rows", stats.row_cache.rows),
    ];
    for (name, value) in gauges {
        gauge!(name).set(value as f64);
    }
    if let Some(bucket) = stats.bucket {
        let requests = [
            ("get", bucket.gets),
            ("put", bucket.puts),
            ("list", bucket.lists),
            ("delete", bucket.deletes),
        ];
        for (kind, count) in requests {
            counter!("helenus_bucket_requests_total", "kind" => kind).absolute(count);
        }
        counter!("helenus_bucket_read_bytes_total").absolute(bucket.read_bytes);
        counter!("helenus_bucket_written_bytes_total").absolute(bucket.written_bytes);
    }
    if let Some(cache) = stats.disk_cache {
        gauge!("helenus_disk_cache_bytes").set(cache.bytes as f64);
        gauge!("helenus_disk_cache_capacity_bytes").set(cache.capacity_bytes as f64);
        counter!("helenus_disk_cache_hits_total").absolute(cache.hits);
        counter!("helenus_disk_cache_misses_total").absolute(cache.misses);
        counter!("helenus_disk_cache_inserted_total").absolute(cache.inserted);
        counter!("helenus_disk_cache_errors_total").absolute(cache.errors);
    }
    if let Some(age) = stats.refresh_age {
        gauge!("helenus_read_only_age_seconds").set(age.as_secs_f64());
    }
    if let Some(free_bytes) = stats.disk_free_bytes {
        gauge!("helenus_store_disk_free_bytes").set(free_bytes as f64);
    }
    let totals = stats.totals;
    let counters = [
        ("helenus_store_batches_total", totals.batches),
        ("helenus_store_operands_total", totals.operands),
        ("helenus_store_gets_total", totals.gets),
        ("helenus_store_scans_total", totals.scans),
        ("helenus_slices_total", totals.slices),
        ("helenus_slice_live_rows_total", totals.rows_live),
        ("helenus_slice_dead_rows_total", totals.rows_dead),
        ("helenus_store_flushes_total", stats.flushes),
        ("helenus_store_compacted_bytes_total", stats.compacted_bytes),
        ("helenus_store_back_pressure_total", stats.back_pressure),
        ("helenus_log_groups_total", stats.log.groups),
        ("helenus_log_records_total", stats.log.records),
        ("helenus_log_syncs_total", stats.log.syncs),
        ("helenus_log_written_bytes_total", stats.log.bytes),
        ("helenus_log_failures_total", stats.log.failures),
        ("helenus_block_cache_hits_total", stats.block_cache_hits),
        ("helenus_block_cache_misses_total", stats.block_cache_misses),
        ("helenus_row_cache_hits_total", totals.row_cache_hits),
        ("helenus_row_cache_misses_total", totals.row_cache_misses),
    ];
    for (name, value) in counters {
        counter!(name).absolute(value);
    }
}
