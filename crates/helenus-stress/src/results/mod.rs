//! The results of a run: its figures as types, and the files of its folder.
//!
//! | file | content | module |
//! |---|---|---|
//! | `run.json` | the whole run: workload, endpoint, settings, figures | [`run`] |
//! | `intervals.csv` | a row for each second | [`interval`] |
//! | `histograms.hlog` | an HdrHistogram interval log, a tag for each operation's response and service time | [`histograms`] |
//! | `compare.json` | two endpoints in alternating rounds | [`comparison`] |
//! | `report.html` | all of it for a browser | [`crate::report`] |
//!
//! Response time counts from when a request was due (open loop) or sent (closed loop). Service time always counts from when it was sent.
//! Latencies are whole microseconds everywhere.

pub mod cells;
pub mod comparison;
pub mod directory;
pub mod histograms;
pub mod interval;
pub mod noise;
pub mod run;
pub mod table;
pub mod units;

pub use comparison::{ComparedFigure, Comparison, Round, Verdict};
pub use directory::{IntervalHistograms, Loaded, LoadedRun, RunWriter, write_comparison};
pub use histograms::{LatencyHistogram, LatencySummary, new_latency_histogram};
pub use interval::{Interval, IntervalOperation, ServerSample};
pub use run::{
    Endpoint, ErrorCount, LoadModel, OperationResult, Pacing, Phase, PublishedFigure, ReadOutcome, RunKind,
    RunResult, ServerFigure,
};

#[cfg(test)]
pub(crate) mod samples;
