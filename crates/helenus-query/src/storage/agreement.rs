//! Agreement of all nodes on the loaded documents.

use std::collections::BTreeSet;

use futures::future::join_all;
use helenus_cql::error::CqlError;
use helenus_row::TableId;

use crate::cluster::{Backoff, Cluster, ReportedNode, Versions};
use crate::storage::ExecutionContext;

/// Waits until every node uses the documents that this node has loaded. Returns a warning for each node that did not confirm this in time.
/// The node finds the documents by itself later, because nodes poll for changes.
pub(crate) async fn await_schema_agreement(context: &ExecutionContext) -> Result<Vec<String>, CqlError> {
    make_all_load(context, false).await
}

/// Waits until all writes, on all nodes, are planned against this node's schema or a newer one. From then on all writes maintain its
/// indexes and views.
pub(crate) async fn await_old_writes(context: &ExecutionContext) -> Result<(), CqlError> {
    context.writing.epochs.drained().await;
    match make_all_load(context, true).await?.pop() {
        Some(why) => Err(CqlError::Server(why)),
        None => Ok(()),
    }
}

pub(crate) async fn make_all_load(
    context: &ExecutionContext,
    is_settled: bool,
) -> Result<Vec<String>, CqlError> {
    let Some(cluster) = context.cluster() else {
        return Ok(Vec::new());
    };
    // A node that joined before the documents were written may have read the old ones. The refreshed view contains such nodes.
    cluster.refresh().await;
    let versions = context.versions();
    let others = cluster.nodes().into_iter().map(|node| node.host_id);
    let others = others.filter(|node| *node != cluster.here());
    let requested = others.map(|node| make_load(context, cluster.as_ref(), node, versions, is_settled));
    Ok(join_all(requested).await.into_iter().flatten().collect())
}

/// Retries until the node has loaded the documents or has left the cluster. Returns a warning if neither happens before the deadline.
pub(crate) async fn make_load(
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
        let takes_part = |known: &ReportedNode| known.host_id == node;
        if !cluster.nodes().iter().any(takes_part) {
            return None;
        }
        if !backoff.wait(cluster).await {
            return Some(format!("Node {node} has not yet agreed to the change"));
        }
    }
}

/// Adds the table to the tables with partition headers, durably and on every node. Called before its first header is written.
pub(crate) async fn add_header_table(context: &ExecutionContext, table: TableId) -> Result<(), CqlError> {
    let headers = &context.hooks.headers;
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
