//! `nodetool ring`, in the format of Cassandra's (`org.apache.cassandra.tools.nodetool.Ring`).

use std::process::ExitCode;

use super::client::NodeClient;
use super::output::{text, up_or_down};
use super::topology::{Naming, Topology, check_keyspace};

const WARNING: &str = "
  Warning: \"nodetool ring\" is used to output all the tokens of a node.
  To view status related info of a node use \"nodetool status\" instead.


  ";

pub(super) fn run(node: &NodeClient, keyspace: Option<&str>, naming: Naming) -> anyhow::Result<ExitCode> {
    check_keyspace(node, keyspace)?;
    print!("{}", page(&Topology::request(node)?, naming));
    Ok(ExitCode::SUCCESS)
}

/// Returns the last token of each tablet, with its owner.
fn page(topology: &Topology, naming: Naming) -> String {
    let mut page = String::new();
    let names = topology.nodes().map(|node| topology.name(node, naming).len());
    let width = names.max().unwrap_or_default().max(15) + 2;
    let line = |cells: [&str; 7]| {
        let [address, rack, status, state, load, owns, token] = cells;
        format!("{address:<width$}{rack:<12}{status:<7}{state:<8}{load:<16}{owns:<20}{token:<44}\n")
    };
    for (center, nodes) in topology.by_data_center() {
        let mut rows = Vec::new();
        for node in nodes {
            let [status, state] = up_or_down(node);
            let owns = node.get("owns").and_then(serde_json::Value::as_f64);
            let owns = format!("{:.2}%", owns.unwrap_or_default() * 100.0);
            for tablet in topology.tablets_of(node) {
                let token = text(tablet, "last_token");
                let (name, rack, load) = (
                    topology.name(node, naming),
                    text(node, "rack"),
                    topology.load(node),
                );
                let row = line([&name, &rack, status, state, &load, &owns, &token]);
                rows.push((token.parse::<i64>().unwrap_or_default(), row));
            }
        }
        rows.sort();
        page += &format!("\nDatacenter: {center}\n==========\n");
        page += &line(["Address", "Rack", "Status", "State", "Load", "Owns", "Token"]);
        if let Some((last, _)) = rows.last() {
            page += &line(["", "", "", "", "", "", &last.to_string()]);
        }
        rows.iter().for_each(|(_, row)| page += row);
    }
    page + WARNING
}
