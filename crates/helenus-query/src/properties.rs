//! The WITH clause: typed access to properties, and refusal of unknown ones (Cassandra's `PropertyDefinitions`).

use std::collections::BTreeMap;
use std::str::FromStr;

use helenus_cql::ast::{Properties, PropertyValue};
use helenus_cql::error::CqlError;
use helenus_cql::value::java::parse_double;

use crate::java_order;

/// A map property, as declared.
pub type Options = BTreeMap<String, String>;

/// Fails if a property isn't one of `known`.
pub fn check_known(properties: &Properties, known: &[&str]) -> Result<(), CqlError> {
    let given = java_order::by_string(properties.0.iter().collect(), |(name, _)| name.as_str());
    match given
        .into_iter()
        .find(|(name, _)| !known.contains(&name.as_str()))
    {
        Some((name, _)) => Err(CqlError::Syntax(format!("Unknown property '{name}'"))),
        None => Ok(()),
    }
}

/// Returns a property that is a single value.
pub fn text<'a>(properties: &'a Properties, name: &str) -> Result<Option<&'a str>, CqlError> {
    match properties.get(name) {
        None => Ok(None),
        Some(PropertyValue::Text(text)) => Ok(Some(text)),
        Some(PropertyValue::Map(_)) => Err(CqlError::Syntax(format!(
            "Invalid value for property '{name}'. It should be a string"
        ))),
    }
}

/// Returns a property that is a map.
pub fn map(properties: &Properties, name: &str) -> Result<Option<Options>, CqlError> {
    match properties.get(name) {
        None => Ok(None),
        Some(PropertyValue::Map(entries)) => Ok(Some(entries.iter().cloned().collect())),
        Some(PropertyValue::Text(_)) => Err(CqlError::Syntax(format!(
            "Invalid value for property '{name}'. It should be a map."
        ))),
    }
}

/// Returns a property that is true or false.
pub fn boolean(properties: &Properties, name: &str) -> Result<Option<bool>, CqlError> {
    let Some(text) = text(properties, name)? else {
        return Ok(None);
    };
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" => Ok(Some(true)),
        "0" | "false" | "no" => Ok(Some(false)),
        _ => Err(CqlError::Syntax(format!(
            "Invalid boolean value {text} for '{name}'. Positive values can be '1', 'true' or 'yes'. Negative values \
             can be '0', 'false' or 'no'."
        ))),
    }
}

/// Returns a property that is a number. Messages call the type `kind`.
pub fn number<T: FromStr>(properties: &Properties, name: &str, kind: &str) -> Result<Option<T>, CqlError> {
    let Some(text) = text(properties, name)? else {
        return Ok(None);
    };
    text.parse()
        .map(Some)
        .map_err(|_| CqlError::Syntax(format!("Invalid {kind} value {text} for '{name}'")))
}

/// Returns a property that is a double, in the forms that Java reads.
pub fn double(properties: &Properties, name: &str) -> Result<Option<f64>, CqlError> {
    let Some(text) = text(properties, name)? else {
        return Ok(None);
    };
    parse_double(text)
        .map(Some)
        .ok_or_else(|| CqlError::Syntax(format!("Invalid double value {text} for '{name}'")))
}
