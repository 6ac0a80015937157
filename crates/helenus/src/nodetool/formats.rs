//! The formats of option `-F`: JSON and YAML, as Cassandra's nodetool writes them.

use std::fmt::Write;

use anyhow::bail;
use serde_json::Value;

/// Format in which a command writes its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Json,
    Yaml,
}

impl Format {
    /// Returns the format with this name. `None` and an empty name are text.
    ///
    /// # Errors
    /// Fails with Cassandra's message if there is no such format.
    pub fn of(name: Option<&str>) -> anyhow::Result<Format> {
        match name {
            None | Some("") => Ok(Format::Text),
            Some("json") => Ok(Format::Json),
            Some("yaml") => Ok(Format::Yaml),
            Some(_) => bail!("arguments for -F are json,yaml only."),
        }
    }
}

/// Returns a value in YAML's block style.
pub(super) fn yaml(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(fields) if !fields.is_empty() => put(&mut text, value, 0),
        value => {
            let _ = writeln!(text, "{}", scalar(value));
        }
    }
    text
}

fn put(text: &mut String, value: &Value, depth: usize) {
    let Value::Object(fields) = value else { return };
    for (name, value) in fields {
        let indent = 2 * depth;
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                let _ = writeln!(text, "{:indent$}{name}:", "");
                put(text, value, depth + 1);
            }
            value => {
                let _ = writeln!(text, "{:indent$}{name}: {}", "", scalar(value));
            }
        }
    }
}

/// Returns a value on one line. Texts are quoted if YAML would read them as something else.
fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => {
            let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
                && text
                    .chars()
                    .all(|char| char.is_ascii_alphanumeric() || "_.-/ ".contains(char))
                && !["null", "true", "false", "yes", "no", "on", "off"]
                    .contains(&text.to_lowercase().as_str())
                && !text.ends_with(' ');
            match is_plain {
                true => text.clone(),
                false => format!("'{}'", text.replace('\'', "''")),
            }
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_nested_and_quoted_as_yaml_wants_it() {
        let value = json!({ "shop": { "count": 3, "ratio": "0.50000", "none": null, "levels": [], "name": "it's" }, "empty": {} });
        assert_eq!(
            yaml(&value),
            "shop:\n  count: 3\n  ratio: '0.50000'\n  none: null\n  levels: []\n  name: 'it''s'\nempty: {}\n"
        );
    }

    #[test]
    fn other_formats_are_refused_in_cassandras_words() {
        assert_eq!(Format::of(Some("json")).unwrap(), Format::Json);
        let refused = Format::of(Some("xml")).unwrap_err().to_string();
        assert_eq!(refused, "arguments for -F are json,yaml only.");
    }
}
