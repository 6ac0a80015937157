//! What may be assigned to a receiver: function resolution works on it.

use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value::Assignment;

use crate::analysis::PlanContext;
use crate::response::ColumnSpec;

/// Something that may be assigned to a receiver: a raw term or a selector. Function resolution works on these.
pub trait Assignable {
    /// How well it fits `receiver`.
    fn test(&self, ctx: &PlanContext<'_>, receiver: &ColumnSpec) -> Assignment;

    /// Its type, where it can be told without a receiver.
    fn exact_type(&self, ctx: &PlanContext<'_>) -> Option<CqlType>;

    /// Its exact type, or one that it would do as (Cassandra's `getCompatibleTypeIfKnown`).
    fn compatible_type(&self, ctx: &PlanContext<'_>) -> Option<CqlType> {
        self.exact_type(ctx)
    }

    /// How messages show it.
    fn text(&self) -> String;

    /// Returns the number of elements, if it is a literal in brackets.
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

    /// Returns true for a term in brackets, which says itself that it is neither a list nor a vector that is expected.
    fn is_array(&self) -> bool {
        false
    }
}

/// How well it fits `receiver`.
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
