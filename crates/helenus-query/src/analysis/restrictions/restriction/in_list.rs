//! The right side of IN.

use std::borrow::Cow;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_cql::value;

use super::{BoundTuple, Tuple, first_name, marker, names, null_column, split_tuple, unset_column};
use crate::analysis::EvalContext;
use crate::analysis::terms::{MarkerList, Term};
use crate::request::BoundValue;
use crate::schema::Table;

/// The values that IN allows.
#[derive(Clone, Debug)]
pub enum InList {
    Values(Box<[Tuple]>),
    /// A marker for each value of one column.
    Markers(MarkerList),
    /// A tuple of markers for each value of several columns.
    MarkerTuples(MarkerList),
    /// A marker for the whole list; the type is that of an element.
    Marker {
        index: usize,
        element: CqlType,
    },
}

impl InList {
    /// Returns the list of these values.
    pub fn of(tuples: Vec<Tuple>) -> InList {
        if let Some(list) = marker_list(&tuples, value_term) {
            return InList::Markers(list);
        }
        match marker_list(&tuples, tuple_terms) {
            Some(list) => InList::MarkerTuples(list),
            None => InList::Values(tuples.into_boxed_slice()),
        }
    }

    /// Returns the values as written. Empty if a marker stands for the whole list.
    pub fn values(&self) -> Box<dyn Iterator<Item = Cow<'_, Tuple>> + '_> {
        match self {
            InList::Values(tuples) => Box::new(tuples.iter().map(Cow::Borrowed)),
            InList::Markers(list) => Box::new(list.terms().map(Tuple::Value).map(Cow::Owned)),
            InList::MarkerTuples(list) => Box::new(list.values().map(Tuple::Elements).map(Cow::Owned)),
            InList::Marker { .. } => Box::new(std::iter::empty()),
        }
    }

    /// Returns the tuples for one request, in the order written. Nulls are refused.
    pub fn bind(
        &self,
        table: &Table,
        columns: &[usize],
        is_multi: bool,
        ctx: &EvalContext<'_>,
    ) -> Result<Vec<BoundTuple>, CqlError> {
        let tuples = match self {
            InList::Values(_) | InList::Markers(_) | InList::MarkerTuples(_) => self
                .values()
                .map(|tuple| tuple.bind(table, columns, ctx))
                .collect::<Result<Vec<_>, _>>()
                .map_err(|first| fault(table, columns, self, ctx).unwrap_or(first))?,
            InList::Marker { index, element } => match marker(ctx, *index)? {
                BoundValue::Set(bytes) => read_list(&bytes, element, is_multi)?,
                BoundValue::Null if is_multi => {
                    return Err(CqlError::invalid("Invalid null value for IN restriction"));
                }
                BoundValue::Null => {
                    return Err(CqlError::invalid(format!(
                        "Invalid null value for column {}",
                        first_name(table, columns)
                    )));
                }
                BoundValue::Unset if is_multi => {
                    return Err(CqlError::invalid(format!(
                        "Invalid unset value for in({})",
                        names(table, columns, ",")
                    )));
                }
                BoundValue::Unset => return Err(unset_column(table, columns)),
            },
        };
        Ok(tuples)
    }
}

fn value_term(tuple: &Tuple) -> Option<&[Term]> {
    match tuple {
        Tuple::Value(term) => Some(std::slice::from_ref(term)),
        Tuple::Elements(_) | Tuple::Marker { .. } => None,
    }
}

fn tuple_terms(tuple: &Tuple) -> Option<&[Term]> {
    match tuple {
        Tuple::Elements(terms) => Some(terms),
        Tuple::Value(_) | Tuple::Marker { .. } => None,
    }
}

/// Returns the values as a list of markers, if `terms` gives the terms of each value. `None` if they are no such list.
fn marker_list<'t>(tuples: &'t [Tuple], terms: fn(&'t Tuple) -> Option<&'t [Term]>) -> Option<MarkerList> {
    // The iteration stops at the first value of another kind.
    let of_kind = tuples.iter().map_while(terms);
    MarkerList::of(of_kind).filter(|list| list.value_count() == tuples.len())
}

/// Returns the error of the values of one column, other than that a value is unset. Cassandra binds all of them before it checks them, and
/// reports nulls first.
fn fault(table: &Table, columns: &[usize], list: &InList, ctx: &EvalContext<'_>) -> Option<CqlError> {
    let mut has_null = false;
    for tuple in list.values() {
        let Tuple::Value(term) = &*tuple else {
            return None;
        };
        match term.bind(ctx) {
            Ok(value) => has_null |= matches!(value, BoundValue::Null),
            Err(error) => return Some(error),
        }
    }
    has_null.then(|| null_column(table, columns))
}

/// Returns the elements of a bound list. An element is null if the list has null there, or an empty value that stands for null.
fn read_list(bytes: &Bytes, element: &CqlType, is_multi: bool) -> Result<Vec<BoundTuple>, CqlError> {
    let nothing = |value: &&[u8]| value.is_empty() && value::is_empty_meaningless(element);
    let elements = value::read_bound_list(element, bytes).map_err(CqlError::Invalid)?;
    let bound = |value: Option<&[u8]>| {
        let Some(value) = value
            .filter(|value| !nothing(value))
            .map(|value| bytes.slice_ref(value))
        else {
            return Ok(vec![None]);
        };
        match is_multi {
            true => split_tuple_of(element, &value),
            false => Ok(vec![Some(value::in_order(element, &value))]),
        }
    };
    elements.into_iter().map(bound).collect()
}

/// Returns the values of one element of a list. The element is no tuple if the list's marker was for one column, and its restriction was
/// merged with one on a tuple.
fn split_tuple_of(element: &CqlType, value: &Bytes) -> Result<BoundTuple, CqlError> {
    match element {
        CqlType::Tuple(_) => split_tuple(element, value),
        _ => Ok(vec![Some(value.clone())]),
    }
}
