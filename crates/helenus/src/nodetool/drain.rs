//! `nodetool drain` and `nodetool decommission`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;

use super::client::NodeClient;

/// How long a node may take to hand its tablets over.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(120);

pub(super) fn run(node: &NodeClient) -> anyhow::Result<ExitCode> {
    node.command("/cluster/drain", "", "/cluster/challenge", DRAIN_TIMEOUT)
        .context("the node has not handed its tablets over")?;
    println!("The node has handed its tablets over and leaves.");
    Ok(ExitCode::SUCCESS)
}
