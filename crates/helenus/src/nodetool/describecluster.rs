//! `nodetool describecluster`.

use std::process::ExitCode;

use super::client::NodeClient;
use super::output::{letters, list, text};

pub(super) fn run(node: &NodeClient) -> anyhow::Result<ExitCode> {
    let cluster = node.cluster()?;
    let nodes = list(&cluster, "nodes");
    let up = nodes.iter().filter(|node| letters(node).starts_with('U')).count();
    println!("Cluster          {}", text(&cluster, "cluster_name"));
    println!("Document version {}", text(&cluster, "version"));
    println!("This node        {}", text(&cluster, "state"));
    println!("Schema version   {}", text(&cluster, "schema_version"));
    println!("Nodes            {} ({up} up)", nodes.len());
    println!("Tablets          {}", list(&cluster, "tablets").len());
    println!("Partitioner      org.apache.cassandra.dht.Murmur3Partitioner");
    Ok(ExitCode::SUCCESS)
}
