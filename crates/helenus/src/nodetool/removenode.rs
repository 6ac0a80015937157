//! `nodetool removenode` and `nodetool assassinate`: a node that is gone is shown no more. Its tablets have had other owners since its lease ended.

use std::process::ExitCode;

use anyhow::bail;

use super::client::{NodeClient, TIMEOUT};
use super::output::{host, list, text};

/// `what` is a host id, or `status` or `force` as in Cassandra: there is never a removal under way.
pub(super) fn run(node: &NodeClient, what: &str) -> anyhow::Result<ExitCode> {
    match what {
        "status" => println!("RemovalStatus: No token removals in process."),
        "force" => println!("RemovalStatus: No token removals in process."),
        id => forget(node, id)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the same by the node's address.
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
