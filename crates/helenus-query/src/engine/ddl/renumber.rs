//! Tables under new numbers, where none of their rows lie yet.

use std::sync::Arc;

use helenus_cql::error::CqlError;

use crate::index::entries::hidden_table;
use crate::schema::{Index, Schema, Table, View};

/// A table or view under a new number, with its indexes under others. Where there are no rows, indexes and views are complete.
pub(super) fn renumbered(schema: &mut Schema, table: &Table, is_empty: bool) -> Result<Table, CqlError> {
    let mut builder = table.to_builder();
    builder.number = schema.take_table_number();
    builder.view = table.view.as_ref().map(|view| {
        Arc::new(View {
            is_built: view.is_built || is_empty,
            ..View::clone(view)
        })
    });
    let base = builder.clone().build();
    builder.indexes.clear();
    for index in &table.indexes {
        let hidden = hidden_table(
            &base,
            &index.name,
            &index.target,
            schema.take_table_number(),
            index.table.id,
        )?;
        builder.indexes.push(Arc::new(Index {
            table: Arc::new(hidden),
            is_complete: index.is_complete || is_empty,
            ..Index::clone(index)
        }));
    }
    Ok(builder.build())
}
