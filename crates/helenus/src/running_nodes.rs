//! Refuses operations on a store while nodes run on it.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use helenus_cluster::{CLUSTER_DOCUMENT, LEASE_DEFAULT};
use helenus_tablet::StoreDocuments;

/// Returns the nodes' heartbeats in the store. Each has a stamp, which changes when the node renews the heartbeat.
pub async fn heartbeats_of(documents: &StoreDocuments) -> anyhow::Result<BTreeMap<String, String>> {
    Ok(documents.names(&format!("{CLUSTER_DOCUMENT}.")).await?)
}

/// Returns the nodes' heartbeats in the store. Fails if a node renews one.
pub async fn refuse_if_alive(documents: &StoreDocuments) -> anyhow::Result<BTreeMap<String, String>> {
    let before = heartbeats_of(documents).await?;
    if before.is_empty() {
        return Ok(before);
    }
    let mut lease = LEASE_DEFAULT;
    for name in before.keys() {
        let heartbeat = heartbeat(documents, name).await?;
        let lease_ms = heartbeat.get("lease_ms").and_then(serde_json::Value::as_u64);
        lease = lease.max(Duration::from_millis(lease_ms.unwrap_or(0)));
    }
    println!(
        "looking for nodes that are running on it, for {:.1} s",
        lease.as_secs_f64()
    );
    tokio::time::sleep(lease).await;
    let now = heartbeats_of(documents).await?;
    let Some((name, _)) = now.iter().find(|(name, stamp)| before.get(*name) != Some(stamp)) else {
        return Ok(now);
    };
    let heartbeat = heartbeat(documents, name).await?;
    let text = |key| {
        heartbeat
            .get(key)
            .and_then(serde_json::Value::as_str)
            .unwrap_or("?")
    };
    bail!(
        "node {} at {} is running on it: stop its nodes first",
        text("host_id"),
        text("rpc_address")
    )
}

/// Returns the content of a heartbeat. Null if the heartbeat is gone or invalid.
async fn heartbeat(documents: &StoreDocuments, name: &str) -> anyhow::Result<serde_json::Value> {
    let found = documents.get(name).await?;
    Ok(found
        .and_then(|found| serde_json::from_slice(&found.content).ok())
        .unwrap_or_default())
}
