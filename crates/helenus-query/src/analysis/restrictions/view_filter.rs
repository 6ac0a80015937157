//! Tests that the WHERE clause of a materialized view makes on its rows.

use std::sync::Arc;

use helenus_cql::ast::{self, Relation};
use helenus_cql::error::CqlError;

use super::filter::add_restriction;
use super::relation::{self, Typed};
use super::{Filter, relation_text};
use crate::analysis::{EvalContext, PlanContext};
use crate::clock::SystemClock;
use crate::request::Markers;
use crate::schema::{Expression, Schema, Table, View};

/// Version of the protocol in which the terms of a view's definition are encoded.
const PROTOCOL_VERSION: u8 = 5;

/// Returns the tests on key columns of the view, with the columns' indexes in the view. IS NOT NULL is no test, because no key is null.
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

/// Returns the relations of a WHERE clause that was stored as text.
pub(crate) fn relations(where_clause: &str) -> Result<Vec<Relation>, CqlError> {
    let text = format!("SELECT * FROM t WHERE {where_clause}");
    match helenus_cql::parser::parse_statement(&text)?.statement {
        ast::Statement::Select(select) => Ok(select.relations),
        _ => Ok(Vec::new()),
    }
}

/// Returns a view's WHERE clause as Cassandra shows it.
pub(crate) fn shown_where(view: &View) -> String {
    // Clauses that older versions stored, before strings had escapes, may not be parseable. They were stored in the form that is shown.
    let Ok(parsed) = relations(&view.where_clause) else {
        return view.where_clause.clone();
    };
    let shown: Vec<String> = parsed.iter().map(relation_text).collect();
    shown.join(" AND ")
}

/// Completes a schema that was read. Base tables get the names of their views, and views get the tests of their WHERE clauses.
pub(crate) fn link(schema: &mut Schema) -> Result<(), CqlError> {
    let views: Vec<Arc<Table>> = schema
        .stored_tables()
        .filter(|table| table.is_view())
        .cloned()
        .collect();
    link_views(schema, views)
}

/// Links only these views of the schema with their base tables.
pub(crate) fn link_views(schema: &mut Schema, views: Vec<Arc<Table>>) -> Result<(), CqlError> {
    for table in views {
        let Some(view) = &table.view else { continue };
        let base = schema.table(&table.keyspace, &view.base_table).cloned();
        let Some(base) = base else { continue };
        let mut ctx = PlanContext::new(schema, Some(&table.keyspace), Markers::new(Vec::new()));
        let filter = view_filter(&mut ctx, &base, &table, &relations(&view.where_clause)?)?;
        let mut builder = table.to_builder();
        builder.view = Some(Arc::new(View {
            filter,
            ..View::clone(view)
        }));
        let mut with_view = base.to_builder();
        // A base table from an earlier schema already has the name of the view.
        if !with_view.views.contains(&table.name) {
            with_view.views.push(table.name.clone());
        }
        *schema = schema.with_table(builder.build()).with_table(with_view.build());
    }
    Ok(())
}
