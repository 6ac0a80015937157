//! `nodetool status`, in the format of Cassandra's (`org.apache.cassandra.tools.nodetool.Status`).

use std::process::ExitCode;

use serde_json::Value;

use super::client::NodeClient;
use super::output::{columns_apart, letters, share, text};
use super::topology::{Naming, Topology, check_keyspace};

pub(super) fn run(node: &NodeClient, keyspace: Option<&str>, naming: Naming) -> anyhow::Result<ExitCode> {
    check_keyspace(node, keyspace)?;
    print!("{}", page(&Topology::request(node)?, naming));
    Ok(ExitCode::SUCCESS)
}

/// Returns the nodes of each data center. A partition has one owner, so a node's share is the same for every keyspace.
fn page(topology: &Topology, naming: Naming) -> String {
    let heads = [
        "--",
        "Address",
        "Load",
        "Tokens",
        "Owns (effective)",
        "Host ID",
        "Rack",
    ];
    let row = |node: &Value| {
        [
            letters(node),
            topology.name(node, naming),
            topology.load(node),
            text(node, "tablets"),
            share(node, "owns"),
            text(node, "host_id"),
            text(node, "rack"),
        ]
    };
    let mut page = String::new();
    for (center, nodes) in topology.by_data_center() {
        let title = format!("Datacenter: {center}");
        page += &format!("{title}\n{}\n", "=".repeat(title.len()));
        page += "Status=Up/Down\n|/ State=Normal/Leaving/Joining/Moving\n";
        let mut rows = vec![heads.map(str::to_owned)];
        rows.extend(nodes.into_iter().map(row));
        page += &format!("{}\n", columns_apart(&rows));
    }
    page
}
