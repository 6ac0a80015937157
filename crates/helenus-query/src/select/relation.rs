//! From a relation as written to a typed restriction (Cassandra's `SingleColumnRelation`, `MultiColumnRelation`,
//! `TokenRelation`).

use helenus_cql::ast::{Ident, InValues, Operator, Relation, Term as RawTerm};
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;

use super::restriction::{Contains, InList, Restriction, Slice, SliceBound, Test, Tuple, names};
use super::token::TokenRestriction;
use crate::plan::{PlanContext, column_spec};
use crate::response::ColumnSpec;
use crate::schema::{Column, ColumnKind, Table};
use crate::term::Term;

/// A relation, typed.
pub enum Typed {
    Columns(Restriction),
    Token(TokenRestriction),
}

/// The column of that name and its place.
///
/// # Errors
/// `Undefined column name v in table ks.t`
pub fn require_column<'t>(table: &'t Table, name: &Ident) -> Result<(usize, &'t Column), CqlError> {
    table
        .visible_column(name.as_str())
        .map(|(place, column)| (place, column.as_ref()))
        .ok_or_else(|| {
            CqlError::invalid(format!(
                "Undefined column name {} in table {}",
                name.to_cql(),
                table.cql_name()
            ))
        })
}

/// Types a relation.
pub fn resolve(ctx: &mut PlanContext<'_>, table: &Table, relation: &Relation) -> Result<Typed, CqlError> {
    match relation {
        Relation::Column {
            column,
            operator,
            term,
        } => resolve_column(ctx, table, relation, column, *operator, term).map(Typed::Columns),
        Relation::ColumnIn { column, values } => resolve_in(ctx, table, column, values).map(Typed::Columns),
        Relation::IsNotNull { column } => {
            let (place, _) = require_column(table, column)?;
            Ok(Typed::Columns(Restriction::single(place, Test::IsNotNull)))
        }
        Relation::Element {
            column,
            key,
            operator,
            term,
        } => resolve_element(ctx, table, relation, column, key, *operator, term).map(Typed::Columns),
        Relation::Token {
            columns,
            operator,
            term,
        } => resolve_token(ctx, table, relation, columns, *operator, term).map(Typed::Token),
        Relation::Tuple {
            columns,
            operator,
            term,
        } => resolve_tuple(ctx, table, relation, columns, *operator, term).map(Typed::Columns),
        Relation::TupleIn { columns, values } => {
            resolve_tuple_in(ctx, table, relation, columns, values).map(Typed::Columns)
        }
        Relation::CustomIndex { .. } => Err(CqlError::Server(
            "custom index expressions are no relations".to_owned(),
        )),
    }
}

fn unsupported_neq(relation: &Relation) -> CqlError {
    CqlError::invalid(format!(
        "Unsupported \"!=\" relation: {}",
        relation_text(relation)
    ))
}

/// Types a term for a column; a marker for a whole partition key column is remembered for routing.
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

/// A part of a collection as a receiver.
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

/// Refuses operators that the column's type has no meaning for (`SingleColumnRelation.toReceivers`).
fn check_operator(column: &Column, operator: Operator, is_element: bool) -> Result<(), CqlError> {
    let name = &column.name;
    if operator == Operator::ContainsKey && !matches!(column.ty, CqlType::Map { .. }) {
        return Err(CqlError::invalid(format!(
            "Cannot use CONTAINS KEY on non-map column {name}"
        )));
    }
    if operator == Operator::Contains && !column.ty.is_collection() {
        return Err(CqlError::invalid(format!(
            "Cannot use CONTAINS on non-collection column {name}"
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
    let is_legal = matches!(operator, Operator::Contains | Operator::ContainsKey)
        || (is_element && operator == Operator::Eq);
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

/// Durations have no order.
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

/// A slice of one bound.
fn half_slice(operator: Operator, tuple: Tuple) -> Slice {
    let bound = SliceBound {
        tuple,
        is_inclusive: matches!(operator, Operator::Gte | Operator::Lte),
    };
    match operator {
        Operator::Gt | Operator::Gte => Slice {
            start: Some(bound),
            end: None,
        },
        _ => Slice {
            start: None,
            end: Some(bound),
        },
    }
}

fn resolve_column(
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
        Operator::Like => Test::Like(column_term(ctx, table, column, term)?),
        Operator::Neq | Operator::In | Operator::IsNot => return Err(unsupported_neq(relation)),
    };
    Ok(Restriction::single(place, test))
}

fn resolve_in(
    ctx: &mut PlanContext<'_>,
    table: &Table,
    name: &Ident,
    values: &InValues,
) -> Result<Restriction, CqlError> {
    let (place, column) = require_column(table, name)?;
    check_operator(column, Operator::In, false)?;
    let test = match values {
        InValues::Marker(index) => {
            let list = CqlType::list(column.ty.clone(), false);
            let name = format!("in({})", column.name);
            ctx.markers.set(
                *index,
                ColumnSpec::new(table.keyspace.as_str(), table.name.as_str(), name, list),
            );
            Test::In(InList::Marker {
                index: *index,
                element: column.ty.clone(),
            })
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

/// IN with one value is an equality.
fn in_or_eq(mut tuples: Vec<Tuple>) -> Test {
    match (tuples.len(), tuples.pop()) {
        (1, Some(only)) => Test::Eq(only),
        (_, last) => {
            tuples.extend(last);
            Test::In(InList::Values(tuples))
        }
    }
}

fn resolve_element(
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

fn resolve_token(
    ctx: &mut PlanContext<'_>,
    table: &Table,
    relation: &Relation,
    columns: &[Ident],
    operator: Operator,
    term: &RawTerm,
) -> Result<TokenRestriction, CqlError> {
    match operator {
        Operator::Eq | Operator::Lt | Operator::Lte | Operator::Gt | Operator::Gte => {}
        Operator::Neq => return Err(unsupported_neq(relation)),
        Operator::In | Operator::Contains | Operator::ContainsKey | Operator::Like | Operator::IsNot => {
            return Err(CqlError::invalid(format!(
                "{} cannot be used with the token function",
                operator.symbol()
            )));
        }
    }
    let mut places = Vec::with_capacity(columns.len());
    for name in columns {
        places.push(require_column(table, name)?.0);
    }
    check_token_columns(table, &places)?;
    let spec = ColumnSpec::new(
        table.keyspace.as_str(),
        table.name.as_str(),
        "partition key token",
        CqlType::BIGINT,
    );
    let term = Term::prepare(ctx, term, &spec)?;
    let is_inclusive = matches!(operator, Operator::Gte | Operator::Lte);
    Ok(match operator {
        Operator::Eq => TokenRestriction::Eq(term),
        Operator::Gt | Operator::Gte => TokenRestriction::Slice {
            start: Some((term, is_inclusive)),
            end: None,
        },
        _ => TokenRestriction::Slice {
            start: None,
            end: Some((term, is_inclusive)),
        },
    })
}

fn check_token_columns(table: &Table, places: &[usize]) -> Result<(), CqlError> {
    let key: Vec<usize> = (0..table.partition_key_count).collect();
    if places == key {
        return Ok(());
    }
    if !key.iter().all(|place| places.contains(place)) {
        return Err(CqlError::invalid(
            "The token() function must be applied to all partition key components or none of them",
        ));
    }
    if places
        .iter()
        .enumerate()
        .any(|(at, place)| places.iter().take(at).any(|earlier| earlier == place))
    {
        return Err(CqlError::invalid(
            "The token() function contains duplicate partition key components",
        ));
    }
    if places.iter().any(|place| !key.contains(place)) {
        return Err(CqlError::invalid(
            "The token() function must contains only partition key components",
        ));
    }
    Err(CqlError::invalid(format!(
        "The token function arguments must be in the partition key order: {}",
        names(table, &key, ", ")
    )))
}

/// The clustering columns of a tuple relation.
fn tuple_columns(table: &Table, relation: &Relation, columns: &[Ident]) -> Result<Vec<usize>, CqlError> {
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

/// The type and the name of a marker for a whole tuple.
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
            term_text(term)
        ))),
        other => Err(CqlError::invalid(format!("Invalid tuple: {}", term_text(other)))),
    }
}

fn resolve_tuple(
    ctx: &mut PlanContext<'_>,
    table: &Table,
    relation: &Relation,
    columns: &[Ident],
    operator: Operator,
    term: &RawTerm,
) -> Result<Restriction, CqlError> {
    let test = match operator {
        Operator::Eq => {
            let places = tuple_columns(table, relation, columns)?;
            let tuple = tuple_term(ctx, table, &places, term)?;
            return Ok(Restriction::multi(places, Test::Eq(tuple)));
        }
        Operator::Lt | Operator::Lte | Operator::Gt | Operator::Gte => {
            let places = tuple_columns(table, relation, columns)?;
            let tuple = tuple_term(ctx, table, &places, term)?;
            return Ok(Restriction::multi(
                places,
                Test::Slice(half_slice(operator, tuple)),
            ));
        }
        Operator::Neq => unsupported_neq(relation),
        Operator::In | Operator::Contains | Operator::ContainsKey | Operator::Like | Operator::IsNot => {
            CqlError::invalid(format!(
                "{} cannot be used for multi-column relations",
                operator.symbol()
            ))
        }
    };
    Err(test)
}

fn resolve_tuple_in(
    ctx: &mut PlanContext<'_>,
    table: &Table,
    relation: &Relation,
    columns: &[Ident],
    values: &InValues,
) -> Result<Restriction, CqlError> {
    let places = tuple_columns(table, relation, columns)?;
    let test = match values {
        InValues::Marker(index) => {
            let spec = tuple_spec(table, &places);
            let list = ColumnSpec {
                name: format!("in{}", spec.name).into(),
                ty: CqlType::list(spec.ty.clone(), false),
                ..spec.clone()
            };
            ctx.markers.set(*index, list);
            Test::In(InList::Marker {
                index: *index,
                element: spec.ty,
            })
        }
        InValues::Values(terms) => {
            let tuples = terms.iter().map(|term| tuple_term(ctx, table, &places, term));
            in_or_eq(tuples.collect::<Result<Vec<_>, _>>()?)
        }
    };
    Ok(Restriction::multi(places, test))
}

fn term_text(term: &RawTerm) -> String {
    term.to_string()
}

fn list_text<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    format!("({})", items.iter().map(text).collect::<Vec<_>>().join(", "))
}

fn in_text(values: &InValues) -> String {
    match values {
        InValues::Marker(_) => "?".to_owned(),
        InValues::Values(terms) => list_text(terms, term_text),
    }
}

/// The relation as CQL (Cassandra's `Relation.toCQLString`).
pub fn relation_text(relation: &Relation) -> String {
    match relation {
        Relation::Column {
            column,
            operator,
            term,
        } => {
            format!("{} {} {}", column.to_cql(), operator.symbol(), term_text(term))
        }
        Relation::ColumnIn { column, values } => format!("{} IN {}", column.to_cql(), in_text(values)),
        Relation::IsNotNull { column } => format!("{} IS NOT NULL", column.to_cql()),
        Relation::Element {
            column,
            key,
            operator,
            term,
        } => {
            format!(
                "{}[{}] {} {}",
                column.to_cql(),
                term_text(key),
                operator.symbol(),
                term_text(term)
            )
        }
        Relation::Token {
            columns,
            operator,
            term,
        } => {
            format!(
                "token{} {} {}",
                list_text(columns, Ident::to_cql),
                operator.symbol(),
                term_text(term)
            )
        }
        Relation::Tuple {
            columns,
            operator,
            term,
        } => {
            format!(
                "{} {} {}",
                list_text(columns, Ident::to_cql),
                operator.symbol(),
                term_text(term)
            )
        }
        Relation::TupleIn { columns, values } => {
            format!("{} IN {}", list_text(columns, Ident::to_cql), in_text(values))
        }
        Relation::CustomIndex { index, term } => format!("expr({index}, {})", term_text(term)),
    }
}
