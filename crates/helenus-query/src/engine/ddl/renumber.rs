//! New numbers for tables. A table with a new number has no rows yet, or begins with the rows of an origin.

use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_row::TableId;
use helenus_tablet::{PinnedTablet, TableOrigin};
use uuid::Uuid;

use crate::index::entries::hidden_table;
use crate::schema::{Index, Schema, Table, TableBuilder, View};

/// Returns a table or view with a new number, and its indexes with new numbers too. With `is_empty` there are no rows, so that indexes and
/// views are complete.
pub(super) fn renumbered(schema: &mut Schema, table: &Table, is_empty: bool) -> Result<Table, CqlError> {
    let mut builder = table.to_builder();
    builder.number = schema.take_table_number();
    builder.origin = None;
    builder.adopts_origin = false;
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
            has_old_entries: index.has_old_entries && !is_empty,
            ..Index::clone(index)
        }));
    }
    Ok(builder.build())
}

/// Returns a table or view with a new number and new ids, whose origin are its rows in pinned tablets. `change` makes further changes of
/// the table, and `name` returns the name of an index.
pub(super) fn branched(
    schema: &mut Schema,
    table: &Table,
    pinned: &Arc<[PinnedTablet]>,
    change: impl FnOnce(&mut TableBuilder),
    mut name: impl FnMut(&TableBuilder, &Index) -> String,
) -> Result<Table, CqlError> {
    let origin = |of: &Table| {
        Some(Arc::new(TableOrigin {
            pinned: pinned.clone(),
            table: of.number.0,
            below: of.origin.clone(),
        }))
    };
    let mut builder = table.to_builder();
    builder.number = schema.take_table_number();
    builder.id = Uuid::new_v4();
    builder.incarnation = None;
    builder.origin = origin(table);
    builder.adopts_origin = false;
    change(&mut builder);
    builder.indexes.clear();
    let base = builder.clone().build();
    for index in &table.indexes {
        let name = name(&builder, index);
        let number = schema.take_table_number();
        let mut hidden = hidden_table(&base, &name, &index.target, number, Uuid::new_v4())?;
        hidden.origin = origin(&index.table);
        builder.indexes.push(Arc::new(Index {
            name,
            table: Arc::new(hidden),
            ..Index::clone(index)
        }));
    }
    Ok(builder.build())
}

/// Returns the numbers of a table and its indexes in the origin, each with its number in the branch.
pub(super) fn numbers_of(origin: &Table, branch: &Table) -> Vec<(TableId, TableId)> {
    let indexes = origin.indexes.iter().zip(&branch.indexes);
    let indexes = indexes.map(|(from, to)| (from.table.number, to.table.number));
    indexes.chain([(origin.number, branch.number)]).collect()
}
