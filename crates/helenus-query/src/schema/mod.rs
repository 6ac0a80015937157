//! The schema: keyspaces, tables, columns, indexes, user types. A [`Schema`] is an immutable snapshot; DDL
//! builds the next one and swaps it in ([`crate::engine::Engine`]).
//!
//! Names are stored as CQL compares them: folded to lower case unless they were quoted.

mod analysis;
mod compact;
mod follower;
mod function;
mod keyspace;
mod like;
mod options;
pub mod sasi;
mod table;

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::error::CqlError;
use uuid::Uuid;

use crate::access::Access;

pub use crate::ddl::Journal;
pub use analysis::Analysis;
pub use compact::Compact;
pub use follower::{Followed, Follower, Index, IndexKind, IndexTarget, IndexTargetKind, View};
pub use function::{UserAggregate, UserFunction, signature};
pub use keyspace::{Keyspace, Replication};
pub use like::{LikeKind, Pattern};
pub use options::TableOptions;
pub use table::{ClusteringOrder, Column, ColumnKind, DroppedColumn, Table, TableBuilder, TableKind};

/// A snapshot of every keyspace that a node knows.
#[derive(Clone, Debug)]
pub struct Schema {
    /// What drivers compare for schema agreement; changes with every DDL statement.
    pub version: Uuid,
    /// Counts the changes on this node; cheap to compare when a prepared statement checks that it is still current.
    pub generation: u64,
    /// The version of the document that it was read from or written to; 0 if there is none yet.
    pub document_version: u64,
    /// The number that the next table takes in stored keys.
    pub next_table_number: u32,
    pub keyspaces: BTreeMap<String, Arc<Keyspace>>,
    /// The roles there are, and what they may do.
    pub access: Arc<Access>,
    /// How it is written down.
    pub journal: Arc<Journal>,
}

impl Schema {
    /// The keyspace of that name, system and virtual keyspaces included.
    pub fn keyspace(&self, name: &str) -> Option<&Arc<Keyspace>> {
        self.keyspaces.get(name)
    }

    /// The keyspace of that name, or Cassandra's error for statements on it.
    pub fn require_keyspace(&self, name: &str) -> Result<&Arc<Keyspace>, CqlError> {
        self.keyspace(name)
            .ok_or_else(|| CqlError::invalid(format!("keyspace {name} does not exist")))
    }

    pub fn table(&self, keyspace: &str, table: &str) -> Option<&Arc<Table>> {
        self.keyspace(keyspace)?.tables.get(table)
    }

    /// The table (or materialized view) that a statement reads or writes, with the errors of Cassandra's
    /// `Schema.validateTable`.
    pub fn require_table(&self, keyspace: &str, table: &str) -> Result<&Arc<Table>, CqlError> {
        let keyspace = self.require_keyspace(keyspace)?;
        if table.is_empty() {
            return Err(CqlError::invalid("non-empty table is required"));
        }
        keyspace
            .tables
            .get(table)
            .ok_or_else(|| CqlError::invalid(format!("table {table} does not exist")))
    }

    /// The indexes and views that lack rows which were there before them.
    pub fn unbuilt(&self) -> Vec<Followed> {
        let mut unbuilt = Vec::new();
        for table in self.stored_tables() {
            let indexes = table.indexes.iter().filter(|index| !index.is_complete);
            unbuilt.extend(indexes.map(|index| Follower::Index(index.clone()).of(table)));
            let Some(view) = table.view.as_ref().filter(|view| !view.is_built) else {
                continue;
            };
            if let Some(base) = self.table(&table.keyspace, &view.base_table) {
                unbuilt.push(Follower::View(table.clone()).of(base));
            }
        }
        unbuilt
    }

    /// Every table whose rows lie in the store.
    pub fn stored_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.keyspaces
            .values()
            .flat_map(|keyspace| keyspace.tables.values())
            .filter(|table| table.kind != TableKind::Virtual)
    }

    /// True if a keyspace has functions or aggregates of users.
    pub fn has_functions(&self) -> bool {
        let has_any =
            |keyspace: &Arc<Keyspace>| !(keyspace.functions.is_empty() && keyspace.aggregates.is_empty());
        self.keyspaces.values().any(has_any)
    }
}
