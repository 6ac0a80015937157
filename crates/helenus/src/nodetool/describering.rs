//! `nodetool describering`, in the format of Cassandra's. Every keyspace has the same ranges.

use std::process::ExitCode;

use serde_json::Value;

use super::client::NodeClient;
use super::output::{host, list, owner_of, text};
use super::topology::check_keyspace;

pub(super) fn run(node: &NodeClient, keyspace: &str) -> anyhow::Result<ExitCode> {
    check_keyspace(node, Some(keyspace))?;
    print!("{}", page(&node.cluster()?));
    Ok(ExitCode::SUCCESS)
}

fn page(cluster: &Value) -> String {
    let mut page = format!(
        "Schema Version:{}\nTokenRange: \n",
        text(cluster, "schema_version")
    );
    for tablet in list(cluster, "tablets") {
        // The start of a range in Cassandra is exclusive.
        let first: i64 = text(tablet, "first_token").parse().unwrap_or(i64::MIN);
        let start = first.saturating_sub(1);
        let end = text(tablet, "last_token");
        let owner = owner_of(cluster, tablet);
        let address = owner
            .map(|owner| host(&text(owner, "cql_address")))
            .unwrap_or_default();
        let detail = owner.map_or_else(String::new, |owner| {
            format!(
                "EndpointDetails(host:{address}, datacenter:{}, rack:{})",
                text(owner, "data_center"),
                text(owner, "rack")
            )
        });
        page += &format!(
            "\tTokenRange(start_token:{start}, end_token:{end}, endpoints:[{address}], rpc_endpoints:[{address}], endpoint_details:[{detail}])\n"
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_range_begins_behind_its_first_token() {
        let cluster = json!({
            "schema_version": "v",
            "nodes": [{ "host_id": "h", "cql_address": "10.0.0.1:9042", "data_center": "dc1", "rack": "r1" }],
            "tablets": [{ "first_token": "1", "last_token": "9", "owner": "h" }],
        });
        assert_eq!(
            page(&cluster),
            "Schema Version:v\nTokenRange: \n\tTokenRange(start_token:0, end_token:9, endpoints:[10.0.0.1], rpc_endpoints:[10.0.0.1], endpoint_details:[EndpointDetails(host:10.0.0.1, datacenter:dc1, rack:r1)])\n"
        );
    }
}
