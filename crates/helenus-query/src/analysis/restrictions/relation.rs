//! Typing of relations (Cassandra's `SingleColumnRelation`, `MultiColumnRelation`, `TokenRelation`). This module finds out the kind of a
//! relation; its submodules type each kind.

pub(crate) mod column;
pub(crate) mod text;
pub(crate) mod token;
pub(crate) mod tuple;

use helenus_cql::ast::{Compared, Ident, Operator, Relation};
use helenus_cql::error::CqlError;

use super::restriction::{Exclusion, InList, Restriction, Slice, SliceBound, Test, Tuple};
use super::token::TokenRestriction;
use crate::analysis::PlanContext;
use crate::schema::{Column, Table};

pub use text::{relation_source, relation_text, unindexed_like};

/// A relation, typed.
pub enum Typed {
    Columns(Restriction),
    Token(TokenRestriction),
}

/// Returns the column of that name and its index.
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
        } => column::compare(ctx, table, relation, column, *operator, term).map(Typed::Columns),
        Relation::ColumnIn {
            column,
            is_negated,
            values,
        } => column::is_in(ctx, table, column, *is_negated, values).map(Typed::Columns),
        Relation::IsNotNull { column } => {
            let (place, _) = require_column(table, column)?;
            Ok(Typed::Columns(Restriction::single(place, Test::IsNotNull)))
        }
        Relation::Element {
            column,
            key,
            operator,
            term,
        } => column::compare_element(ctx, table, relation, column, key, *operator, term).map(Typed::Columns),
        Relation::Token {
            columns,
            operator,
            term,
        } => token::compare(ctx, table, relation, columns, *operator, term).map(Typed::Token),
        Relation::Tuple {
            columns,
            operator,
            term,
        } => tuple::compare(ctx, table, relation, columns, *operator, term).map(Typed::Columns),
        Relation::TupleIn {
            columns,
            is_negated,
            values,
        } => tuple::is_in(ctx, table, relation, columns, *is_negated, values).map(Typed::Columns),
        Relation::Between {
            compared: Compared::Column(column),
            first,
            second,
        } => column::between(ctx, table, column, [first, second]).map(Typed::Columns),
        Relation::Between {
            compared: Compared::Tuple(columns),
            first,
            second,
        } => tuple::between(ctx, table, relation, columns, [first, second]).map(Typed::Columns),
        Relation::Between {
            compared: Compared::Token(columns),
            first,
            second,
        } => token::between(ctx, table, columns, [first, second]).map(Typed::Token),
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

/// Returns a slice with one bound.
fn half_slice(operator: Operator, tuple: Tuple) -> Slice {
    let bound = SliceBound {
        tuple,
        is_inclusive: matches!(operator, Operator::Gte | Operator::Lte),
    };
    match operator {
        Operator::Gt | Operator::Gte => Slice {
            start: Some(bound),
            ..Slice::default()
        },
        _ => Slice {
            end: Some(bound),
            ..Slice::default()
        },
    }
}

/// Returns the slice of BETWEEN.
fn slice_between(first: Tuple, second: Tuple) -> Slice {
    let bound = |tuple| {
        Some(SliceBound {
            tuple,
            is_inclusive: true,
        })
    };
    Slice {
        start: bound(first),
        end: bound(second),
        is_between: true,
        ..Slice::default()
    }
}

/// Returns the slice of NOT IN.
fn slice_without(columns: &[usize], is_multi: bool, list: InList) -> Slice {
    Slice {
        excluded: vec![Exclusion {
            columns: columns.to_vec(),
            is_multi,
            list,
        }],
        ..Slice::default()
    }
}

/// Returns the test of an IN. With one value, it is an equality.
fn in_or_eq(mut tuples: Vec<Tuple>) -> Test {
    match (tuples.len(), tuples.pop()) {
        (1, Some(only)) => Test::Eq(only),
        (_, last) => {
            tuples.extend(last);
            Test::In(InList::of(tuples))
        }
    }
}
