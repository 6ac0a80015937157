//! Relations on one column: `c = 1`, `c IN (1, 2)`, `c CONTAINS 1`, `c['key'] = 1`.

use helenus_cql::ast::{Ident, InValues, Operator, Relation, Term as RawTerm};
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;

use super::{half_slice, in_or_eq, slice_between, slice_without, unsupported_neq};
use crate::analysis::restrictions::require_column;
use crate::analysis::restrictions::restriction::{Contains, InList, Restriction, Test, Tuple};
use crate::analysis::terms::Term;
use crate::analysis::{PlanContext, column_spec};
use crate::response::ColumnSpec;
use crate::schema::{Column, ColumnKind, Table};

pub(crate) fn compare(
    ctx: &mut PlanContext<'_>,
    table: &Table,
    relation: &Relation,
    name: &Ident,
    operator: Operator,
    term: &RawTerm,
) -> Result<Restriction, CqlError> {
    if operator == Operator::Neq {
        return Err(unsupported_neq(relation));
    }
    let (place, column) = require_column(table, name)?;
    if operator.is_slice() {
        check_slice(column)?;
    }
    check_operator(column, operator, false)?;
    let test = match operator {
        Operator::Eq => Test::Eq(Tuple::Value(column_term(ctx, table, column, term)?)),
        Operator::Lt | Operator::Lte | Operator::Gt | Operator::Gte => Test::Slice(half_slice(
            operator,
            Tuple::Value(column_term(ctx, table, column, term)?),
        )),
        Operator::Contains => {
            let value = Term::prepare(ctx, term, &collection_part(table, column, false))?;
            Test::Contains(Contains {
                values: vec![value],
                ..Contains::default()
            })
        }
        Operator::ContainsKey => {
            let key = Term::prepare(ctx, term, &collection_part(table, column, true))?;
            Test::Contains(Contains {
                keys: vec![key],
                ..Contains::default()
            })
        }
        Operator::NotContains => {
            let value = Term::prepare(ctx, term, &collection_part(table, column, false))?;
            Test::Contains(Contains {
                absent_values: vec![value],
                ..Contains::default()
            })
        }
        Operator::NotContainsKey => {
            let key = Term::prepare(ctx, term, &collection_part(table, column, true))?;
            Test::Contains(Contains {
                absent_keys: vec![key],
                ..Contains::default()
            })
        }
        Operator::Like => Test::Like(column_term(ctx, table, column, term)?),
        Operator::Neq | Operator::In | Operator::NotIn | Operator::Between | Operator::IsNot => {
            return Err(unsupported_neq(relation));
        }
    };
    Ok(Restriction::single(place, test))
}

pub(crate) fn is_in(
    ctx: &mut PlanContext<'_>,
    table: &Table,
    name: &Ident,
    is_negated: bool,
    values: &InValues,
) -> Result<Restriction, CqlError> {
    let (place, column) = require_column(table, name)?;
    let operator = if is_negated { Operator::NotIn } else { Operator::In };
    check_operator(column, operator, false)?;
    let marker_list = |ctx: &mut PlanContext<'_>, index: usize| {
        let list = CqlType::list(column.ty.clone(), false);
        let name = format!("in({})", column.name);
        ctx.markers.set(
            index,
            ColumnSpec::new(table.keyspace.as_str(), table.name.as_str(), name, list),
        );
        InList::Marker {
            index,
            element: column.ty.clone(),
        }
    };
    let test = match values {
        InValues::Marker(index) if is_negated => {
            Test::Slice(slice_without(&[place], false, marker_list(ctx, *index)))
        }
        InValues::Marker(index) => Test::In(marker_list(ctx, *index)),
        InValues::Values(terms) if is_negated => {
            // The markers are no key: the statement reads other partitions than theirs.
            let spec = column_spec(table, column);
            let terms = terms
                .iter()
                .map(|term| Term::prepare(ctx, term, &spec).map(Tuple::Value));
            let list = InList::of(terms.collect::<Result<Vec<_>, _>>()?);
            Test::Slice(slice_without(&[place], false, list))
        }
        InValues::Values(terms) => {
            let terms = terms
                .iter()
                .map(|term| column_term(ctx, table, column, term).map(Tuple::Value));
            in_or_eq(terms.collect::<Result<Vec<_>, _>>()?)
        }
    };
    Ok(Restriction::single(place, test))
}

pub(crate) fn between(
    ctx: &mut PlanContext<'_>,
    table: &Table,
    name: &Ident,
    bounds: [&RawTerm; 2],
) -> Result<Restriction, CqlError> {
    let (place, column) = require_column(table, name)?;
    check_slice(column)?;
    check_operator(column, Operator::Between, false)?;
    let spec = column_spec(table, column);
    let [first, second] = bounds;
    let first = Tuple::Value(Term::prepare(ctx, first, &spec)?);
    let second = Tuple::Value(Term::prepare(ctx, second, &spec)?);
    Ok(Restriction::single(
        place,
        Test::Slice(slice_between(first, second)),
    ))
}

pub(crate) fn compare_element(
    ctx: &mut PlanContext<'_>,
    table: &Table,
    relation: &Relation,
    name: &Ident,
    key: &RawTerm,
    operator: Operator,
    term: &RawTerm,
) -> Result<Restriction, CqlError> {
    if operator == Operator::Neq {
        return Err(unsupported_neq(relation));
    }
    if operator == Operator::Like {
        return Err(CqlError::invalid("LIKE can't be used with collections."));
    }
    let (place, column) = require_column(table, name)?;
    if operator.is_slice() {
        check_slice(column)?;
    }
    check_operator(column, operator, true)?;
    let key = Term::prepare(ctx, key, &collection_part(table, column, true))?;
    let value = Term::prepare(ctx, term, &collection_part(table, column, false))?;
    Ok(Restriction::single(
        place,
        Test::Contains(Contains {
            entries: vec![(key, value)],
            ..Contains::default()
        }),
    ))
}

/// Types a term for a column. A marker for a whole partition key column is recorded for routing.
fn column_term(
    ctx: &mut PlanContext<'_>,
    table: &Table,
    column: &Column,
    term: &RawTerm,
) -> Result<Term, CqlError> {
    let term = Term::prepare(ctx, term, &column_spec(table, column))?;
    if column.kind == ColumnKind::PartitionKey
        && let Some(index) = term.marker_index()
    {
        ctx.markers.set_partition_key(index, column.position);
    }
    Ok(term)
}

/// Returns the receiver for a part of a collection.
fn collection_part(table: &Table, column: &Column, is_key: bool) -> ColumnSpec {
    let (ty, name) = match &column.ty {
        CqlType::Map { key, .. } if is_key => (key.as_ref(), "key"),
        CqlType::Map { value, .. } => (value.as_ref(), "value"),
        CqlType::List { element, .. } | CqlType::Set { element, .. } => (element.as_ref(), "value"),
        other => (other, "value"),
    };
    ColumnSpec::new(
        table.keyspace.as_str(),
        table.name.as_str(),
        format!("{name}({})", column.name),
        ty.clone(),
    )
}

/// Refuses operators that have no meaning for the column's type (`SingleColumnRelation.toReceivers`).
fn check_operator(column: &Column, operator: Operator, is_element: bool) -> Result<(), CqlError> {
    let name = &column.name;
    let is_reversed = column.is_reversed();
    let is_on_keys = matches!(operator, Operator::ContainsKey | Operator::NotContainsKey);
    if is_on_keys && (is_reversed || !matches!(column.ty, CqlType::Map { .. })) {
        return Err(CqlError::invalid(format!(
            "Cannot use {} on non-map column {name}",
            operator.symbol()
        )));
    }
    let is_on_values = matches!(operator, Operator::Contains | Operator::NotContains);
    if is_on_values && (is_reversed || !column.ty.is_collection()) {
        return Err(CqlError::invalid(format!(
            "Cannot use {} on non-collection column {name}",
            operator.symbol()
        )));
    }
    if is_element {
        check_element(column, operator)?;
    }
    if matches!(column.ty, CqlType::Udt { .. }) && column.ty.is_multicell() {
        return Err(CqlError::invalid(format!(
            "Non-frozen UDT column '{name}' ({}) cannot be restricted by any relation",
            column.ty
        )));
    }
    let is_legal = is_on_keys || is_on_values || (is_element && operator == Operator::Eq);
    if column.ty.is_collection() && column.ty.is_multicell() && !is_legal {
        return Err(CqlError::invalid(format!(
            "Collection column '{name}' ({}) cannot be restricted by a '{}' relation",
            column.ty,
            operator.symbol()
        )));
    }
    Ok(())
}

fn check_element(column: &Column, operator: Operator) -> Result<(), CqlError> {
    let name = &column.name;
    match &column.ty {
        _ if column.is_reversed() => Err(CqlError::invalid(format!(
            "Column {name} cannot be used as a map"
        ))),
        CqlType::List { .. } => Err(CqlError::invalid(format!(
            "Indexes on list entries ({name}[index] = value) are not currently supported."
        ))),
        CqlType::Map { frozen: false, .. } if operator == Operator::Eq => Ok(()),
        CqlType::Map { frozen: false, .. } => Err(CqlError::invalid(
            "Only EQ relations are supported on map entries",
        )),
        CqlType::Map { .. } => Err(CqlError::invalid(format!(
            "Map-entry equality predicates on frozen map column {name} are not supported"
        ))),
        _ => Err(CqlError::invalid(format!(
            "Column {name} cannot be used as a map"
        ))),
    }
}

/// Refuses slices of durations, which have no order.
fn check_slice(column: &Column) -> Result<(), CqlError> {
    if !column.ty.references_duration() {
        return Ok(());
    }
    Err(CqlError::invalid(match &column.ty {
        ty if ty.is_collection() => {
            "Slice restrictions are not supported on collections containing durations"
        }
        CqlType::Tuple(_) => "Slice restrictions are not supported on tuples containing durations",
        CqlType::Udt { .. } => "Slice restrictions are not supported on UDTs containing durations",
        _ => "Slice restrictions are not supported on duration columns",
    }))
}
