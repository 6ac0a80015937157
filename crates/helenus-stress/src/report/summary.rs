//! The figures at the top of the page, and the tables.

use super::chart::Ink;
use super::series::RunSeries;
use crate::results::cells::OperationColumns;
use crate::results::units::{count, duration, micros, percent, rate};
use crate::results::{LoadModel, OperationResult, RunResult};

/// One figure in large type.
pub struct Tile {
    pub label: String,
    pub value: String,
    pub detail: String,
    pub bad: bool,
}

/// A remark that the reader should see before the figures.
pub struct Notice {
    pub level: Level,
    pub text: String,
}

/// Severity of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Info,
    Warning,
    Bad,
}

impl Level {
    /// Returns the CSS class.
    pub fn class(self) -> &'static str {
        match self {
            Level::Info => "info",
            Level::Warning => "warning",
            Level::Bad => "bad",
        }
    }

    /// Returns the meaning of the colour as a word.
    pub fn word(self) -> &'static str {
        match self {
            Level::Info => "Note",
            Level::Warning => "Warning",
            Level::Bad => "Failed",
        }
    }
}

/// A row of the summary table.
pub struct SummaryRow {
    /// Name of the operation and of its figures.
    pub name: String,
    /// Label and colour of the series. `None` if there is only one.
    pub series: Option<(String, Ink)>,
    pub cells: Vec<String>,
    /// True if the row is less prominent: it has service times that differ from the response times.
    pub aside: bool,
}

/// A row of the table of errors.
pub struct ErrorRow {
    pub series: String,
    pub operation: String,
    pub name: String,
    pub code: String,
    pub count: String,
    pub example: String,
}

const CLOSED_LOOP: &str = "Closed loop: a request is sent when one before it has been answered, so a slow server slows the \
     load. The latencies are service times under a load that throttles itself; they leave out the waiting that clients with a \
     schedule of their own would have seen.";

/// Minimum fraction of its target rate that a run must reach.
const RATE_MET: f64 = 0.99;

/// Returns the large figures of a single run.
pub fn tiles(run: &RunResult) -> Vec<Tile> {
    let mut tiles = vec![throughput_tile(run)];
    for operation in run
        .operations
        .iter()
        .filter(|operation| operation.count > 0)
        .take(3)
    {
        let response = &operation.response;
        tiles.push(Tile {
            label: format!("{} p99", operation.name),
            value: micros(response.p99_us as f64),
            detail: format!(
                "p50 {}, max {}",
                micros(response.p50_us as f64),
                micros(response.max_us as f64)
            ),
            bad: false,
        });
    }
    tiles.extend(run.pacing.map(|pacing| Tile {
        label: "Lag".into(),
        value: micros(pacing.lag_max_ms * 1000.0),
        detail: format!("at most; {} at the end", micros(pacing.lag_end_ms * 1000.0)),
        bad: false,
    }));
    tiles.extend(reads_tile(run));
    tiles.push(errors_tile(run));
    tiles
}

fn throughput_tile(run: &RunResult) -> Tile {
    let done: u64 = run.operations.iter().map(|operation| operation.count).sum();
    let all: f64 = run.operations.iter().map(|operation| operation.rate_per_s).sum();
    let detail = match run.pacing {
        Some(pacing) => format!("of {} requested", rate(pacing.target_per_s)),
        None => format!("{} in {}", count(done), duration(run.duration_s)),
    };
    Tile {
        label: "Throughput".into(),
        value: rate(all),
        detail,
        bad: rate_missed(run),
    }
}

fn reads_tile(run: &RunResult) -> Option<Tile> {
    let reads = run.reads?;
    let detail = match (reads.missing, reads.corrupt) {
        (0, 0) => format!("{} misses, none unexpected", count(reads.misses)),
        (missing, corrupt) => format!("{} missing, {} corrupt", count(missing), count(corrupt)),
    };
    Some(Tile {
        label: "Hit rate".into(),
        value: percent(reads.hit_rate()?),
        detail,
        bad: reads.missing + reads.corrupt > 0,
    })
}

fn errors_tile(run: &RunResult) -> Tile {
    let errors = run.error_count();
    let done: u64 = run.operations.iter().map(|operation| operation.count).sum();
    let detail = match errors {
        0 => "every operation succeeded".into(),
        _ => format!(
            "{} of all operations",
            percent(errors as f64 / (errors + done) as f64)
        ),
    };
    Tile {
        label: "Errors".into(),
        value: count(errors),
        detail,
        bad: errors > 0,
    }
}

fn rate_missed(run: &RunResult) -> bool {
    run.pacing
        .is_some_and(|pacing| pacing.achieved_per_s < pacing.target_per_s * RATE_MET)
}

/// Returns the notices above the figures, the most severe first.
pub fn notices(run_series: &[RunSeries<'_>]) -> Vec<Notice> {
    let mut notices = Vec::new();
    for series in run_series {
        let who = if run_series.len() > 1 {
            format!("{}: ", series.label)
        } else {
            String::new()
        };
        for run in series.results() {
            notices.extend(verification(run).map(|text| (Level::Bad, format!("{who}{text}"))));
            notices.extend(missed_rate(run).map(|text| (Level::Warning, format!("{who}{text}"))));
            notices.extend(
                run.notes
                    .iter()
                    .map(|note| (Level::Warning, format!("{who}{note}"))),
            );
        }
    }
    let closed = |run: &RunResult| matches!(run.load, LoadModel::Closed { .. });
    if run_series.iter().flat_map(RunSeries::results).any(closed) {
        notices.push((Level::Info, CLOSED_LOOP.to_owned()));
    }
    notices.sort_by_key(|(level, _)| match level {
        Level::Bad => 0,
        Level::Warning => 1,
        Level::Info => 2,
    });
    notices.dedup_by(|a, b| a.1 == b.1);
    notices
        .into_iter()
        .map(|(level, text)| Notice { level, text })
        .collect()
}

fn verification(run: &RunResult) -> Option<String> {
    let reads = run.reads.filter(|reads| reads.missing + reads.corrupt > 0)?;
    Some(format!(
        "reads did not find what was written: {} missing, {} corrupt.",
        count(reads.missing),
        count(reads.corrupt)
    ))
}

fn missed_rate(run: &RunResult) -> Option<String> {
    let pacing = run.pacing.filter(|_| rate_missed(run))?;
    Some(format!(
        "the rate was missed: {} of {} requested ({}).",
        rate(pacing.achieved_per_s),
        rate(pacing.target_per_s),
        percent(pacing.achieved_per_s / pacing.target_per_s)
    ))
}

/// Returns the summary table: its heads, and its rows by operation and series.
pub fn summary(run_series: &[RunSeries<'_>]) -> (Vec<&'static str>, Vec<SummaryRow>) {
    let all = || {
        run_series
            .iter()
            .flat_map(RunSeries::results)
            .flat_map(|run| &run.operations)
    };
    let columns = OperationColumns::of(all());
    let mut names: Vec<&str> = Vec::new();
    for operation in all() {
        if !names.contains(&operation.name.as_str()) {
            names.push(&operation.name);
        }
    }
    let mut rows = Vec::new();
    for name in names {
        for (index, series) in run_series.iter().enumerate() {
            let shown = (run_series.len() > 1).then(|| (series.label.clone(), Ink::new(index)));
            for operation in series.results().filter_map(|run| run.operation(name)) {
                rows.extend(operation_rows(operation, &columns, &shown));
            }
        }
    }
    (columns.heads(), rows)
}

fn operation_rows(
    of: &OperationResult,
    columns: &OperationColumns,
    series: &Option<(String, Ink)>,
) -> Vec<SummaryRow> {
    let row = |name: String, cells, aside| SummaryRow {
        name,
        series: series.clone(),
        cells,
        aside,
    };
    let mut rows = vec![row(of.name.clone(), columns.response(of), false)];
    rows.extend(
        columns
            .service(of)
            .map(|cells| row(format!("{} service time", of.name), cells, true)),
    );
    rows
}

/// Returns the errors of all series by operation and code, the most frequent first.
pub fn errors(run_series: &[RunSeries<'_>]) -> Vec<ErrorRow> {
    let mut found = Vec::new();
    for series in run_series {
        for run in series.results() {
            for operation in &run.operations {
                found.extend(
                    operation
                        .errors
                        .iter()
                        .map(|error| (&series.label, &operation.name, error)),
                );
            }
        }
    }
    found.sort_by_key(|(.., error)| std::cmp::Reverse(error.count));
    let row = |(series, operation, error): (&String, &String, &crate::results::ErrorCount)| ErrorRow {
        series: series.clone(),
        operation: operation.clone(),
        name: error.name.clone(),
        code: error.code_text(),
        count: count(error.count),
        example: error.example.clone().unwrap_or_default(),
    };
    found.into_iter().map(row).collect()
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
