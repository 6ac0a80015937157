//! `nodetool drain`, `nodetool decommission` and `nodetool stopdaemon`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;

use super::client::{NodeClient, TIMEOUT};

/// Maximum time that a node may take to hand its tablets over.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(120);

/// Stops a node gracefully. A node of a cluster hands its tablets over first.
pub(super) fn stop(node: &NodeClient) -> anyhow::Result<ExitCode> {
    node.command("/node/stop", "", "/node/challenge", TIMEOUT)?;
    println!("The node stops.");
    Ok(ExitCode::SUCCESS)
}

/// Drains a node and stops it. A node that is alone only flushes its tablets, because there is no other node to take them.
pub(super) fn drain(node: &NodeClient) -> anyhow::Result<ExitCode> {
    let cluster = node.cluster()?;
    match cluster.get("version").is_some_and(serde_json::Value::is_null) {
        true => stop(node),
        false => run(node),
    }
}

pub(super) fn run(node: &NodeClient) -> anyhow::Result<ExitCode> {
    node.command("/cluster/drain", "", "/cluster/challenge", DRAIN_TIMEOUT)
        .context("the node has not handed its tablets over")?;
    println!("The node has handed its tablets over and leaves.");
    Ok(ExitCode::SUCCESS)
}
