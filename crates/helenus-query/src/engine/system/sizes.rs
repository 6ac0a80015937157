//! The tables `system_views.disk_usage`, `max_partition_size` and `max_sstable_size` (Cassandra's `TableMetricTables`). Sizes are in MiB,
//! rounded up.

use std::sync::Arc;

use helenus_cql::error::CqlError;

use super::Row;
use super::row::{bigint, get_text, row, set, text};
use super::virtual_table::Completion;
use crate::engine::Engine;
use crate::engine::sizes::TableSize;
use crate::schema::{Table, TableKind};

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

/// Sets the size of each table.
pub(crate) fn disk_usage<'a>(engine: &'a Engine, table: &'a Table, rows: Vec<&'a mut Row>) -> Completion<'a> {
    Box::pin(set_sizes(engine, table, rows, |size| size.bytes))
}

/// Sets the size of the largest partition of each table.
pub(crate) fn largest_partitions<'a>(
    engine: &'a Engine,
    table: &'a Table,
    rows: Vec<&'a mut Row>,
) -> Completion<'a> {
    Box::pin(set_sizes(engine, table, rows, |size| size.largest_partition))
}

/// Sets the size of the largest part of each table in one SSTable.
pub(crate) fn largest_files<'a>(
    engine: &'a Engine,
    table: &'a Table,
    rows: Vec<&'a mut Row>,
) -> Completion<'a> {
    Box::pin(set_sizes(engine, table, rows, |size| size.largest_file))
}

async fn set_sizes(
    engine: &Engine,
    table: &Table,
    rows: Vec<&mut Row>,
    size_of: fn(&TableSize) -> u64,
) -> Result<(), CqlError> {
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
