//! What the WHERE clause of a materialized view asks of its rows.

use helenus_cql::ast::Relation;
use helenus_cql::error::CqlError;

use super::filter::{Expression, Filter, add_restriction};
use super::relation::{self, Typed};
use crate::clock::SystemClock;
use crate::plan::PlanContext;
use crate::schema::Table;
use crate::term::EvalContext;

/// Terms of a view's definition are encoded as this version of the protocol has them.
const PROTOCOL_VERSION: u8 = 5;

/// The tests on key columns of the view, their places those of the view's columns. IS NOT NULL asks nothing of a key.
///
/// # Errors
/// Cassandra's, for relations that a view can't have.
pub fn view_filter(
    ctx: &mut PlanContext<'_>,
    base: &Table,
    view: &Table,
    relations: &[Relation],
) -> Result<Vec<Expression>, CqlError> {
    let clock = SystemClock;
    let eval = EvalContext {
        values: &[],
        clock: &clock,
        protocol_version: PROTOCOL_VERSION,
    };
    let mut filter = Filter::default();
    for relation in relations {
        if let Relation::CustomIndex { .. } = relation {
            return Err(CqlError::invalid(format!(
                "WHERE clause for materialized view '{}' cannot contain custom index expressions",
                view.name
            )));
        }
        match relation::resolve(ctx, base, relation)? {
            Typed::Token(_) => {
                return Err(CqlError::invalid(
                    "Cannot use token relation when defining a materialized view",
                ));
            }
            Typed::Columns(restriction) if restriction.is_like() => {
                return Err(relation::unindexed_like(relation));
            }
            Typed::Columns(restriction) => add_restriction(&mut filter, base, &restriction, &eval)?,
        }
    }
    let mut expressions = Vec::new();
    let mut illegal: Vec<&str> = Vec::new();
    for expression in filter.expressions() {
        let Some(column) = base.columns.get(expression.column) else {
            continue;
        };
        match view.column(&column.name) {
            Some((place, _)) if column.is_primary_key() => expressions.push(Expression {
                column: place,
                ..expression.clone()
            }),
            _ => illegal.push(&column.name),
        }
    }
    illegal.dedup();
    if !illegal.is_empty() {
        return Err(CqlError::invalid(format!(
            "Non-primary key columns can only be restricted with 'IS NOT NULL' (got: {} restricted illegally)",
            illegal.join(",")
        )));
    }
    Ok(expressions)
}
