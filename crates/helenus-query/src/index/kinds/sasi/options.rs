//! SASI indexes: Cassandra's checks of their options (`SASIIndex.validateOptions`), and its warning.

use std::collections::BTreeMap;

use helenus_cql::error::CqlError;

use super::{SasiMode, is_literal};
use crate::java_order;
use crate::schema::{ColumnKind, IndexTarget, Table, is_text};

/// The warning when an SASI index is created.
pub const USAGE_WARNING: &str = "SASI indexes are experimental and are not recommended for production use.";

const PACKAGE: &str = "org.apache.cassandra.index.sasi.analyzer.";
const ANALYZERS: [&str; 4] = [
    "DelimiterAnalyzer",
    "NoOpAnalyzer",
    "NonTokenizingAnalyzer",
    "StandardAnalyzer",
];
const TEXT_ONLY: [&str; 3] = ["DelimiterAnalyzer", "NonTokenizingAnalyzer", "StandardAnalyzer"];

/// Refuses targets and options that an SASI index does not support.
pub fn check(
    table: &Table,
    target: &IndexTarget,
    options: &BTreeMap<String, String>,
) -> Result<(), CqlError> {
    let refused = |message: String| Err(CqlError::Config(message));
    let Some((_, column)) = table.column(&target.column) else {
        return Ok(());
    };
    if column.ty.is_multicell() {
        return refused("complex columns are not yet supported by SASI".to_owned());
    }
    if column.kind == ColumnKind::PartitionKey {
        return refused("partition key columns are not yet supported by SASI".to_owned());
    }
    let option = |name: &str| options.get(name).map(String::as_str);
    let is = |name: &str| option(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let class = option("analyzer_class");
    let mut is_analyzed = is("analyzed");
    if let Some(class) = class {
        let Some(short) = class.strip_prefix(PACKAGE) else {
            return refused(format!("Invalid analyzer class option specified [{class}]"));
        };
        if !ANALYZERS.contains(&short) {
            return refused(format!("Invalid analyzer class option specified [{class}]"));
        }
        if TEXT_ONLY.contains(&short) && !is_text(&column.ty) {
            return refused(format!("{short} does not support type {}", column.ty));
        }
        let has_any = |names: [&str; 2]| names.iter().any(|name| option(name).is_some());
        if short == "NonTokenizingAnalyzer"
            && option("case_sensitive").is_some()
            && has_any(["normalize_lowercase", "normalize_uppercase"])
        {
            return refused(
                "case_sensitive option cannot be specified together with either normalize_lowercase or normalize_uppercase"
                    .to_owned(),
            );
        }
        is_analyzed = option("analyzed").is_none() || is_analyzed;
    }
    let foreign = ["tokenization_enable_stemming", "tokenization_skip_stop_words"];
    if let Some(name) = foreign.into_iter().find(|name| is(name)) {
        return refused(format!("{name} is not supported by Helenus"));
    }
    let Some(mode) = option("mode").map_or(Some(SasiMode::Prefix), SasiMode::named) else {
        return refused(format!(
            "Incorrect index mode: {}",
            option("mode").unwrap_or_default()
        ));
    };
    if mode == SasiMode::Sparse {
        if is_literal(column, option("is_literal")) {
            return refused("SPARSE mode is only supported on non-literal columns.".to_owned());
        }
        if is_analyzed {
            return refused("SPARSE mode doesn't support analyzers.".to_owned());
        }
    }
    let is_number = |text: &str| text.parse::<i64>().is_ok();
    match option("max_compaction_flush_memory_in_mb") {
        Some(text) if !is_number(text) => refused(format!(
            "Failed to validate custom indexer options: {}",
            shown(target, options)
        )),
        _ => Ok(()),
    }
}

/// Returns options as Java shows a map of them.
fn shown(target: &IndexTarget, options: &BTreeMap<String, String>) -> String {
    let mut entries: Vec<(&str, &str)> = options
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    if !options.contains_key("target") {
        entries.push(("target", target.column.as_str()));
    }
    let entries: Vec<String> = java_order::by_string(entries, |(name, _)| name)
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    format!("{{{}}}", entries.join(", "))
}
