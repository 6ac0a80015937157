//! `nodetool flush`.

use std::process::ExitCode;
use std::time::Duration;

use super::client::NodeClient;

/// Maximum time that a node may take to write its memtables.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(600);

pub(super) fn run(node: &NodeClient) -> anyhow::Result<ExitCode> {
    node.command("/node/flush", "", "/node/challenge", FLUSH_TIMEOUT)?;
    Ok(ExitCode::SUCCESS)
}
