//! `run.json`: workload, endpoint, settings and figures of a run.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::histograms::LatencySummary;
use super::units::{self, NONE};

/// The version of the folder's layout, raised when a reader of the old one would misunderstand the new one.
pub const FORMAT: u32 = 1;

/// One run of one workload against one endpoint.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct RunResult {
    /// [`FORMAT`] at the time of writing.
    pub format: u32,
    /// Version of helenus-stress.
    pub tool_version: String,
    pub workload: String,
    /// The endpoint's name in tables and plots.
    pub label: String,
    pub kind: RunKind,
    /// The whole command line, program first.
    pub command_line: Vec<String>,
    /// Every setting as it took effect, defaults included.
    pub config: Map<String, Value>,
    pub endpoint: Endpoint,
    pub load: LoadModel,
    /// When the measured part began.
    pub started_at: DateTime<Utc>,
    /// How long the measured part took, in seconds.
    pub duration_s: f64,
    /// One entry for each kind of operation, in the order to be shown.
    pub operations: Vec<OperationResult>,
    /// The outcomes of reads, where the workload knows the expected ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<ReadOutcome>,
    /// Open loop only: whether the load kept to its rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<Pacing>,
    /// The parts of a run that has parts, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// Warnings and remarks for the reader, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Reproductions only: published figures beside those of this run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<PublishedFigure>,
    /// The server's own figures over the whole run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server: Vec<ServerFigure>,
}

impl RunResult {
    /// Returns the workload, the endpoint and the load model in a line.
    pub fn title(&self) -> String {
        format!(
            "{} {} on {}, {}",
            self.workload,
            self.kind.name(),
            self.label,
            self.load.name()
        )
    }

    /// Returns the named operation.
    pub fn operation(&self, name: &str) -> Option<&OperationResult> {
        self.operations.iter().find(|operation| operation.name == name)
    }

    /// Failed operations of all kinds.
    pub fn error_count(&self) -> u64 {
        self.operations.iter().map(OperationResult::error_count).sum()
    }
}

/// The purpose of a run.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum RunKind {
    Populate,
    Run,
    Verify,
}

impl RunKind {
    /// Returns the subcommand's name.
    pub fn name(self) -> &'static str {
        match self {
            RunKind::Populate => "populate",
            RunKind::Run => "run",
            RunKind::Verify => "verify",
        }
    }
}

/// Whom the load went to.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// `host:port` of each contact point.
    pub addresses: Vec<String>,
    /// `release_version` of `system.local`.
    pub release_version: String,
    pub cluster_name: String,
    /// Name and version of the driver that the load was sent with.
    pub driver: String,
}

/// How requests were timed.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum LoadModel {
    /// Requests are due at a rate, whatever the server does.
    Open { rate_per_s: f64 },
    /// A request is sent when one before it has been answered: a slow server slows the load.
    Closed { threads: u32, in_flight_per_thread: u32 },
}

impl LoadModel {
    /// `closed loop, 8 × 50 in flight` or `open loop at 1,200/s`.
    pub fn name(&self) -> String {
        match self {
            LoadModel::Open { rate_per_s } => format!("open loop at {}", units::rate(*rate_per_s)),
            LoadModel::Closed {
                threads,
                in_flight_per_thread,
            } => {
                format!("closed loop, {threads} × {in_flight_per_thread} in flight")
            }
        }
    }
}

/// One kind of operation over the whole run.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct OperationResult {
    /// `read`, `write`, `delete`, …: lowercase, of letters, digits and underscores.
    pub name: String,
    /// Operations that succeeded.
    pub count: u64,
    /// Rows that they wrote, deleted or returned.
    #[serde(default)]
    pub rows: u64,
    /// Successes a second.
    pub rate_per_s: f64,
    /// From when the operation was due or sent to its answer. Successes only.
    pub response: LatencySummary,
    /// From when the operation was sent to its answer. Successes only.
    pub service: LatencySummary,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorCount>,
}

impl OperationResult {
    /// Failed operations of all codes.
    pub fn error_count(&self) -> u64 {
        self.errors.iter().map(|error| error.count).sum()
    }
}

/// How often one error was met.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct ErrorCount {
    /// The protocol's code; none for errors of the client's side (its own timeout, a broken connection).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u32>,
    /// The protocol's name of it (`OVERLOADED`), or the client's (`client timeout`).
    pub name: String,
    pub count: u64,
    /// One of the messages, as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
}

impl ErrorCount {
    /// `0x1001`, or a dash for errors of the client's side.
    pub fn code_text(&self) -> String {
        self.code.map_or(NONE.to_owned(), |code| format!("0x{code:04X}"))
    }
}

/// The outcomes of reads.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOutcome {
    /// Reads that found something.
    pub hits: u64,
    /// Reads that found nothing where nothing needed to be.
    pub misses: u64,
    /// Reads that found nothing, or not everything, where it was known to be.
    pub missing: u64,
    /// Reads whose value did not fit its key or checksum.
    pub corrupt: u64,
}

impl ReadOutcome {
    /// Returns the part of all reads that found something, from 0 to 1; none without reads.
    pub fn hit_rate(&self) -> Option<f64> {
        let all = self.hits + self.misses + self.missing + self.corrupt;
        (all > 0).then(|| self.hits as f64 / all as f64)
    }
}

/// Whether an open loop kept to its rate.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
pub struct Pacing {
    pub target_per_s: f64,
    /// Operations that were answered, failures included, over the run's time.
    pub achieved_per_s: f64,
    /// How far sending ever fell behind, in milliseconds.
    pub lag_max_ms: f64,
    /// How far sending was behind at the end, in milliseconds.
    pub lag_end_ms: f64,
}

/// A part of a run.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Phase {
    pub name: String,
    /// Seconds since the run's start.
    pub start_s: f64,
    pub duration_s: f64,
    /// Operations that succeeded in it.
    pub count: u64,
}

/// A figure that was published, beside the one measured here; both with their unit, as they should be printed.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct PublishedFigure {
    pub name: String,
    pub published: String,
    pub measured: String,
    /// A caveat of the comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A figure of the server over the run.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct ServerFigure {
    pub name: String,
    pub value: f64,
    /// `µs`, `bytes`, `cores`, … or empty for a plain number.
    #[serde(default)]
    pub unit: String,
}
