//! Values of table options, and the errors for invalid ones.

use std::collections::BTreeMap;

use helenus_cql::error::CqlError;
use helenus_cql::identifier::quote_text;
use helenus_cql::value::hex;

/// Maximum TTL: 20 years (`Attributes.MAX_TTL`).
pub(super) const TTL_MAX_S: i32 = 20 * 365 * 24 * 60 * 60;

/// Returns an error that messages call ConfigurationException.
pub(crate) fn config<T>(message: String) -> Result<T, CqlError> {
    Err(CqlError::Config(message))
}

/// Returns a double as Java prints it in messages.
pub fn java(value: f64) -> String {
    helenus_cql::value::java::double_to_string(value)
}

/// Returns the class with the package, unless it names one.
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

/// Checks the name of a memtable configuration. Those of a stock `cassandra.yaml` are allowed.
pub(super) fn memtable(name: String) -> Result<String, CqlError> {
    match name.as_str() {
        "default" | "skiplist" | "trie" => Ok(name),
        _ => config(format!("Memtable configuration \"{name}\" not found.")),
    }
}

/// Returns `NONE` or `BLOCKING`, and refuses all other values.
pub(super) fn read_repair(text: String) -> Result<String, CqlError> {
    let text = text.to_ascii_uppercase();
    match text.as_str() {
        "NONE" | "BLOCKING" => Ok(text),
        _ => config(format!(
            "Invalid value {text} for option 'read_repair': it is NONE or BLOCKING"
        )),
    }
}

/// Returns a map as CQL: `{'key': 'value', ...}`.
pub(crate) fn map_literal(entries: &BTreeMap<String, String>) -> String {
    let entries: Vec<String> = entries
        .iter()
        .map(|(key, value)| format!("{}: {}", quote_text(key), quote_text(value)))
        .collect();
    format!("{{{}}}", entries.join(", "))
}

/// Returns a map of blobs as CQL: `{'key': 0x00, ...}`.
pub(super) fn blob_map_literal(entries: &BTreeMap<String, Vec<u8>>) -> String {
    let entries: Vec<String> = entries
        .iter()
        .map(|(key, value)| format!("{}: 0x{}", quote_text(key), hex(value)))
        .collect();
    format!("{{{}}}", entries.join(", "))
}
