//! CREATE KEYSPACE for the target. Its store keeps the copies, so the source's replication has no effect there.

use std::collections::BTreeSet;

use helenus_cql::ast::{CreateKeyspace, PropertyValue};
use helenus_cql::identifier::{quote_identifier, quote_text};

/// A keyspace's statement, and a note if it differs from the source's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyspaceStatement {
    pub text: String,
    pub note: Option<String>,
}

/// Returns the statement that makes a keyspace of which the sources have no CREATE KEYSPACE. Snapshots have none.
pub fn default_statement(keyspace: &str) -> KeyspaceStatement {
    KeyspaceStatement {
        text: statement(
            keyspace,
            "{'class': 'SimpleStrategy', 'replication_factor': '1'}",
            None,
        ),
        note: Some(format!(
            "keyspace {}: the sources have no CREATE KEYSPACE, so it is made with SimpleStrategy",
            quote_identifier(keyspace)
        )),
    }
}

/// Returns the statement for the target. Data centers that the target doesn't have become those that it has.
pub fn statement_for(create: &CreateKeyspace, data_centers: &BTreeSet<String>) -> KeyspaceStatement {
    let keyspace = create.name.as_str();
    let options = match create.properties.get("replication") {
        Some(PropertyValue::Map(options)) => options.as_slice(),
        _ => return default_statement(keyspace),
    };
    let durable_writes = match create.properties.get("durable_writes") {
        Some(PropertyValue::Text(text)) => Some(text.as_str()),
        _ => None,
    };
    let class = options
        .iter()
        .find(|(name, _)| name == "class")
        .map_or("", |(_, class)| class.rsplit('.').next().unwrap_or_default());
    let is_simple = class == "SimpleStrategy";
    let is_known = |name: &str| matches!(name, "class" | "replication_factor") || data_centers.contains(name);
    let is_accepted = (is_simple || class == "NetworkTopologyStrategy")
        && options
            .iter()
            .all(|(name, factor)| is_known(name) && !factor.contains('/'));
    if is_accepted {
        return KeyspaceStatement {
            text: statement(keyspace, &map_literal(options), durable_writes),
            note: None,
        };
    }
    // Transient copies (3/1) are copies as well.
    let factors = options
        .iter()
        .filter(|(name, _)| name != "class")
        .filter_map(|(_, factor)| factor.split('/').next()?.parse::<u32>().ok());
    let factor = factors.max().unwrap_or(1).max(1).to_string();
    let mut replaced = vec![("class".to_owned(), "NetworkTopologyStrategy".to_owned())];
    match data_centers.is_empty() {
        true => {
            replaced = vec![
                ("class".to_owned(), "SimpleStrategy".to_owned()),
                ("replication_factor".to_owned(), factor),
            ]
        }
        false => replaced.extend(data_centers.iter().map(|name| (name.clone(), factor.clone()))),
    }
    let replaced = map_literal(&replaced);
    KeyspaceStatement {
        text: statement(keyspace, &replaced, durable_writes),
        note: Some(format!(
            "keyspace {}: replication {} becomes {replaced}; it has no effect here, because the store keeps the copies",
            quote_identifier(keyspace),
            map_literal(options)
        )),
    }
}

fn statement(keyspace: &str, replication: &str, durable_writes: Option<&str>) -> String {
    let name = quote_identifier(keyspace);
    let durable_writes = durable_writes.map_or(String::new(), |text| format!(" AND durable_writes = {text}"));
    format!("CREATE KEYSPACE IF NOT EXISTS {name} WITH replication = {replication}{durable_writes}")
}

fn map_literal(options: &[(String, String)]) -> String {
    let entries: Vec<String> = options
        .iter()
        .map(|(name, value)| format!("{}: {}", quote_text(name), quote_text(value)))
        .collect();
    format!("{{{}}}", entries.join(", "))
}
