//! Metrics of the transport. Their number does not depend on the schema or on the clients.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use helenus_cql::error::CqlError;
use helenus_cql::frame::Opcode;
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use super::stage_times::{RequestStage, StageTimes};
use crate::threads::stall;

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
