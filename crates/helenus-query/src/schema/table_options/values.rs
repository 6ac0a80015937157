//! Values of table options, and what is told of those that can't be.

use std::collections::BTreeMap;

use helenus_cql::error::CqlError;
use helenus_cql::identifier::quote_text;
use helenus_cql::value::hex;

/// Options of which messages speak as ConfigurationException.
pub(crate) fn config<T>(message: String) -> Result<T, CqlError> {
    Err(CqlError::Config(message))
}

/// Returns a double as Java prints it in messages.
pub fn java(value: f64) -> String {
    helenus_cql::value::java::double_to_string(value)
}

/// `class` with its package, if it has none.
pub(crate) fn qualify(class: &str, package: &str) -> String {
    if class.contains('.') {
        class.to_owned()
    } else {
        format!("{package}.{class}")
    }
}

/// Refuses a number below `least`.
pub(super) fn at_least(name: &str, value: i32, least: i32) -> Result<(), CqlError> {
    match value >= least {
        true => Ok(()),
        false => config(format!(
            "{name} must be greater than or equal to {least} (got {value})"
        )),
    }
}

/// Returns the name of a memtable configuration: those of a stock `cassandra.yaml`.
pub(super) fn memtable(name: String) -> Result<String, CqlError> {
    match name.as_str() {
        "default" | "skiplist" | "trie" => Ok(name),
        _ => config(format!("Memtable configuration \"{name}\" not found.")),
    }
}

/// `NONE` or `BLOCKING`.
pub(super) fn read_repair(text: String) -> Result<String, CqlError> {
    let text = text.to_ascii_uppercase();
    match text.as_str() {
        "NONE" | "BLOCKING" => Ok(text),
        _ => config(format!(
            "Invalid value {text} for option 'read_repair': it is NONE or BLOCKING"
        )),
    }
}

/// `{'key': 'value', ...}`
pub(crate) fn map_literal(entries: &BTreeMap<String, String>) -> String {
    let entries: Vec<String> = entries
        .iter()
        .map(|(key, value)| format!("{}: {}", quote_text(key), quote_text(value)))
        .collect();
    format!("{{{}}}", entries.join(", "))
}

/// `{'key': 0x00, ...}`
pub(super) fn blob_map_literal(entries: &BTreeMap<String, Vec<u8>>) -> String {
    let entries: Vec<String> = entries
        .iter()
        .map(|(key, value)| format!("{}: 0x{}", quote_text(key), hex(value)))
        .collect();
    format!("{{{}}}", entries.join(", "))
}
