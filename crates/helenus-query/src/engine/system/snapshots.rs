//! The table `system_views.snapshots` (Cassandra's `SnapshotsTable`). It has a row for each table of a snapshot, with the size of the table
//! and its indexes in the SSTables of this node. With a shared store, only tablets that this node owns are counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_row::TableId;
use helenus_tablet::PinnedTablet;

use super::Row;
use super::row::{bigint, bigint_saturating, boolean, get_text, row, set, text};
use super::virtual_table::Completion;
use crate::engine::Engine;
use crate::engine::sizes::PinnedSize;
use crate::schema::Table;

/// Returns the rows, without sizes.
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

/// Sets the sizes in rows. Rows that TRUNCATE or DROP has left behind belong only to the snapshot, so that the true size is the whole size.
/// The true size of tables in use is that of the files that only snapshots contain.
pub(crate) fn complete<'a>(engine: &'a Engine, table: &'a Table, rows: Vec<&'a mut Row>) -> Completion<'a> {
    Box::pin(set_sizes(engine, table, rows))
}

async fn set_sizes(engine: &Engine, table: &Table, rows: Vec<&mut Row>) -> Result<(), CqlError> {
    let sizes = engine.table_sizes().await?;
    let schema = engine.schema();
    // All keyspaces of one snapshot share the pinned tablets.
    let mut pinned_sizes: Option<(Arc<[PinnedTablet]>, BTreeMap<TableId, PinnedSize>)> = None;
    for row in rows {
        let name = |column| get_text(row, table, column).to_owned();
        let snapshot = schema.snapshots.get(&(name("name"), name("keyspace_name")));
        let Some(snapshot) = snapshot else { continue };
        let of = snapshot.keyspace.tables.get(get_text(row, table, "table_name"));
        let Some(of) = of else { continue };
        if let Some(pinned) = &snapshot.pinned
            && !pinned_sizes.as_ref().is_some_and(|(known, _)| known == pinned)
        {
            let sizes = engine.pinned_sizes(pinned).await.unwrap_or_else(|error| {
                // Sizes of other snapshots are shown all the same.
                tracing::warn!(snapshot = snapshot.tag, %error, "the size of a snapshot is not known");
                BTreeMap::new()
            });
            pinned_sizes = Some((pinned.clone(), sizes));
        }
        let indexes = of.indexes.iter().map(|index| index.table.number);
        let mut sum = PinnedSize::default();
        for number in indexes.chain([of.number]) {
            let size = match (&snapshot.pinned, &pinned_sizes) {
                (Some(_), Some((_, sizes))) => sizes.get(&number).copied().unwrap_or_default(),
                _ => {
                    let bytes = sizes.get(&number).map_or(0, |size| size.bytes);
                    PinnedSize {
                        bytes,
                        own_bytes: bytes,
                    }
                }
            };
            sum.bytes += size.bytes;
            sum.own_bytes += size.own_bytes;
        }
        set(row, table, "size_on_disk", bigint_saturating(sum.bytes));
        set(row, table, "true_size", bigint_saturating(sum.own_bytes));
    }
    Ok(())
}
