//! Agreement of all nodes on the documents that they have loaded.

use std::collections::BTreeSet;

use futures::future::join_all;
use helenus_cql::error::CqlError;
use helenus_row::TableId;

use crate::cluster::{Backoff, Cluster, Node, Versions};
use crate::storage::ExecutionContext;

/// Returns when every node that takes part serves by the documents that this node has loaded. What could not be found out in time is told in
/// warnings: a node looks by itself every now and then.
pub(crate) async fn await_schema_agreement(context: &ExecutionContext) -> Result<Vec<String>, CqlError> {
    ask_all_to_load(context, false).await
}

/// Returns when no write is under way on any node that was planned against a schema before the one that this node has: all that are keep
/// its indexes and views.
pub(crate) async fn await_old_writes(context: &ExecutionContext) -> Result<(), CqlError> {
    context.writes.drained().await;
    match ask_all_to_load(context, true).await?.pop() {
        Some(why) => Err(CqlError::Server(why)),
        None => Ok(()),
    }
}

pub(crate) async fn ask_all_to_load(
    context: &ExecutionContext,
    is_settled: bool,
) -> Result<Vec<String>, CqlError> {
    let Some(cluster) = context.cluster() else {
        return Ok(Vec::new());
    };
    // A node that joined before the documents were written may have read the old ones; it stands in the view then.
    cluster.refresh().await;
    let versions = context.versions();
    let others = cluster.nodes().into_iter().map(|node| node.host_id);
    let others = others.filter(|node| *node != cluster.here());
    let asked = others.map(|node| ask_to_load(context, cluster.as_ref(), node, versions, is_settled));
    Ok(join_all(asked).await.into_iter().flatten().collect())
}

/// Tries until the node has loaded the documents or has left.
pub(crate) async fn ask_to_load(
    context: &ExecutionContext,
    cluster: &dyn Cluster,
    node: uuid::Uuid,
    versions: Versions,
    is_settled: bool,
) -> Option<String> {
    let deadline = context.deadline();
    let mut backoff = Backoff::until(deadline, cluster);
    loop {
        match cluster.load(node, versions, is_settled, deadline).await {
            Ok(()) => return None,
            Err(error) => tracing::debug!(%node, ?error, "a node has not loaded the schema"),
        }
        let takes_part = |known: &Node| known.host_id == node;
        if !cluster.nodes().iter().any(takes_part) {
            return None;
        }
        if !backoff.wait(cluster).await {
            return Some(format!("Node {node} has not yet agreed to the change"));
        }
    }
}

/// Makes the table one of those that have headers, durably and on every node, before its first header is written.
pub(crate) async fn add_header_table(context: &ExecutionContext, table: TableId) -> Result<(), CqlError> {
    let headers = &context.headers;
    if headers.agreed.load().contains(&table.0) {
        return Ok(());
    }
    headers.write(&context.store, table).await?;
    await_schema_agreement(context).await?;
    headers.agreed.rcu(|agreed| {
        let mut agreed = BTreeSet::clone(agreed);
        agreed.insert(table.0);
        agreed
    });
    Ok(())
}
