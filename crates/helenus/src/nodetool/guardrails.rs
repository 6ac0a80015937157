//! `nodetool getguardrailsconfig` and `setguardrailsconfig`, with the names and formats of Cassandra's (`GuardrailsConfigCommand`). The two
//! thresholds of a guardrail are one entry, with the one that fails first.

use std::process::ExitCode;

use anyhow::{anyhow, bail};
use clap::{Args, ValueEnum};
use serde_json::Value;

use super::client::{NodeClient, TIMEOUT};
use super::output::{columns, text};

const GUARDRAILS: &str = "/node/guardrails";
const THRESHOLD: &str = "_threshold";
const FAIL: &str = "_fail_threshold";
const WARN: &str = "_warn_threshold";

const ONE_OWNER: &str =
    "a partition has one owner, so no answers of several replicas are reconciled when rows are filtered";

/// Cassandra's guardrails that have no effect here, with the reason.
const WITHOUT_MEANING: [(&str, &str); 4] = [
    (
        "data_disk_usage_max_disk_size",
        "the disk of a store in a folder is measured as a whole",
    ),
    ("intersect_filtering_query_enabled", ONE_OWNER),
    ("intersect_filtering_query_warned", ONE_OWNER),
    (
        "sai_sstable_indexes_per_query_threshold",
        "an index is a table and no part of SSTables",
    ),
];

/// The arguments of `getguardrailsconfig`.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub(super) struct ShowArgs {
    /// Show the guardrails of one category
    #[arg(short, long, value_name = "CATEGORY")]
    category: Option<Category>,
    /// Show each threshold separately, with its name in cassandra.yaml
    #[arg(long)]
    expand: bool,
    /// One guardrail
    names: Vec<String>,
}

/// The arguments of `setguardrailsconfig`.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub(super) struct SetArgs {
    /// A name as shown by getguardrailsconfig, and its values. A flag has true or false. Thresholds have two values: failure, then warning
    /// (-1 or null for none). Values have a list ([] or null for none)
    #[arg(
        value_name = "NAME VALUE",
        allow_hyphen_values = true,
        trailing_var_arg = true
    )]
    words: Vec<String>,
}

/// Categories of guardrails, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Category {
    Flags,
    Thresholds,
    Values,
    /// No guardrail here is in this category of Cassandra's.
    Others,
}

/// A guardrail as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    category: Category,
    name: String,
    /// The value. Thresholds have two: failure, then warning.
    values: Vec<String>,
}

impl Entry {
    fn value(&self) -> String {
        match self.values.as_slice() {
            [value] => value.clone(),
            values => format!("[{}]", values.join(", ")),
        }
    }

    /// Returns the settings, as names and values, that give the guardrail these values.
    fn settings(&self, words: &[String]) -> anyhow::Result<Vec<(String, String)>> {
        let (name, given) = (&self.name, words.len());
        let expected = self.values.len();
        match (self.category, words) {
            (Category::Thresholds, [fail, warn]) => {
                let base = name.strip_suffix(THRESHOLD).unwrap_or(name);
                Ok(vec![
                    (format!("{base}{FAIL}"), fail.clone()),
                    (format!("{base}{WARN}"), warn.clone()),
                ])
            }
            (Category::Flags, [value]) => match value.as_str() {
                "true" | "false" => Ok(vec![(name.clone(), value.clone())]),
                _ => bail!(
                    "Error occured when setting the config for setter {name} with arguments [{value}]: Use 'true' or 'false' values for booleans"
                ),
            },
            (Category::Values, [_, ..]) => {
                let list = match words.join(",") {
                    none if none == "null" || none == "[]" => String::new(),
                    list => list,
                };
                Ok(vec![(name.clone(), list)])
            }
            _ => bail!("{name} is expecting {expected} argument values. Getting {given} instead."),
        }
    }
}

pub(super) fn show(node: &NodeClient, args: &ShowArgs) -> anyhow::Result<ExitCode> {
    let name = match args.names.as_slice() {
        [] => None,
        [_] if args.category.is_some() => {
            bail!("Do not specify additional arguments when --category/-c is set.")
        }
        [name] => Some(name),
        _ => bail!(
            "Specify only one guardrail name to get the configuration of or no name to get the configuration of all of them."
        ),
    };
    let settings = settings(node)?;
    let mut shown = match args.expand {
        true => expanded(&settings),
        false => entries(&settings),
    };
    if let Some(name) = name {
        shown.retain(|entry| entry.name == *name);
        if shown.is_empty() {
            shown = expanded(&settings);
            shown.retain(|entry| entry.name == *name);
        }
        if shown.is_empty() {
            return Err(unknown(name));
        }
    }
    if let Some(category) = args.category {
        shown.retain(|entry| entry.category == category);
    }
    match shown.as_slice() {
        [] => {}
        [only] if args.category.is_none() => print!("{}", columns(&[[only.value()]])),
        shown => print!(
            "{}",
            table(shown.iter().map(|entry| (&entry.name, entry.value())))
        ),
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn set(node: &NodeClient, args: &SetArgs) -> anyhow::Result<ExitCode> {
    let Some((name, words)) = args.words.split_first() else {
        bail!("No arguments.");
    };
    let entry = entries(&settings(node)?)
        .into_iter()
        .find(|entry| entry.name == *name);
    let entry = entry.ok_or_else(|| unknown(name))?;
    let lines = entry.settings(words)?;
    let lines: Vec<String> = lines
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let changed = node.command(GUARDRAILS, &lines.join("\n"), "/node/challenge", TIMEOUT);
    changed.map_err(|error| {
        anyhow!(
            "Error occured when setting the config for setter {name} with arguments [{}]: {error}",
            words.join(", ")
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the settings of the node with their values.
fn settings(node: &NodeClient) -> anyhow::Result<Vec<(String, String)>> {
    let settings = node.request(GUARDRAILS)?;
    let settings = settings.as_array().map_or(&[][..], Vec::as_slice);
    let setting = |setting: &Value| {
        let value = setting.get("value").and_then(Value::as_str);
        (text(setting, "name"), value.unwrap_or("null").to_owned())
    };
    Ok(settings.iter().map(setting).collect())
}

fn category(name: &str, value: &str) -> Category {
    match value {
        _ if name.ends_with(THRESHOLD) => Category::Thresholds,
        "true" | "false" => Category::Flags,
        _ => Category::Values,
    }
}

/// Returns an entry for each setting, in the order in which they are shown.
fn expanded(settings: &[(String, String)]) -> Vec<Entry> {
    let entry = |(name, value): &(String, String)| Entry {
        category: category(name, value),
        name: name.clone(),
        values: vec![value.clone()],
    };
    in_order(settings.iter().map(entry).collect())
}

/// Returns an entry for each guardrail, in the order in which they are shown. The two thresholds of a guardrail are one entry.
fn entries(settings: &[(String, String)]) -> Vec<Entry> {
    let value = |name: String| {
        let mut settings = settings.iter();
        settings
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value.clone())
    };
    let pair = |base: &str| Entry {
        category: Category::Thresholds,
        name: format!("{base}{THRESHOLD}"),
        values: [FAIL, WARN]
            .into_iter()
            .filter_map(|act| value(format!("{base}{act}")))
            .collect(),
    };
    let entry = |(name, value): &(String, String)| match category(name, value) {
        Category::Thresholds => name.strip_suffix(FAIL).map(pair),
        category => Some(Entry {
            category,
            name: name.clone(),
            values: vec![value.clone()],
        }),
    };
    in_order(settings.iter().filter_map(entry).collect())
}

fn in_order(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_by(|left, right| {
        let categories = (left.category as u8).cmp(&(right.category as u8));
        categories.then_with(|| left.name.cmp(&right.name))
    });
    entries
}

fn table<'e>(rows: impl Iterator<Item = (&'e String, String)>) -> String {
    let rows: Vec<[String; 2]> = rows.map(|(name, value)| [name.clone(), value]).collect();
    columns(&rows)
}

/// Returns the error for a guardrail that does not exist, with the reason.
fn unknown(name: &str) -> anyhow::Error {
    match WITHOUT_MEANING.into_iter().find(|(known, _)| *known == name) {
        Some((_, why)) => anyhow!("Guardrail {name} has nothing to guard here: {why}."),
        None => anyhow!("Guardrail {name} not found."),
    }
}

#[cfg(test)]
#[path = "guardrails_tests.rs"]
mod tests;
