//! Execution of BATCH: several modifications that are applied together (Cassandra's `BatchStatement`).

use std::sync::Arc;

use helenus_cql::ast::BatchKind;
use helenus_cql::error::CqlError;
use helenus_cql::frame::forwarded::Share;

use super::{batch_size, cas, confirm_error, eval_context, keep_share, lock, now_s};
use crate::analysis::modification::attributes::check_timestamp;
use crate::analysis::modification::{BatchPlan, BoundModification, ModificationPlan};
use crate::analysis::{EvalContext, PlannedBatch, consistency};
use crate::execution::rate_limits::count_writes;
use crate::execution::writes::WriteSet;
use crate::execution::writes::commit::WriteAtomicity;
use crate::failure::ExecutionError;
use crate::limits::scope;
use crate::request::{BoundValue, QueryParameters};
use crate::response::{Outcome, Response};
use crate::storage::ExecutionContext;

/// Runs a BATCH statement.
pub async fn execute(
    context: &Arc<ExecutionContext>,
    plan: &BatchPlan,
    values: &[BoundValue],
    parameters: &QueryParameters,
    share: Option<&Share>,
) -> Result<Outcome, ExecutionError> {
    let eval = eval_context(context, values, parameters);
    let mut bounds = bind_all(plan.statements.iter().map(|statement| (statement, eval)))?;
    keep_share(&mut bounds, share);
    let timestamp_us = plan.attributes.timestamp_us(&eval)?;
    run(context, plan.kind, &bounds, timestamp_us, parameters).await
}

/// Runs a BATCH message of the protocol.
pub async fn execute_message(
    context: &Arc<ExecutionContext>,
    batch: &PlannedBatch,
    parameters: &QueryParameters,
    share: Option<&Share>,
) -> Result<Outcome, ExecutionError> {
    let statements = batch
        .bound()
        .map(|(plan, values)| (plan, eval_context(context, values, parameters)));
    let mut bounds = bind_all(statements)?;
    keep_share(&mut bounds, share);
    run(context, batch.kind, &bounds, None, parameters).await
}

/// Binds statements in turn. Errors in a statement's partition key are reported before other errors of any statement. In a batch with
/// conditions, the statements must name one partition. A statement that names another one is refused before errors in its rows or in later
/// statements, and after errors in earlier ones.
fn bind_all<'p>(
    statements: impl Iterator<Item = (&'p ModificationPlan, EvalContext<'p>)> + Clone,
) -> Result<Vec<BoundModification<'p>>, CqlError> {
    if !statements.clone().any(|(plan, _)| plan.is_conditional()) {
        let bounds = statements
            .clone()
            .map(|(plan, eval)| BoundModification::new(plan, eval));
        let bounds = bounds.collect::<Result<Vec<_>, _>>();
        if bounds.is_err() {
            for (plan, eval) in statements.filter(|(plan, _)| plan.json.is_none()) {
                plan.restrictions.partition_keys(&eval)?;
            }
        }
        return bounds;
    }
    let mut bounds: Vec<BoundModification<'p>> = Vec::new();
    for (plan, eval) in statements {
        let bound = BoundModification::new(plan, eval);
        let unbound;
        let named = match &bound {
            Ok(bound) => bound.partitions.as_slice(),
            Err(_) if plan.json.is_some() => &[],
            Err(_) => {
                unbound = plan.restrictions.partition_keys(&eval).unwrap_or_default();
                unbound.as_slice()
            }
        };
        let first = bounds.first().and_then(|first| first.partitions.first());
        let bound = match (named, first) {
            ([key], Some(first)) if key != first => Err(cas::spans_partitions()),
            _ => bound,
        };
        match bound {
            Ok(bound) => bounds.push(bound),
            Err(error) => return Err(cas::refusal(&bounds).unwrap_or(error)),
        }
    }
    Ok(bounds)
}

async fn run(
    context: &Arc<ExecutionContext>,
    kind: BatchKind,
    bounds: &[BoundModification<'_>],
    timestamp_us: Option<i64>,
    parameters: &QueryParameters,
) -> Result<Outcome, ExecutionError> {
    if bounds.is_empty() {
        return Ok(Response::Void.into());
    }
    count_writes(context, bounds)?;
    let now_s = now_s(context, parameters);
    if bounds.iter().any(|bound| bound.plan.is_conditional()) {
        return Box::pin(cas::execute(context, bounds, parameters, now_s, true)).await;
    }
    for bound in bounds {
        bound.plan.refuse_virtual()?;
    }
    // A batch over several tablets takes no locks, because they would be held while other nodes take theirs.
    let is_spread = !is_in_one_tablet(context, bounds);
    let locked = match is_spread {
        true => None,
        false => Some(lock(context, bounds).await?),
    };
    let default_us = match timestamp_us.or(parameters.timestamp_us) {
        Some(timestamp_us) => timestamp_us,
        None => context.next_timestamp_us(),
    };
    check_timestamp(default_us)?;
    let is_locked = locked.as_ref().is_some_and(|locked| locked.is_alone);
    let mut writes = WriteSet::under(locked.map(|locked| locked.guard));
    for bound in bounds {
        scope::checkpoint().await?;
        consistency::check_read_of_write(&context.schema.load(), bound, parameters.consistency)?;
        let timestamp_us = bound.timestamp_us.unwrap_or(default_us);
        let added = writes.add(context, bound, timestamp_us, now_s, None).await;
        confirm_error(context, &writes, added).await?;
    }
    let mut warnings: Vec<String> = no_grace(kind, bounds).into_iter().collect();
    let checked = batch_size::check(&context.limits(), kind, &writes)?;
    warnings.extend(checked.warnings);
    // In a cluster, the coordinator counts batches instead, because it sees the whole batch.
    if context.cluster().is_none() {
        context.metrics.batch(kind, checked.partitions);
    }
    for bound in bounds.iter().filter(|bound| !bound.writes_nothing()) {
        consistency::require_replicas(&context.schema.load(), &bound.plan.table, parameters.consistency)?;
    }
    let together = WriteAtomicity {
        is_logged: kind == BatchKind::Logged,
        is_locked,
        is_spread,
        ..WriteAtomicity::default()
    };
    writes.commit(context, together).await?;
    Ok(Response::Void.with(warnings))
}

/// Returns true if all writes are in one tablet. Also true if the node is alone, because one log record then contains the writes of all
/// tablets.
fn is_in_one_tablet(context: &ExecutionContext, bounds: &[BoundModification<'_>]) -> bool {
    let Some(cluster) = context.cluster() else {
        return true;
    };
    let mut tokens = bounds
        .iter()
        .flat_map(|bound| bound.partitions.iter().map(|key| key.token));
    let Some(first) = tokens.next() else { return true };
    let tablet = cluster.tablet(first);
    tokens.all(|token| tablet.contains(token))
}

/// Returns a warning about tables whose entries in Cassandra's batch log would expire at once.
fn no_grace(kind: BatchKind, bounds: &[BoundModification<'_>]) -> Option<String> {
    let tables = bounds.iter().map(|bound| bound.plan.table.as_ref());
    let names = batch_size::table_names(tables.filter(|table| table.options.gc_grace_s == 0));
    if kind != BatchKind::Logged || names.is_empty() {
        return None;
    }
    Some(format!(
        "Executing a LOGGED BATCH on table{} [{}], configured with a gc_grace_seconds of 0. The gc_grace_seconds is used to TTL \
         batchlog entries, so setting gc_grace_seconds too low on tables involved in an atomic batch might cause batchlog \
         entries to expire before being replayed.",
        if names.len() == 1 { "" } else { "s" },
        names.join(", ")
    ))
}
