//! Changes of base tables, and the corresponding changes of their views.

use std::sync::Arc;

use helenus_cql::ast::{Compared, Ident, Relation};
use helenus_cql::error::CqlError;
use helenus_row::ColumnId;

use super::where_source;
use crate::analysis::restrictions::view_filter::relations;
use crate::schema::{Column, Schema, Table, views_of};

/// Returns the schema with a base table replaced, and its views adapted. Views that select all columns get new columns, renamed columns are
/// renamed, and masks are those of the base table.
pub(crate) fn with_base(
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
        for column in &mut builder.columns {
            column.mask = base.column(&column.name).and_then(|(_, of)| of.mask.clone());
        }
        builder.view = Some(Arc::new(view));
        schema = schema.with_table(builder.build());
    }
    Ok(schema)
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
            Relation::Between { compared, .. } => match compared {
                Compared::Column(column) => rename(column),
                Compared::Tuple(columns) | Compared::Token(columns) => columns.iter_mut().for_each(rename),
            },
            Relation::CustomIndex { .. } => {}
        }
    }
    Ok(where_source(&relations))
}
