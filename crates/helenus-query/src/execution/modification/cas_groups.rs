//! Lightweight transactions on one partition, tested one after the other and written together with those that have come while they waited
//! for its lock. Each sees what those before it will have written; all are answered once that is on disk.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::{Consistency, CqlError, WriteType};
use helenus_row::KeyKind;
use helenus_row::header::PartitionHeader;
use helenus_row::merge::merge;

use super::cas::{self, PreconditionRows};
use super::require_own;
use crate::analysis::modification::BoundModification;
use crate::analysis::modification::bound::RowsBound;
use crate::analysis::{Planned, consistency};
use crate::execution::sampling::{contended, note_contention};
use crate::execution::writes::WriteSet;
use crate::execution::writes::commit::WriteAtomicity;
use crate::failure::{ExecutionError, write_timeout};
use crate::limits::scope;
use crate::request::QueryOptions;
use crate::response::Outcome;
use crate::rows::{OwnedRow, StoredRow, corrupt};
use crate::storage::read::{read_header, read_stored_row_under};
use crate::storage::write_queues::{QueueAnswer, QueueLead, QueueRole, QueuedWrite};
use crate::storage::{Access, ExecutionContext, PartitionGuard};
use crate::trace;

/// What has become of a transaction that came to a queue.
pub(super) enum Grouped {
    Answered(Outcome),
    /// It must be run by itself; its partition may be locked already.
    Alone(Option<Arc<PartitionGuard>>),
}

/// True of what tests and changes one row, and nothing else follows from it. What is wrong with it otherwise is told when it is run alone.
pub(super) fn may_be_grouped(
    context: &ExecutionContext,
    bound: &BoundModification<'_>,
    options: &QueryOptions,
) -> bool {
    let (schema, table) = (context.schema.load(), bound.plan.table());
    let serial = options.serial_consistency.unwrap_or(Consistency::Serial);
    let names_one_row = matches!(&bound.rows, RowsBound::Names(names) if names.len() == 1);
    bound.partitions.len() == 1
        && names_one_row
        && !table.has_static()
        && !table.has_derived_tables()
        && consistency::check_conditional(&schema, table, options).is_ok()
        && consistency::require_replicas(&schema, table, serial).is_ok()
        && consistency::require_replicas(&schema, table, options.consistency).is_ok()
        // A trace shows the steps of one task.
        && !trace::is_recording()
}

/// Runs a transaction together with others on its partition, if there are others.
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
    let queued = || QueuedWrite::new(planned, &bound.eval, None, now_s, WriteType::Cas);
    loop {
        let table = bound.plan.table.number;
        let answer = match context.conditional_queues.join(table, &partition.bytes, queued) {
            QueueRole::Alone => return Ok(Grouped::Alone(None)),
            QueueRole::Follows(answer) => {
                note_contention(context, &bound.plan.table, partition);
                answer
            }
            QueueRole::Leads(lead) => {
                let (own, answer) = queued();
                match lead_group(context, bound, lead, own).await? {
                    Some(guard) => return Ok(Grouped::Alone(Some(guard))),
                    None => answer,
                }
            }
        };
        match answer.await {
            Ok(QueueAnswer::Done(result)) => return result.map(Grouped::Answered),
            Ok(QueueAnswer::Untouched) => scope::checkpoint().await?,
            Err(_) => return Err(write_timeout(options.consistency, WriteType::Cas).into()),
        }
    }
}

/// Waits for the lock, and has the group run. If nobody else has come, the lock is given back instead.
async fn lead_group(
    context: &Arc<ExecutionContext>,
    bound: &BoundModification<'_>,
    lead: QueueLead<Outcome>,
    own: QueuedWrite<Outcome>,
) -> Result<Option<Arc<PartitionGuard>>, ExecutionError> {
    let locked = lock(context, bound).await;
    let mut group = lead.take();
    let guard = match locked {
        Ok(guard) if group.is_empty() => return Ok(Some(guard)),
        Ok(guard) => guard,
        Err(error) => {
            group.into_iter().for_each(|one| one.answer(Err(error.clone())));
            return Err(error);
        }
    };
    group.insert(0, own.take());
    // Whatever becomes of the request that leads, the others have their answers.
    tokio::spawn(run_group(context.clone(), guard, group));
    Ok(None)
}

async fn lock(
    context: &ExecutionContext,
    bound: &BoundModification<'_>,
) -> Result<Arc<PartitionGuard>, ExecutionError> {
    let table = bound.plan.table.number;
    let partitions = bound
        .partitions
        .iter()
        .map(|key| (table, key.token, Access::Alone));
    let lock = context.lock_partitions(partitions);
    let guard = match bound.partitions.first() {
        Some(key) => contended(context, &bound.plan.table, key, lock).await?,
        None => lock.await?,
    };
    require_own(context, std::slice::from_ref(bound))?;
    Ok(guard)
}

/// Runs a group under the lock of its partition, and answers each of it.
async fn run_group(
    context: Arc<ExecutionContext>,
    guard: Arc<PartitionGuard>,
    group: Vec<QueuedWrite<Outcome>>,
) {
    let _epoch = context.writes.enter();
    let mut run = GroupRun::new(&context, guard);
    let mut outcomes = Vec::with_capacity(group.len());
    for one in group {
        match run.test(&one).await {
            Ok(outcome) => outcomes.push((one, outcome)),
            Err(error) => one.answer(Err(error.into())),
        }
    }
    let together = WriteAtomicity {
        is_logged: false,
        is_locked: true,
        is_spread: false,
    };
    let applied = outcomes
        .iter()
        .filter(|(_, outcome)| outcome.is_applied == Some(true));
    run.writes.joined = applied.count().saturating_sub(1);
    let result = run.writes.commit(&context, together).await;
    for (one, outcome) in outcomes {
        one.answer(result.clone().map(|()| outcome));
    }
}

/// The rows of one partition as the transactions of a group leave them, which nobody else sees yet.
struct GroupRun<'g> {
    context: &'g ExecutionContext,
    writes: WriteSet,
    /// By encoded clustering; `None` for rows that are not stored.
    rows: BTreeMap<Bytes, Option<StoredRow>>,
    /// The partition's header, once it was read.
    header: Option<Option<PartitionHeader>>,
    newest_us: i64,
}

impl<'g> GroupRun<'g> {
    fn new(context: &'g ExecutionContext, guard: Arc<PartitionGuard>) -> GroupRun<'g> {
        GroupRun {
            context,
            writes: WriteSet::under(Some(guard)),
            rows: BTreeMap::new(),
            header: None,
            newest_us: i64::MIN,
        }
    }

    /// Tests a transaction, and adds what it writes if its conditions hold.
    async fn test(&mut self, one: &QueuedWrite<Outcome>) -> Result<Outcome, CqlError> {
        let bound = one.bind(self.context.clock.as_ref())?;
        let bounds = std::slice::from_ref(&bound);
        let (table, partition, request) = cas::gather(bounds)?;
        let Some(clustering) = request.rows.keys().next() else {
            return Err(CqlError::Server(
                "a transaction without a row was queued".to_owned(),
            ));
        };
        let stored = self.row(&bound, clustering).await?;
        let newest_us = stored.as_ref().map(StoredRow::newest_us).transpose()?;
        let live = stored
            .map(|row| OwnedRow::of(row, one.now_s))
            .transpose()?
            .flatten();
        let current = PreconditionRows::of_row(clustering, live);
        if !cas::holds(table, &request, &current)? {
            return cas::failure(table, &partition, bounds, &request, &current, false);
        }
        // Those before it may be dated ahead of the clock.
        let timestamp_us =
            cas::timestamp_after(self.context, newest_us).max(self.newest_us.saturating_add(1));
        self.newest_us = timestamp_us;
        let written = self.writes.rows.len();
        let added = self
            .writes
            .add(self.context, &bound, timestamp_us, one.now_s, Some(&current))
            .await;
        if added.is_err() {
            self.writes.rows.truncate(written);
        }
        added?;
        self.apply(written, &bound)?;
        Ok(cas::applied(table))
    }

    /// A row as it is stored, with what this group has written.
    async fn row(
        &mut self,
        bound: &BoundModification<'_>,
        clustering: &Bytes,
    ) -> Result<Option<StoredRow>, CqlError> {
        if let Some(known) = self.rows.get(clustering) {
            return Ok(known.clone());
        }
        let [partition] = bound.partitions.as_slice() else {
            return Ok(None);
        };
        let (context, table) = (self.context, bound.plan.table());
        let header = match &self.header {
            Some(header) => header,
            None => self.header.insert(read_header(context, table, partition).await?),
        };
        let row = read_stored_row_under(context, table, partition, clustering, header.as_ref()).await?;
        self.rows.insert(clustering.clone(), row.clone());
        Ok(row)
    }

    /// Merges what was written since into the rows.
    fn apply(&mut self, since: usize, bound: &BoundModification<'_>) -> Result<(), CqlError> {
        for write in self.writes.rows.iter().skip(since) {
            let header = self.header.as_ref().and_then(Option::as_ref);
            let shadow = header.and_then(|header| header.deletion_at(&write.clustering));
            let row = self.rows.entry(write.clustering.clone()).or_default();
            let before = row.as_ref().map(|row| row.packed.bytes());
            let operand = std::slice::from_ref(&write.operand);
            let merged = merge(KeyKind::Row, before, operand).map_err(corrupt)?;
            *row = Some(StoredRow::parse(merged, shadow, &bound.plan.table.cell_rules)?);
        }
        Ok(())
    }
}
