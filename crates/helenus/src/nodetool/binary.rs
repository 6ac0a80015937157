//! `nodetool enablebinary`, `disablebinary`, `statusbinary` and `statusgossip`.

use std::process::ExitCode;

use serde_json::Value;

use super::client::{NodeClient, TIMEOUT};

/// Opens or closes the port for CQL clients.
pub(super) fn switch(node: &NodeClient, on: bool) -> anyhow::Result<ExitCode> {
    let body = if on { "on" } else { "off" };
    node.command("/node/binary", body, "/node/challenge", TIMEOUT)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn status(node: &NodeClient) -> anyhow::Result<ExitCode> {
    show(node, "serves_clients")
}

/// Shows whether the node has a lease, which replaces gossip.
pub(super) fn gossip(node: &NodeClient) -> anyhow::Result<ExitCode> {
    show(node, "in_cluster")
}

fn show(node: &NodeClient, field: &str) -> anyhow::Result<ExitCode> {
    let report = node.report()?;
    let is_running = report.get(field).and_then(Value::as_bool) == Some(true);
    println!("{}", if is_running { "running" } else { "not running" });
    Ok(ExitCode::SUCCESS)
}
