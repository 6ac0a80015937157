//! Ordinary indexes, from CREATE INDEX without USING (Cassandra's `CassandraIndex`).

use helenus_cql::ast::Operator;
use helenus_cql::error::CqlError;

use super::{Kind, Registered, is_equality};
use crate::schema::{Column, Index, IndexKind};

/// The class in a USING clause that stands for the index of a CREATE INDEX without USING.
pub(crate) const LEGACY_CLASS: &str = "legacy_local_table";

/// Ordinary indexes in the registry.
pub static EQUALITY: Registered = Registered {
    schema_kind: IndexKind::Composites,
    checks_each_target: false,
    creation_warning: None,
    vector_warning: None,
    intersects: false,
    finds_only_rows: false,
    ranks_vectors: false,
    refuses_long_values: true,
    rules: &Equality,
};

/// Returns true if the class is that of an ordinary index.
pub fn is_legacy(class: &str) -> bool {
    class.eq_ignore_ascii_case(LEGACY_CLASS)
}

/// An index that finds equal values.
pub struct Equality;

impl Kind for Equality {
    fn supports(&self, index: &Index, column: &Column, operator: Operator) -> bool {
        is_equality(index, column, operator)
    }

    fn not_one_target(&self, columns: &[String]) -> CqlError {
        CqlError::invalid(match columns {
            [] => "Only CUSTOM indexes can be created without specifying a target column",
            _ => "Only CUSTOM indexes support multiple columns",
        })
    }
}
