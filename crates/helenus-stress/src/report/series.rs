//! The series of a report's charts. Each is a run, or all rounds of a side of a comparison.

use std::collections::BTreeMap;

use super::chart::{Line, Number};
use crate::results::noise::median;
use crate::results::{Interval, LatencyHistogram, LoadedRun, RunResult, new_latency_histogram};

/// Maximum number of rows. More rows are merged, so that the page of a day's run can still be opened.
const MOST_ROWS: usize = 8000;

/// One of the series that are compared.
pub struct RunSeries<'a> {
    /// Label, unique among the report's series.
    pub label: String,
    pub runs: Vec<&'a LoadedRun>,
    /// Rows of each run, by time in milliseconds.
    rows: Vec<BTreeMap<u64, Row>>,
}

/// An interval with its place on the grid.
#[derive(Clone, Debug)]
pub struct Row {
    pub interval: Interval,
    pub length_s: f64,
}

impl<'a> RunSeries<'a> {
    /// Creates a series of one or more runs.
    pub fn new(label: String, runs: Vec<&'a LoadedRun>) -> Self {
        let rows = runs.iter().map(|run| rows(&run.intervals)).collect();
        Self { label, runs, rows }
    }

    /// Returns the results of the series' runs.
    pub fn results(&self) -> impl Iterator<Item = &'a RunResult> {
        self.runs.iter().map(|run| &run.result)
    }

    /// Returns the times, in milliseconds since the start, at which a run of the series has a row.
    pub fn times(&self) -> impl Iterator<Item = u64> {
        self.rows.iter().flat_map(|rows| rows.keys().copied())
    }

    /// Returns the length of the series' intervals, in milliseconds.
    pub fn step_ms(&self) -> u64 {
        self.rows.iter().map(step_ms).max().unwrap_or_default()
    }

    /// Returns the values of a figure at the given times. Each is the median of the runs. Several runs also have a band.
    pub fn line(&self, times: &[u64], of: impl Fn(&Row) -> Option<f64>) -> Line {
        let at = |time: &u64| -> Vec<f64> {
            self.rows
                .iter()
                .filter_map(|rows| rows.get(time).and_then(&of))
                .collect()
        };
        let values: Vec<Vec<f64>> = times.iter().map(at).collect();
        let edge = |pick: fn(f64, f64) -> f64| -> Vec<Option<Number>> {
            values
                .iter()
                .map(|values| values.iter().copied().reduce(pick).map(Number))
                .collect()
        };
        Line {
            middle: values.iter().map(|values| median(values).map(Number)).collect(),
            band: (self.runs.len() > 1).then(|| (edge(f64::min), edge(f64::max))),
        }
    }

    /// Returns the sum of the runs' histograms with this tag. `None` if there are none.
    pub fn histogram(&self, tag: &str) -> Option<LatencyHistogram> {
        let mut total: Option<LatencyHistogram> = None;
        for histogram in self.runs.iter().filter_map(|run| run.histograms.get(tag)) {
            let total = total.get_or_insert_with(new_latency_histogram);
            // Both are made with the same bounds.
            if let Err(error) = total.add(histogram) {
                unreachable!("histograms of the same bounds add up: {error}");
            }
        }
        total
    }
}

impl Row {
    /// Returns successes per second of the named operation. `None` is all operations.
    pub fn rate(&self, operation: Option<&str>) -> Option<f64> {
        self.per_second(operation, |of| of.ops)
    }

    /// Returns errors per second of the named operation. `None` is all operations.
    pub fn error_rate(&self, operation: Option<&str>) -> Option<f64> {
        self.per_second(operation, |of| of.errors)
    }

    fn per_second(
        &self,
        operation: Option<&str>,
        of: fn(&crate::results::IntervalOperation) -> u64,
    ) -> Option<f64> {
        let counted: u64 = match operation {
            Some(name) => of(self.interval.operations.get(name)?),
            None => self.interval.operations.values().map(of).sum(),
        };
        (self.length_s > 0.0).then(|| counted as f64 / self.length_s)
    }
}

/// Returns intervals on a grid of whole steps, so that several runs can share an axis.
fn rows(intervals: &[Interval]) -> BTreeMap<u64, Row> {
    let mut rows: Vec<Row> = Vec::with_capacity(intervals.len());
    let mut before_s = 0.0;
    for interval in intervals {
        let length_s = interval.elapsed_s - before_s;
        before_s = interval.elapsed_s;
        rows.push(Row {
            interval: interval.clone(),
            length_s,
        });
    }
    let usual = usual_length_s(&rows);
    fold_short_end(&mut rows, usual);
    let merged = rows.len().div_ceil(MOST_ROWS).max(1);
    let rows: Vec<Row> = rows.chunks(merged).map(merge).collect();
    on_grid(rows, usual * merged as f64)
}

/// Returns the median length rounded to two digits, because intervals of 1 s have 0.999 or 1.002 s.
fn usual_length_s(rows: &[Row]) -> f64 {
    let median = median(&rows.iter().map(|row| row.length_s).collect::<Vec<_>>())
        .unwrap_or(1.0)
        .max(0.001);
    let scale = 10f64.powf(1.0 - median.log10().floor());
    (median * scale).round() / scale
}

/// Merges a short last row into the row before, because a rate over a few milliseconds would be noise.
fn fold_short_end(rows: &mut Vec<Row>, usual_s: f64) {
    if rows.len() > 1 && rows.last().is_some_and(|row| row.length_s < usual_s / 2.0) {
        let tail = rows.split_off(rows.len() - 2);
        rows.push(merge(&tail));
    }
}

fn on_grid(rows: Vec<Row>, step_s: f64) -> BTreeMap<u64, Row> {
    let step_ms = (step_s * 1000.0).max(1.0).round();
    let mut grid = BTreeMap::new();
    let mut next = 0;
    for row in rows {
        let at = (row.interval.elapsed_s * 1000.0 / step_ms).round().max(0.0) as u64;
        next = at.max(next);
        grid.insert(next * step_ms as u64, row);
        next += 1;
    }
    grid
}

fn step_ms(rows: &BTreeMap<u64, Row>) -> u64 {
    rows.keys()
        .zip(rows.keys().skip(1))
        .map(|(a, b)| b - a)
        .min()
        .unwrap_or_default()
}

/// Merges rows into one: counts are added, latencies and lag are the maximum, and gauges are the last.
fn merge(rows: &[Row]) -> Row {
    let mut merged = rows[0].clone();
    for row in &rows[1..] {
        merged.length_s += row.length_s;
        let (into, from) = (&mut merged.interval, &row.interval);
        into.elapsed_s = from.elapsed_s;
        into.lag_ms = larger(into.lag_ms, from.lag_ms);
        for (name, from) in &from.operations {
            let into = into.operations.entry(name.clone()).or_default();
            into.ops += from.ops;
            into.errors += from.errors;
            into.p50_us = into.p50_us.max(from.p50_us);
            into.p99_us = into.p99_us.max(from.p99_us);
            into.p99_9_us = into.p99_9_us.max(from.p99_9_us);
            into.max_us = into.max_us.max(from.max_us);
        }
        into.server.cpu_cores = larger(into.server.cpu_cores, from.server.cpu_cores);
        into.server.rss_bytes = into.server.rss_bytes.max(from.server.rss_bytes);
        into.server.gauges.extend(
            from.server
                .gauges
                .iter()
                .map(|(name, value)| (name.clone(), *value)),
        );
    }
    merged
}

fn larger(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.into_iter().chain(b).reduce(f64::max)
}

#[cfg(test)]
#[path = "series_tests.rs"]
mod tests;
