//! Storage-attached indexes (Cassandra's `StorageAttachedIndex`).

use helenus_cql::ast::Operator;
use helenus_cql::types::{CqlType, NativeType};

use super::{Kind, is_equality};
use crate::index::analyzer::Analyzer;
use crate::schema::{Column, Index, IndexKind, IndexTargetKind, is_text};

/// Maximum bytes of a value in a storage-attached index. Rows are not found by longer values (`sai_string_term_size_fail_threshold`).
const VALUE_LEN_MAX: usize = 8_192;

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
