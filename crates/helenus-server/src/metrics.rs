//! Metrics of the transport. Their number does not depend on what the schema holds or on who connects.

use std::time::Duration;

use helenus_cql::error::CqlError;
use helenus_cql::frame::Opcode;
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

/// Kinds of requests that are timed apart.
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

/// The names under which errors are counted.
fn error_name(error: &CqlError) -> &'static str {
    match error {
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

/// The handles of the transport's metrics: looked up once, since requests are many.
pub struct Metrics {
    durations: [Histogram; 5],
    in_flight_bytes: Gauge,
    connections: Gauge,
    connections_refused: Counter,
    received_bytes: Counter,
    sent_bytes: Counter,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            durations: RequestKind::ALL.map(|kind| histogram!(REQUEST_DURATION, "kind" => kind.name())),
            in_flight_bytes: gauge!("helenus_request_in_flight_bytes"),
            connections: gauge!("helenus_connections"),
            connections_refused: counter!("helenus_connections_refused_total"),
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

    pub(crate) fn failed(&self, error: &CqlError) {
        counter!("helenus_request_errors_total", "error" => error_name(error)).increment(1);
    }

    pub(crate) fn in_flight_bytes(&self, bytes: usize) {
        self.in_flight_bytes.set(bytes as f64);
    }

    pub(crate) fn connections(&self, count: usize) {
        self.connections.set(count as f64);
    }

    pub(crate) fn connection_refused(&self) {
        self.connections_refused.increment(1);
    }

    pub(crate) fn received(&self, bytes: usize) {
        self.received_bytes.increment(bytes as u64);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.sent_bytes.increment(bytes as u64);
    }
}
