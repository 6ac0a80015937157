//! The cells of an operation in a table, for both the terminal and the page.

use super::histograms::LatencySummary;
use super::run::OperationResult;
use super::units::{NONE, count, micros, rate};

/// The columns of a table of operations.
pub struct OperationColumns {
    /// True if the table has a column for rows, because an operation does not have exactly one row.
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

    /// Returns counts and response times.
    pub fn response(&self, of: &OperationResult) -> Vec<String> {
        let mut cells = vec![count(of.count), rate(of.rate_per_s)];
        cells.extend(self.rows.then(|| rate(rows_per_s(of))));
        cells.extend(latencies(of.count, &of.response));
        cells.push(count(of.error_count()));
        cells
    }

    /// Returns service times. `None` if they equal the response times.
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
