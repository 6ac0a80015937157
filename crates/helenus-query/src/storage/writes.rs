//! Writes of finished operands, to any node.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join_all;
use helenus_cql::error::{Consistency, CqlError, WriteType};
use helenus_tablet::{Op, StoreError, WriteBatch};
use tokio::time::Instant;

use crate::cluster::{Backoff, Cluster, Owner, RemoteError, RemoteWrite};
use crate::failure::{ExecutionError, says_undone, store_error, write_timeout};
use crate::storage::ExecutionContext;

/// Returns the error of a write that may have taken effect, or may not.
pub(crate) fn unknown() -> CqlError {
    write_timeout(Consistency::One, WriteType::Simple)
}

/// Maps the error of a write to a tablet of this node.
pub(crate) fn failed(error: StoreError) -> ExecutionError {
    match error {
        StoreError::Closed | StoreError::Unavailable(_) => {
            tracing::debug!(%error, "a write has an unknown outcome");
            unknown().into()
        }
        other => other.into(),
    }
}

/// Maps the error of a write that may be partly applied. The result never claims that nothing was written, because drivers retry on such
/// errors.
pub(crate) fn begun(error: CqlError) -> CqlError {
    if !says_undone(&error) {
        return error;
    }
    tracing::debug!(%error, "a write that was begun has an unknown outcome");
    unknown()
}

/// The tries of one write of finished operands. Operands have their timestamps, so they may be written twice. The write is therefore
/// repeated until its outcome is known or its time is over.
pub(crate) struct WriteTries<'c> {
    cluster: &'c dyn Cluster,
    backoff: Backoff,
    /// True if a try may have written something.
    is_begun: bool,
}

impl<'c> WriteTries<'c> {
    /// Starts the tries of a write. Must be called before the first one ([`Backoff::until`]).
    pub fn until(deadline: Instant, cluster: &'c dyn Cluster) -> WriteTries<'c> {
        WriteTries {
            cluster,
            backoff: Backoff::until(deadline, cluster),
            is_begun: false,
        }
    }

    /// Ends a try, and waits before the next one. Returns the result of the write. `None` if the write must be tried again.
    pub async fn end(&mut self, tried: Result<(), ExecutionError>) -> Option<Result<(), CqlError>> {
        match tried {
            Err(ExecutionError::NotOwned) => {}
            Err(ExecutionError::Failed(CqlError::WriteTimeout { .. })) => self.is_begun = true,
            Err(ExecutionError::Failed(error)) if self.is_begun => return Some(Err(begun(error))),
            Err(ExecutionError::Failed(error)) => return Some(Err(error)),
            Ok(()) => return Some(Ok(())),
        }
        match self.backoff.wait(self.cluster).await {
            true => None,
            false => Some(Err(unknown())),
        }
    }
}

pub(crate) fn remote(result: Result<(), RemoteError>) -> Result<(), ExecutionError> {
    result.map_err(|error| match error {
        RemoteError::NotOwned | RemoteError::Unreachable(_) => ExecutionError::NotOwned,
        RemoteError::NoAnswer(_) => unknown().into(),
        RemoteError::Failed(error) => ExecutionError::Failed(error),
    })
}

/// Writes finished operands in a cluster, each to the owner of its tablet.
pub(crate) async fn write_ops(
    context: &ExecutionContext,
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
        .map(|(token, ops)| write_part(context, cluster.as_ref(), token, ops, durable, deadline));
    join_all(parts).await.into_iter().collect()
}

/// Writes finished operands durably, each to the owner of its tablet. Also works on a node that is alone.
pub(crate) async fn write_anywhere(
    context: &ExecutionContext,
    ops: Vec<Op>,
    deadline: Instant,
) -> Result<(), CqlError> {
    if ops.is_empty() {
        return Ok(());
    }
    match context.cluster() {
        Some(cluster) => write_ops(context, cluster, ops, true, deadline).await,
        None => {
            let written = context.store.write(WriteBatch::of(ops), true).await;
            written.map_err(store_error)
        }
    }
}

pub(crate) async fn write_part(
    context: &ExecutionContext,
    cluster: &dyn Cluster,
    token: i64,
    ops: Vec<Op>,
    durable: bool,
    deadline: Instant,
) -> Result<(), CqlError> {
    let mut tries = WriteTries::until(deadline, cluster);
    let mut write = RemoteWrite {
        ops,
        durable,
        maintains_indexes: false,
        is_uncaptured: false,
        schema_version: 0,
    };
    loop {
        let tried = match cluster.owner(token) {
            Owner::Here => {
                let batch = WriteBatch::of(write.ops.clone());
                context.store.write(batch, durable).await.map_err(failed)
            }
            Owner::Peer(node) => {
                write.schema_version = context.schema().document_version;
                remote(cluster.write(node, &write, deadline).await)
            }
            Owner::Unowned => Err(ExecutionError::NotOwned),
        };
        if let Some(written) = tries.end(tried).await {
            return written;
        }
    }
}
