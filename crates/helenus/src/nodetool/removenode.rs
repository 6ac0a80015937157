//! `nodetool removenode` and `nodetool assassinate`: remove a lost node from the list of nodes. Its tablets have had other owners since its
//! lease ended.

use std::process::ExitCode;

use anyhow::bail;

use super::client::{NodeClient, TIMEOUT};
use super::output::{host, list, text};

/// Removes the node with host id `what`. As in Cassandra, `what` may also be `status` or `force`; no removal is ever in progress.
pub(super) fn run(node: &NodeClient, what: &str) -> anyhow::Result<ExitCode> {
    match what {
        "status" => println!("RemovalStatus: No token removals in process."),
        "force" => println!("RemovalStatus: No token removals in process."),
        id => forget(node, id)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes the node with this address.
pub(super) fn by_address(node: &NodeClient, address: &str) -> anyhow::Result<ExitCode> {
    let cluster = node.cluster()?;
    let has_it = |node: &&serde_json::Value| {
        let known = text(node, "cql_address");
        known == address || host(&known) == address
    };
    let mut nodes = list(&cluster, "lost").iter().chain(list(&cluster, "nodes"));
    let Some(found) = nodes.find(has_it) else {
        bail!("there is no node at {address}; see nodetool status");
    };
    forget(node, &text(found, "host_id"))?;
    Ok(ExitCode::SUCCESS)
}

fn forget(node: &NodeClient, id: &str) -> anyhow::Result<()> {
    node.command("/cluster/forget", id, "/cluster/challenge", TIMEOUT)?;
    Ok(())
}
