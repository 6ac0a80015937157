//! The tables `system_views.disk_usage`, `max_partition_size` and `max_sstable_size` (Cassandra's `TableMetricTables`). Sizes are in MiB,
//! rounded up.

use std::sync::Arc;

use helenus_cql::error::CqlError;

use super::Row;
use super::row::{bigint, get_text, row, set, text};
use crate::engine::Engine;
use crate::engine::sizes::TableSize;
use crate::schema::{Table, TableKind};

type Size = fn(&TableSize) -> u64;

fn size_of(table: &Table) -> Option<Size> {
    let size: Size = match table.name.as_str() {
        "disk_usage" => |size| size.bytes,
        "max_partition_size" => |size| size.largest_partition,
        "max_sstable_size" => |size| size.largest_file,
        _ => return None,
    };
    Some(size)
}

pub(crate) fn is_mine(table: &Table) -> bool {
    table.keyspace == "system_views" && size_of(table).is_some()
}

/// Returns a row for each table, without its size.
pub(crate) fn rows(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let schema = engine.schema();
    let tables = schema.stored_tables().filter(|of| of.kind != TableKind::Index);
    let of = tables.map(|of| {
        row(
            table,
            [
                ("keyspace_name", text(&of.keyspace)),
                ("table_name", text(&of.name)),
            ],
        )
    });
    of.collect()
}

/// Sets the sizes in rows.
pub(crate) async fn complete<'r>(
    engine: &Engine,
    table: &Table,
    rows: impl Iterator<Item = &'r mut Row>,
) -> Result<(), CqlError> {
    let Some(size_of) = size_of(table) else {
        return Ok(());
    };
    let sizes = engine.table_sizes().await?;
    let schema = engine.schema();
    for row in rows {
        let (keyspace, name) = (
            get_text(row, table, "keyspace_name"),
            get_text(row, table, "table_name"),
        );
        let size = schema
            .table(keyspace, name)
            .and_then(|of| sizes.get(&of.number))
            .map_or(0, size_of);
        let mebibytes = i64::try_from(size.div_ceil(1 << 20)).unwrap_or(i64::MAX);
        set(row, table, "mebibytes", bigint(mebibytes));
    }
    Ok(())
}
