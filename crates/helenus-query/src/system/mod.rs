//! The system keyspaces: tables that are computed when they are read. Their columns, ids and options are those of
//! Cassandra 5.0.5; what has no meaning here is empty.

mod auth;
mod definition;
mod estimates;
mod local;
mod nodes;
mod row;
mod schema_tables;
mod settings;
mod traces;
mod views;

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;

use crate::engine::Engine;
use crate::schema::{Keyspace, Table};

pub use definition::{SYSTEM_KEYSPACES, is_virtual_keyspace};
pub(crate) use local::{ring, storage_port};

/// A value for each of [`Table::columns`].
pub type Row = Vec<Option<Bytes>>;

/// Every row of a virtual table, in the order in which Cassandra reads them: by token (in the keyspaces that are
/// virtual there too, by the partition key itself), then by the clustering columns.
pub fn rows(engine: &Arc<Engine>, table: &Table) -> Result<Vec<Row>, CqlError> {
    let mut rows = match table.keyspace.as_str() {
        "system" if estimates::is_mine(table) => estimates::rows(engine, table),
        "system" => local::rows(engine, table),
        "system_schema" | "system_virtual_schema" => schema_tables::rows(&engine.schema(), table),
        "system_views" if nodes::is_mine(table) => nodes::rows(engine, table),
        "system_views" => views::rows(engine, table),
        "system_auth" => auth::rows(&engine.schema(), table),
        "system_traces" => traces::rows(engine, table),
        "system_distributed" if table.name == "view_build_status" => local::view_build_status(engine, table),
        _ => Vec::new(),
    };
    row::sort(table, &mut rows);
    Ok(rows)
}

/// Completes rows that are read with what the store has to be asked for.
pub async fn complete<'r>(
    engine: &Engine,
    table: &Table,
    rows: impl Iterator<Item = &'r mut Row>,
) -> Result<(), CqlError> {
    match estimates::is_mine(table) {
        true => estimates::complete(engine, table, rows).await,
        false => Ok(()),
    }
}

/// The keyspaces that are computed, of a node alone or of one on a shared store.
pub fn keyspaces(is_shared: bool) -> Vec<Keyspace> {
    definition::keyspaces(is_shared)
}

#[cfg(test)]
#[path = "system_tests.rs"]
mod tests;
