//! `nodetool gossipinfo` and `nodetool failuredetector`, in the format of Cassandra's. Nodes have no gossip: they publish their state in
//! the store.

use std::process::ExitCode;

use serde_json::Value;

use super::client::NodeClient;
use super::output::{host, letters, text};
use super::topology::{Naming, Topology, is_up};

pub(super) fn run(node: &NodeClient, naming: Naming) -> anyhow::Result<ExitCode> {
    print!("{}", page(&Topology::request(node)?, &node.report()?, naming));
    Ok(ExitCode::SUCCESS)
}

/// Returns a page with each node's facts. The version is that of the cluster document. The generation is shown if it is known.
fn page(topology: &Topology, here: &Value, naming: Naming) -> String {
    let cluster = topology.cluster();
    let version = cluster.get("version").and_then(Value::as_u64).unwrap_or(1);
    let mut page = String::new();
    for node in topology.nodes() {
        page += &format!("/{}\n", topology.name(node, naming));
        if text(node, "host_id") == text(here, "host_id") {
            page += &format!("  generation:{}\n", text(here, "generation_s"));
        }
        let address = text(node, "cql_address");
        let token = topology
            .tablets_of(node)
            .next()
            .map(|tablet| text(tablet, "last_token"));
        let status = format!("{},{}", state(node), token.unwrap_or_default());
        let load = topology.load_bytes(node).map(|bytes| format!("{bytes}.0"));
        let facts = [
            ("STATUS", Some(status.clone())),
            ("LOAD", load),
            ("SCHEMA", Some(text(cluster, "schema_version"))),
            ("DC", Some(text(node, "data_center"))),
            ("RACK", Some(text(node, "rack"))),
            ("RELEASE_VERSION", Some(text(here, "release_version"))),
            ("RPC_ADDRESS", Some(host(&address))),
            ("HOST_ID", Some(text(node, "host_id"))),
            ("RPC_READY", Some(is_up(node).to_string())),
            ("NATIVE_ADDRESS_AND_PORT", Some(address)),
            ("STATUS_WITH_PORT", Some(status)),
        ];
        for (name, value) in facts.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            page += &format!("  {name}:{version}:{value}\n");
        }
        page += &format!("  TOKENS:{version}:<hidden>\n\n");
    }
    page
}

fn state(node: &Value) -> &'static str {
    match letters(node).as_str() {
        "UL" | "DL" => "LEAVING",
        "UN" => "NORMAL",
        _ => "shutdown",
    }
}

/// Prints whether the other nodes are up. A node is up if its lease is valid, so Phi is not an estimate.
pub(super) fn failure_detector(node: &NodeClient, naming: Naming) -> anyhow::Result<ExitCode> {
    let topology = Topology::request(node)?;
    let others = topology
        .nodes()
        .filter(|node| node.get("here").and_then(Value::as_bool) != Some(true));
    println!("{:>10},{:>16}", "Endpoint", "Phi");
    for node in others {
        let phi = if is_up(node) { "0.00000000" } else { "Infinity" };
        println!("{:>10},{phi:>16}", topology.name(node, naming));
    }
    Ok(ExitCode::SUCCESS)
}
