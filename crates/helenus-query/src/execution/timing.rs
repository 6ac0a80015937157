//! Records the latency of statements, and the rows that they have read, in the [`crate::figures`].

use std::time::Instant;

use helenus_cql::error::WriteType;
use uuid::Uuid;

use crate::analysis::modification::ModificationPlan;
use crate::analysis::{Plan, Planned, PlannedBatch};
use crate::cluster::Source;
use crate::execution::sampling;
use crate::figures::{Side, StatementKind};
use crate::schema::TableKind;
use crate::storage::ExecutionContext;
use crate::trace;

/// A running statement.
pub(crate) struct Timing {
    began: Instant,
    /// Rows and tombstones that the request had read before this statement.
    read_before: (u64, u64),
}

impl Timing {
    pub fn begin() -> Timing {
        Timing {
            began: Instant::now(),
            read_before: trace::rows_read(),
        }
    }

    /// Returns the time at which the statement began.
    pub fn began(&self) -> Instant {
        self.began
    }

    /// Records a statement that has run.
    pub fn end(self, context: &ExecutionContext, side: Side, planned: &Planned, source: &Source<'_>) {
        match &planned.plan {
            Plan::Select(plan) if plan.table().kind != TableKind::Virtual => {
                let kind = match plan.reads_range() {
                    true => StatementKind::Range,
                    false => StatementKind::Read,
                };
                self.enter(context, side, kind, [plan.table().id]);
                // The owner has read the rows, and not the node that forwarded the request.
                if side == Side::Local || context.cluster().is_none() {
                    sampling::read_took(context, plan.table(), source, self.began);
                    let (rows, tombstones) = trace::rows_read();
                    let (rows_before, tombstones_before) = self.read_before;
                    context.figures.read_of(
                        plan.table().id,
                        rows.saturating_sub(rows_before),
                        tombstones.saturating_sub(tombstones_before),
                    );
                }
            }
            Plan::Modification(plan) => {
                let kind = match plan.write_type() {
                    WriteType::Cas => StatementKind::Lwt,
                    _ => StatementKind::Write,
                };
                self.enter(context, side, kind, [plan.table().id]);
            }
            Plan::Batch(plan) => {
                self.enter(context, side, StatementKind::Batch, tables(plan.modifications()))
            }
            Plan::Select(_) | Plan::Direct(_) => {}
        }
    }

    /// Discards what the statement has read, because it has to run again.
    pub fn forget(self) {
        trace::forget_rows(self.read_before);
    }

    /// Records a BATCH message that has run.
    pub fn end_batch(self, context: &ExecutionContext, side: Side, batch: &PlannedBatch) {
        self.enter(context, side, StatementKind::Batch, tables(batch.modifications()));
    }

    fn enter(
        &self,
        context: &ExecutionContext,
        side: Side,
        kind: StatementKind,
        tables: impl IntoIterator<Item = Uuid>,
    ) {
        let took = self.began.elapsed();
        if side == Side::Coordinator {
            context.figures.statement(kind, took);
        }
        for table in tables {
            trace::about(table);
            context.figures.statement_of(table, side, kind, took);
        }
    }
}

/// Returns the distinct tables of a batch.
fn tables<'p>(modifications: impl Iterator<Item = &'p ModificationPlan>) -> Vec<Uuid> {
    let mut tables: Vec<Uuid> = Vec::new();
    for plan in modifications {
        if !tables.contains(&plan.table().id) {
            tables.push(plan.table().id);
        }
    }
    tables
}
