//! Counts and times of operations. Threads record them; they are added up for each second and for the whole run.

use std::time::Duration;

use crate::db::OpError;
use crate::operation::{OperationOutcome, ReadSummary};
use crate::results::run::{ErrorCount, ReadOutcome};
use crate::results::{LatencyHistogram, new_latency_histogram};

/// Figures of one kind of operation.
#[derive(Clone, Debug)]
pub struct OperationStats {
    /// Response times of successes: from when an operation was due (open loop) or sent (closed loop) to its answer.
    pub response: LatencyHistogram,
    /// Service times of successes: from when an operation was sent to its answer.
    pub service: LatencyHistogram,
    /// Rows written or returned.
    pub rows: u64,
    pub errors: Vec<ErrorCount>,
}

impl OperationStats {
    /// Returns the number of operations that succeeded.
    pub fn count(&self) -> u64 {
        self.service.len()
    }

    /// Returns the number of operations that failed.
    pub fn error_count(&self) -> u64 {
        self.errors.iter().map(|error| error.count).sum()
    }
}

/// Figures of all kinds of operations.
#[derive(Clone, Debug)]
pub struct Stats {
    /// Figures of each operation, in the order of the load's operations.
    pub operations: Vec<OperationStats>,
    pub reads: ReadOutcome,
}

impl Stats {
    /// Returns empty figures for a number of kinds of operations.
    pub fn new(kinds: usize) -> Self {
        let nothing = || OperationStats {
            response: new_latency_histogram(),
            service: new_latency_histogram(),
            rows: 0,
            errors: Vec::new(),
        };
        Self {
            operations: (0..kinds).map(|_| nothing()).collect(),
            reads: ReadOutcome::default(),
        }
    }

    /// Records an operation.
    pub fn record(&mut self, kind: usize, response: Duration, service: Duration, outcome: OperationOutcome) {
        let operation = &mut self.operations[kind];
        match outcome {
            Ok(found) => {
                operation.response.saturating_record(micros(response));
                operation.service.saturating_record(micros(service));
                operation.rows += found.rows;
                count_reads(&mut self.reads, &found);
            }
            Err(error) => count_error(&mut operation.errors, error),
        }
    }

    /// Adds other figures to these.
    pub fn add(&mut self, other: &Stats) {
        for (mine, theirs) in self.operations.iter_mut().zip(&other.operations) {
            add_histogram(&mut mine.response, &theirs.response);
            add_histogram(&mut mine.service, &theirs.service);
            mine.rows += theirs.rows;
            for error in &theirs.errors {
                add_error(&mut mine.errors, error);
            }
        }
        self.reads.hits += other.reads.hits;
        self.reads.misses += other.reads.misses;
        self.reads.missing += other.reads.missing;
        self.reads.corrupt += other.reads.corrupt;
    }

    /// Resets all figures, and keeps their memory.
    pub fn clear(&mut self) {
        for operation in &mut self.operations {
            if !operation.service.is_empty() {
                operation.response.reset();
                operation.service.reset();
            }
            operation.rows = 0;
            operation.errors.clear();
        }
        self.reads = ReadOutcome::default();
    }

    /// Returns the number of operations of all kinds that succeeded.
    pub fn count(&self) -> u64 {
        self.operations.iter().map(OperationStats::count).sum()
    }

    /// Returns the number of operations of all kinds that failed.
    pub fn error_count(&self) -> u64 {
        self.operations.iter().map(OperationStats::error_count).sum()
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).max(1)
}

fn count_reads(reads: &mut ReadOutcome, found: &ReadSummary) {
    reads.hits += u64::from(found.hits);
    reads.misses += u64::from(found.misses);
    reads.missing += u64::from(found.missing);
    reads.corrupt += u64::from(found.corrupt);
}

fn count_error(errors: &mut Vec<ErrorCount>, error: OpError) {
    let error = ErrorCount {
        code: error.code,
        name: error.name.into_owned(),
        count: 1,
        example: Some(error.message),
    };
    add_error(errors, &error);
}

fn add_error(errors: &mut Vec<ErrorCount>, error: &ErrorCount) {
    let same = |known: &&mut ErrorCount| (known.code, &known.name) == (error.code, &error.name);
    match errors.iter_mut().find(same) {
        Some(known) => known.count += error.count,
        None => errors.push(error.clone()),
    }
}

fn add_histogram(mine: &mut LatencyHistogram, theirs: &LatencyHistogram) {
    if !theirs.is_empty() {
        mine.add(theirs)
            .unwrap_or_else(|error| unreachable!("all have the same bounds: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn figures_add_up_and_can_be_forgotten() {
        let mut one = Stats::new(2);
        one.record(0, 5 * MS, 2 * MS, Ok(ReadSummary::row(true)));
        one.record(0, 5 * MS, 2 * MS, Ok(ReadSummary::row(false)));
        one.record(1, MS, MS, Err(OpError::client("client timeout", "slow")));
        let mut all = Stats::new(2);
        all.add(&one);
        all.add(&one);
        assert_eq!((all.count(), all.error_count()), (4, 2));
        assert_eq!((all.reads.hits, all.reads.corrupt), (2, 2));
        assert_eq!(all.operations[0].rows, 4);
        assert_eq!(all.operations[0].response.max() / 1000, 5);
        assert_eq!(all.operations[0].service.max() / 1000, 2);
        assert_eq!(
            all.operations[1].errors.len(),
            1,
            "the same error is counted, not listed twice"
        );
        all.clear();
        assert_eq!(
            (all.count(), all.error_count(), all.reads),
            (0, 0, ReadOutcome::default())
        );
    }
}
