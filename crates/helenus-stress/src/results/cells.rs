//! The cells of an operation in a table, for the terminal and the page alike.

use super::histograms::LatencySummary;
use super::run::OperationResult;
use super::units::{NONE, count, micros, rate};

/// The columns that a table of operations has.
pub struct OperationColumns {
    /// Whether operations handle other than one row each, so that rows are counted too.
    rows: bool,
}

impl OperationColumns {
    /// Returns the columns that these operations need.
    pub fn of<'a>(mut operations: impl Iterator<Item = &'a OperationResult>) -> Self {
        Self {
            rows: operations.any(|of| of.rows != of.count && of.rows > 0),
        }
    }

    /// Returns the column heads.
    pub fn heads(&self) -> Vec<&'static str> {
        let mut heads = vec!["count", "rate"];
        heads.extend(self.rows.then_some("rows"));
        heads.extend([
            "mean", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "max", "errors",
        ]);
        heads
    }

    /// Counts and response times.
    pub fn response(&self, of: &OperationResult) -> Vec<String> {
        let mut cells = vec![count(of.count), rate(of.rate_per_s)];
        cells.extend(self.rows.then(|| rate(rows_per_s(of))));
        cells.extend(latencies(of.count, &of.response));
        cells.push(count(of.error_count()));
        cells
    }

    /// Service times alone; none where they are the response times.
    pub fn service(&self, of: &OperationResult) -> Option<Vec<String>> {
        if of.service == of.response {
            return None;
        }
        let mut cells = vec![String::new(); if self.rows { 3 } else { 2 }];
        cells.extend(latencies(of.count, &of.service));
        cells.push(String::new());
        Some(cells)
    }
}

fn rows_per_s(of: &OperationResult) -> f64 {
    if of.count == 0 {
        0.0
    } else {
        of.rate_per_s * of.rows as f64 / of.count as f64
    }
}

fn latencies(count: u64, of: &LatencySummary) -> Vec<String> {
    let percentiles = [
        of.p50_us,
        of.p90_us,
        of.p95_us,
        of.p99_us,
        of.p99_9_us,
        of.p99_99_us,
        of.max_us,
    ];
    let figures = std::iter::once(of.mean_us).chain(percentiles.map(|us| us as f64));
    figures
        .map(|us| if count == 0 { NONE.to_owned() } else { micros(us) })
        .collect()
}
