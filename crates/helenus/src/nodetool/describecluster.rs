//! `nodetool describecluster`, in the format of Cassandra's (`org.apache.cassandra.tools.nodetool.DescribeCluster`).

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde_json::Value;

use super::client::NodeClient;
use super::output::{letters, text};
use super::topology::{Naming, Topology, is_up};

pub(super) fn run(node: &NodeClient, naming: Naming) -> anyhow::Result<ExitCode> {
    print!(
        "{}",
        page(&Topology::request(node)?, &node.rows("keyspaces")?, naming)
    );
    Ok(ExitCode::SUCCESS)
}

fn page(topology: &Topology, keyspaces: &[Value], naming: Naming) -> String {
    let cluster = topology.cluster();
    let mut page = "Cluster Information:\n".to_owned();
    page += &format!("\tName: {}\n", text(cluster, "cluster_name"));
    // There is no snitch, because a node's rack is one of its settings.
    page += "\tSnitch: none\n\tDynamicEndPointSnitch: disabled\n";
    page += "\tPartitioner: org.apache.cassandra.dht.Murmur3Partitioner\n\tSchema versions:\n";
    // All nodes have one schema version, because they read the schema from the store.
    page += &format!(
        "\t\t{}: [{}]\n",
        text(cluster, "schema_version"),
        names(topology, true, naming)
    );
    let lost = names(topology, false, naming);
    if !lost.is_empty() {
        page += &format!("\t\tUNREACHABLE: [{lost}]\n");
    }
    page += &stats(topology);
    page += "\nData Centers: \n";
    for (center, nodes) in topology.by_data_center() {
        let down = nodes.iter().filter(|node| !is_up(node)).count();
        page += &format!("\t{center} #Nodes: {} #Down: {down}\n", nodes.len());
    }
    page += "\nDatabase versions:\n";
    for (version, nodes) in versions(topology) {
        page += &format!("\t{version}: [{}]\n", nodes.join(", "));
    }
    page += "\nKeyspaces:\n";
    for keyspace in keyspaces {
        page += &format!(
            "\t{} -> Replication class: {}\n",
            text(keyspace, "keyspace_name"),
            replication(keyspace)
        );
    }
    page
}

/// Returns the names of the nodes that are up, or of those that are down.
fn names(topology: &Topology, up: bool, naming: Naming) -> String {
    let nodes = topology.nodes().filter(|node| is_up(node) == up);
    let names: Vec<String> = nodes.map(|node| topology.name(node, naming)).collect();
    names.join(", ")
}

fn stats(topology: &Topology) -> String {
    let count = |is: &dyn Fn(&Value) -> bool| topology.nodes().filter(|node| is(node)).count();
    format!(
        "\nStats for all nodes:\n\tLive: {}\n\tJoining: 0\n\tMoving: 0\n\tLeaving: {}\n\tUnreachable: {}\n",
        count(&is_up),
        count(&|node| letters(node).ends_with('L')),
        count(&|node| !is_up(node))
    )
}

/// Returns the addresses of the nodes for each version of Helenus.
fn versions(topology: &Topology) -> BTreeMap<String, Vec<String>> {
    let mut versions = BTreeMap::<String, Vec<String>>::new();
    for node in topology.nodes() {
        let address = text(node, "cql_address");
        versions
            .entry(text(node, "software_version"))
            .or_default()
            .push(address);
    }
    versions
}

fn replication(keyspace: &Value) -> String {
    let options = keyspace.get("replication").and_then(Value::as_object);
    let mut class = "-".to_owned();
    let mut others = Vec::new();
    for (name, value) in options.into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match name.as_str() {
            "class" => class = value.rsplit('.').next().unwrap_or_default().to_owned(),
            _ => others.push(format!("{name}={value}")),
        }
    }
    format!("{class} {{{}}}", others.join(", "))
}
