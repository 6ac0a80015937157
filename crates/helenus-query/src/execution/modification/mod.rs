//! Execution of INSERT, UPDATE, DELETE and BATCH.
//!
//! The execution of a plan ([`crate::analysis::modification`]) turns its operations into cells ([`apply`]), row by row ([`write_builder`]),
//! and collects the writes ([`crate::execution::writes`]). The writes become one batch of the store, together with the index entries
//! ([`crate::index::upkeep`]) and the rows of views ([`crate::execution::views`]) that they require. Writes that must read first (counters,
//! list elements, conditions, indexes) hold the partition's lock meanwhile. All other writes are blind.

pub(crate) mod apply;
pub(crate) mod batch;
pub(crate) mod batch_size;
pub(crate) mod cas;
pub(crate) mod cas_request;
pub(crate) mod insert_rows;
pub(crate) mod list_ids;
pub(crate) mod timestamps;
pub(crate) mod traces;
pub(crate) mod write_builder;

use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_cql::frame::forwarded::Share;
use smallvec::SmallVec;

use super::now_s;
use super::rate_limits::count_writes;
use super::writes::commit::WriteAtomicity;
use super::writes::{WriteSet, confirm};
use crate::analysis::modification::attributes::check_timestamp;
use crate::analysis::modification::{BatchPlan, BoundModification, ModificationPlan};
use crate::analysis::{EvalContext, PlannedBatch, consistency};
use crate::cluster::Owner;
use crate::failure::ExecutionError;
use crate::request::{BoundValue, QueryParameters};
use crate::response::{Outcome, Response};
use crate::rows::PartitionKey;
use crate::schema::TableKind;
use crate::storage::{Access, ExecutionContext, LockRequest, PartitionGuard};

pub(crate) fn eval_context<'a>(
    context: &'a ExecutionContext,
    values: &'a [BoundValue],
    parameters: &QueryParameters,
) -> EvalContext<'a> {
    EvalContext {
        values,
        clock: context.clock.as_ref(),
        protocol_version: parameters.version.number(),
    }
}

/// Locks that are held for statements.
struct LockedPartitions {
    guard: Arc<PartitionGuard>,
    /// True if some writes depend on existing rows, so that their partitions are locked alone.
    is_alone: bool,
}

/// Locks the partitions of the statements, each in the mode that it needs.
async fn lock(
    context: &ExecutionContext,
    bounds: &[BoundModification<'_>],
) -> Result<LockedPartitions, ExecutionError> {
    let mut partitions: SmallVec<[LockRequest; 4]> = SmallVec::new();
    for bound in bounds {
        let access = if bound.needs_lock() {
            Access::Alone
        } else {
            Access::Shared
        };
        let table = bound.plan.table.number;
        partitions.extend(bound.partitions.iter().map(|key| (table, key.token, access)));
    }
    let locked = LockedPartitions {
        guard: context.lock_partitions(partitions).await?,
        is_alone: bounds.iter().any(BoundModification::needs_lock),
    };
    if locked.is_alone {
        require_own(context, bounds)?;
    }
    Ok(locked)
}

/// Returns the partitions of a modification.
///
/// # Errors
/// Cassandra's, for invalid keys.
pub(crate) fn partitions(
    context: &ExecutionContext,
    plan: &ModificationPlan,
    values: &[BoundValue],
    parameters: &QueryParameters,
) -> Result<Vec<PartitionKey>, CqlError> {
    Ok(BoundModification::new(plan, eval_context(context, values, parameters))?.partitions)
}

/// Returns the partitions of each statement of a batch.
///
/// # Errors
/// Cassandra's, for invalid keys.
pub(crate) fn batch_partitions(
    context: &ExecutionContext,
    plan: &BatchPlan,
    values: &[BoundValue],
    parameters: &QueryParameters,
) -> Result<Vec<Vec<PartitionKey>>, CqlError> {
    plan.modifications()
        .map(|one| partitions(context, one, values, parameters))
        .collect()
}

/// Returns the partitions of each statement of a BATCH message.
///
/// # Errors
/// Cassandra's, for invalid keys.
pub(crate) fn message_partitions(
    context: &ExecutionContext,
    batch: &PlannedBatch,
    parameters: &QueryParameters,
) -> Result<Vec<Vec<PartitionKey>>, CqlError> {
    batch
        .bound()
        .map(|(plan, values)| partitions(context, plan, values, parameters))
        .collect()
}

/// Checks that this node owns all partitions, because writes that are computed under locks must be its own.
fn require_own(context: &ExecutionContext, bounds: &[BoundModification<'_>]) -> Result<(), ExecutionError> {
    let Some(cluster) = context.cluster() else {
        return Ok(());
    };
    let mut partitions = bounds.iter().flat_map(|bound| &bound.partitions);
    match partitions.all(|key| cluster.owner(key.token) == Owner::Here) {
        true => Ok(()),
        false => Err(ExecutionError::NotOwned),
    }
}

/// Keeps only the partitions that this node must modify.
fn keep_share(bounds: &mut [BoundModification<'_>], share: Option<&Share>) {
    let Some(share) = share else { return };
    for (bound, keys) in bounds.iter_mut().zip(share.iter()) {
        bound.partitions = keys.iter().cloned().map(PartitionKey::new).collect();
    }
}

/// Runs a modification.
pub async fn execute(
    context: &Arc<ExecutionContext>,
    plan: &ModificationPlan,
    values: &[BoundValue],
    parameters: &QueryParameters,
    share: Option<&Share>,
) -> Result<Outcome, ExecutionError> {
    let now_s = now_s(context, parameters);
    let is_virtual = plan.table.kind == TableKind::Virtual;
    if plan.conditions.is_empty() && !is_virtual {
        consistency::check_write(plan.table(), parameters.consistency)?;
    }
    let mut bounds = [BoundModification::new(
        plan,
        eval_context(context, values, parameters),
    )?];
    keep_share(&mut bounds, share);
    if is_virtual {
        let [bound] = &bounds;
        if traces::delete(context, bound) {
            return Ok(Response::Void.into());
        }
        plan.refuse_virtual()?;
    }
    count_writes(context, &bounds)?;
    if !plan.conditions.is_empty() {
        return Box::pin(cas::execute(context, &bounds, parameters, now_s, false)).await;
    }
    let [bound] = &bounds;
    let locked = lock(context, &bounds).await?;
    // The timestamp is taken under the lock, so that it is newer than those of conditional writes before it.
    let timestamp_us = match bound.timestamp_us.or(parameters.timestamp_us) {
        Some(timestamp_us) => timestamp_us,
        None => context.next_timestamp_us(),
    };
    check_timestamp(timestamp_us)?;
    consistency::check_read_of_write(&context.schema.load(), bound, parameters.consistency)?;
    let mut writes = WriteSet::under(Some(locked.guard));
    let added = writes.add(context, bound, timestamp_us, now_s, None).await;
    confirm_error(context, &writes, added).await?;
    if !bound.writes_nothing() {
        consistency::require_replicas(&context.schema.load(), plan.table(), parameters.consistency)?;
    }
    let together = WriteAtomicity {
        is_locked: locked.is_alone,
        ..WriteAtomicity::default()
    };
    writes.commit(context, together).await?;
    Ok(Response::Void.into())
}

/// Returns the error of `added`, if there is one, once everything that was read under the locks is durable.
async fn confirm_error(
    context: &ExecutionContext,
    writes: &WriteSet,
    added: Result<(), CqlError>,
) -> Result<(), ExecutionError> {
    if added.is_err() {
        confirm(context, writes.guard.as_ref()).await?;
    }
    Ok(added?)
}

/// Runs a BATCH statement.
pub async fn execute_batch(
    context: &Arc<ExecutionContext>,
    plan: &BatchPlan,
    values: &[BoundValue],
    parameters: &QueryParameters,
    share: Option<&Share>,
) -> Result<Outcome, ExecutionError> {
    batch::execute(context, plan, values, parameters, share).await
}

/// Runs a BATCH message of the protocol. Its statements are prepared or given as text, each with its own values.
pub async fn run_batch_message(
    context: &Arc<ExecutionContext>,
    batch: &PlannedBatch,
    parameters: &QueryParameters,
    share: Option<&Share>,
) -> Result<Outcome, ExecutionError> {
    batch::execute_message(context, batch, parameters, share).await
}

#[cfg(test)]
mod compact_tests;
#[cfg(test)]
pub(crate) mod dml_tests;
#[cfg(test)]
mod pending_tests;
#[cfg(test)]
mod view_tests;
