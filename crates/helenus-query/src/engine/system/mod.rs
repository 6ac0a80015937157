//! The system keyspaces. Their tables are virtual: rows are computed when they are read. Columns, ids and options are those of Cassandra
//! 5.0.5. Tables and columns that have no meaning here are empty.

pub(crate) mod auth;
pub(crate) mod compactions;
pub(crate) mod definition;
pub(crate) mod estimates;
pub(crate) mod internode;
pub(crate) mod latencies;
pub(crate) mod local;
pub(crate) mod nodes;
pub(crate) mod row;
pub(crate) mod running;
pub(crate) mod schema_tables;
pub(crate) mod settings;
pub(crate) mod sizes;
mod snapshots;
pub(crate) mod traces;
pub(crate) mod views;

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use helenus_cql::error::CqlError;

use super::Engine;
use crate::schema::{Keyspace, Table};
use crate::storage::VirtualTables;

pub use definition::SYSTEM_KEYSPACES;
pub use estimates::PartitionEstimate;
pub(crate) use local::{ring, storage_port};

/// A row of a virtual table, with a value for each of [`Table::columns`].
pub use crate::storage::VirtualRow as Row;

/// The system tables, as statements read them.
pub(crate) struct SystemTables {
    engine: Weak<Engine>,
}

impl SystemTables {
    /// Returns the tables of the node with that engine.
    pub fn new(engine: Weak<Engine>) -> SystemTables {
        SystemTables { engine }
    }

    fn engine(&self) -> Result<Arc<Engine>, CqlError> {
        let engine = self.engine.upgrade();
        engine.ok_or_else(|| CqlError::Server("the node is about to end".to_owned()))
    }
}

#[async_trait]
impl VirtualTables for SystemTables {
    fn rows(&self, table: &Table) -> Result<Vec<Row>, CqlError> {
        rows(&self.engine()?, table)
    }

    async fn complete(&self, table: &Table, rows: &mut [&mut Row]) -> Result<(), CqlError> {
        let rows = rows.iter_mut().map(|row| &mut **row);
        if estimates::is_mine(table) {
            estimates::complete(&*self.engine()?, table, rows).await
        } else if sizes::is_mine(table) {
            sizes::complete(&*self.engine()?, table, rows).await
        } else if snapshots::is_mine(table) {
            snapshots::complete(&*self.engine()?, table, rows).await
        } else {
            Ok(())
        }
    }
}

/// Returns every row of a virtual table, in the order in which Cassandra reads them. Rows are sorted by token, and then by the clustering
/// columns. In keyspaces that are virtual in Cassandra too, the partition key itself takes the place of the token.
pub fn rows(engine: &Arc<Engine>, table: &Table) -> Result<Vec<Row>, CqlError> {
    let mut rows = match table.keyspace.as_str() {
        "system" if estimates::is_mine(table) => estimates::rows(engine, table),
        "system" if table.name == "compaction_history" => compactions::history(engine, table),
        "system" => local::rows(engine, table),
        "system_schema" | "system_virtual_schema" => schema_tables::rows(&engine.schema(), table),
        "system_views" if nodes::is_mine(table) => nodes::rows(engine, table),
        "system_views" if latencies::is_mine(table) => latencies::rows(engine, table),
        "system_views" if sizes::is_mine(table) => sizes::rows(engine, table),
        "system_views" if snapshots::is_mine(table) => snapshots::rows(engine, table),
        "system_views" => views::rows(engine, table),
        "system_auth" => auth::rows(&engine.schema(), table),
        "system_traces" => traces::rows(engine, table),
        "system_distributed" if table.name == "view_build_status" => local::view_build_status(engine, table),
        _ => Vec::new(),
    };
    row::sort(table, &mut rows);
    Ok(rows)
}

/// Returns the virtual keyspaces. `is_shared` is true for a node on a shared store.
pub fn keyspaces(is_shared: bool) -> Vec<Keyspace> {
    definition::keyspaces(is_shared)
}

#[cfg(test)]
#[path = "system_tests.rs"]
mod tests;
