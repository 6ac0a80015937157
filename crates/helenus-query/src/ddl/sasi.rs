//! SASI indexes: what Cassandra checks of their options (`SASIIndex.validateOptions`) and says of them.

use std::collections::BTreeMap;

use helenus_cql::error::CqlError;

use crate::schema::sasi::{SasiMode, is_literal, is_text};
use crate::schema::{ColumnKind, IndexTarget, Table};

/// What is said when one is made.
pub const USAGE_WARNING: &str = "SASI indexes are experimental and are not recommended for production use.";

const PACKAGE: &str = "org.apache.cassandra.index.sasi.analyzer.";
const NON_TOKENIZING: &str = "NonTokenizingAnalyzer";
const NO_OP: &str = "NoOpAnalyzer";
/// Those that part texts into terms.
const TOKENIZING: [&str; 2] = ["StandardAnalyzer", "DelimiterAnalyzer"];

/// Refuses what such an index can't be on, and options that it doesn't take.
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
        if TOKENIZING.contains(&short) {
            return refused(format!(
                "{short} is not supported by Helenus; {NON_TOKENIZING} is"
            ));
        }
        if short != NON_TOKENIZING && short != NO_OP {
            return refused(format!("Invalid analyzer class option specified [{class}]"));
        }
        if short == NON_TOKENIZING && !is_text(&column.ty) {
            return refused(format!("{short} does not support type {}", column.ty));
        }
        is_analyzed = option("analyzed").is_none() || is_analyzed;
    } else if is_analyzed && is_text(&column.ty) {
        return refused(format!(
            "analyzed without an analyzer_class means StandardAnalyzer, which is not supported by Helenus; {NON_TOKENIZING} is"
        ));
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
    Ok(())
}
