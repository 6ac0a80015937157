//! `nodetool getendpoints`: the node that owns a partition.

use std::process::ExitCode;

use anyhow::{Context, bail};

use super::client::NodeClient;
use super::output::text;
use super::topology::{Naming, Topology};

pub(super) fn run(
    node: &NodeClient,
    keyspace: &str,
    table: &str,
    key: &str,
    naming: Naming,
) -> anyhow::Result<ExitCode> {
    let [keyspace, table, key] = [keyspace, table, key].map(percent_encoded);
    let token = node.request(&format!("/node/token/{keyspace}/{table}/{key}"))?;
    let token: i64 = text(&token, "token")
        .parse()
        .context("the node has answered no token")?;
    let topology = Topology::request(node)?;
    let Some(owner) = topology.owner_of_token(token) else {
        bail!("the tablet of token {token} has no owner at present");
    };
    println!("{}", topology.name(owner, naming));
    Ok(ExitCode::SUCCESS)
}

/// Returns the text encoded for the path of a URL.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => encoded.push(char::from(byte)),
            _ => encoded += &format!("%{byte:02X}"),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_key_is_one_part_of_a_path() {
        assert_eq!(super::percent_encoded("a/b:c d"), "a%2Fb%3Ac%20d");
    }
}
