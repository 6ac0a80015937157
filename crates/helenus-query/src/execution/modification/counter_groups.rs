//! Increments of one partition's counters, written together with those that have come while they waited for its lock.

use std::sync::Arc;

use helenus_cql::error::{CqlError, WriteType};

use super::{LockedPartitions, lock};
use crate::analysis::modification::BoundModification;
use crate::analysis::modification::attributes::check_timestamp;
use crate::analysis::modification::operation::{Action, Operation};
use crate::analysis::{Planned, consistency};
use crate::execution::writes::WriteSet;
use crate::execution::writes::commit::WriteAtomicity;
use crate::failure::{ExecutionError, write_timeout};
use crate::limits::scope;
use crate::request::QueryOptions;
use crate::storage::write_queues::{QueueAnswer, QueueLead, QueueRole, QueuedWrite};
use crate::storage::{ExecutionContext, PartitionGuard};
use crate::trace;

/// What has become of a modification that came to a queue.
pub(super) enum Grouped {
    Written,
    /// It must be written by itself; its partition may be locked already.
    Alone(Option<LockedPartitions>),
}

/// True of what adds to counters of one partition and does nothing else. What is wrong with it otherwise is told when it is written alone.
pub(super) fn may_be_grouped(
    context: &ExecutionContext,
    bound: &BoundModification<'_>,
    options: &QueryOptions,
) -> bool {
    let schema = context.schema.load();
    let is_increment = |operation: &Operation| matches!(operation.action, Action::Increment { .. });
    bound.plan.table.is_counter
        && bound.partitions.len() == 1
        && !bound.operations.is_empty()
        && bound.operations.iter().all(is_increment)
        && consistency::check_read_of_write(&schema, bound, options.consistency).is_ok()
        && consistency::require_replicas(&schema, bound.plan.table(), options.consistency).is_ok()
        // A trace shows the steps of one task.
        && !trace::is_recording()
}

/// Writes a modification of one partition of counters together with others, if there are others.
///
/// # Errors
/// Of its own values, or of the write of all.
pub(super) async fn execute(
    context: &Arc<ExecutionContext>,
    planned: &Arc<Planned>,
    bound: &BoundModification<'_>,
    options: &QueryOptions,
    now_s: i64,
) -> Result<Grouped, ExecutionError> {
    let [partition] = bound.partitions.as_slice() else {
        return Ok(Grouped::Alone(None));
    };
    let queued = || {
        let timestamp_us = options.timestamp_us;
        QueuedWrite::new(planned, &bound.eval, timestamp_us, now_s, WriteType::Counter)
    };
    loop {
        let table = bound.plan.table.number;
        let answer = match context.counter_queues.join(table, &partition.bytes, queued) {
            QueueRole::Alone => return Ok(Grouped::Alone(None)),
            QueueRole::Follows(answer) => answer,
            QueueRole::Leads(lead) => {
                let (own, answer) = queued();
                match lead_group(context, bound, lead, own).await? {
                    Some(locked) => return Ok(Grouped::Alone(Some(locked))),
                    None => answer,
                }
            }
        };
        match answer.await {
            Ok(QueueAnswer::Done(result)) => return result.map(|()| Grouped::Written),
            Ok(QueueAnswer::Untouched) => scope::checkpoint().await?,
            Err(_) => return Err(write_timeout(options.consistency, WriteType::Counter).into()),
        }
    }
}

/// Waits for the lock, and has the group written. If nobody else has come, the lock is given back instead.
async fn lead_group(
    context: &Arc<ExecutionContext>,
    bound: &BoundModification<'_>,
    lead: QueueLead<()>,
    own: QueuedWrite<()>,
) -> Result<Option<LockedPartitions>, ExecutionError> {
    let locked = lock(context, std::slice::from_ref(bound)).await;
    let mut group = lead.take();
    let locked = match locked {
        Ok(locked) if group.is_empty() => return Ok(Some(locked)),
        Ok(locked) => locked,
        Err(error) => {
            group.into_iter().for_each(|one| one.answer(Err(error.clone())));
            return Err(error);
        }
    };
    group.insert(0, own.take());
    // Whatever becomes of the request that leads, the others have their answers.
    tokio::spawn(write_group(context.clone(), locked.guard, group));
    Ok(None)
}

/// Writes a group under the lock of its partition, and answers each of it.
async fn write_group(
    context: Arc<ExecutionContext>,
    guard: Arc<PartitionGuard>,
    mut group: Vec<QueuedWrite<()>>,
) {
    let _epoch = context.writes.enter();
    let mut writes = loop {
        let failed = match gather(&context, &guard, &group).await {
            Ok(writes) => break writes,
            Err(failed) => failed,
        };
        // Nothing of it is in what the rest writes.
        let (at, error) = failed;
        group.remove(at).answer(Err(error.into()));
    };
    drop(guard);
    writes.joined = group.len().saturating_sub(1);
    let together = WriteAtomicity {
        is_logged: false,
        is_locked: true,
        is_spread: false,
    };
    let result = writes.commit(&context, together).await;
    group.into_iter().for_each(|one| one.answer(result.clone()));
}

/// What all of them write, one upon the other; or the place of one that fails.
async fn gather(
    context: &ExecutionContext,
    guard: &Arc<PartitionGuard>,
    group: &[QueuedWrite<()>],
) -> Result<WriteSet, (usize, CqlError)> {
    let mut writes = WriteSet::under(Some(guard.clone()));
    for (at, one) in group.iter().enumerate() {
        add(context, &mut writes, one)
            .await
            .map_err(|error| (at, error))?;
    }
    Ok(writes)
}

async fn add(
    context: &ExecutionContext,
    writes: &mut WriteSet,
    one: &QueuedWrite<()>,
) -> Result<(), CqlError> {
    let bound = one.bind(context.clock.as_ref())?;
    let timestamp_us = match bound.timestamp_us.or(one.timestamp_us) {
        Some(timestamp_us) => timestamp_us,
        None => context.next_timestamp_us(),
    };
    check_timestamp(timestamp_us)?;
    writes.add(context, &bound, timestamp_us, one.now_s, None).await
}
