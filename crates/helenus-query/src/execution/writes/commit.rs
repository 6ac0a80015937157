//! Writes that belong to several tablets, or to another node's.
//!
//! Operands have their timestamps, so that the same ones may be written twice: a write of operands is tried until it is known to be done.
//! What was computed under a partition's lock is another matter: it is written where the lock was held, or not at all.

use std::sync::Arc;

use futures::future::join_all;
use helenus_cql::error::CqlError;
use helenus_tablet::{Op, WriteBatch};
use tokio::time::Instant;

use super::batch_log::Entry;
use super::{IndexedOps, WriteSet, publish};
use crate::cluster::{Backoff, Cluster, Owner, RemoteWrite};
use crate::failure::ExecutionError;
use crate::storage::ExecutionContext;
use crate::storage::writes::{begun, failed, remote, unknown, write_ops};

/// How a request's writes hang together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriteAtomicity {
    /// All of them in the end, whatever happens.
    pub is_logged: bool,
    /// They were computed under the locks of their partitions, which are still held.
    pub is_locked: bool,
    /// They are of partitions in several tablets, whatever came of each, and no lock is held.
    pub is_spread: bool,
}

/// Writes all of it.
///
/// # Errors
/// [`ExecutionError::NotOwned`] if it has to be computed anew by another node; nothing was written.
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
    let tablet = cluster.tablet(*first);
    if tokens.iter().all(|token| tablet.contains(*token)) {
        if together.is_spread {
            // Nothing came of the other tablets' part.
            let part = apply(context, cluster, *first, writes, true, context.deadline());
            return Ok(Box::pin(part).await?);
        }
        // Another owner dates it anew: with the timestamps that it has, it would be hidden by conditions tested there without it.
        return match cluster.owner(*first) {
            Owner::Here => apply_here(context, cluster, writes).await,
            Owner::Peer(_) | Owner::Nobody => Err(ExecutionError::NotOwned),
        };
    }
    Ok(Box::pin(commit_parts(context, cluster, *first, writes, together)).await?)
}

/// Writes what is several tablets': written down in the tablet of `first` before, if it is logged.
async fn commit_parts(
    context: &Arc<ExecutionContext>,
    cluster: &Arc<dyn Cluster>,
    first: i64,
    writes: WriteSet,
    together: WriteAtomicity,
) -> Result<(), CqlError> {
    writes.check_indexed(context)?;
    if let Some(guard) = &writes.guard {
        // The parts are written side by side, in no order with what they follow from.
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

/// Writes the parts of several tablets side by side.
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

/// Writes what belongs to one tablet, wherever that is.
async fn apply(
    context: &Arc<ExecutionContext>,
    cluster: &Arc<dyn Cluster>,
    token: i64,
    writes: WriteSet,
    locks: bool,
    deadline: Instant,
) -> Result<(), CqlError> {
    let mut backoff = Backoff::until(deadline, cluster.as_ref());
    let mut is_begun = false;
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
                    ops: writes.clone().into_ops(),
                    durable,
                    maintains_indexes: true,
                    schema_version: schema.document_version,
                };
                remote(cluster.write(node, &write, deadline).await)
            }
            Owner::Nobody => Err(ExecutionError::NotOwned),
        };
        match tried {
            Err(ExecutionError::NotOwned) => {}
            Err(ExecutionError::Failed(CqlError::WriteTimeout { .. })) => is_begun = true,
            Err(ExecutionError::Failed(error)) if is_begun => return Err(begun(error)),
            Err(ExecutionError::Failed(error)) => return Err(error),
            Ok(()) => return Ok(()),
        }
        if !backoff.wait(cluster.as_ref()).await {
            return Err(unknown());
        }
    }
}

/// Writes rows of one tablet of this node, and the index entries that follow: new ones first, wherever they are, then the rows, then
/// what the rows no longer deserve. So whatever is cut short, no row is without its entry. The rows of views that are another tablet's are
/// written down together with the rows, and then written.
///
/// Others lock the partitions once the rows are queued in the log, or while entries are written to other tablets ([`crate::storage::pending`]).
pub(crate) async fn apply_here(
    context: &Arc<ExecutionContext>,
    cluster: &Arc<dyn Cluster>,
    writes: WriteSet,
) -> Result<(), ExecutionError> {
    writes.sample(&context.figures.sampling);
    writes.note_headers(context).await?;
    let durable = writes.is_durable(&context.schema());
    let guard = writes.guard.clone();
    let IndexedOps {
        mut rows,
        added,
        removed,
        views,
    } = writes.indexed_ops(context).await?;
    let Some(first) = rows.first().map(|op| op.token) else {
        return Ok(());
    };
    let tablet = cluster.tablet(first);
    let (near, far): (Vec<Op>, Vec<Op>) = added.into_iter().partition(|op| tablet.contains(op.token));
    let turn = publish(context, guard.as_ref(), &mut rows).await?;
    let (gone_near, gone_far): (Vec<Op>, Vec<Op>) =
        removed.into_iter().partition(|op| tablet.contains(op.token));
    rows.extend(near);
    rows.extend(gone_near);
    let (views_near, views_far): (Vec<Op>, Vec<Op>) =
        views.into_iter().partition(|op| tablet.contains(op.token));
    rows.extend(views_near);
    // Written down with the rows, so that the views get them whatever happens.
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
        // Readers check each entry against its row: nobody need wait for these.
        let (context, cluster) = (context.clone(), cluster.clone());
        tokio::spawn(async move {
            let deadline = context.deadline();
            if let Err(error) = write_ops(&context, &cluster, gone_far, false, deadline).await {
                tracing::debug!(%error, "stale index entries stay until they are read");
            }
        });
    }
    Ok(())
}
