//! Writes that belong to several tablets, or to another node's.
//!
//! Operands have their timestamps, so that the same ones may be written twice: a write of operands is tried until it is known to be done.
//! What was computed under a partition's lock is another matter: it is written where the lock was held, or not at all.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join_all;
use helenus_cql::error::{Consistency, CqlError, WriteType};
use helenus_tablet::{Op, StoreError, WriteBatch};
use tokio::time::Instant;

use super::batch_log::Entry;
use super::{Backoff, Cluster, Owner, RemoteError, RemoteWrite, is_moved, moved, says_undone, write_timeout};
use crate::dml::{IndexedOps, WriteSet};
use crate::engine::Engine;

/// How a request's writes hang together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Together {
    /// All of them in the end, whatever happens.
    pub is_logged: bool,
    /// They were computed under the locks of their partitions, which are still held.
    pub is_locked: bool,
    /// They are of partitions in several tablets, whatever came of each, and no lock is held.
    pub is_spread: bool,
}

fn unknown() -> CqlError {
    write_timeout(Consistency::One, WriteType::Simple)
}

/// What a write to a tablet of this node has failed with.
pub(super) fn failed(error: StoreError) -> CqlError {
    match error {
        StoreError::Closed | StoreError::Unavailable(_) => {
            tracing::debug!(%error, "a write has an unknown outcome");
            unknown()
        }
        other => crate::engine::store_error(other),
    }
}

/// Writes all of it.
pub(crate) async fn commit(
    engine: &Arc<Engine>,
    cluster: &Arc<dyn Cluster>,
    writes: WriteSet,
    together: Together,
) -> Result<(), CqlError> {
    let tokens = writes.tokens();
    let Some(first) = tokens.first() else {
        return Ok(());
    };
    if together.is_locked && tokens.iter().any(|token| cluster.owner(*token) != Owner::Here) {
        return Err(moved());
    }
    let tablet = cluster.tablet(*first);
    if tokens.iter().all(|token| tablet.contains(*token)) {
        if together.is_spread {
            // Nothing came of the other tablets' part.
            return apply(engine, cluster, *first, writes, true, engine.deadline()).await;
        }
        // Another owner dates it anew: with the timestamps that it has, it would be hidden by conditions tested there without it.
        return match cluster.owner(*first) {
            Owner::Here => apply_here(engine, cluster, writes).await,
            Owner::Peer(_) | Owner::Nobody => Err(moved()),
        };
    }
    commit_parts(engine, cluster, *first, writes, together).await
}

/// Writes what is several tablets': written down in the tablet of `first` before, if it is logged.
async fn commit_parts(
    engine: &Arc<Engine>,
    cluster: &Arc<dyn Cluster>,
    first: i64,
    writes: WriteSet,
    together: Together,
) -> Result<(), CqlError> {
    writes.check_indexed(engine)?;
    let entry = match together.is_logged {
        true => Some(Entry::write(engine, cluster, first, &writes).await?),
        false => None,
    };
    let applied = apply_all(
        engine,
        cluster,
        writes.clone(),
        !together.is_locked,
        engine.deadline(),
    )
    .await;
    match (&applied, entry) {
        (Ok(()), Some(entry)) => entry.clear_later(engine, cluster),
        (Err(_), Some(entry)) => entry.finish_later(engine, cluster, writes.into_ops()),
        (_, None) => {}
    }
    applied.map_err(begun)
}

/// The error of a write of which some may have been done already, or will be: none that says that nothing was.
fn begun(error: CqlError) -> CqlError {
    if !says_undone(&error) {
        return error;
    }
    tracing::debug!(%error, "a write that was begun has an unknown outcome");
    unknown()
}

/// Writes the parts of several tablets side by side.
pub(crate) async fn apply_all(
    engine: &Arc<Engine>,
    cluster: &Arc<dyn Cluster>,
    writes: WriteSet,
    locks: bool,
    deadline: Instant,
) -> Result<(), CqlError> {
    let parts = writes.by_tablet(|token| cluster.tablet(token).first);
    let parts = parts
        .into_iter()
        .map(|(token, part)| apply(engine, cluster, token, part, locks, deadline));
    join_all(parts).await.into_iter().collect()
}

/// Writes what belongs to one tablet, wherever that is.
async fn apply(
    engine: &Arc<Engine>,
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
                    writes.lock_indexed(engine).await?;
                }
                apply_here(engine, cluster, writes).await
            }
            Owner::Peer(node) => {
                writes.note_headers(engine).await?;
                let schema = engine.schema();
                let durable = writes.is_durable(&schema);
                let write = RemoteWrite {
                    ops: writes.clone().into_ops(),
                    durable,
                    maintains_indexes: true,
                    schema_version: schema.document_version,
                };
                remote(cluster.write(node, &write, deadline).await)
            }
            Owner::Nobody => Err(moved()),
        };
        match tried {
            Err(error) if is_moved(&error) || matches!(error, CqlError::WriteTimeout { .. }) => {
                is_begun |= !is_moved(&error);
                if !backoff.wait(cluster.as_ref()).await {
                    return Err(unknown());
                }
            }
            Err(error) if is_begun => return Err(begun(error)),
            done => return done,
        }
    }
}

fn remote(result: Result<(), RemoteError>) -> Result<(), CqlError> {
    result.map_err(|error| match error {
        RemoteError::NotMine | RemoteError::Unreachable(_) => moved(),
        RemoteError::NoAnswer(_) => unknown(),
        RemoteError::Failed(error) => error,
    })
}

/// Writes rows of one tablet of this node, and the index entries that follow: new ones first, wherever they are, then the rows, then
/// what the rows no longer deserve. So whatever is cut short, no row is without its entry. The rows of views that are another tablet's are
/// written down together with the rows, and then written.
pub(crate) async fn apply_here(
    engine: &Arc<Engine>,
    cluster: &Arc<dyn Cluster>,
    writes: WriteSet,
) -> Result<(), CqlError> {
    writes.note_headers(engine).await?;
    let durable = writes.is_durable(&engine.schema());
    let (hold, tablets) = (writes.hold(), writes.open_tablets());
    let IndexedOps {
        mut rows,
        added,
        removed,
        views,
    } = writes.indexed_ops(engine).await?;
    let Some(first) = rows.first().map(|op| op.token) else {
        return Ok(());
    };
    let tablet = cluster.tablet(first);
    let (near, far): (Vec<Op>, Vec<Op>) = added.into_iter().partition(|op| tablet.contains(op.token));
    write_ops(engine, cluster, far, true, engine.deadline()).await?;
    let (gone_near, gone_far): (Vec<Op>, Vec<Op>) =
        removed.into_iter().partition(|op| tablet.contains(op.token));
    rows.extend(near);
    rows.extend(gone_near);
    let (views_near, views_far): (Vec<Op>, Vec<Op>) =
        views.into_iter().partition(|op| tablet.contains(op.token));
    rows.extend(views_near);
    // Written down with the rows, so that the views get them whatever happens.
    let entry = (!views_far.is_empty()).then(|| Entry::new(engine, first, &views_far));
    let entry = entry.map(|(entry, op)| {
        rows.push(op);
        entry
    });
    let batch = WriteBatch {
        ops: rows,
        hold,
        tablets,
    };
    engine.store.write(batch, durable).await.map_err(failed)?;
    if let Some(entry) = entry {
        let carried_out = entry.carry_out(engine, cluster, views_far, durable).await;
        carried_out.map_err(begun)?;
    }
    if !gone_far.is_empty() {
        // Readers check each entry against its row: nobody need wait for these.
        let (engine, cluster) = (engine.clone(), cluster.clone());
        tokio::spawn(async move {
            let deadline = engine.deadline();
            if let Err(error) = write_ops(&engine, &cluster, gone_far, false, deadline).await {
                tracing::debug!(%error, "stale index entries stay until they are read");
            }
        });
    }
    Ok(())
}

/// Writes operands as they are, wherever they belong.
pub(crate) async fn write_ops(
    engine: &Engine,
    cluster: &Arc<dyn Cluster>,
    ops: Vec<Op>,
    durable: bool,
    deadline: Instant,
) -> Result<(), CqlError> {
    let mut parts: BTreeMap<i64, Vec<Op>> = BTreeMap::new();
    for op in ops {
        parts.entry(cluster.tablet(op.token).first).or_default().push(op);
    }
    let parts = parts
        .into_iter()
        .map(|(token, ops)| write_part(engine, cluster.as_ref(), token, ops, durable, deadline));
    join_all(parts).await.into_iter().collect()
}

async fn write_part(
    engine: &Engine,
    cluster: &dyn Cluster,
    token: i64,
    ops: Vec<Op>,
    durable: bool,
    deadline: Instant,
) -> Result<(), CqlError> {
    let mut backoff = Backoff::until(deadline, cluster);
    let mut is_begun = false;
    let mut write = RemoteWrite {
        ops,
        durable,
        maintains_indexes: false,
        schema_version: 0,
    };
    loop {
        let tried = match cluster.owner(token) {
            Owner::Here => {
                let batch = WriteBatch::of(write.ops.clone());
                engine.store.write(batch, durable).await.map_err(failed)
            }
            Owner::Peer(node) => {
                write.schema_version = engine.schema().document_version;
                remote(cluster.write(node, &write, deadline).await)
            }
            Owner::Nobody => Err(moved()),
        };
        match tried {
            Err(error) if is_moved(&error) || matches!(error, CqlError::WriteTimeout { .. }) => {
                is_begun |= !is_moved(&error);
                if !backoff.wait(cluster).await {
                    return Err(unknown());
                }
            }
            Err(error) if is_begun => return Err(begun(error)),
            done => return done,
        }
    }
}
