//! The guardrails of reads and writes (the calls in Cassandra's `SelectStatement`, `ModificationStatement` and `BatchStatement`).

use helenus_cql::error::{Consistency, CqlError};
use helenus_tablet::Store;

use super::{count, written_values};
use crate::analysis::modification::ModificationPlan;
use crate::analysis::modification::operation::Action;
use crate::analysis::select::SelectPlan;
use crate::analysis::select::plan::Aggregation;
use crate::analysis::{EvalContext, Plan, PlannedBatch};
use crate::limits::guardrails::{Flag, Guard, Threshold, ThresholdKind, ValueKind};
use crate::request::QueryParameters;
use crate::schema::Table;
use crate::schema::names::is_system_name;

/// Checks a statement that is about to run.
///
/// # Errors
/// A guardrail refuses the statement.
pub(crate) fn check(
    guard: &mut Guard,
    store: &Store,
    plan: &Plan,
    eval: &EvalContext<'_>,
    parameters: &QueryParameters,
) -> Result<(), CqlError> {
    match plan {
        Plan::Select(plan) => check_select(guard, plan, eval, parameters),
        Plan::Modification(plan) => {
            check_write(guard, store, parameters)?;
            check_modification(guard, plan, eval, parameters)
        }
        Plan::InsertRows(_) => {
            check_write(guard, store, parameters)?;
            guard.require(Flag::UserTimestamps)
        }
        Plan::Batch(batch) => {
            check_write(guard, store, parameters)?;
            if batch.attributes.has_timestamp() {
                guard.require(Flag::UserTimestamps)?;
            }
            batch
                .modifications()
                .try_for_each(|plan| check_modification(guard, plan, eval, parameters))
        }
        Plan::Transaction(transaction) => {
            if transaction.write_type().is_some() {
                check_write(guard, store, parameters)?;
            }
            let mut selects = transaction.selects();
            selects.try_for_each(|plan| check_select(guard, plan, eval, parameters))?;
            // A transaction chooses its own timestamp.
            let parameters = &QueryParameters {
                timestamp_us: None,
                ..parameters.clone()
            };
            transaction
                .modifications()
                .try_for_each(|plan| check_modification(guard, plan, eval, parameters))
        }
        Plan::Direct(_) => Ok(()),
    }
}

/// Checks a BATCH message that is about to run. `eval` has no values of a statement.
///
/// # Errors
/// A guardrail refuses the batch.
pub(crate) fn check_batch(
    guard: &mut Guard,
    store: &Store,
    batch: &PlannedBatch,
    eval: &EvalContext<'_>,
    parameters: &QueryParameters,
) -> Result<(), CqlError> {
    check_write(guard, store, parameters)?;
    for (plan, values) in batch.bound() {
        check_modification(guard, plan, &EvalContext { values, ..*eval }, parameters)?;
    }
    Ok(())
}

/// Returns true for users' tables. Reads of the server's own tables may always filter.
fn is_of_users(table: &Table) -> bool {
    !is_system_name(&table.keyspace)
}

fn check_select(
    guard: &mut Guard,
    plan: &SelectPlan,
    eval: &EvalContext<'_>,
    parameters: &QueryParameters,
) -> Result<(), CqlError> {
    let table = plan.table();
    if plan.allows_filtering && is_of_users(table) {
        guard.require(Flag::AllowFiltering)?;
    }
    if matches!(plan.aggregation, Aggregation::Groups(_)) {
        guard.require(Flag::GroupBy)?;
    }
    let restrictions = &plan.restrictions;
    if restrictions.is_key_range && restrictions.uses_index && is_of_users(table) {
        guard.require(Flag::NonPartitionRestrictedIndexQuery)?;
    }
    guard.check_values(
        ValueKind::ReadConsistencyLevels,
        &[&parameters.consistency.to_string()],
    )?;
    if let Some(size) = parameters.page_size {
        guard.check(ThresholdKind::PageSize, &table.name, i64::from(size))?;
    }
    check_keys_in(guard, plan, eval)
}

/// Checks the number of partition keys that IN selects, and the number of clustering keys. Invalid values are refused where they are used.
fn check_keys_in(guard: &mut Guard, plan: &SelectPlan, eval: &EvalContext<'_>) -> Result<(), CqlError> {
    let product = ThresholdKind::InSelectCartesianProduct;
    let (guards_keys, guards_product) = (
        guard.guardrails.guards(ThresholdKind::PartitionKeysInSelect),
        guard.guardrails.guards(product),
    );
    if !guards_keys && !guards_product {
        return Ok(());
    }
    if plan.restrictions.key_is_in()
        && let Ok(keys) = plan.restrictions.partition_values(eval)
    {
        guard.check(product, "partition key", count(keys.len()))?;
        guard.check(
            ThresholdKind::PartitionKeysInSelect,
            &plan.table.name,
            count(keys.len()),
        )?;
    }
    if guards_product
        && plan
            .restrictions
            .clustering
            .iter()
            .any(|restriction| restriction.is_in())
        && let Ok(slices) = plan.restrictions.clustering_slices(eval)
    {
        guard.check(product, "clustering key", count(slices.len()))?;
    }
    Ok(())
}

/// Checks the guardrails of all kinds of writes.
fn check_write(guard: &mut Guard, store: &Store, parameters: &QueryParameters) -> Result<(), CqlError> {
    check_levels_of_write(guard, parameters)?;
    let disk = ThresholdKind::DataDiskUsage;
    if !guard.guardrails.guards(disk) {
        return Ok(());
    }
    match store.disk_usage_percentage() {
        Some(percentage) => guard.check(disk, "", i64::from(percentage)),
        None => Ok(()),
    }
}

/// Checks the consistency levels of a write. The level of conditions, which every request has, counts too, as in Cassandra.
fn check_levels_of_write(guard: &mut Guard, parameters: &QueryParameters) -> Result<(), CqlError> {
    let serial = parameters.serial_consistency.unwrap_or(Consistency::Serial);
    let levels = [parameters.consistency.to_string(), serial.to_string()];
    guard
        .check_values(
            ValueKind::WriteConsistencyLevels,
            &levels.each_ref().map(String::as_str),
        )
        .map(drop)
}

fn check_modification(
    guard: &mut Guard,
    plan: &ModificationPlan,
    eval: &EvalContext<'_>,
    parameters: &QueryParameters,
) -> Result<(), CqlError> {
    if plan.has_timestamp() {
        guard.require(Flag::UserTimestamps)?;
    }
    check_timestamp(guard, plan, eval, parameters)?;
    check_reads_of_lists(guard, plan)?;
    written_values::check(guard, plan, eval)
}

/// Checks changes of a list by the index or the value of elements, which require a read before the write.
fn check_reads_of_lists(guard: &mut Guard, plan: &ModificationPlan) -> Result<(), CqlError> {
    let flag = Flag::ReadBeforeWriteListOperations;
    plan.operations
        .iter()
        .try_for_each(|operation| match operation.action {
            Action::SetIndex { .. } => {
                guard.require_named(flag, "Setting of list items by index requiring read before write")
            }
            Action::DeleteIndex(_) => {
                guard.require_named(flag, "Removal of list items by index requiring read before write")
            }
            Action::DiscardValues(_) => {
                guard.require_named(flag, "Removal of list items requiring read before write")
            }
            _ => Ok(()),
        })
}

/// Checks the timestamp of the statement or the client. Timestamps of this node are never far from the present.
fn check_timestamp(
    guard: &mut Guard,
    plan: &ModificationPlan,
    eval: &EvalContext<'_>,
    parameters: &QueryParameters,
) -> Result<(), CqlError> {
    let kinds = [
        (ThresholdKind::MaximumTimestamp, 1),
        (ThresholdKind::MinimumTimestamp, -1),
    ];
    for (kind, direction) in kinds {
        let relative = guard.guardrails.threshold(kind);
        if relative == Threshold::default() {
            continue;
        }
        // An invalid timestamp is refused where it is used.
        let own = plan.attributes.timestamp_us(eval).ok().flatten();
        let Some(timestamp_us) = own.or(parameters.timestamp_us) else {
            continue;
        };
        let now_us = eval.clock.now_us();
        let absolute = |span: i64| now_us.saturating_add(direction * span);
        let threshold = Threshold {
            warn: relative.warn.map(absolute),
            fail: relative.fail.map(absolute),
        };
        guard.check_against(kind, threshold, &plan.table.name, timestamp_us)?;
    }
    Ok(())
}
