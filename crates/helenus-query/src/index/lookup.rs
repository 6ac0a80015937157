//! The index that answers a filter, and the value that is looked up in it.

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::ast::Operator;
use helenus_cql::error::CqlError;

use super::entries::{entry_key, entry_value, held_key, held_value};
use crate::schema::{Column, Expression, Index, IndexKind, IndexTargetKind, Operand, Table};

/// Indexed values are no longer than this.
pub(crate) const VALUE_LEN_MAX: usize = 65_535;

/// An index and the value to look up.
pub(crate) struct IndexLookup {
    pub index: Arc<Index>,
    pub(crate) value: Bytes,
}

impl IndexLookup {
    /// The token of the value's entries.
    pub fn token(&self) -> i64 {
        entry_key(self.value.clone()).token
    }
}

/// The first index that is complete and answers one of the filter's expressions.
///
/// # Errors
/// `Index expression values may not be larger than 64K`
pub(crate) fn choose<'f>(
    table: &Table,
    expressions: impl Iterator<Item = &'f Expression>,
) -> Result<Option<IndexLookup>, CqlError> {
    for expression in expressions {
        let Some(column) = table.columns.get(expression.column) else {
            continue;
        };
        let usable = |index: &&Arc<Index>| {
            index.is_complete
                && super::kinds::supports(index, column, expression.operator)
                && fits(index, expression)
        };
        if let Some(index) = table.indexes.iter().find(usable)
            && let Some(value) = looked_up(index, column, expression)
        {
            if value.len() > VALUE_LEN_MAX && index.kind != IndexKind::Custom {
                return Err(CqlError::invalid(
                    "Index expression values may not be larger than 64K",
                ));
            }
            return Ok(Some(IndexLookup {
                index: index.clone(),
                value,
            }));
        }
    }
    Ok(None)
}

/// Indexes on entries hold composites, the others values; text as they compare it.
pub(crate) fn fits(index: &Index, expression: &Expression) -> bool {
    let is_entry = matches!(expression.operand, Operand::Entry { .. });
    is_entry == (index.target.kind == IndexTargetKind::KeysAndValues)
        && index.analysis() == expression.analysis
}

pub(crate) fn looked_up(index: &Index, column: &Column, expression: &Expression) -> Option<Bytes> {
    match (&expression.operand, expression.operator) {
        (Operand::Value(value), Operator::Eq | Operator::Contains) => Some(held_value(index, column, value)),
        (Operand::Value(key), Operator::ContainsKey) => Some(held_key(index, column, key)),
        // A value too long for a key is in no index.
        (Operand::Entry { key, value }, Operator::Eq) => entry_value(key, value).ok(),
        _ => None,
    }
}
