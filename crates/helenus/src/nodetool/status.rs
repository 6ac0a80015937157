//! `nodetool status`.

use std::process::ExitCode;

use serde_json::Value;

use super::client::NodeClient;
use super::output::{letters, list, share, table, text};

pub(super) fn run(node: &NodeClient) -> anyhow::Result<ExitCode> {
    let cluster = node.cluster()?;
    let row = |node: &Value| {
        [
            letters(node),
            text(node, "cql_address"),
            text(node, "tablets"),
            share(node, "owns"),
            text(node, "host_id"),
            text(node, "data_center"),
            text(node, "rack"),
            text(node, "name"),
        ]
    };
    println!("Up/Down, Normal/Leaving");
    table(
        [
            "",
            "Address",
            "Tablets",
            "Owns",
            "Host ID",
            "Data center",
            "Rack",
            "Name",
        ],
        list(&cluster, "nodes").iter().map(row),
    );
    Ok(ExitCode::SUCCESS)
}
