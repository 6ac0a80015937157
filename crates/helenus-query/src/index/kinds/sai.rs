//! Storage-attached indexes (Cassandra's `StorageAttachedIndex`).

mod options;

use std::collections::BTreeMap;

use helenus_cql::ast::Operator;
use helenus_cql::error::CqlError;
use helenus_cql::types::{CqlType, NativeType};

use super::{Kind, Registered, is_equality, warnings};
use crate::index::analyzer::Analyzer;
use crate::schema::names::{NAME_LEN_MAX, is_valid_name};
use crate::schema::{Column, Index, IndexKind, IndexTarget, IndexTargetKind, Table, is_text};

/// The class in CREATE INDEX. The case of its short names does not matter.
const CLASS: &str = "org.apache.cassandra.index.sai.StorageAttachedIndex";
const SHORT_CLASSES: [&str; 2] = ["sai", "StorageAttachedIndex"];

/// Maximum bytes of a value in a storage-attached index. Rows are not found by longer values (`sai_string_term_size_fail_threshold`).
const VALUE_LEN_MAX: usize = 8_192;

/// Storage-attached indexes in the registry.
pub static STORAGE_ATTACHED: Registered = Registered {
    schema_kind: IndexKind::Custom,
    checks_each_target: true,
    creation_warning: None,
    vector_warning: Some(options::VECTOR_WARNING),
    intersects: true,
    finds_only_rows: false,
    ranks_vectors: true,
    refuses_long_values: false,
    rules: &StorageAttached,
};

/// Returns true if the class is that of a storage-attached index.
pub fn is_sai(class: &str) -> bool {
    class == CLASS
        || SHORT_CLASSES
            .iter()
            .any(|short| class.eq_ignore_ascii_case(short))
}

/// An index that finds equal values, values within bounds, and analyzed text.
pub struct StorageAttached;

impl Kind for StorageAttached {
    fn supports(&self, index: &Index, column: &Column, operator: Operator) -> bool {
        let is_slice = || operator.is_slice() && !is_literal(&column.ty);
        is_equality(index, column, operator) || (index.target.kind == IndexTargetKind::Simple && is_slice())
    }

    fn is_in_value_order(&self, _index: &Index, column: &Column) -> bool {
        !is_literal(&column.ty)
    }

    fn analysis(&self, index: &Index) -> Option<Analyzer> {
        Analyzer::of(&index.options)
    }

    /// Returns false for text, booleans and frozen values (Cassandra's `IndexTermType.skipsEmptyValue`), and true for all others. Always
    /// true if the column is in descending order.
    fn skips_empty(&self, index: &Index, column: &Column) -> bool {
        let holds_empty = match index.target.kind.indexed_type(&column.ty) {
            CqlType::Native(NativeType::Boolean) => true,
            ty => is_text(ty) || !matches!(ty, CqlType::Native(_)),
        };
        column.is_reversed() || !holds_empty
    }

    fn holds(&self, index: &Index, column: &Column, value: &[u8]) -> bool {
        matches!(column.ty, CqlType::Vector { .. })
            || (value.len() <= VALUE_LEN_MAX && !(value.is_empty() && self.skips_empty(index, column)))
    }

    fn holds_entry(&self, key: &[u8], value: &[u8]) -> bool {
        key.len().max(value.len()) <= VALUE_LEN_MAX
    }

    fn check_column_name(&self, name: &str) -> Result<(), CqlError> {
        match is_valid_name(name, NAME_LEN_MAX) {
            true => Ok(()),
            false => Err(CqlError::invalid(format!(
                "Column '{name}' is longer than the permissible name length of {NAME_LEN_MAX} characters or contains \
                 non-alphanumeric-underscore characters"
            ))),
        }
    }

    fn not_one_target(&self, columns: &[String]) -> CqlError {
        CqlError::invalid(match columns {
            [] => "Failed to retrieve target column for: ".to_owned(),
            several => format!(
                "A storage-attached index cannot be created over multiple columns: {}",
                several.join(", ")
            ),
        })
    }

    fn check(
        &self,
        table: &Table,
        target: &IndexTarget,
        options: &BTreeMap<String, String>,
    ) -> Result<(), CqlError> {
        options::check(table, target, options).map_err(|error| {
            // Cassandra checks the table's indexes in order. It has warned about those before the faulty one.
            let twin = options::twin(table, target).unwrap_or(table.indexes.len());
            error.warned(warnings(table, twin))
        })
    }
}

/// Returns true if the index was declared as a storage-attached index.
pub fn is_storage_attached(index: &Index) -> bool {
    index.kind == IndexKind::Custom
        && index.options.get("class_name").is_some_and(|class| {
            let short = class.rsplit('.').next().unwrap_or(class);
            short.eq_ignore_ascii_case("StorageAttachedIndex") || short.eq_ignore_ascii_case("sai")
        })
}

/// Returns true for types whose storage-attached indexes support only equality.
pub(crate) fn is_literal(ty: &CqlType) -> bool {
    match ty {
        CqlType::Native(native) => {
            matches!(
                native,
                NativeType::Ascii
                    | NativeType::Text
                    | NativeType::Boolean
                    | NativeType::Blob
                    | NativeType::Uuid
            )
        }
        CqlType::Tuple(_) | CqlType::Udt { .. } => true,
        other => other.is_collection() && !other.is_multicell(),
    }
}
