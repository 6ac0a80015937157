//! Writes to several tablets, or to tablets of other nodes.
//!
//! Operands have their timestamps, so they may be written twice. Writes of operands are repeated until they are known to be done. Writes
//! that were computed under a partition's lock are different: they are written where the lock is held, or not at all.

use std::sync::Arc;

use futures::future::join_all;
use helenus_cql::error::CqlError;
use helenus_tablet::{Op, TokenRange, WriteBatch};
use smallvec::SmallVec;
use tokio::time::Instant;

use super::batch_log::Entry;
use super::{IndexedOps, WriteSet, publish};
use crate::cluster::{Cluster, Owner, RemoteWrite};
use crate::failure::ExecutionError;
use crate::storage::ExecutionContext;
use crate::storage::writes::{WriteTries, begun, failed, remote, write_ops};

/// Atomicity of a request's writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriteAtomicity {
    /// True if the writes are logged: all of them take effect eventually, even if a node dies.
    pub is_logged: bool,
    /// True if the writes were computed under exclusive locks of their partitions, which are still held.
    pub is_locked: bool,
    /// True if the request's partitions are in several tablets, so that no lock is held. This includes requests of which only one tablet's
    /// part produces writes.
    pub is_spread: bool,
    /// True if all partitions are locked alone, and their writes are one record of this node's log, whatever their tablets.
    pub is_one_record: bool,
}

/// Writes everything.
///
/// # Errors
/// [`ExecutionError::NotOwned`] if another node has to compute the writes again. Nothing was written.
pub(crate) async fn commit(
    context: &Arc<ExecutionContext>,
    cluster: &Arc<dyn Cluster>,
    writes: WriteSet,
    together: WriteAtomicity,
) -> Result<(), ExecutionError> {
    let tokens = writes.tokens();
    let Some(first) = tokens.first() else {
        return Ok(());
    };
    if together.is_locked && tokens.iter().any(|token| cluster.owner(*token) != Owner::Here) {
        return Err(ExecutionError::NotOwned);
    }
    if together.is_one_record {
        return apply_here(context, cluster, writes).await;
    }
    let tablet = cluster.tablet(*first);
    if tokens.iter().all(|token| tablet.contains(*token)) {
        if together.is_spread {
            // The parts of the other tablets produced no writes.
            let part = apply(context, cluster, *first, writes, true, context.deadline());
            return Ok(Box::pin(part).await?);
        }
        // The new owner must assign a new timestamp. With the old one, the write could be older than a conditional write that did not see
        // it.
        return match cluster.owner(*first) {
            Owner::Here => apply_here(context, cluster, writes).await,
            Owner::Peer(_) | Owner::Unowned => Err(ExecutionError::NotOwned),
        };
    }
    Ok(Box::pin(commit_parts(context, cluster, *first, writes, together)).await?)
}

/// Writes the parts of several tablets. A logged batch is first recorded in the batch log, in the tablet of token `first`.
async fn commit_parts(
    context: &Arc<ExecutionContext>,
    cluster: &Arc<dyn Cluster>,
    first: i64,
    writes: WriteSet,
    together: WriteAtomicity,
) -> Result<(), CqlError> {
    writes.check_indexed(context)?;
    if let Some(guard) = &writes.guard {
        // The parts are written concurrently, without any order to the writes from which they follow. So those must be durable first.
        guard
            .confirm(&context.store)
            .await
            .map_err(ExecutionError::into_client_error)?;
    }
    let entry = match together.is_logged {
        true => Some(Entry::write(context, cluster, first, &writes).await?),
        false => None,
    };
    let applied = apply_all(
        context,
        cluster,
        writes.clone(),
        !together.is_locked,
        context.deadline(),
    )
    .await;
    match (&applied, entry) {
        (Ok(()), Some(entry)) => entry.clear_later(context, cluster),
        (Err(_), Some(entry)) => entry.finish_later(context, cluster, writes.into_ops()),
        (_, None) => {}
    }
    applied.map_err(begun)
}

/// Writes the parts of several tablets concurrently.
pub(crate) async fn apply_all(
    context: &Arc<ExecutionContext>,
    cluster: &Arc<dyn Cluster>,
    writes: WriteSet,
    locks: bool,
    deadline: Instant,
) -> Result<(), CqlError> {
    let parts = writes.by_tablet(|token| cluster.tablet(token).first);
    let parts = parts
        .into_iter()
        .map(|(token, part)| apply(context, cluster, token, part, locks, deadline));
    join_all(parts).await.into_iter().collect()
}

/// Writes the part of one tablet, on whichever node the tablet is.
async fn apply(
    context: &Arc<ExecutionContext>,
    cluster: &Arc<dyn Cluster>,
    token: i64,
    writes: WriteSet,
    locks: bool,
    deadline: Instant,
) -> Result<(), CqlError> {
    let mut tries = WriteTries::until(deadline, cluster.as_ref());
    loop {
        let tried = match cluster.owner(token) {
            Owner::Here => {
                let mut writes = writes.clone();
                if locks {
                    writes.lock_indexed(context).await?;
                }
                apply_here(context, cluster, writes).await
            }
            Owner::Peer(node) => {
                writes.note_headers(context).await?;
                let schema = context.schema();
                let durable = writes.is_durable(&schema);
                let write = RemoteWrite {
                    is_uncaptured: writes.is_uncaptured,
                    ops: writes.clone().into_ops(),
                    durable,
                    maintains_indexes: true,
                    schema_version: schema.document_version,
                };
                remote(cluster.write(node, &write, deadline).await)
            }
            Owner::Unowned => Err(ExecutionError::NotOwned),
        };
        if let Some(written) = tries.end(tried).await {
            return written;
        }
    }
}

/// The token ranges of the tablets to which rows are written.
struct WrittenTablets(SmallVec<[TokenRange; 1]>);

impl WrittenTablets {
    fn of<'o>(cluster: &dyn Cluster, rows: impl Iterator<Item = &'o Op>) -> WrittenTablets {
        let mut tablets = WrittenTablets(SmallVec::new());
        for op in rows {
            if !tablets.contain(op.token) {
                tablets.0.push(cluster.tablet(op.token));
            }
        }
        tablets
    }

    fn contain(&self, token: i64) -> bool {
        self.0.iter().any(|tablet| tablet.contains(token))
    }
}

/// Writes rows of one of this node's tablets, or of several in one record, with their index entries. New entries are written first, on whichever node they are, then the
/// rows. Obsolete entries and values are removed last. So no row lacks its entry, whatever fails. Rows of views in other tablets are
/// recorded together with the rows, and then written.
///
/// The locks of the partitions are released once the rows are queued in the log, or while entries are written to other tablets
/// ([`crate::storage::pending`]).
pub(crate) async fn apply_here(
    context: &Arc<ExecutionContext>,
    cluster: &Arc<dyn Cluster>,
    mut writes: WriteSet,
) -> Result<(), ExecutionError> {
    let marks = std::mem::take(&mut writes.marks);
    writes.sample(&context.metrics.sampling);
    writes.note_headers(context).await?;
    let durable = writes.is_durable(&context.schema());
    let guard = writes.guard.clone();
    let has_posting_lists = writes.have_posting_lists();
    let IndexedOps {
        mut rows,
        added,
        replaced,
        removed,
        views,
        changes,
    } = writes.indexed_ops(context).await?;
    let Some(first) = rows.iter().chain(&marks).map(|op| op.token).next() else {
        return Ok(());
    };
    let tablets = WrittenTablets::of(cluster.as_ref(), rows.iter().chain(&marks));
    let (near, mut far): (Vec<Op>, Vec<Op>) = added.into_iter().partition(|op| tablets.contain(op.token));
    let turn = publish(context, guard.as_ref(), &mut rows).await?;
    rows.extend(changes);
    rows.extend(marks);
    let (gone_near, mut gone_far): (Vec<Op>, Vec<Op>) =
        removed.into_iter().partition(|op| tablets.contain(op.token));
    rows.extend(near);
    rows.extend(gone_near);
    for entry in replaced {
        if tablets.contain(entry.single.token) {
            rows.push(entry.single);
        } else {
            far.push(entry.pair);
            gone_far.push(entry.single);
        }
    }
    let (views_near, views_far): (Vec<Op>, Vec<Op>) =
        views.into_iter().partition(|op| tablets.contain(op.token));
    rows.extend(views_near);
    // The rows of views are recorded together with the rows, so that they are written even if this node dies.
    let entry = (!views_far.is_empty()).then(|| Entry::new(context, first, &views_far));
    let entry = entry.map(|(entry, op)| {
        rows.push(op);
        entry
    });
    if !far.is_empty() {
        if let Some(turn) = &turn {
            context.store.check_size(&rows)?;
            turn.unlock();
        }
        if has_posting_lists && let Some(guard) = &guard {
            // The entry of a row in a posting list holds its vector, and is overwritten. If a write from which this one follows fails, the
            // row keeps the vector that the entry must still have.
            guard.confirm(&context.store).await?;
        }
        Box::pin(write_ops(context, cluster, far, true, context.deadline())).await?;
    }
    if let Some(turn) = &turn {
        turn.await_turn().await;
    }
    let batch = WriteBatch {
        ops: rows,
        tablets: guard.as_ref().and_then(|guard| guard.tablets()),
        hold: guard.map(|guard| guard as _),
        turn: turn.map(|turn| turn as _),
    };
    let finish = |entry: Entry| entry.finish(context.clone(), cluster.clone(), views_far.clone());
    let late = entry.clone().map(finish);
    let late = async move {
        if let Some(finish) = late {
            finish.await;
        }
    };
    let written = context.store.write_followed(batch, durable, late).await;
    written.map_err(failed)?;
    if let Some(entry) = entry {
        let carried_out = entry.carry_out(context, cluster, views_far, durable);
        Box::pin(carried_out).await.map_err(begun)?;
    }
    if !gone_far.is_empty() {
        // Readers check each entry against its row, so these removals need not be awaited.
        let (context, cluster) = (context.clone(), cluster.clone());
        tokio::spawn(async move {
            let deadline = context.deadline();
            if let Err(error) = write_ops(&context, &cluster, gone_far, false, deadline).await {
                tracing::debug!(%error, "obsolete index entries stay until they are read");
            }
        });
    }
    Ok(())
}
