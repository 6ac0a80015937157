//! `compare.json`: the results of two endpoints under the same load in alternating rounds.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::noise::{SIGNIFICANCE, mann_whitney, median, median_absolute_deviation};
use super::run::{Endpoint, FORMAT, LoadModel, OperationResult, RunResult};

/// Two endpoints, A and B, and the figures of all rounds.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Value of [`FORMAT`] at the time of writing.
    pub format: u32,
    pub tool_version: String,
    pub workload: String,
    /// The whole command line, beginning with the program.
    pub command_line: Vec<String>,
    /// The effective settings of the runs.
    pub config: Map<String, Value>,
    pub load: LoadModel,
    pub started_at: DateTime<Utc>,
    pub label_a: String,
    pub label_b: String,
    pub endpoint_a: Endpoint,
    pub endpoint_b: Endpoint,
    pub rounds: Vec<Round>,
    /// Figures in the order in which they are shown.
    pub figures: Vec<ComparedFigure>,
    /// Warnings and remarks for the reader, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One run of each side, one after the other.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// The side that ran first.
    pub first: Side,
    /// Folders of the runs, relative to the comparison's folder.
    pub directory_a: PathBuf,
    pub directory_b: PathBuf,
}

/// One of the two endpoints.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    A,
    B,
}

/// The better direction of a figure.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Higher,
    Lower,
}

/// One figure, measured in every round on both sides.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct ComparedFigure {
    /// Name, such as `read rate` or `write response p99`.
    pub name: String,
    /// `/s`, `µs`, `bytes`, `cores` or empty.
    pub unit: String,
    /// The better direction. `None` if it is unknown or there is none.
    pub better: Option<Direction>,
    pub a: RoundStats,
    pub b: RoundStats,
    /// B's median divided by A's. `None` if A's is zero.
    pub ratio: Option<f64>,
    /// The p value of the test in [`super::noise`].
    pub p_value: f64,
    pub verdict: Verdict,
}

/// A side's rounds in order, and their spread.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct RoundStats {
    pub rounds: Vec<f64>,
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// Median of the distances from the median.
    pub deviation: f64,
}

/// The verdict on a difference.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The difference is within the noise of the rounds.
    WithinNoise,
    ABetter,
    BBetter,
    /// The sides differ in a figure without a better direction.
    Differs,
}

impl Comparison {
    /// Returns the workload, both endpoints and the load model in a line.
    pub fn title(&self) -> String {
        format!(
            "{}: {} against {}, {}",
            self.workload,
            self.label_a,
            self.label_b,
            self.load.name()
        )
    }

    /// Returns a figure's verdict in words.
    pub fn verdict(&self, figure: &ComparedFigure) -> String {
        match figure.verdict {
            Verdict::WithinNoise => "within the noise".to_owned(),
            Verdict::ABetter => format!("{} better", self.label_a),
            Verdict::BBetter => format!("{} better", self.label_b),
            Verdict::Differs => "differs".to_owned(),
        }
    }

    /// Makes a comparison of the runs of all rounds; `a` and `b` have a run for each of `rounds`. `None` if there are no rounds.
    pub fn from_runs(
        command_line: Vec<String>,
        rounds: Vec<Round>,
        a: &[RunResult],
        b: &[RunResult],
    ) -> Option<Self> {
        let (first_a, first_b) = (a.first()?, b.first()?);
        Some(Self {
            format: FORMAT,
            tool_version: first_a.tool_version.clone(),
            workload: first_a.workload.clone(),
            command_line,
            config: first_a.config.clone(),
            load: first_a.load,
            started_at: first_a.started_at.min(first_b.started_at),
            label_a: first_a.label.clone(),
            label_b: first_b.label.clone(),
            endpoint_a: first_a.endpoint.clone(),
            endpoint_b: first_b.endpoint.clone(),
            figures: compare(a, b),
            rounds,
            notes: Vec::new(),
        })
    }
}

/// A figure that can be read from a run.
struct FigureExtractor {
    name: String,
    unit: &'static str,
    better: Option<Direction>,
    of: Box<dyn Fn(&RunResult) -> Option<f64>>,
}

fn compare(a: &[RunResult], b: &[RunResult]) -> Vec<ComparedFigure> {
    extractors(a, b)
        .iter()
        .filter_map(|extractor| {
            let side = |runs: &[RunResult]| runs.iter().map(&extractor.of).collect::<Option<Vec<f64>>>();
            Some(ComparedFigure::new(
                &extractor.name,
                extractor.unit,
                extractor.better,
                side(a)?,
                side(b)?,
            ))
        })
        .collect()
}

/// Returns the comparable figures: each operation's rate and latencies, the errors, and the server's figures.
fn extractors(a: &[RunResult], b: &[RunResult]) -> Vec<FigureExtractor> {
    let mut extractors = Vec::new();
    for operation in a.first().map_or(&[][..], |run| &run.operations) {
        extractors.extend(operation_extractors(&operation.name));
    }
    if a.iter().chain(b).any(|run| run.error_count() > 0) {
        extractors.push(FigureExtractor {
            name: "errors".into(),
            unit: "",
            better: Some(Direction::Lower),
            of: Box::new(|run| Some(run.error_count() as f64)),
        });
    }
    for figure in a.first().map_or(&[][..], |run| &run.server) {
        let name = figure.name.clone();
        extractors.push(FigureExtractor {
            name: figure.name.clone(),
            unit: unit_name(&figure.unit),
            better: lower_is_better(&figure.unit).then_some(Direction::Lower),
            of: Box::new(move |run| Some(run.server.iter().find(|other| other.name == name)?.value)),
        });
    }
    extractors
}

/// Returns true if a figure with this unit is a cost, such as time, memory and CPU. The better direction of other figures is unknown.
fn lower_is_better(unit: &str) -> bool {
    ["µs", "bytes", "cores"].contains(&unit)
}

fn unit_name(unit: &str) -> &'static str {
    ["µs", "bytes", "cores"]
        .into_iter()
        .find(|known| *known == unit)
        .unwrap_or("")
}

fn operation_extractors(operation: &str) -> Vec<FigureExtractor> {
    type Of = fn(&OperationResult) -> Option<f64>;
    let latencies: [(&str, Of); 6] = [
        ("response mean", |of| Some(of.response.mean_us)),
        ("response p50", |of| Some(of.response.p50_us as f64)),
        ("response p99", |of| Some(of.response.p99_us as f64)),
        ("response p99.9", |of| Some(of.response.p99_9_us as f64)),
        ("response max", |of| Some(of.response.max_us as f64)),
        ("service p99", |of| {
            (of.service != of.response).then_some(of.service.p99_us as f64)
        }),
    ];
    let rate: (&str, &'static str, Direction, Of) =
        ("rate", "/s", Direction::Higher, |of| Some(of.rate_per_s));
    let latencies = latencies.map(|(figure, of)| (figure, "µs", Direction::Lower, of));
    std::iter::once(rate)
        .chain(latencies)
        .map(|(figure, unit, better, of)| {
            let name = operation.to_owned();
            FigureExtractor {
                name: format!("{operation} {figure}"),
                unit,
                better: Some(better),
                of: Box::new(move |run| run.operation(&name).and_then(of)),
            }
        })
        .collect()
}

impl ComparedFigure {
    /// Compares the rounds of a figure.
    pub fn new(name: &str, unit: &str, better: Option<Direction>, a: Vec<f64>, b: Vec<f64>) -> Self {
        let p_value = mann_whitney(&a, &b);
        let (a, b) = (RoundStats::new(a), RoundStats::new(b));
        let verdict = verdict(better, p_value, a.median, b.median);
        let ratio = (a.median != 0.0).then(|| b.median / a.median);
        Self {
            name: name.to_owned(),
            unit: unit.to_owned(),
            better,
            a,
            b,
            ratio,
            p_value,
            verdict,
        }
    }
}

fn verdict(better: Option<Direction>, p_value: f64, a: f64, b: f64) -> Verdict {
    if p_value >= SIGNIFICANCE || a == b {
        return Verdict::WithinNoise;
    }
    match (better, a > b) {
        (None, _) => Verdict::Differs,
        (Some(Direction::Higher), true) | (Some(Direction::Lower), false) => Verdict::ABetter,
        (Some(Direction::Higher), false) | (Some(Direction::Lower), true) => Verdict::BBetter,
    }
}

impl RoundStats {
    /// Returns the figures of a side, in the order of the rounds. All zero without rounds.
    pub fn new(rounds: Vec<f64>) -> Self {
        let Some(median) = median(&rounds) else {
            return Self::default();
        };
        let min = rounds.iter().copied().fold(f64::INFINITY, f64::min);
        let max = rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let deviation = median_absolute_deviation(&rounds).unwrap_or_default();
        Self {
            rounds,
            median,
            min,
            max,
            deviation,
        }
    }
}

#[cfg(test)]
#[path = "comparison_tests.rs"]
mod tests;
