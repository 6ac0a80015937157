//! The coordinator's side of a transaction over partitions of several owners.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use helenus_cql::error::CqlError;
use helenus_row::TableId;
use helenus_tablet::Op;
use tokio::time::Instant;
use uuid::Uuid;

use super::{intents, participant};
use crate::cluster::{Cluster, Owner, RemoteError, TransactionAnswer, TransactionStep};
use crate::execution::sampling::record_contention;
use crate::execution::transaction::{BoundTransaction, Ran, Transaction};
use crate::execution::writes::WriteSet;
use crate::failure::ExecutionError;
use crate::limits::scope;
use crate::response::Response;
use crate::storage::ExecutionContext;
use crate::storage::undecided::Intent;
use crate::trace;

/// The partitions of a transaction, by the ids of their owners.
pub(in crate::execution::transaction) type OwnedPartitions = BTreeMap<Uuid, BTreeSet<(TableId, i64)>>;

/// Returns the partitions of a transaction by owner.
///
/// # Errors
/// [`ExecutionError::NotOwned`] if a partition has no owner at present.
pub(in crate::execution::transaction) fn owned_partitions(
    cluster: &dyn Cluster,
    locks: &[(TableId, i64)],
) -> Result<OwnedPartitions, ExecutionError> {
    let mut owned = OwnedPartitions::new();
    for (table, token) in locks {
        let owner = match cluster.owner(*token) {
            Owner::Here => cluster.here(),
            Owner::Peer(node) => node,
            Owner::Unowned => return Err(ExecutionError::NotOwned),
        };
        owned.entry(owner).or_default().insert((*table, *token));
    }
    Ok(owned)
}

/// Runs a transaction whose partitions belong to several owners. Returns its answer, and true if it has written something.
///
/// # Errors
/// [`ExecutionError::NotOwned`] if the locks were lost, and nothing was or will be written. A write timeout if the outcome is not known, or
/// if locks were not available in time.
pub(in crate::execution::transaction) async fn execute(
    transaction: &Transaction<'_>,
    cluster: &Arc<dyn Cluster>,
    owned: &OwnedPartitions,
    bound: BoundTransaction<'_>,
) -> Result<(Response, bool), ExecutionError> {
    let context = transaction.context;
    let deadline = context.deadline();
    let (spread, newest_us) = loop {
        let mut spread = SpreadTransaction {
            context,
            cluster,
            id: Uuid::new_v4(),
            owned,
            locked: Vec::new(),
            deadline,
        };
        match spread.lock(&bound).await {
            Ok(newest_us) => break (spread, newest_us),
            // Another transaction has had the locks for too long. Those at other owners are released before the next try.
            Err(ExecutionError::Failed(CqlError::WriteTimeout { .. })) if Instant::now() < deadline => {
                spread.end(false, false).await;
                spread.locked.clear();
                scope::checkpoint().await?;
            }
            Err(error) => return Err(error),
        }
    };
    // All timestamps of the owners are earlier than the next one of this node.
    context.writing.timestamps.raise(newest_us);
    let Ran {
        response,
        writes,
        timestamp_us,
    } = transaction.run(bound).await?;
    if writes.is_empty() {
        spread.confirm().await?;
        return Ok((response, false));
    }
    writes.check_indexed(context)?;
    writes.note_headers(context).await?;
    spread.commit(timestamp_us, writes).await?;
    Ok((response, true))
}

/// A transaction whose partitions are being locked, or are locked. If this is dropped, its lock sessions are ended.
struct SpreadTransaction<'t> {
    context: &'t Arc<ExecutionContext>,
    cluster: &'t Arc<dyn Cluster>,
    id: Uuid,
    owned: &'t OwnedPartitions,
    /// The owners that may have a lock session.
    locked: Vec<Uuid>,
    deadline: Instant,
}

/// The outcome of a step that writes intents.
enum Intended {
    Durable,
    /// No intent is or will be durable there.
    Refused(ExecutionError),
    Unknown(CqlError),
}

impl SpreadTransaction<'_> {
    /// Locks all partitions, one owner after another. All transactions lock in this order, so that they rarely wait for each other in a
    /// circle. Returns the newest clock of the owners.
    async fn lock(&mut self, bound: &BoundTransaction<'_>) -> Result<i64, ExecutionError> {
        let schema_version = self.context.schema().document_version;
        let mut newest_us = i64::MIN;
        let mut contended = Vec::new();
        let owned = self.owned;
        for (node, partitions) in owned {
            self.locked.push(*node);
            let step = TransactionStep::Lock {
                id: self.id,
                partitions: partitions.iter().copied().collect(),
                schema_version,
            };
            match self.step(*node, step).await.map_err(nothing_written)? {
                TransactionAnswer::Locked { clock_us, has_waited } => {
                    newest_us = newest_us.max(clock_us);
                    contended.extend(has_waited.then_some(partitions));
                }
                _ => return Err(ExecutionError::NotOwned),
            }
        }
        record_contention(
            &self.context.metrics.sampling,
            bound.partitions().named(),
            |lock| contended.iter().any(|partitions| partitions.contains(&lock)),
        );
        trace::step(|| format!("Partitions of {} nodes are locked", self.locked.len()));
        Ok(newest_us)
    }

    /// Checks that all lock sessions have lasted until now, and ends them.
    async fn confirm(mut self) -> Result<(), ExecutionError> {
        let nodes = std::mem::take(&mut self.locked);
        let confirming = nodes
            .iter()
            .map(|node| self.step(*node, TransactionStep::Confirm { id: self.id }));
        let confirmed: Result<Vec<_>, RemoteError> = join_all(confirming).await.into_iter().collect();
        confirmed.map(|_| ()).map_err(nothing_written)
    }

    /// Writes the intents. Once all are durable, the transaction is committed.
    async fn commit(mut self, timestamp_us: i64, writes: WriteSet) -> Result<(), ExecutionError> {
        // From here on, only the outcome of the intents may end the sessions.
        self.locked.clear();
        let has_views = writes.has_views();
        let intents = self.intents(timestamp_us, writes);
        let schema_version = self.context.schema().document_version;
        let intending = intents.into_iter().map(|(node, intents)| {
            let step = TransactionStep::Intend {
                id: self.id,
                intents,
                schema_version,
            };
            self.step(node, step)
        });
        let answers = join_all(intending).await;
        let mut refused = None;
        let mut unknown = None;
        for answer in answers {
            match intended(answer) {
                Intended::Durable => {}
                Intended::Refused(error) => refused = Some(error),
                Intended::Unknown(error) => unknown = Some(error),
            }
        }
        if let Some(error) = refused {
            self.end_later(false);
            return Err(error);
        }
        if let Some(error) = unknown {
            tracing::debug!(%error, "a transaction of several nodes has an unknown outcome");
            return Err(error.into());
        }
        trace::step(|| "All intents are durable");
        match has_views {
            // A client that reads its writes in a view finds them there only once they have been applied.
            true => self.end(true, true).await,
            false => self.end_later(true),
        }
        Ok(())
    }

    /// Returns the encoded intents for each owner. Each token has one.
    fn intents(&self, timestamp_us: i64, writes: WriteSet) -> BTreeMap<Uuid, Vec<Bytes>> {
        let tokens: BTreeSet<i64> = self.owned.values().flatten().map(|(_, token)| *token).collect();
        let participants: Arc<[i64]> = tokens.into_iter().collect();
        let mut ops: BTreeMap<i64, Vec<Op>> = BTreeMap::new();
        for op in writes.into_ops() {
            ops.entry(op.token).or_default().push(op);
        }
        let mut intents: BTreeMap<Uuid, Vec<Bytes>> = BTreeMap::new();
        for (node, partitions) in self.owned {
            let mut tables: BTreeMap<i64, Vec<TableId>> = BTreeMap::new();
            for (table, token) in partitions {
                tables.entry(*token).or_default().push(*table);
            }
            let encoded = tables.into_iter().map(|(token, tables)| {
                intents::encode(&Intent {
                    transaction: self.id,
                    token,
                    timestamp_us,
                    participants: participants.clone(),
                    tables,
                    ops: ops.remove(&token).unwrap_or_default(),
                })
            });
            intents.insert(*node, encoded.collect());
        }
        intents
    }

    async fn step(&self, node: Uuid, step: TransactionStep) -> Result<TransactionAnswer, RemoteError> {
        take_step(self.context, self.cluster, node, step, self.deadline).await
    }

    /// Ends the lock sessions and the intents at all owners.
    async fn end(&self, is_committed: bool, is_awaited: bool) {
        let ending = self.ends(is_committed, is_awaited).into_iter();
        join_all(ending.map(|(node, step)| self.step(node, step))).await;
    }

    /// Ends the lock sessions and the intents at all owners, in the background. An owner that is not reached finds the decision itself.
    fn end_later(&self, is_committed: bool) {
        for (node, step) in self.ends(is_committed, false) {
            let (context, cluster, deadline) = (self.context.clone(), self.cluster.clone(), self.deadline);
            tokio::spawn(async move { take_step(&context, &cluster, node, step, deadline).await });
        }
    }

    fn ends(&self, is_committed: bool, is_awaited: bool) -> Vec<(Uuid, TransactionStep)> {
        let end = |(node, partitions): (&Uuid, &BTreeSet<(TableId, i64)>)| {
            let tokens: BTreeSet<i64> = partitions.iter().map(|(_, token)| *token).collect();
            let step = TransactionStep::End {
                id: self.id,
                tokens: tokens.into_iter().collect(),
                is_committed,
                is_awaited,
            };
            (*node, step)
        };
        self.owned.iter().map(end).collect()
    }
}

impl Drop for SpreadTransaction<'_> {
    fn drop(&mut self) {
        let locked = std::mem::take(&mut self.locked);
        if !locked.is_empty() {
            self.end_later(false);
        }
    }
}

/// Takes a step at a node, which may be this one.
async fn take_step(
    context: &Arc<ExecutionContext>,
    cluster: &Arc<dyn Cluster>,
    node: Uuid,
    step: TransactionStep,
    deadline: Instant,
) -> Result<TransactionAnswer, RemoteError> {
    if node != cluster.here() {
        return cluster.transact(node, &step, deadline).await;
    }
    let served = participant::serve(context, cluster, step).await;
    served.map_err(|error| match error {
        ExecutionError::NotOwned => RemoteError::NotOwned,
        ExecutionError::Failed(error) => RemoteError::Failed(error),
    })
}

/// Returns the error of a step before any intent was sent.
fn nothing_written(error: RemoteError) -> ExecutionError {
    match error {
        RemoteError::Failed(error) => ExecutionError::Failed(error),
        // The transaction is tried again. A session that it may have left ends by itself.
        RemoteError::NotOwned | RemoteError::Unreachable(_) | RemoteError::NoAnswer(_) => {
            ExecutionError::NotOwned
        }
    }
}

fn intended(answer: Result<TransactionAnswer, RemoteError>) -> Intended {
    match answer {
        Ok(_) => Intended::Durable,
        Err(RemoteError::NotOwned | RemoteError::Unreachable(_)) => {
            Intended::Refused(ExecutionError::NotOwned)
        }
        Err(RemoteError::NoAnswer(why)) => {
            tracing::debug!(why, "intents of a transaction have an unknown outcome");
            Intended::Unknown(crate::storage::writes::unknown())
        }
        Err(RemoteError::Failed(error @ CqlError::WriteTimeout { .. })) => Intended::Unknown(error),
        Err(RemoteError::Failed(error)) => Intended::Refused(ExecutionError::Failed(error)),
    }
}
