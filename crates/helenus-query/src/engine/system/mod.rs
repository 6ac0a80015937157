//! The system keyspaces. Their tables are virtual: rows are computed when they are read. Columns, ids and options are those of Cassandra
//! 5.0.5. Tables and columns that have no meaning here are empty. The list of the tables with rows is in `registry.rs`.

pub(crate) mod auth;
mod cdc;
pub(crate) mod compactions;
pub(crate) mod definition;
pub(crate) mod estimates;
pub(crate) mod internode;
pub(crate) mod latencies;
pub(crate) mod local;
pub(crate) mod nodes;
mod registry;
pub(crate) mod row;
pub(crate) mod running;
pub(crate) mod schema_tables;
pub(crate) mod settings;
pub(crate) mod sizes;
mod slow_queries;
mod snapshots;
pub(crate) mod traces;
pub(crate) mod views;
mod virtual_table;

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use helenus_cql::error::CqlError;

use super::Engine;
use crate::schema::{Keyspace, Schema, Table, TableKind};
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
    async fn refresh(&self, table: &Table) -> Result<(), CqlError> {
        let found = registry::find(&table.keyspace, &table.name);
        let Some(refresh) = found.and_then(|found| found.refresh) else {
            return Ok(());
        };
        refresh(self.engine()?).await
    }

    /// Returns the rows sorted by token, and then by the clustering columns. In keyspaces that are virtual in Cassandra too, the partition
    /// key itself takes the place of the token.
    fn rows(&self, table: &Table) -> Result<Vec<Row>, CqlError> {
        let engine = self.engine()?;
        let Some(found) = registry::find(&table.keyspace, &table.name) else {
            return Ok(Vec::new());
        };
        let mut rows = (found.rows)(&engine, table);
        row::sort(table, &mut rows);
        Ok(rows)
    }

    async fn complete(&self, table: &Table, rows: &mut [&mut Row]) -> Result<(), CqlError> {
        let found = registry::find(&table.keyspace, &table.name);
        let Some(complete) = found.and_then(|found| found.complete) else {
            return Ok(());
        };
        let engine = self.engine()?;
        let rows: Vec<&mut Row> = rows.iter_mut().map(|row| &mut **row).collect();
        complete(&engine, table, rows).await
    }
}

/// The virtual tables that system tables and DESCRIBE do not list: those of Cassandra 6, and those for readers of captured changes, if no
/// table captures any.
pub(crate) struct HiddenTables {
    /// True if no table captures changes.
    hides_cdc: bool,
    is_shared: bool,
}

impl HiddenTables {
    pub fn of(schema: &Schema) -> HiddenTables {
        HiddenTables {
            hides_cdc: !schema.has_cdc(),
            is_shared: schema.table("system_views", "cluster_nodes").is_some(),
        }
    }

    /// Returns true if a keyspace may have hidden tables.
    pub fn may_be_in(&self, keyspace: &Keyspace) -> bool {
        keyspace.is_virtual
    }

    /// Returns true if the table is hidden. Drivers that find rows by tablets always need `scylla_keyspaces` on a shared store.
    pub fn contain(&self, table: &Table) -> bool {
        let found = match table.kind {
            TableKind::Virtual => registry::find(&table.keyspace, &table.name),
            _ => None,
        };
        let is_needed = table.name == "scylla_keyspaces" && self.is_shared;
        found
            .is_some_and(|found| found.is_of_cassandra_6 || (found.is_of_cdc && self.hides_cdc && !is_needed))
    }
}

/// Returns true if every authenticated role may read the table.
pub(crate) fn is_public(keyspace: &str, table: &str) -> bool {
    SYSTEM_KEYSPACES
        .iter()
        .any(|known| known.is_public && known.name == keyspace)
        || registry::find(keyspace, table).is_some_and(|table| table.is_public)
}

/// Returns the virtual keyspaces. `is_shared` is true for a node on a shared store.
pub fn keyspaces(is_shared: bool) -> Vec<Keyspace> {
    definition::keyspaces(is_shared)
}

#[cfg(test)]
#[path = "system_tests.rs"]
mod tests;
