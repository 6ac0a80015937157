//! The comparison of one table: workers join ranges, and rows that differ are read again after a pause.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::Result;
use indicatif::ProgressBar;

use super::args::CompareArgs;
use super::join::join;
use super::plan::TablePlan;
use super::range_rows::RangeRows;
use super::report::TableReport;
use super::row::{Difference, TableRow};
use crate::node_session::{NodeSession, Nodes};
use crate::shell::client::interrupted;
use crate::shell::interrupt::Interrupt;

/// Maximum number of rows that are read again. If more differ, the comparison of the table stops.
const SUSPECTS_MAX: usize = 10_000;
/// Number of times that a row which differs is read again, each after a pause.
const FURTHER_READS: usize = 2;

/// The comparison of a table.
pub struct Comparison<'a> {
    pub args: &'a CompareArgs,
    pub plan: &'a TablePlan,
    pub a: &'a Nodes,
    pub b: &'a Nodes,
    pub ranges: &'a [(i64, i64)],
    pub interrupt: &'a Interrupt,
    pub progress: &'a ProgressBar,
}

/// State that the workers share.
#[derive(Default)]
struct Shared {
    next_range: AtomicUsize,
    rows_a: AtomicU64,
    rows_b: AtomicU64,
    /// Rows that differ so far.
    suspects: Mutex<Vec<TableRow>>,
    is_full: AtomicBool,
    has_failed: AtomicBool,
}

impl Comparison<'_> {
    /// Compares the table, and fills in the report.
    ///
    /// # Errors
    /// If a side can't be read, or after Ctrl-C.
    pub fn run(&self, report: &mut TableReport) -> Result<()> {
        let started = Instant::now();
        let shared = Shared::default();
        let workers = usize::from(self.args.workers).min(self.ranges.len());
        thread::scope(|scope| {
            let spawned: Vec<_> = (0..workers)
                .map(|number| {
                    let shared = &shared;
                    scope.spawn(move || {
                        let worked = self.work(number, shared);
                        if worked.is_err() {
                            shared.has_failed.store(true, Ordering::Relaxed);
                        }
                        worked
                    })
                })
                .collect();
            spawned.into_iter().try_for_each(|worker| {
                let ended = worker.join();
                ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        })?;
        report.rows_a = shared.rows_a.into_inner();
        report.rows_b = shared.rows_b.into_inner();
        report.is_complete = !shared.is_full.into_inner();
        let suspects = shared
            .suspects
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        self.read_again(suspects, report)?;
        report.time = started.elapsed();
        Ok(())
    }

    fn reader(&self, side: &Nodes, number: usize) -> NodeSession {
        let workers = f64::from(self.args.workers);
        let rate = self.args.rate.map(|rows| f64::from(rows) / workers);
        NodeSession::new(side, number, rate)
    }

    fn work(&self, number: usize, shared: &Shared) -> Result<()> {
        let (mut reader_a, mut reader_b) = (self.reader(self.a, number), self.reader(self.b, number));
        let is_static = |position: usize| {
            let column = self.plan.columns.get(position);
            column.is_some_and(|column| column.is_static)
        };
        while !shared.has_failed.load(Ordering::Relaxed) && !shared.is_full.load(Ordering::Relaxed) {
            let next = shared.next_range.fetch_add(1, Ordering::Relaxed);
            let Some(range) = self.ranges.get(next) else { break };
            let mut rows_a = RangeRows::new(&mut reader_a, self.plan, *range);
            let mut rows_b = RangeRows::new(&mut reader_b, self.plan, *range);
            join(&mut rows_a, &mut rows_b, is_static, |row| {
                let mut suspects = shared.suspects.lock().unwrap_or_else(PoisonError::into_inner);
                let has_room = suspects.len() < SUSPECTS_MAX;
                match has_room {
                    true => suspects.push(row),
                    false => shared.is_full.store(true, Ordering::Relaxed),
                }
                has_room
            })?;
            shared.rows_a.fetch_add(rows_a.count, Ordering::Relaxed);
            shared.rows_b.fetch_add(rows_b.count, Ordering::Relaxed);
            self.progress.inc(1);
        }
        Ok(())
    }

    /// Reads rows that differ again, and reports those that still do.
    fn read_again(&self, mut suspects: Vec<TableRow>, report: &mut TableReport) -> Result<()> {
        let (mut reader_a, mut reader_b) = (self.reader(self.a, 0), self.reader(self.b, 0));
        for _ in 0..FURTHER_READS {
            if suspects.is_empty() {
                return Ok(());
            }
            if !self.interrupt.sleep(self.args.pause) {
                return Err(interrupted());
            }
            report.differences.clear();
            let mut still = Vec::new();
            for suspect in suspects {
                let a = self.row(&mut reader_a, &suspect)?;
                let b = self.row(&mut reader_b, &suspect)?;
                let Some(difference) = Difference::of(a.as_ref(), b.as_ref()) else {
                    continue;
                };
                if report.differences.len() < self.args.differences_max {
                    let line = self.line(&suspect, &difference, a.as_ref(), b.as_ref());
                    report.differences.push(line);
                }
                still.push(suspect);
            }
            report.differing = still.len() as u64;
            suspects = still;
        }
        Ok(())
    }

    /// Reads one row by its key. `None` if it does not exist.
    fn row(&self, reader: &mut NodeSession, row: &TableRow) -> Result<Option<TableRow>> {
        let (statement, values) = self.plan.statement_of(row);
        let found = reader.first_row(statement, &values)?;
        found
            .map(|(row, read_at_s)| self.plan.decode(row, read_at_s))
            .transpose()
    }

    fn line(
        &self,
        row: &TableRow,
        difference: &Difference,
        a: Option<&TableRow>,
        b: Option<&TableRow>,
    ) -> String {
        let key = self.plan.key_text(row);
        let positions = match difference {
            Difference::OnlyInA => return format!("{key}: only in a"),
            Difference::OnlyInB => return format!("{key}: only in b"),
            Difference::Cells(positions) => positions,
        };
        let text = |row: Option<&TableRow>, position: usize| {
            let cell = row.and_then(|row| row.cells.get(position));
            cell.map_or_else(String::new, |cell| self.plan.cell_text(position, cell))
        };
        let cells = positions.iter().map(|position| {
            let name = self.plan.columns.get(*position);
            let name = name.map_or("", |column| column.name.as_str());
            format!(
                "{name} is {} in a, {} in b",
                text(a, *position),
                text(b, *position)
            )
        });
        format!("{key}: {}", cells.collect::<Vec<_>>().join("; "))
    }
}
