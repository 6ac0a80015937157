//! `system_views.snapshots` (Cassandra's `SnapshotsTable`): a row for each table of a snapshot, with what it and its indexes take in the SSTables
//! of this node, or of a shared store in the tablets that this node owns.

use std::sync::Arc;

use helenus_cql::error::CqlError;

use super::Row;
use super::row::{bigint, bigint_saturating, boolean, get_text, row, set, text};
use crate::engine::Engine;
use crate::schema::Table;

pub(crate) fn is_mine(table: &Table) -> bool {
    table.keyspace == "system_views" && table.name == "snapshots"
}

/// The rows, still without sizes.
pub(crate) fn rows(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let schema = engine.schema();
    let mut rows = Vec::new();
    for snapshot in schema.snapshots.values() {
        for of in snapshot.keyspace.tables.values() {
            rows.push(row(
                table,
                [
                    ("name", text(&snapshot.tag)),
                    ("keyspace_name", text(&of.keyspace)),
                    ("table_name", text(&of.name)),
                    ("created_at", bigint(snapshot.taken_ms)),
                    ("ephemeral", boolean(false)),
                    ("expires_at", snapshot.expires_ms.and_then(bigint)),
                ],
            ));
        }
    }
    rows
}

/// Puts the sizes into rows. What a snapshot has is nobody else's, so its true size is its size.
pub(crate) async fn complete<'r>(
    engine: &Engine,
    table: &Table,
    rows: impl Iterator<Item = &'r mut Row>,
) -> Result<(), CqlError> {
    let sizes = engine.table_sizes().await?;
    let schema = engine.schema();
    for row in rows {
        let snapshot = schema.snapshots.get(get_text(row, table, "name"));
        let of = snapshot.and_then(|snapshot| {
            let tables = &snapshot.keyspace.tables;
            tables.get(get_text(row, table, "table_name"))
        });
        let Some(of) = of else { continue };
        let indexes = of.indexes.iter().map(|index| index.table.number);
        let numbers = indexes.chain([of.number]);
        let bytes = numbers
            .filter_map(|number| sizes.get(&number))
            .map(|size| size.bytes)
            .sum();
        for name in ["size_on_disk", "true_size"] {
            set(row, table, name, bigint_saturating(bytes));
        }
    }
    Ok(())
}
