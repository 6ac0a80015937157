//! `run.json`: the workload, endpoint, settings and figures of a run.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::histograms::LatencySummary;
use super::units::{self, NONE};

/// The version of the folder's layout. It increases when an old reader would misunderstand a new folder.
pub const FORMAT: u32 = 1;

/// One run of one workload against one endpoint.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct RunResult {
    /// Value of [`FORMAT`] at the time of writing.
    pub format: u32,
    /// Version of helenus-stress.
    pub tool_version: String,
    pub workload: String,
    /// The endpoint's name in tables and plots.
    pub label: String,
    pub kind: RunKind,
    /// The whole command line, beginning with the program.
    pub command_line: Vec<String>,
    /// All effective settings, with defaults.
    pub config: Map<String, Value>,
    pub endpoint: Endpoint,
    pub load: LoadModel,
    /// Start of the measured part.
    pub started_at: DateTime<Utc>,
    /// Seconds of the measured part.
    pub duration_s: f64,
    /// Figures of each kind of operation, in the order in which they are shown.
    pub operations: Vec<OperationResult>,
    /// The outcomes of reads. `None` if the workload does not know the expected ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<ReadOutcome>,
    /// The pacing of an open loop. `None` in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<Pacing>,
    /// The parts of the run in order. Empty if it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// Warnings and remarks for the reader, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Published figures beside those of this run. Empty if the run is not a reproduction.
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

    /// Returns the figures of the named operation. `None` if there is no such operation.
    pub fn operation(&self, name: &str) -> Option<&OperationResult> {
        self.operations.iter().find(|operation| operation.name == name)
    }

    /// Returns the number of failed operations of all kinds.
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
    /// Returns the name of the subcommand.
    pub fn name(self) -> &'static str {
        match self {
            RunKind::Populate => "populate",
            RunKind::Run => "run",
            RunKind::Verify => "verify",
        }
    }
}

/// The server or cluster under load.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// Contact points as `host:port`.
    pub addresses: Vec<String>,
    /// The column `release_version` of `system.local`.
    pub release_version: String,
    pub cluster_name: String,
    /// Name and version of the driver that sent the load.
    pub driver: String,
}

/// Timing of requests.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum LoadModel {
    /// Requests are due at a rate, regardless of the server.
    Open { rate_per_s: f64 },
    /// A request is sent when another one was answered, so a slow server slows the load.
    Closed { threads: u32, in_flight_per_thread: u32 },
}

impl LoadModel {
    /// Returns the model as text: `closed loop, 8 × 50 in flight` or `open loop at 1,200/s`.
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
    /// Name, such as `read` or `write`: lowercase letters, digits and underscores.
    pub name: String,
    /// Operations that succeeded.
    pub count: u64,
    /// Rows that the successful operations wrote, deleted or returned.
    #[serde(default)]
    pub rows: u64,
    /// Successes per second.
    pub rate_per_s: f64,
    /// Response times of successes: from when the operation was due or sent to its answer.
    pub response: LatencySummary,
    /// Service times of successes: from when the operation was sent to its answer.
    pub service: LatencySummary,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorCount>,
}

impl OperationResult {
    /// Returns the number of failed operations of all codes.
    pub fn error_count(&self) -> u64 {
        self.errors.iter().map(|error| error.count).sum()
    }
}

/// Number of occurrences of an error.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct ErrorCount {
    /// The protocol's code. `None` for errors of the client, such as its timeout or a lost connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u32>,
    /// The protocol's name (`OVERLOADED`), or the client's (`client timeout`).
    pub name: String,
    pub count: u64,
    /// The unchanged message of one occurrence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
}

impl ErrorCount {
    /// Returns the code as `0x1001`, or a dash for errors of the client.
    pub fn code_text(&self) -> String {
        self.code.map_or(NONE.to_owned(), |code| format!("0x{code:04X}"))
    }
}

/// The outcomes of reads.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOutcome {
    /// Reads that found something.
    pub hits: u64,
    /// Reads without a result where none was required.
    pub misses: u64,
    /// Reads with no or too few rows where rows are known to exist.
    pub missing: u64,
    /// Reads whose value did not match its key or checksum.
    pub corrupt: u64,
}

impl ReadOutcome {
    /// Returns the share of reads that found something, from 0 to 1. `None` if there were no reads.
    pub fn hit_rate(&self) -> Option<f64> {
        let all = self.hits + self.misses + self.missing + self.corrupt;
        (all > 0).then(|| self.hits as f64 / all as f64)
    }
}

/// Target and actual rate of an open loop, and its lag.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
pub struct Pacing {
    pub target_per_s: f64,
    /// Answered operations per second, including failures.
    pub achieved_per_s: f64,
    /// Maximum lag in milliseconds.
    pub lag_max_ms: f64,
    /// Lag at the end in milliseconds.
    pub lag_end_ms: f64,
}

/// A part of a run.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Phase {
    pub name: String,
    /// Seconds since the run's start.
    pub start_s: f64,
    pub duration_s: f64,
    /// Number of successful operations in the phase.
    pub count: u64,
}

/// A published figure beside the measured one. Both are formatted, with their unit.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct PublishedFigure {
    pub name: String,
    pub published: String,
    pub measured: String,
    /// A caveat of the comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A figure of the server over the whole run.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct ServerFigure {
    pub name: String,
    pub value: f64,
    /// Unit: `µs`, `bytes`, `cores`, … or empty for a plain number.
    #[serde(default)]
    pub unit: String,
}
