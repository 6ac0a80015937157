//! `nodetool clientstats`, in the format of Cassandra's (`org.apache.cassandra.tools.nodetool.ClientStats`).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::ExitCode;

use serde_json::Value;

use super::client::NodeClient;
use super::output::{columns, text};

const HEADS: [&str; 11] = [
    "Address",
    "SSL",
    "Cipher",
    "Protocol",
    "Version",
    "User",
    "Keyspace",
    "Requests",
    "Driver-Name",
    "Driver-Version",
    "Client-Options",
];

/// Connections that are listed beside their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    None,
    All,
    /// All connections, with the options of their STARTUP.
    Options,
}

pub(super) fn run(node: &NodeClient, listing: Listing) -> anyhow::Result<ExitCode> {
    let clients = node.clients()?;
    print!("{}", page(clients.as_array().map_or(&[], Vec::as_slice), listing));
    Ok(ExitCode::SUCCESS)
}

fn page(clients: &[Value], listing: Listing) -> String {
    let mut page = String::new();
    if listing != Listing::None && !clients.is_empty() {
        let mut rows = vec![HEADS.map(str::to_owned)];
        rows.extend(clients.iter().map(row));
        let table = match listing {
            Listing::Options => columns(&rows),
            _ => columns(&rows.into_iter().map(without_options).collect::<Vec<_>>()),
        };
        let _ = writeln!(page, "{table}");
    }
    let mut by_user = BTreeMap::<String, usize>::new();
    for client in clients {
        *by_user.entry(text(client, "user")).or_default() += 1;
    }
    let _ = writeln!(page, "Total connected clients: {}\n", clients.len());
    let mut rows = vec![["User", "Connections"].map(str::to_owned)];
    rows.extend(by_user.into_iter().map(|(user, count)| [user, count.to_string()]));
    page + &columns(&rows)
}

fn without_options(row: [String; HEADS.len()]) -> [String; HEADS.len() - 1] {
    let mut cells = row.into_iter();
    std::array::from_fn(|_| cells.next().unwrap_or_default())
}

/// Returns the options of STARTUP in the format of a map in Java.
fn options(client: &Value) -> String {
    let options = client.get("options").and_then(Value::as_object);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let options = options.into_iter().flatten();
    let options: Vec<String> = options
        .map(|(name, value)| format!("{name}={}", text(value)))
        .collect();
    options.join(", ")
}

fn row(client: &Value) -> [String; HEADS.len()] {
    let or = |name: &str, absent: &str| match client.get(name) {
        None | Some(Value::Null) => absent.to_owned(),
        Some(_) => text(client, name),
    };
    let is_encrypted = client.get("ssl_protocol").is_some_and(Value::is_string);
    [
        format!("/{}:{}", text(client, "address"), text(client, "port")),
        is_encrypted.to_string(),
        or("ssl_cipher_suite", "undefined"),
        or("ssl_protocol", "undefined"),
        or("protocol_version", "undefined"),
        text(client, "user"),
        or("keyspace", ""),
        text(client, "requests"),
        or("driver_name", "undefined"),
        or("driver_version", "undefined"),
        options(client),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn clients_are_listed_and_counted_by_user() {
        let client = |port: u16, user: &str| {
            json!({
                "address": "127.0.0.1", "port": port, "ssl_protocol": null, "ssl_cipher_suite": null, "protocol_version": 5,
                "user": user, "keyspace": "shop", "requests": 7, "driver_name": "DataStax Python Driver", "driver_version": "3.29.1",
                "options": {"CQL_VERSION": "3.4.7"},
            })
        };
        let clients = [client(4001, "anna"), client(4002, "anna"), client(4003, "bob")];
        assert_eq!(
            page(&clients, Listing::None),
            "Total connected clients: 3\n\nUser Connections\nanna 2          \nbob  1          \n"
        );
        let all = page(&clients, Listing::All);
        let lines: Vec<&str> = all.lines().collect();
        assert!(
            lines[0].starts_with("Address         SSL   Cipher    Protocol "),
            "{all}"
        );
        assert!(
            lines[1].starts_with("/127.0.0.1:4001 false undefined undefined "),
            "{all}"
        );
        assert_eq!(lines[4], "");
        assert!(lines[0].trim_end().ends_with("Driver-Version"), "{all}");
        let options = page(&clients, Listing::Options);
        assert!(
            options.contains("Client-Options") && options.contains("CQL_VERSION=3.4.7"),
            "{options}"
        );
    }
}
