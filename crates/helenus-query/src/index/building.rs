//! Index entries for rows that existed before the index.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::{KeyKind, TableId};
use helenus_tablet::Op;
use parking_lot::Mutex;

use super::posting_lists::PostingLists;
use super::upkeep::{RowChange, entry_ops};
use crate::rows::{PartitionKey, StoredRow, corrupt_key};
use crate::schema::{Index, Schema, Table};

/// The indexes and views that this node builds, by the number of their table.
#[derive(Debug, Default)]
pub(crate) struct Backfills {
    pub(crate) running: Mutex<HashSet<TableId>>,
}

/// A row of the base table.
pub(crate) struct BaseRow {
    pub(crate) partition: PartitionKey,
    pub(crate) kind: KeyKind,
    pub(crate) clustering: Bytes,
    pub(crate) row: StoredRow,
}

/// Returns the entries of a row for the indexes of `table`. A row whose value cannot be indexed has none, because it is too late to refuse
/// its write.
pub(crate) fn entries(
    table: &Table,
    found: &BaseRow,
    now_s: i64,
    lists: &PostingLists,
    next_timestamp_us: &dyn Fn() -> i64,
) -> Result<Vec<Op>, CqlError> {
    let clustering = decode(table, found)?;
    let write = existing(&found.partition, found.kind, &clustering, &found.row, now_s);
    match entry_ops(table, &write, lists, next_timestamp_us) {
        Ok(ops) => Ok(ops.added),
        Err(CqlError::Invalid(_)) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Returns the clustering values of a row.
pub(crate) fn decode(table: &Table, found: &BaseRow) -> Result<Vec<Bytes>, CqlError> {
    match found.kind {
        KeyKind::Static => Ok(Vec::new()),
        _ => table
            .layout
            .decode_clustering(&found.clustering)
            .map_err(corrupt_key),
    }
}

/// Returns an existing row in the form of a write.
pub(crate) fn existing<'a>(
    partition: &'a PartitionKey,
    kind: KeyKind,
    clustering: &'a [Bytes],
    row: &'a StoredRow,
    now_s: i64,
) -> RowChange<'a> {
    RowChange {
        partition,
        kind,
        clustering,
        old: None,
        shadow: row.shadow,
        operand: row.packed.bytes(),
        now_s,
    }
}

/// Returns the schema in which the index is complete. `None` if the index was dropped meanwhile, even if a new one has its name.
pub(crate) fn with_complete_index(schema: &Schema, table: &Table, index: &Index) -> Option<Schema> {
    with_changed(schema, table, index, |known| Index {
        is_complete: true,
        ..Index::clone(known)
    })
}

/// Returns the schema that says that every node writes entries of the index in the current form. `None` if it says so already, or the index
/// was dropped.
pub(crate) fn without_old_entries(schema: &Schema, table: &Table, index: &Index) -> Option<Schema> {
    let current = schema.table(&table.keyspace, &table.name)?;
    let mut indexes = current.indexes.iter();
    let known = indexes.find(|known| known.table.number == index.table.number)?;
    if !known.has_old_entries {
        return None;
    }
    with_changed(schema, table, index, |known| Index {
        has_old_entries: false,
        ..Index::clone(known)
    })
}

fn with_changed(
    schema: &Schema,
    table: &Table,
    index: &Index,
    change: impl FnOnce(&Index) -> Index,
) -> Option<Schema> {
    let current = schema.table(&table.keyspace, &table.name)?;
    let mut builder = current.to_builder();
    let known = builder
        .indexes
        .iter_mut()
        .find(|known| known.table.number == index.table.number)?;
    *known = Arc::new(change(known));
    Some(schema.with_table(builder.build()))
}
