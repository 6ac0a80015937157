//! Views and their base tables: how they follow what changes there, and how each knows of the other.

use std::sync::Arc;

use helenus_cql::ast::{self, Ident, Relation};
use helenus_cql::error::CqlError;
use helenus_row::ColumnId;

use super::where_source;
use crate::bind::Markers;
use crate::plan::PlanContext;
use crate::schema::{Column, Schema, Table, View};
use crate::select::view_filter;

/// The schema with a base table put in place of what it was, and its views after it: new columns for those that show all, new names.
pub(in crate::ddl) fn with_base(
    schema: &Schema,
    before: &Table,
    base: Table,
    renames: &[(Ident, Ident)],
) -> Result<Schema, CqlError> {
    let views: Vec<Arc<Table>> = views_of(schema, before).cloned().collect();
    let mut schema = schema.with_table(base.clone());
    for table in views {
        let mut builder = table.to_builder();
        let Some(mut view) = builder.view.as_deref().cloned() else {
            continue;
        };
        for (from, to) in renames {
            for column in builder
                .columns
                .iter_mut()
                .filter(|column| *from == column.name.as_str())
            {
                column.name = to.0.clone();
            }
            view.where_clause = renamed(&view.where_clause, from, to)?;
        }
        if view.include_all_columns {
            for column in base.regular_columns() {
                if table.column(&column.name).is_none() {
                    let id = builder.next_column_id;
                    builder.columns.push(Column {
                        id,
                        ..Column::clone(column)
                    });
                    builder.next_column_id = ColumnId(id.0 + 1);
                }
            }
        }
        builder.view = Some(Arc::new(view));
        schema = schema.with_table(builder.build());
    }
    Ok(schema)
}

/// The views on a table.
pub(crate) fn views_of<'a>(schema: &'a Schema, base: &'a Table) -> impl Iterator<Item = &'a Arc<Table>> {
    base.views
        .iter()
        .filter_map(|name| schema.table(&base.keyspace, name))
}

/// The relations of a WHERE clause that was written down.
pub(super) fn relations(where_clause: &str) -> Result<Vec<Relation>, CqlError> {
    let text = format!("SELECT * FROM t WHERE {where_clause}");
    match helenus_cql::parser::parse_statement(&text)?.statement {
        ast::Statement::Select(select) => Ok(select.relations),
        _ => Ok(Vec::new()),
    }
}

fn renamed(where_clause: &str, from: &Ident, to: &Ident) -> Result<String, CqlError> {
    let mut relations = relations(where_clause)?;
    let rename = |column: &mut Ident| {
        if column == from {
            *column = to.clone();
        }
    };
    for relation in &mut relations {
        match relation {
            Relation::Column { column, .. }
            | Relation::ColumnIn { column, .. }
            | Relation::IsNotNull { column }
            | Relation::Element { column, .. } => rename(column),
            Relation::Tuple { columns, .. }
            | Relation::TupleIn { columns, .. }
            | Relation::Token { columns, .. } => columns.iter_mut().for_each(rename),
            Relation::CustomIndex { .. } => {}
        }
    }
    Ok(where_source(&relations))
}

/// Completes a schema that was read: the base tables learn of their views, and the views what their WHERE clauses ask.
pub(in crate::ddl) fn link(schema: &mut Schema) -> Result<(), CqlError> {
    let views: Vec<Arc<Table>> = schema
        .stored_tables()
        .filter(|table| table.is_view())
        .cloned()
        .collect();
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
        // One that was kept of an earlier schema knows it already.
        if !with_view.views.contains(&table.name) {
            with_view.views.push(table.name.clone());
        }
        *schema = schema.with_table(builder.build()).with_table(with_view.build());
    }
    Ok(())
}
