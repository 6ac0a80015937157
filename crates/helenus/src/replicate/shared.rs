//! State that the threads of the process share: the tables with their plans, the clock of the source, and what was sent.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use helenus_import::TableName;
use parking_lot::Mutex;

use super::plan::TablePlan;
use super::state::State;
use super::target::ClusterKind;
use crate::node_session::Nodes;
use crate::shell::interrupt::Interrupt;

/// The state of a table in this process.
#[derive(Clone, Debug)]
pub enum Phase {
    Running(Arc<TablePlan>),
    /// The table stops once all changes up to a time are sent.
    Ending {
        plan: Arc<TablePlan>,
        until_us: i64,
        reason: String,
    },
    /// With the reason.
    Stopped(String),
}

/// A table of the replication.
pub struct TableWork {
    pub name: TableName,
    /// Time from which changes are sent, in µs since 1970.
    pub start_us: i64,
    /// Number of ranges of the copy. 0 if no rows are copied.
    pub ranges: i32,
    phase: Mutex<Phase>,
    copied: Mutex<BTreeSet<i32>>,
    rows_copied: AtomicU64,
    rows_sent: AtomicU64,
}

impl TableWork {
    pub fn new(plan: TablePlan, start_us: i64, ranges: i32, copied: BTreeSet<i32>) -> TableWork {
        TableWork {
            name: plan.name.clone(),
            start_us,
            ranges,
            phase: Mutex::new(Phase::Running(Arc::new(plan))),
            copied: Mutex::new(copied),
            rows_copied: AtomicU64::new(0),
            rows_sent: AtomicU64::new(0),
        }
    }

    pub fn phase(&self) -> Phase {
        self.phase.lock().clone()
    }

    pub fn set_phase(&self, phase: Phase) {
        *self.phase.lock() = phase;
    }

    /// Stops the table, and says why.
    pub fn stop(&self, reason: String) {
        let mut phase = self.phase.lock();
        if !matches!(*phase, Phase::Stopped(_)) {
            eprintln!("{}: stopped: {reason}", self.name);
            *phase = Phase::Stopped(reason);
        }
    }

    /// Returns the ranges that are not copied.
    pub fn missing_ranges(&self) -> Vec<i32> {
        let copied = self.copied.lock();
        (0..self.ranges).filter(|range| !copied.contains(range)).collect()
    }

    /// Adds ranges that other processes have copied.
    pub fn add_copied(&self, ranges: BTreeSet<i32>) {
        self.copied.lock().extend(ranges);
    }

    /// Notes that a range is copied.
    pub fn finish_range(&self, range: i32) {
        self.copied.lock().insert(range);
    }

    pub fn count_copied(&self, rows: u64) {
        self.rows_copied.fetch_add(rows, Ordering::Relaxed);
    }

    /// Counts rows of the log that were sent.
    pub fn count_sent(&self, rows: u64) {
        self.rows_sent.fetch_add(rows, Ordering::Relaxed);
    }

    pub fn rows_copied(&self) -> u64 {
        self.rows_copied.load(Ordering::Relaxed)
    }

    pub fn rows_sent(&self) -> u64 {
        self.rows_sent.load(Ordering::Relaxed)
    }
}

/// The distance of a target from its source.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lag {
    /// Age in seconds of the oldest change that may not be sent.
    pub seconds: f64,
    /// Rows of the log that wait to be sent. The number is estimated from the rate of the changes that were sent last.
    pub rows: f64,
}

/// The progress of a stream.
#[derive(Clone, Copy, Debug, Default)]
struct StreamProgress {
    /// The time at which the last complete pass began, in µs since 1970.
    completed_us: i64,
    rows_per_s: f64,
}

impl StreamProgress {
    fn lag(self, now_us: i64) -> Lag {
        let seconds = now_us.saturating_sub(self.completed_us).max(0) as f64 / 1e6;
        Lag {
            seconds,
            rows: seconds * self.rows_per_s,
        }
    }
}

/// State that the threads share.
pub struct Shared {
    pub state: State,
    pub source: Nodes,
    pub target: Nodes,
    pub kind: ClusterKind,
    pub settle: Duration,
    pub settle_us: i64,
    pub interrupt: Interrupt,
    pub tables: Vec<TableWork>,
    /// Difference of the source's clock to that of this process, in µs.
    clock_us: AtomicI64,
    /// Version of the source's schema for which the plans are made.
    schema_version: Mutex<Option<Bytes>>,
    /// The progress of streams, by table and stream.
    progress: Mutex<HashMap<(usize, Bytes), StreamProgress>>,
    /// The ends of streams that have ended.
    ends: Mutex<HashMap<Bytes, i64>>,
}

impl Shared {
    pub fn new(
        state: State,
        (source, target, kind): (Nodes, Nodes, ClusterKind),
        settle: Duration,
        interrupt: Interrupt,
        tables: Vec<TableWork>,
    ) -> Shared {
        Shared {
            state,
            source,
            target,
            kind,
            settle,
            settle_us: i64::try_from(settle.as_micros()).unwrap_or(i64::MAX),
            interrupt,
            tables,
            clock_us: AtomicI64::new(0),
            schema_version: Mutex::new(None),
            progress: Mutex::new(HashMap::new()),
            ends: Mutex::new(HashMap::new()),
        }
    }

    /// Returns the time of the source in µs since 1970.
    pub fn now_us(&self) -> i64 {
        local_us().saturating_add(self.clock_us.load(Ordering::Relaxed))
    }

    /// Notes the time of the source, in ms since 1970.
    pub fn set_source_time(&self, time_ms: i64) {
        let difference_us = time_ms.saturating_mul(1000).saturating_sub(local_us());
        self.clock_us.store(difference_us, Ordering::Relaxed);
    }

    /// Returns the version of the source's schema for which the plans are made.
    pub fn schema_version(&self) -> Option<Bytes> {
        self.schema_version.lock().clone()
    }

    pub fn set_schema_version(&self, version: Option<Bytes>) {
        *self.schema_version.lock() = version;
    }

    /// Notes that a pass has sent all changes of a stream that were visible at a time, in µs since 1970.
    pub fn completed(&self, table: usize, stream: &Bytes, time_us: i64) {
        let mut progress = self.progress.lock();
        progress.entry((table, stream.clone())).or_default().completed_us = time_us;
    }

    /// Notes the rate of a stream's changes, in rows of the log a second.
    pub fn set_rate(&self, table: usize, stream: &Bytes, rows_per_s: f64) {
        let mut progress = self.progress.lock();
        // A stream without a complete pass has no lag yet.
        if let Some(progress) = progress.get_mut(&(table, stream.clone())) {
            progress.rows_per_s = rows_per_s;
        }
    }

    /// Forgets the progress of a stream that this process does not follow any more.
    pub fn forget(&self, table: usize, stream: &Bytes) {
        self.progress.lock().remove(&(table, stream.clone()));
    }

    /// Returns the lag of a stream. Zero before its first complete pass.
    pub fn lag(&self, table: usize, stream: &Bytes) -> Lag {
        let progress = self.progress.lock().get(&(table, stream.clone())).copied();
        progress.map_or_else(Lag::default, |progress| progress.lag(self.now_us()))
    }

    /// Returns the lag of a table: the greatest time of its streams, and the rows of all. `None` if this process follows none of them.
    pub fn lag_of_table(&self, table: usize) -> Option<Lag> {
        let now_us = self.now_us();
        let progress = self.progress.lock();
        let of_table = progress.iter().filter(|((of, _), _)| *of == table);
        of_table
            .map(|(_, progress)| progress.lag(now_us))
            .reduce(|all, one| Lag {
                seconds: all.seconds.max(one.seconds),
                rows: all.rows + one.rows,
            })
    }

    /// Returns the end of a stream. `None` for a current one.
    pub fn end_of(&self, stream: &Bytes) -> Option<i64> {
        self.ends.lock().get(stream).copied()
    }

    pub fn set_ends(&self, ends: HashMap<Bytes, i64>) {
        *self.ends.lock() = ends;
    }
}

fn local_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "shared_tests.rs"]
mod tests;
