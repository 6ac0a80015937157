//! Execution of BEGIN TRANSACTION. Partitions of several owners are the subject of [`spread`]. The rest is about partitions that belong to
//! this node.
//!
//! All partitions are locked alone, in an order that cannot deadlock. Rows are read under the locks, conditions are tested, and all writes
//! become one record of the log. The answer is sent once everything that was read or written is durable. Requests that lock a partition
//! next see the writes before that ([`crate::storage::pending`]).

mod bound;
mod read_rows;
pub(crate) mod spread;

use std::ops::Range;
use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_cql::frame::forwarded::Share;

pub(crate) use bound::{BoundTransaction, share_of};
use read_rows::ReadRows;

use super::modification::eval_context;
use super::modification::timestamps::{newest_of_written, timestamp_after};
use super::now_s;
use super::rate_limits::count_writes;
use super::sampling::contended;
use super::select;
use super::writes::commit::WriteAtomicity;
use super::writes::{WriteSet, confirm};
use crate::analysis::modification::BoundModification;
use crate::analysis::transaction::{Returning, TransactionPlan};
use crate::analysis::{EvalContext, Planned, consistency};
use crate::failure::ExecutionError;
use crate::limits::scope;
use crate::request::{BoundValue, QueryParameters};
use crate::response::{Outcome, Response, Rows, RowsBuilder};
use crate::storage::row_reads::ReadView;
use crate::storage::{ExecutionContext, PartitionGuard};
use crate::trace;

/// Runs a transaction. `plan` is the plan within `planned`. A transaction with a `share` runs at the owner of all its partitions.
///
/// # Errors
/// [`ExecutionError::NotOwned`] if partitions belong to other nodes than was known. Nothing was written.
pub(crate) async fn execute(
    context: &Arc<ExecutionContext>,
    planned: &Arc<Planned>,
    plan: &TransactionPlan,
    values: &[BoundValue],
    parameters: &QueryParameters,
    share: Option<&Share>,
) -> Result<Outcome, ExecutionError> {
    let eval = eval_context(context, values, parameters);
    let mut bound = BoundTransaction::new(plan, eval)?;
    if let Some(share) = share {
        bound.keep_share(share);
    }
    let schema = context.schema.load_full();
    for table in plan.tables() {
        consistency::require_replicas(&schema, table, parameters.consistency)?;
    }
    let mut transaction = Transaction {
        context,
        planned,
        plan,
        eval,
        parameters,
        guard: None,
        now_s: now_s(context, parameters),
    };
    let partitions = bound.partitions();
    let locks = partitions.locks();
    if let Some(cluster) = context.cluster()
        && share.is_none()
        && !locks.is_empty()
    {
        let owned = spread::owned_partitions(cluster.as_ref(), &locks)?;
        if owned.len() > 1 {
            drop(partitions);
            let (response, is_applied) =
                Box::pin(spread::execute(&transaction, cluster, &owned, bound)).await?;
            return Ok(outcome(response, is_applied));
        }
    }
    let lock = context.lock_transaction(&locks);
    let guard = contended(&context.metrics.sampling, partitions.named(), lock).await?;
    if !partitions.tokens().all(|token| context.owns(token)) {
        return Err(ExecutionError::NotOwned);
    }
    drop(partitions);
    transaction.guard = Some(&guard);
    let ran = transaction.run(bound).await;
    let Ran { response, writes, .. } = match ran {
        Ok(ran) => ran,
        Err(error) => {
            confirm(context, Some(&guard)).await?;
            return Err(error);
        }
    };
    let is_applied = !writes.is_empty();
    let together = WriteAtomicity {
        is_locked: true,
        is_one_record: true,
        ..WriteAtomicity::default()
    };
    writes.commit(context, together).await?;
    if !is_applied {
        // The locks are those of this node. After a tablet was handed over, its new owner did not respect them.
        guard.check_open()?;
    }
    Ok(outcome(response, is_applied))
}

fn outcome(response: Response, is_applied: bool) -> Outcome {
    Outcome {
        is_applied: is_applied.then_some(true),
        ..Outcome::from(response)
    }
}

/// The answer of a transaction, and its writes.
struct Ran {
    response: Response,
    writes: WriteSet,
    /// The timestamp of all writes.
    timestamp_us: i64,
}

/// A transaction whose partitions are locked.
struct Transaction<'t> {
    context: &'t Arc<ExecutionContext>,
    planned: &'t Arc<Planned>,
    plan: &'t TransactionPlan,
    /// The values of the client.
    eval: EvalContext<'t>,
    parameters: &'t QueryParameters,
    /// The locks. `None` if they are those of several owners, where all earlier writes are durable.
    guard: Option<&'t Arc<PartitionGuard>>,
    now_s: i64,
}

impl Transaction<'_> {
    /// Reads, tests the conditions, and returns the answer with the writes.
    async fn run(&self, bound: BoundTransaction<'_>) -> Result<Ran, ExecutionError> {
        let (context, plan) = (self.context, self.plan);
        let view = ReadView::under(context, self.guard);
        let rows = ReadRows::read(view, plan, &bound.reads, &self.eval, self.now_s).await?;
        let response = self.response(&rows).await?;
        let chosen = self.chosen(&rows)?;
        let mut values = self.eval.values.to_vec();
        for reference in &plan.references {
            let value = reference.value(rows.value(reference.read, reference.column), &self.eval)?;
            values.push(value.map_or(BoundValue::Null, BoundValue::Set));
        }
        let eval = EvalContext {
            values: &values,
            ..self.eval
        };
        let is_chosen = |at: &usize| chosen.iter().any(|range| range.contains(at));
        let writes = bound.writes.into_iter().enumerate();
        let writes: Vec<BoundModification<'_>> = writes
            .filter(|(at, _)| is_chosen(at))
            .map(|(_, write)| BoundModification { eval, ..write })
            .collect();
        count_writes(context, &writes)?;
        let mut newest_us = rows.newest_us();
        for write in &writes {
            newest_us = newest_us.max(newest_of_written(view, write).await?);
        }
        let timestamp_us = timestamp_after(context, newest_us);
        let mut set = WriteSet::under(self.guard.cloned());
        for write in &writes {
            scope::checkpoint().await?;
            set.add(context, write, timestamp_us, self.now_s, None).await?;
        }
        Ok(Ran {
            response,
            writes: set,
            timestamp_us,
        })
    }

    /// Returns the writes whose conditions hold.
    fn chosen(&self, rows: &ReadRows) -> Result<[Range<usize>; 2], CqlError> {
        let plan = self.plan;
        let mut met = plan.branches.len();
        for (at, branch) in plan.branches.iter().enumerate() {
            let mut holds = true;
            for condition in &branch.conditions {
                // Invalid values of later conditions are errors too.
                holds &= condition.holds(rows, &self.eval)?;
            }
            if holds {
                met = at;
                break;
            }
        }
        trace::step(|| match met < plan.branches.len() {
            true => "Transaction conditions are met",
            false => "No transaction condition is met",
        });
        Ok([plan.writes_of(met), plan.unconditional_writes()])
    }

    async fn response(&self, rows: &ReadRows) -> Result<Response, ExecutionError> {
        match &self.plan.returning {
            Returning::Nothing => Ok(Response::Void),
            Returning::References { references, metadata } => {
                let mut out = RowsBuilder::new(references.len());
                for reference in references {
                    let column = rows.value(reference.read, reference.column);
                    let value = reference.value(column, &self.eval)?;
                    out.push(value.as_deref());
                }
                Ok(Response::Rows(Rows {
                    metadata: metadata.clone(),
                    content: out.finish(),
                    paging_state: None,
                }))
            }
            Returning::Select { plan, .. } => {
                // A SELECT reads the store, which does not have the pending writes.
                if let Some(guard) = self.guard {
                    guard.await_pending().await;
                }
                let parameters = QueryParameters {
                    page_size: None,
                    paging_state: None,
                    ..self.parameters.clone()
                };
                let (context, values) = (self.context, self.eval.values);
                let selected = select::run::execute(context, self.planned, plan, values, &parameters, None);
                Ok(Box::pin(selected).await?.response)
            }
        }
    }
}
