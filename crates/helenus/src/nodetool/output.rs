//! Fields of a node's answer as text, and tables of them.

use serde_json::Value;
use tabled::builder::Builder;
use tabled::settings::{Padding, Style};

pub(super) fn list<'v>(cluster: &'v Value, name: &str) -> &'v [Value] {
    cluster
        .get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

pub(super) fn text(value: &Value, name: &str) -> String {
    match value.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => "-".to_owned(),
        Some(other) => other.to_string(),
    }
}

pub(super) fn table<const N: usize>(heads: [&str; N], rows: impl IntoIterator<Item = [String; N]>) {
    let mut builder = Builder::default();
    builder.push_record(heads);
    rows.into_iter().for_each(|row| builder.push_record(row));
    println!("{}", builder.build().with(Style::blank()));
}

/// Rows in columns as wide as their longest value, each followed by a space, as Cassandra's tools write them (`TableBuilder`).
pub(super) fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let mut builder = Builder::default();
    rows.iter().for_each(|row| builder.push_record(row));
    let mut table = builder.build();
    format!("{}\n", table.with(Style::blank()).with(Padding::zero()))
}

/// The host of an address with a port.
pub(super) fn host(address: &str) -> String {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_matches(['[', ']']).to_owned()
}

/// Up or down, normal or leaving, as in Cassandra's tool.
pub(super) fn letters(node: &Value) -> String {
    let up = if node.get("alive").and_then(Value::as_bool) == Some(true) {
        "U"
    } else {
        "D"
    };
    let state = if text(node, "state") == "leaving" {
        "L"
    } else {
        "N"
    };
    format!("{up}{state}")
}

pub(super) fn share(value: &Value, name: &str) -> String {
    let share = value.get(name).and_then(Value::as_f64).unwrap_or_default();
    format!("{:.1}%", share * 100.0)
}

/// A size as Cassandra's tools write it, such as `104.33 KiB`.
pub(super) fn file_size(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.iter().find(|(shift, _)| bytes >> shift > 0) {
        Some((shift, unit)) => {
            let number = format!("{:.2}", bytes as f64 / (1_u64 << shift) as f64);
            let number = number.trim_end_matches('0').trim_end_matches('.');
            format!("{number} {unit}")
        }
        None => format!("{bytes} bytes"),
    }
}

/// The node that owns a tablet, if it is known.
pub(super) fn owner_of<'v>(cluster: &'v Value, tablet: &Value) -> Option<&'v Value> {
    let id = text(tablet, "owner");
    let mut nodes = list(cluster, "nodes").iter();
    nodes.find(|node| text(node, "host_id") == id)
}

/// The address of the node that owns a tablet.
pub(super) fn owner(cluster: &Value, tablet: &Value) -> String {
    owner_of(cluster, tablet).map_or_else(|| text(tablet, "owner"), |node| text(node, "cql_address"))
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
