//! Records the latency of statements, and the rows that they have read, in the [`crate::metrics`].

use std::time::{Duration, Instant};

use helenus_cql::error::{CqlError, WriteType};
use uuid::Uuid;

use crate::analysis::modification::ModificationPlan;
use crate::analysis::{Plan, Planned, PlannedBatch};
use crate::cluster::Source;
use crate::execution::sampling;
use crate::measurement;
use crate::metrics::{Side, StatementKind};
use crate::response::Outcome;
use crate::schema::TableKind;
use crate::storage::ExecutionContext;

/// A running statement: its beginning, its time limit, and what its request had read before it.
#[derive(Clone, Copy)]
pub(crate) struct Timing {
    pub began: Instant,
    /// Maximum time by the service level of the client's role. `None` if the level sets none.
    pub timeout: Option<Duration>,
    /// Rows and tombstones that the request had read before this statement.
    read_before: (u64, u64),
}

impl Timing {
    pub fn begin(timeout: Option<Duration>) -> Timing {
        Timing {
            began: Instant::now(),
            timeout,
            read_before: measurement::rows_read(),
        }
    }

    /// Records a statement that has run, and returns the time at which it ended. That is `ended` if the time is known already. `None` for
    /// statements that are not recorded.
    pub fn end(
        self,
        context: &ExecutionContext,
        side: Side,
        planned: &Planned,
        source: &Source<'_>,
        ended: Option<Instant>,
    ) -> Option<Instant> {
        match &planned.plan {
            Plan::Select(plan) if plan.table().kind != TableKind::Virtual => {
                let kind = match plan.reads_range() {
                    true => StatementKind::Range,
                    false => StatementKind::Read,
                };
                let ended = self.enter(context, side, kind, [plan.table().id], ended);
                // The owner has read the rows, and not the node that forwarded the request.
                if side == Side::Local || context.cluster().is_none() {
                    sampling::read_took(&context.metrics.sampling, plan.table(), source, self.took(ended));
                    let (rows, tombstones) = measurement::rows_read();
                    let (rows_before, tombstones_before) = self.read_before;
                    context.metrics.read_of(
                        plan.table().id,
                        rows.saturating_sub(rows_before),
                        tombstones.saturating_sub(tombstones_before),
                    );
                }
                Some(ended)
            }
            Plan::Modification(plan) => {
                let kind = match plan.write_type() {
                    WriteType::Cas => StatementKind::Lwt,
                    _ => StatementKind::Write,
                };
                Some(self.enter(context, side, kind, [plan.table().id], ended))
            }
            Plan::InsertRows(plan) => {
                Some(self.enter(context, side, StatementKind::Batch, [plan.table().id], ended))
            }
            Plan::Batch(plan) => {
                let tables = tables(plan.modifications());
                Some(self.enter(context, side, StatementKind::Batch, tables, ended))
            }
            Plan::Transaction(plan) => {
                let tables = distinct(plan.tables().map(|table| table.id));
                Some(self.enter(context, side, StatementKind::Transaction, tables, ended))
            }
            Plan::Select(_) | Plan::Direct(_) => None,
        }
    }

    /// Discards what the statement has read, because it has to run again.
    pub fn forget(self) {
        measurement::forget_rows(self.read_before);
    }

    /// Records a BATCH message that has run, like [`Timing::end`].
    pub fn end_batch(
        self,
        context: &ExecutionContext,
        side: Side,
        batch: &PlannedBatch,
        ended: Option<Instant>,
    ) -> Instant {
        let tables = tables(batch.modifications());
        self.enter(context, side, StatementKind::Batch, tables, ended)
    }

    /// Returns the time at which an answered statement ended. `None` if it failed, or if the clock was not read when it ended.
    pub fn ended(ran: &Result<Outcome, CqlError>) -> Option<Instant> {
        ran.as_ref().ok()?.ended
    }

    fn took(&self, ended: Instant) -> Duration {
        ended.saturating_duration_since(self.began)
    }

    fn enter(
        &self,
        context: &ExecutionContext,
        side: Side,
        kind: StatementKind,
        tables: impl IntoIterator<Item = Uuid>,
        ended: Option<Instant>,
    ) -> Instant {
        let ended = ended.unwrap_or_else(Instant::now);
        let took = self.took(ended);
        if side == Side::Coordinator {
            context.metrics.statement(kind, took);
        }
        for table in tables {
            measurement::about(table);
            context.metrics.statement_of(table, side, kind, took);
        }
        ended
    }
}

/// Returns the distinct tables of a batch.
fn tables<'p>(modifications: impl Iterator<Item = &'p ModificationPlan>) -> Vec<Uuid> {
    distinct(modifications.map(|plan| plan.table().id))
}

fn distinct(ids: impl Iterator<Item = Uuid>) -> Vec<Uuid> {
    let mut distinct: Vec<Uuid> = Vec::new();
    for id in ids {
        if !distinct.contains(&id) {
            distinct.push(id);
        }
    }
    distinct
}
