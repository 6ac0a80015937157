//! Fields of a node's answer as text, and tables of them.

use clap::ValueEnum;
use serde_json::Value;
use tabled::builder::Builder;
use tabled::settings::{Padding, Style};

pub(crate) fn list<'v>(cluster: &'v Value, name: &str) -> &'v [Value] {
    cluster
        .get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

pub(crate) fn text(value: &Value, name: &str) -> String {
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

/// Returns a table in the format of Cassandra's `TableBuilder`: columns as wide as their longest value, with one space between.
pub(crate) fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    columns_with(rows, Padding::zero())
}

/// Returns a table like [`columns`], with two spaces between columns.
pub(super) fn columns_apart<const N: usize>(rows: &[[String; N]]) -> String {
    let apart = columns_with(rows, Padding::new(0, 1, 0, 0));
    // The last column must not have a space after it.
    apart
        .lines()
        .map(|line| format!("{}\n", line.strip_suffix(' ').unwrap_or(line)))
        .collect()
}

fn columns_with<const N: usize>(rows: &[[String; N]], padding: Padding) -> String {
    let mut builder = Builder::default();
    rows.iter().for_each(|row| builder.push_record(row));
    let mut table = builder.build();
    format!("{}\n", table.with(Style::blank()).with(padding))
}

/// Formats of a command's document for scripts (`-F`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Json,
    Yaml,
}

impl Format {
    pub fn text(self, document: &Value) -> String {
        match self {
            Format::Json => format!("{document:#}\n"),
            Format::Yaml => {
                let mut text = String::new();
                yaml(&mut text, document, 0);
                text
            }
        }
    }
}

/// Appends a value as YAML. Maps and lists are in block style, all else as JSON, which is valid YAML.
fn yaml(text: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                *text += &format!("{indent}{}:", yaml_key(key));
                match value {
                    Value::Object(map) if !map.is_empty() => {
                        text.push('\n');
                        yaml(text, value, depth + 1);
                    }
                    Value::Array(list) if !list.is_empty() => {
                        text.push('\n');
                        yaml(text, value, depth);
                    }
                    other => *text += &format!(" {other}\n"),
                }
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for value in list {
                let mut item = String::new();
                yaml(&mut item, value, depth + 1);
                *text += &format!("{indent}- {}", item.trim_start());
            }
        }
        other => *text += &format!("{indent}{other}\n"),
    }
}

/// Returns the key. It is quoted unless YAML could only read it as a text.
fn yaml_key(key: &str) -> String {
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.');
    match key.starts_with(|character: char| character.is_ascii_alphabetic()) && key.chars().all(is_plain) {
        true => key.to_owned(),
        false => Value::from(key).to_string(),
    }
}

/// Returns the host of an address `host:port`.
pub(super) fn host(address: &str) -> String {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_matches(['[', ']']).to_owned()
}

/// Returns a node's state as the two letters of Cassandra's tool: up or down, normal or leaving.
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

/// Returns a node's state as two words.
pub(super) fn up_or_down(node: &Value) -> [&'static str; 2] {
    match letters(node).as_str() {
        "UN" => ["Up", "Normal"],
        "UL" => ["Up", "Leaving"],
        "DL" => ["Down", "Leaving"],
        _ => ["Down", "Normal"],
    }
}

pub(crate) fn number(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or_default()
}

pub(super) fn share(value: &Value, name: &str) -> String {
    let share = value.get(name).and_then(Value::as_f64).unwrap_or_default();
    format!("{:.1}%", share * 100.0)
}

/// Returns a size as Cassandra's tools write it, such as `104.33 KiB`.
pub(crate) fn file_size(bytes: u64) -> String {
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

/// Returns the node that owns a tablet. `None` if it is not known.
pub(super) fn owner_of<'v>(cluster: &'v Value, tablet: &Value) -> Option<&'v Value> {
    let id = text(tablet, "owner");
    let mut nodes = list(cluster, "nodes").iter();
    nodes.find(|node| text(node, "host_id") == id)
}

/// Returns the address of a tablet's owner, or its id if the node is not known.
pub(super) fn owner(cluster: &Value, tablet: &Value) -> String {
    owner_of(cluster, tablet).map_or_else(|| text(tablet, "owner"), |node| text(node, "cql_address"))
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
