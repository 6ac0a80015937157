//! Terms and selectors that may be assigned to a receiver. Function resolution works on them.

use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value::Assignment;

use crate::analysis::PlanContext;
use crate::response::ColumnSpec;

/// A raw term or a selector that may be assigned to a receiver. Function resolution works on these.
pub trait Assignable {
    /// Returns how well the term or selector fits `receiver`.
    fn test(&self, ctx: &PlanContext<'_>, receiver: &ColumnSpec) -> Assignment;

    /// Returns the type. `None` if the type depends on a receiver.
    fn exact_type(&self, ctx: &PlanContext<'_>) -> Option<CqlType>;

    /// Returns the exact type, or else a type that the term is compatible with (Cassandra's `getCompatibleTypeIfKnown`).
    fn compatible_type(&self, ctx: &PlanContext<'_>) -> Option<CqlType> {
        self.exact_type(ctx)
    }

    /// Returns the text that messages show.
    fn text(&self) -> String;

    /// Returns the number of elements of a literal in brackets. `None` for anything else.
    fn list_literal_len(&self) -> Option<usize> {
        None
    }

    /// Returns true for a clustering column declared DESC.
    fn is_reversed_column(&self) -> bool {
        false
    }

    /// Returns true for a bind marker.
    fn is_marker(&self) -> bool {
        false
    }

    /// Returns true for a term in brackets. Such a term has its own error for a receiver that is neither a list nor a vector.
    fn is_array(&self) -> bool {
        false
    }
}

/// Returns how well `assignable` fits `receiver`.
///
/// # Errors
/// `Unexpected receiver type` for a term in brackets.
pub fn test_strictly(
    ctx: &PlanContext<'_>,
    assignable: &dyn Assignable,
    receiver: &ColumnSpec,
) -> Result<Assignment, CqlError> {
    if assignable.is_array() && !matches!(receiver.ty, CqlType::List { .. } | CqlType::Vector { .. }) {
        return Err(not_an_array(receiver));
    }
    Ok(assignable.test(ctx, receiver))
}

pub(crate) fn not_an_array(receiver: &ColumnSpec) -> CqlError {
    CqlError::invalid(format!(
        "Unexpected receiver type '{}'; only list and vector are expected",
        receiver.ty
    ))
}

/// Returns a receiver for a part of `receiver`, as messages name it.
pub fn part_spec(receiver: &ColumnSpec, name: impl Into<Arc<str>>, ty: CqlType) -> ColumnSpec {
    ColumnSpec {
        keyspace: receiver.keyspace.clone(),
        table: receiver.table.clone(),
        name: name.into(),
        ty,
    }
}
