//! Following one stream of a table's log.
//!
//! The time of a change is at most five seconds from the clock of the node that wrote it, and a change becomes visible some time later. So
//! two passes read a stream. The fast one reads what is newer than the newest seen change, less an overlap, and skips what was sent. The
//! settled one reads each window of time once more when it is older than the settle time. Only that one advances the stored time.
//!
//! A stream that lags by more than [`CATCH_UP`] is read by settled passes alone, window by window.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use helenus_cql::value::uuid::{from_ticks, ticks, ticks_at_micros};

use super::changes::{Changes, LogRow, Position};
use super::plan::TablePlan;
use super::shared::{Phase, Shared};
use super::state::Reached;
use super::target::Batch;
use super::worker::{Next, Worker};
use crate::table_reading::RangeScan;

/// Time before the newest seen change that a fast pass reads again.
const OVERLAP_US: i64 = 1_000_000;
/// Lag from which no fast passes are made, above the settle time.
const CATCH_UP: Duration = Duration::from_secs(60);
/// Time of the log that a pass reads at once while it catches up, if the stream has changes.
const WINDOW_US: i64 = 60_000_000;
/// Time after a fast pass that found changes, and maximum time after passes that found none.
const PAUSE: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Sent changes that are remembered. Others are sent again by the settled pass.
const SENT_MAX: usize = 1_000_000;
/// Time by which changes of a stream may be newer than its end.
const CLOCK_SKEW_US: i64 = 10_000_000;
/// Newest whole microsecond of a `timeuuid`, in the year 5236, in µs since 1970. A `timeuuid` has 60 bits of ticks of 100 ns.
const TIME_US_MAX: i64 = 103_072_857_660_684_696;
/// Lower 64 bits of the greatest `timeuuid` of a time.
const LAST_OF_TIME: u64 = 0x7F7F_7F7F_7F7F_7F7F;

/// A stream that is followed.
pub struct FollowJob {
    /// Position of the table among those of the replication.
    pub table: usize,
    pub stream: Bytes,
    /// Time up to which all changes were sent, in µs since 1970.
    until_us: i64,
    /// Time of the newest change that was sent.
    newest_us: i64,
    /// Changes after `until_us` that were sent.
    sent: HashSet<Position>,
    plan_number: u64,
    /// Time of the last settled pass. `None` before the first one.
    settled_at: Option<Instant>,
    pause: Duration,
    window_us: i64,
    /// Rows of the log that were sent.
    rows: u64,
    /// Value of `rows` when `until_us` was last advanced.
    rows_before: u64,
    /// Greatest lag in seconds since `until_us` was last advanced.
    lag_s: f64,
}

/// Returns true for a stream that has ended, and whose changes were all sent.
pub fn is_finished(until_us: i64, end_us: Option<i64>) -> bool {
    end_us.is_some_and(|end_us| until_us >= end_us.saturating_add(CLOCK_SKEW_US))
}

/// Returns the time from which a new stream is read. `begin_us` is the time of its generation.
pub fn first_us(start_us: i64, begin_us: i64) -> i64 {
    start_us.max(begin_us.saturating_sub(CLOCK_SKEW_US))
}

impl FollowJob {
    pub fn new(table: usize, stream: Bytes, until_us: i64) -> FollowJob {
        FollowJob {
            table,
            stream,
            until_us,
            newest_us: until_us,
            sent: HashSet::new(),
            plan_number: 0,
            settled_at: None,
            pause: PAUSE,
            window_us: WINDOW_US,
            rows: 0,
            rows_before: 0,
            lag_s: 0.0,
        }
    }

    /// Makes the passes that are due.
    pub fn run(&mut self, worker: &mut Worker<'_>) -> Result<Next> {
        let shared = worker.shared;
        let Some(table) = shared.tables.get(self.table) else {
            return Ok(Next::Done);
        };
        let (plan, ends_at_us) = match table.phase() {
            Phase::Running(plan) => (plan, None),
            Phase::Ending { plan, until_us, .. } => (plan, Some(until_us)),
            Phase::Stopped(_) => return Ok(Next::Done),
        };
        let now_us = shared.now_us();
        if plan.log_ttl_s > 0 && now_us - self.until_us > plan.log_ttl_s.saturating_mul(1_000_000) {
            table.stop(format!(
                "changes were last sent {} s ago, and the log keeps them for {} s: a part is lost. Give --restart-copy to copy the table again",
                (now_us - self.until_us) / 1_000_000,
                plan.log_ttl_s
            ));
            return Ok(Next::Done);
        }
        if plan.number != self.plan_number {
            // Changes that were sent by another plan may lack columns. The settled pass sends them again.
            self.sent.clear();
            self.plan_number = plan.number;
        }
        let settled_us = now_us - shared.settle_us;
        if settled_us - self.until_us > i64::try_from(CATCH_UP.as_micros()).unwrap_or(i64::MAX) {
            return self.catch_up(worker, &plan, settled_us);
        }
        let after_us = self.until_us.max(self.newest_us.min(now_us) - OVERLAP_US);
        let sent = self.send(worker, &plan, (after_us, i64::MAX))?;
        self.complete(shared, now_us);
        self.pause = match sent {
            0 => (self.pause * 2).min(PAUSE_MAX),
            _ => PAUSE,
        };
        let interval = shared.settle / 3;
        let is_due = self.settled_at.is_none_or(|at| at.elapsed() >= interval);
        if is_due && settled_us > self.until_us {
            self.send(worker, &plan, (self.until_us, settled_us))?;
            if worker.is_current(self.table, &plan)? {
                self.reach(worker, settled_us)?;
            }
        }
        Ok(self.next(worker, ends_at_us))
    }

    /// Sends a window of a stream that lags.
    fn catch_up(&mut self, worker: &mut Worker<'_>, plan: &TablePlan, settled_us: i64) -> Result<Next> {
        let to_us = settled_us.min(self.until_us.saturating_add(self.window_us));
        self.sent.clear();
        let sent = self.send(worker, plan, (self.until_us, to_us))?;
        self.sent.clear();
        if worker.is_current(self.table, plan)? {
            self.complete(worker.shared, to_us);
            self.reach(worker, to_us)?;
            self.window_us = match sent {
                0 => self.window_us.saturating_mul(2),
                _ => WINDOW_US,
            };
        }
        Ok(match self.next(worker, None) {
            Next::Done => Next::Done,
            Next::After(_) => Next::After(Duration::ZERO),
        })
    }

    /// Notes that a pass has sent all changes that were visible at a time. The lag is greatest just before that.
    fn complete(&mut self, shared: &Shared, time_us: i64) {
        let lag = shared.lag(self.table, &self.stream);
        self.lag_s = self.lag_s.max(lag.seconds);
        shared.completed(self.table, &self.stream, time_us);
    }

    /// Notes that all changes up to a time were sent.
    fn reach(&mut self, worker: &mut Worker<'_>, until_us: i64) -> Result<()> {
        let shared = worker.shared;
        let passed_s = until_us.saturating_sub(self.until_us).max(1) as f64 / 1e6;
        let rows_per_s = (self.rows - self.rows_before) as f64 / passed_s;
        shared.set_rate(self.table, &self.stream, rows_per_s);
        self.rows_before = self.rows;
        self.until_us = until_us;
        self.newest_us = self.newest_us.max(until_us);
        self.settled_at = Some(Instant::now());
        let until = from_ticks(ticks_at_micros(until_us), LAST_OF_TIME);
        self.sent.retain(|(time, _)| ticks(*time) > ticks(until));
        let Some(table) = shared.tables.get(self.table) else {
            return Ok(());
        };
        let reached = Reached {
            until_us,
            lag_s: std::mem::take(&mut self.lag_s),
            rows_per_s,
            rows: self.rows,
        };
        shared
            .state
            .reach(&mut worker.source, &table.name, &self.stream, &reached)
    }

    /// Returns when the stream is due again. `ends_at_us` is the time up to which a table that stops is followed.
    fn next(&self, worker: &Worker<'_>, ends_at_us: Option<i64>) -> Next {
        let is_over = ends_at_us.is_some_and(|ends_at_us| self.until_us >= ends_at_us)
            || is_finished(self.until_us, worker.shared.end_of(&self.stream));
        match is_over {
            true => Next::Done,
            false => Next::After(self.pause),
        }
    }

    /// Sends the changes after a time, up to another one, that were not sent. Returns their number.
    fn send(
        &mut self,
        worker: &mut Worker<'_>,
        plan: &TablePlan,
        (after_us, to_us): (i64, i64),
    ) -> Result<u64> {
        let shared = worker.shared;
        let Some(table) = shared.tables.get(self.table) else {
            return Ok(0);
        };
        let values = vec![self.stream.clone(), last_of(after_us), last_of(to_us)];
        let mut scan = RangeScan::of(&mut worker.source, &plan.log, values);
        let mut batch = Batch::new(plan, shared.kind);
        let mut changes = Changes::default();
        let mut marks = Vec::new();
        let mut newest_us = self.newest_us;
        let mut sent = 0;
        while let Some((row, _)) = scan.next_row()? {
            let row = LogRow::decode(plan, row)?;
            if self.sent.contains(&row.position) {
                continue;
            }
            marks.push(row.position);
            newest_us = newest_us.max(row.time_us());
            let now_s = shared.now_us().div_euclid(1_000_000);
            if let Some(change) = changes.change(plan, row, now_s)? {
                batch.add(&change, now_s)?;
            }
            if batch.is_full() && !changes.is_open() {
                batch.send(&mut worker.target)?;
                sent += self.mark(&mut marks);
            }
        }
        batch.send(&mut worker.target)?;
        sent += self.mark(&mut marks);
        self.newest_us = newest_us;
        self.rows += sent;
        table.count_sent(sent);
        Ok(sent)
    }

    /// Remembers changes that were acknowledged. Returns their number.
    fn mark(&mut self, marks: &mut Vec<Position>) -> u64 {
        let count = marks.len() as u64;
        if self.sent.len() > SENT_MAX {
            self.sent.clear();
        }
        self.sent.extend(marks.drain(..));
        count
    }
}

/// Returns the greatest `timeuuid` of a time in µs since 1970, serialized.
fn last_of(time_us: i64) -> Bytes {
    let ticks = ticks_at_micros(time_us.clamp(0, TIME_US_MAX)).saturating_add(9);
    Bytes::copy_from_slice(&from_ticks(ticks, LAST_OF_TIME).to_be_bytes())
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
