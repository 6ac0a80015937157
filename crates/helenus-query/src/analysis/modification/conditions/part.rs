//! The part of a column that a condition tests: the whole, an element, or a field.

use bytes::Bytes;
use helenus_cql::ast;
use helenus_cql::error::CqlError;
use helenus_cql::types::{CqlType, NativeType};
use helenus_cql::value;

use super::invalid;
use crate::analysis::modification::operation::{field_spec, index_spec, key_spec, value_spec};
use crate::analysis::terms::Term;
use crate::analysis::{EvalContext, PlanContext};
use crate::request::BoundValue;
use crate::response::ColumnSpec;
use crate::schema::Column;

/// The part of a column.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Whole,
    Element(Term),
    Field(usize),
}

/// Plans the part of a column. Returns it with the receiver of its value.
///
/// # Errors
/// Cassandra's, for a column without such a part.
pub(crate) fn plan_part(
    ctx: &mut PlanContext<'_>,
    column: &Column,
    receiver: &ColumnSpec,
    target: &ast::ConditionTarget,
) -> Result<(Part, ColumnSpec), CqlError> {
    let name = &column.name;
    match target {
        ast::ConditionTarget::Column => Ok((Part::Whole, receiver.clone())),
        ast::ConditionTarget::Element(element) => {
            let (key, spec) = match &column.ty {
                CqlType::List { element, .. } => (index_spec(receiver), value_spec(receiver, element)),
                CqlType::Map { key, value, .. } => (key_spec(receiver, key), value_spec(receiver, value)),
                CqlType::Set { .. } => {
                    return invalid(format!("Invalid element access syntax for set column {name}"));
                }
                _ => {
                    return invalid(format!(
                        "Invalid element access syntax for non-collection column {name}"
                    ));
                }
            };
            Ok((Part::Element(Term::prepare(ctx, element, &key)?), spec))
        }
        ast::ConditionTarget::Field(field) => {
            let CqlType::Udt { definition, .. } = &column.ty else {
                return invalid(format!("Invalid field access syntax for non-UDT column {name}"));
            };
            let found = definition
                .field_index(field.as_str())
                .and_then(|at| Some((at, definition.fields.get(at)?)));
            let Some((position, definition)) = found else {
                return invalid(format!("Unknown field {field} for column {name}"));
            };
            Ok((
                Part::Field(position),
                field_spec(receiver, &definition.name, &definition.ty),
            ))
        }
    }
}

impl Part {
    /// Returns the type and the value of the part of a column's value.
    pub(crate) fn of(
        &self,
        ty: &CqlType,
        value: Option<Bytes>,
        eval: &EvalContext<'_>,
    ) -> Result<(CqlType, Option<Bytes>), CqlError> {
        match (self, ty) {
            (Part::Element(index), CqlType::List { element, frozen }) => {
                let at = list_index(index, eval)?;
                // A frozen list that is null is not searched, so a negative index is accepted.
                if !frozen || value.is_some() {
                    refuse_negative(at)?;
                }
                let Some(value) = value else {
                    return Ok((element.as_ref().clone(), None));
                };
                let elements = value::read_elements(ty, &value).map_err(CqlError::Invalid)?;
                let found = at
                    .and_then(|at| elements.get(usize::try_from(at).ok()?))
                    .map(|part| value.slice_ref(part));
                Ok((element.as_ref().clone(), found))
            }
            (
                Part::Element(key),
                CqlType::Map {
                    key: key_type,
                    value: value_type,
                    ..
                },
            ) => {
                let key = match key.bind(eval)? {
                    BoundValue::Set(key) => Some(key),
                    BoundValue::Null => {
                        return invalid("Invalid null value for map element access".to_owned());
                    }
                    BoundValue::Unset => None,
                };
                let (Some(key), Some(value)) = (key, value) else {
                    return Ok((value_type.as_ref().clone(), None));
                };
                let compared_as = |mapped: &[u8]| {
                    let by_keys = orders_any(key_type, mapped);
                    if by_keys { key_type } else { value_type }.as_ref().clone()
                };
                let entries = value::read_map(ty, &value).map_err(CqlError::Invalid)?;
                let found = entries
                    .iter()
                    .find(|(other, _)| value::compare(key_type, other, &key).is_eq());
                Ok(match found {
                    Some((_, mapped)) => (compared_as(mapped), Some(value.slice_ref(mapped))),
                    None => (value_type.as_ref().clone(), None),
                })
            }
            (Part::Field(position), CqlType::Udt { definition, .. }) => {
                let field = definition
                    .fields
                    .get(*position)
                    .map_or(CqlType::BLOB, |field| field.ty.clone());
                let Some(value) = value else {
                    return Ok((field, None));
                };
                let fields = value::read_tuple(ty, &value).map_err(CqlError::Invalid)?;
                let found = fields
                    .get(*position)
                    .copied()
                    .flatten()
                    .map(|part| value.slice_ref(part));
                Ok((field, found))
            }
            _ => Ok((ty.clone(), value)),
        }
    }
}

/// Returns true if the type of a map's keys orders these bytes of a mapped value.
///
/// Cassandra compares a map's values as if they had the type of its keys (`ElementAccessBound` passes `getKeysType`). For all other bytes
/// it fails, or takes those that are no UUIDs for equal. A write could then happen although its condition doesn't hold. Here such values
/// are compared by their own type.
fn orders_any(keys: &CqlType, mapped: &[u8]) -> bool {
    match keys {
        CqlType::Native(NativeType::Float) => mapped.len() == 4,
        CqlType::Native(NativeType::Double) => mapped.len() == 8,
        CqlType::Native(NativeType::Uuid | NativeType::Timeuuid) => mapped.len() == 16,
        CqlType::Native(NativeType::Decimal) => mapped.len() > 4,
        CqlType::Native(_) => true,
        _ => false,
    }
}

fn list_index(index: &Term, eval: &EvalContext<'_>) -> Result<Option<i32>, CqlError> {
    let bytes = match index.bind(eval)? {
        BoundValue::Set(bytes) => bytes,
        BoundValue::Null => return invalid("Invalid null value for list element access".to_owned()),
        BoundValue::Unset => return Ok(None),
    };
    match bytes.as_ref().try_into().map(i32::from_be_bytes) {
        Ok(index) => Ok(Some(index)),
        Err(_) => invalid("Invalid empty value for list element access".to_owned()),
    }
}

fn refuse_negative(index: Option<i32>) -> Result<(), CqlError> {
    match index {
        Some(index) if index < 0 => invalid(format!("Invalid negative list index {index}")),
        _ => Ok(()),
    }
}
