//! Relations on several clustering columns: `(a, b) > (1, 2)`, `(a, b) IN ((1, 2), (3, 4))`.

use helenus_cql::ast::{Ident, InValues, Operator, Relation, Term as RawTerm};
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;

use super::{half_slice, in_or_eq, slice_between, slice_without, unsupported_neq};
use crate::analysis::restrictions::restriction::{InList, Restriction, Test, Tuple, names};
use crate::analysis::restrictions::{relation_text, require_column};
use crate::analysis::terms::Term;
use crate::analysis::{PlanContext, column_spec};
use crate::response::ColumnSpec;
use crate::schema::{ColumnKind, Table};

pub(crate) fn compare(
    ctx: &mut PlanContext<'_>,
    table: &Table,
    relation: &Relation,
    columns: &[Ident],
    operator: Operator,
    term: &RawTerm,
) -> Result<Restriction, CqlError> {
    match operator {
        Operator::Eq => {
            let places = clustering_columns(table, relation, columns)?;
            let tuple = tuple_term(ctx, table, &places, term)?;
            Ok(Restriction::multi(places, Test::Eq(tuple)))
        }
        Operator::Lt | Operator::Lte | Operator::Gt | Operator::Gte => {
            let places = clustering_columns(table, relation, columns)?;
            let tuple = tuple_term(ctx, table, &places, term)?;
            Ok(Restriction::multi(
                places,
                Test::Slice(half_slice(operator, tuple)),
            ))
        }
        Operator::Neq => Err(unsupported_neq(relation)),
        Operator::In
        | Operator::NotIn
        | Operator::Between
        | Operator::Contains
        | Operator::NotContains
        | Operator::ContainsKey
        | Operator::NotContainsKey
        | Operator::Like
        | Operator::IsNot => Err(CqlError::invalid(format!(
            "{} cannot be used for multi-column relations",
            operator.symbol()
        ))),
    }
}

pub(crate) fn is_in(
    ctx: &mut PlanContext<'_>,
    table: &Table,
    relation: &Relation,
    columns: &[Ident],
    is_negated: bool,
    values: &InValues,
) -> Result<Restriction, CqlError> {
    let places = clustering_columns(table, relation, columns)?;
    let test = match values {
        InValues::Marker(index) => {
            let spec = tuple_spec(table, &places);
            let list = ColumnSpec {
                name: format!("in{}", spec.name).into(),
                ty: CqlType::list(spec.ty.clone(), false),
                ..spec.clone()
            };
            ctx.markers.set(*index, list);
            let list = InList::Marker {
                index: *index,
                element: spec.ty,
            };
            match is_negated {
                true => Test::Slice(slice_without(&places, true, list)),
                false => Test::In(list),
            }
        }
        InValues::Values(terms) => {
            let tuples = terms.iter().map(|term| tuple_term(ctx, table, &places, term));
            let tuples = tuples.collect::<Result<Vec<_>, _>>()?;
            match is_negated {
                true => Test::Slice(slice_without(&places, true, InList::of(tuples))),
                false => in_or_eq(tuples),
            }
        }
    };
    Ok(Restriction::multi(places, test))
}

pub(crate) fn between(
    ctx: &mut PlanContext<'_>,
    table: &Table,
    relation: &Relation,
    columns: &[Ident],
    bounds: [&RawTerm; 2],
) -> Result<Restriction, CqlError> {
    let places = clustering_columns(table, relation, columns)?;
    let [first, second] = bounds;
    let first = tuple_term(ctx, table, &places, first)?;
    let second = tuple_term(ctx, table, &places, second)?;
    Ok(Restriction::multi(
        places,
        Test::Slice(slice_between(first, second)),
    ))
}

/// Returns the clustering columns of a tuple relation.
fn clustering_columns(table: &Table, relation: &Relation, columns: &[Ident]) -> Result<Vec<usize>, CqlError> {
    let mut places: Vec<usize> = Vec::with_capacity(columns.len());
    for name in columns {
        let (place, column) = require_column(table, name)?;
        if column.kind != ColumnKind::Clustering {
            return Err(CqlError::invalid(format!(
                "Multi-column relations can only be applied to clustering columns but was applied to: {}",
                column.name
            )));
        }
        if places.contains(&place) {
            return Err(CqlError::invalid(format!(
                "Column \"{}\" appeared twice in a relation: {}",
                column.name,
                relation_text(relation)
            )));
        }
        if places.last().is_some_and(|last| place != last + 1) {
            return Err(CqlError::invalid(format!(
                "Clustering columns must appear in the PRIMARY KEY order in multi-column relations: {}",
                relation_text(relation)
            )));
        }
        places.push(place);
    }
    Ok(places)
}

/// Returns the receiver of a marker for a whole tuple.
fn tuple_spec(table: &Table, places: &[usize]) -> ColumnSpec {
    let types: Vec<CqlType> = places
        .iter()
        .filter_map(|place| table.columns.get(*place))
        .map(|column| column.ty.clone())
        .collect();
    let name = format!("({})", names(table, places, ","));
    ColumnSpec::new(
        table.keyspace.as_str(),
        table.name.as_str(),
        name,
        CqlType::tuple(types),
    )
}

fn tuple_term(
    ctx: &mut PlanContext<'_>,
    table: &Table,
    places: &[usize],
    term: &RawTerm,
) -> Result<Tuple, CqlError> {
    match term {
        RawTerm::Marker(index) => {
            let spec = tuple_spec(table, places);
            let tuple = Tuple::Marker {
                index: *index,
                ty: spec.ty.clone(),
                name: spec.name.to_string(),
            };
            ctx.markers.set(*index, spec);
            Ok(tuple)
        }
        RawTerm::Tuple(elements) if elements.len() == places.len() => {
            let mut terms = Vec::with_capacity(elements.len());
            for (place, element) in places.iter().zip(elements) {
                let Some(column) = table.columns.get(*place) else {
                    continue;
                };
                terms.push(Term::prepare(ctx, element, &column_spec(table, column))?);
            }
            Ok(Tuple::Elements(terms))
        }
        RawTerm::Tuple(elements) => Err(CqlError::invalid(format!(
            "Expected {} elements in value tuple, but got {}: {}",
            places.len(),
            elements.len(),
            term
        ))),
        other => Err(CqlError::invalid(format!("Invalid tuple: {}", other))),
    }
}
