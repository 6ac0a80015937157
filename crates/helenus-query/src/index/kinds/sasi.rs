//! SASI indexes: the restrictions that an index answers, depending on its options (Cassandra's `IndexMode` and `ColumnIndex.supports`).

mod options;

use std::collections::BTreeMap;

use helenus_cql::ast::Operator;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;

use super::sai::StorageAttached;
use super::{Kind, Registered};
use crate::index::analyzer::Analyzer;
use crate::index::pattern::{LikeKind, TERM_LEN_END};
use crate::schema::{Column, Index, IndexKind, IndexTarget, Table, is_text};

/// The class in CREATE INDEX. The case of its short name does not matter.
const SASI_CLASS: &str = "org.apache.cassandra.index.sasi.SASIIndex";
const SASI_SHORT_CLASS: &str = "SASIIndex";

/// SASI indexes in the registry.
pub static SASI: Registered = Registered {
    schema_kind: IndexKind::Custom,
    checks_each_target: false,
    creation_warning: Some(options::USAGE_WARNING),
    vector_warning: None,
    intersects: false,
    finds_only_rows: true,
    ranks_vectors: false,
    refuses_long_values: false,
    rules: &Sasi,
};

/// Returns true if the class is that of an SASI index.
pub fn is_sasi(class: &str) -> bool {
    class == SASI_CLASS || class.eq_ignore_ascii_case(SASI_SHORT_CLASS)
}

/// The terms that an index finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SasiMode {
    Prefix,
    Contains,
    Sparse,
}

impl SasiMode {
    /// Returns the mode of that name, whatever its case.
    pub fn named(name: &str) -> Option<SasiMode> {
        Some(match name.to_ascii_uppercase().as_str() {
            "PREFIX" => SasiMode::Prefix,
            "CONTAINS" => SasiMode::Contains,
            "SPARSE" => SasiMode::Sparse,
            _ => return None,
        })
    }
}

/// An index that finds text by patterns, and other values within bounds.
pub struct Sasi;

impl Kind for Sasi {
    fn supports(&self, index: &Index, column: &Column, operator: Operator) -> bool {
        let is_literal = is_literal(column, index.options.get("is_literal").map(String::as_str));
        match operator {
            Operator::Eq => !is_tokenizing(index),
            Operator::Like => is_literal,
            operator => operator.is_slice() && !is_literal && mode(index) != SasiMode::Contains,
        }
    }

    fn supports_like(&self, index: &Index, pattern: LikeKind) -> bool {
        match mode(index) {
            SasiMode::Prefix => matches!(pattern, LikeKind::Matches | LikeKind::Prefix),
            SasiMode::Contains => pattern != LikeKind::Prefix || !is_tokenizing(index),
            SasiMode::Sparse => false,
        }
    }

    fn is_in_value_order(&self, index: &Index, _column: &Column) -> bool {
        !is_tokenizing(index)
    }

    fn analysis(&self, index: &Index) -> Option<Analyzer> {
        // Only text is analyzed if no class is declared.
        let is_analyzed = index.is_on_text || index.options.contains_key("analyzer_class");
        is_analyzed.then(|| Analyzer::of_sasi(&index.options)).flatten()
    }

    fn analyzes_clustering(&self) -> bool {
        true
    }

    fn skips_empty(&self, _index: &Index, _column: &Column) -> bool {
        true
    }

    fn holds(&self, index: &Index, column: &Column, value: &[u8]) -> bool {
        let is_literal = || is_literal(column, index.options.get("is_literal").map(String::as_str));
        StorageAttached.holds(index, column, value)
            && (matches!(column.ty, CqlType::Vector { .. })
                || (!value.is_empty() && (value.len() < TERM_LEN_END || !is_literal())))
    }

    fn holds_entry(&self, key: &[u8], value: &[u8]) -> bool {
        StorageAttached.holds_entry(key, value)
    }

    fn not_one_target(&self, columns: &[String]) -> CqlError {
        CqlError::Config(format!(
            "failed to retrieve target column for: {}",
            columns.join(", ")
        ))
    }

    fn check(
        &self,
        table: &Table,
        target: &IndexTarget,
        options: &BTreeMap<String, String>,
    ) -> Result<(), CqlError> {
        options::check(table, target, options)
    }
}

fn mode(index: &Index) -> SasiMode {
    let mode = index.options.get("mode").and_then(|name| SasiMode::named(name));
    mode.unwrap_or(SasiMode::Prefix)
}

fn is_tokenizing(index: &Index) -> bool {
    index.analysis().is_some_and(|analysis| analysis.is_tokenizing())
}

/// Returns true if values are compared as text. The option `is_literal` decides. Without it, text in ascending order is compared in this
/// way.
pub fn is_literal(column: &Column, option: Option<&str>) -> bool {
    match option {
        Some(option) => option.eq_ignore_ascii_case("true"),
        None => is_text(&column.ty) && !column.is_reversed(),
    }
}

#[cfg(test)]
#[path = "sasi_tests.rs"]
mod tests;
