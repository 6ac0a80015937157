//! Terms: the values of a statement, typed for their receivers (Cassandra's `Term`).
//!
//! [`Term::prepare`] turns a raw term of the syntax tree into a typed one. Constants are computed there, once. [`Term::bind`] returns the
//! value for the bound values of one request.

pub(crate) mod assignment;
#[cfg(test)]
mod explain;
pub(crate) mod marker_list;
pub(crate) mod prepare;

#[cfg(test)]
mod term_tests;

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::{CqlType, UserType};
use helenus_cql::value::{self, CqlValue};

use super::functions::ScalarFunction;
use crate::analysis::EvalContext;
use crate::request::BoundValue;

pub use assignment::{RawTerm, common_type, exact_term_type};
pub use marker_list::MarkerList;

/// A value of a known type, or the way to compute it.
#[derive(Clone, Debug)]
pub enum Term {
    /// A constant. `None` is null.
    Constant(Option<Bytes>),
    Marker {
        index: usize,
        ty: CqlType,
    },
    List(Vec<Term>),
    Set {
        elements: Vec<Term>,
        ty: Arc<CqlType>,
    },
    Map {
        entries: Vec<(Term, Term)>,
        key_ty: Arc<CqlType>,
    },
    Tuple(Vec<Term>),
    /// The fields of the literal, in the type's order. `None` for omitted fields.
    UserType {
        fields: Vec<Option<Term>>,
        definition: Arc<UserType>,
        frozen: bool,
    },
    Vector {
        elements: Vec<Term>,
        ty: Arc<CqlType>,
    },
    Function {
        function: Arc<dyn ScalarFunction>,
        args: Vec<Term>,
    },
}

impl Term {
    /// Returns the value for one request. Only a marker itself can be unset.
    pub fn bind(&self, ctx: &EvalContext<'_>) -> Result<BoundValue, CqlError> {
        if let Term::Marker { index, ty } = self {
            return bind_marker(*index, ty, ctx);
        }
        Ok(match self.value(ctx)? {
            Some(value) => BoundValue::Set(value),
            None => BoundValue::Null,
        })
    }

    /// Returns the value. An unset value is an error, because the term is inside another value or is an argument.
    pub fn value(&self, ctx: &EvalContext<'_>) -> Result<Option<Bytes>, CqlError> {
        match self {
            Term::Constant(value) => Ok(value.clone()),
            Term::Marker { index, ty } => match bind_marker(*index, ty, ctx)? {
                BoundValue::Set(value) => Ok(Some(value)),
                BoundValue::Null => Ok(None),
                BoundValue::Unset => Err(CqlError::invalid("unset value is not supported here")),
            },
            Term::List(elements) => Ok(Some(value::pack_list(bind_elements(elements, ctx)?))),
            Term::Set { elements, ty } => Ok(Some(value::pack_set(ty, bind_elements(elements, ctx)?))),
            Term::Map { entries, key_ty } => {
                let mut bound = Vec::with_capacity(entries.len());
                for (key, entry_value) in entries {
                    bound.push((bind_element(key, ctx)?, bind_element(entry_value, ctx)?));
                }
                Ok(Some(value::pack_map(key_ty, bound)))
            }
            Term::Tuple(elements) => bind_tuple(elements, ctx).map(Some),
            Term::UserType {
                fields,
                definition,
                frozen,
            } => bind_user_type(fields, definition, *frozen, ctx).map(Some),
            Term::Vector { elements, ty } => {
                let elements = elements
                    .iter()
                    .map(|element| bind_vector_element(element, ty, ctx));
                Ok(Some(value::pack_vector(
                    ty,
                    elements.collect::<Result<Vec<_>, _>>()?,
                )))
            }
            Term::Function { function, args } => {
                let args = args.iter().map(|arg| bind_argument(arg, function.as_ref(), ctx));
                let value = function.call(&args.collect::<Result<Vec<_>, _>>()?, ctx)?;
                if function.sorts_elements() {
                    return Ok(value);
                }
                // Elements are sorted, because stored and compared values have their elements in order.
                let ty = function.return_type();
                let sorted = |value: Bytes| CqlValue::decode(ty, &value).map(|value| value.encode(ty));
                value.map(sorted).transpose().map_err(CqlError::Server)
            }
        }
    }

    /// Returns true if the value depends on the request.
    pub fn has_markers(&self) -> bool {
        match self {
            Term::Constant(_) => false,
            Term::Marker { .. } => true,
            Term::List(elements) | Term::Tuple(elements) => elements.iter().any(Term::has_markers),
            Term::Set { elements, .. } | Term::Vector { elements, .. } => {
                elements.iter().any(Term::has_markers)
            }
            Term::Map { entries, .. } => entries
                .iter()
                .any(|(key, value)| key.has_markers() || value.has_markers()),
            Term::UserType { fields, .. } => fields.iter().flatten().any(Term::has_markers),
            Term::Function { args, .. } => args.iter().any(Term::has_markers),
        }
    }

    /// Returns the marker's index. `None` if the term is more than a marker.
    pub fn marker_index(&self) -> Option<usize> {
        match self {
            Term::Marker { index, .. } => Some(*index),
            _ => None,
        }
    }

    fn is_constant(&self) -> bool {
        matches!(self, Term::Constant(_))
    }
}

fn bind_marker(index: usize, ty: &CqlType, ctx: &EvalContext<'_>) -> Result<BoundValue, CqlError> {
    let bound = ctx
        .values
        .get(index)
        .ok_or_else(|| CqlError::invalid("Invalid amount of bind variables"))?;
    if let BoundValue::Set(bytes) = bound {
        value::validate_bound(ty, bytes).map_err(CqlError::Invalid)?;
        return Ok(BoundValue::Set(value::as_bound(ty, bytes)));
    }
    Ok(bound.clone())
}

fn bind_vector_element(element: &Term, ty: &CqlType, ctx: &EvalContext<'_>) -> Result<Bytes, CqlError> {
    let may_be_empty = value::may_be_empty_in_vector(ty);
    match element.bind(ctx)? {
        BoundValue::Set(value) if may_be_empty || !value.is_empty() => Ok(value),
        // Cassandra reports an empty or unset element in the same words as a null.
        _ => Err(CqlError::invalid("null is not supported inside vectors")),
    }
}

fn bind_element(element: &Term, ctx: &EvalContext<'_>) -> Result<Bytes, CqlError> {
    match element.bind(ctx)? {
        BoundValue::Set(value) => Ok(value),
        BoundValue::Null => Err(CqlError::invalid("null is not supported inside collections")),
        BoundValue::Unset => Err(CqlError::invalid(
            "unset value is not supported inside collections",
        )),
    }
}

fn bind_elements(elements: &[Term], ctx: &EvalContext<'_>) -> Result<Vec<Bytes>, CqlError> {
    elements
        .iter()
        .map(|element| bind_element(element, ctx))
        .collect()
}

fn bind_tuple(elements: &[Term], ctx: &EvalContext<'_>) -> Result<Bytes, CqlError> {
    let mut bound = Vec::with_capacity(elements.len());
    for (position, element) in elements.iter().enumerate() {
        bound.push(match element.bind(ctx)? {
            BoundValue::Set(value) => Some(value),
            BoundValue::Null => None,
            BoundValue::Unset => {
                return Err(CqlError::invalid(format!(
                    "Invalid unset value for tuple field number {position}"
                )));
            }
        });
    }
    Ok(value::pack_tuple(bound))
}

fn bind_user_type(
    fields: &[Option<Term>],
    definition: &UserType,
    frozen: bool,
    ctx: &EvalContext<'_>,
) -> Result<Bytes, CqlError> {
    let mut bound = Vec::with_capacity(fields.len());
    for (position, field) in fields.iter().enumerate() {
        let value = match field {
            Some(term) => term.bind(ctx)?,
            None => BoundValue::Null,
        };
        bound.push(match value {
            BoundValue::Set(value) => Some(value),
            BoundValue::Null => None,
            // As in Cassandra, an unset field is written as an empty value.
            BoundValue::Unset if !frozen => Some(Bytes::new()),
            BoundValue::Unset => {
                let name = definition
                    .fields
                    .get(position)
                    .map_or("", |field| field.name.as_str());
                return Err(CqlError::invalid(format!(
                    "Invalid unset value for field '{name}' of user defined type {}",
                    definition.name
                )));
            }
        });
    }
    Ok(value::pack_tuple(bound))
}

/// Returns a function's name without its keyspace, as in messages about its arguments.
pub fn unqualified(function: &str) -> &str {
    function.split_once('.').map_or(function, |(_, name)| name)
}

fn bind_argument(
    arg: &Term,
    function: &dyn ScalarFunction,
    ctx: &EvalContext<'_>,
) -> Result<Option<Bytes>, CqlError> {
    match arg.bind(ctx)? {
        BoundValue::Set(value) => Ok(Some(value)),
        BoundValue::Null => Ok(None),
        BoundValue::Unset => Err(CqlError::invalid(format!(
            "Invalid unset value for argument in call to function {}",
            unqualified(function.name())
        ))),
    }
}
