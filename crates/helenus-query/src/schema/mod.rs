//! The schema: keyspaces, tables, columns, indexes, user types. A [`Schema`] is an immutable snapshot. DDL builds the next one, and the
//! engine replaces the current one by it.
//!
//! Names are stored as CQL compares them: in lower case unless they were quoted.

pub(crate) mod cdc_log;
pub(crate) mod column;
pub(crate) mod compact_storage;
pub mod constraint;
pub(crate) mod derived_tables;
pub(crate) mod documents;
pub(crate) mod expression;
pub(crate) mod function;
pub(crate) mod index_target;
pub(crate) mod keyspace;
pub(crate) mod names;
pub(crate) mod roles;
pub(crate) mod snapshot;
pub(crate) mod table;
pub(crate) mod table_options;

pub use expression::{Expression, Operand};
pub(crate) use names::views_of;

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use uuid::Uuid;

use roles::Roles;

pub use documents::journal::Journal;

pub use column::{ClusteringOrder, Column, ColumnKind, ColumnMask, DroppedColumn};
pub use derived_tables::{Derivation, DerivedTable};
pub use function::{UserAggregate, UserFunction, signature};
pub use index_target::{IndexKind, IndexTarget, IndexTargetKind, is_text};
pub use keyspace::{Keyspace, Replication};

pub use snapshot::{Snapshot, Snapshots};
pub use table::{Compact, EntryTable, Index, Table, TableBuilder, TableKind, View};
pub use table_options::TableOptions;

/// A snapshot of all keyspaces.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The version that drivers compare for schema agreement. It changes with every DDL statement.
    pub version: Uuid,
    /// Number of changes on this node. A prepared statement compares it to check cheaply that it is still current.
    pub generation: u64,
    /// Version of the document that the schema was read from or written to. 0 if there is none yet.
    pub document_version: u64,
    /// The number of the next table in stored keys.
    pub next_table_number: u32,
    pub keyspaces: BTreeMap<String, Arc<Keyspace>>,
    /// Roles and their permissions.
    pub access: Arc<Roles>,
    /// Snapshots of tables.
    pub snapshots: Arc<Snapshots>,
    /// The stored form of this schema.
    pub journal: Arc<Journal>,
}

impl Schema {
    /// Returns the keyspace of that name, which may be a system or virtual keyspace.
    pub fn keyspace(&self, name: &str) -> Option<&Arc<Keyspace>> {
        self.keyspaces.get(name)
    }

    /// Returns the keyspace of that name, or Cassandra's error for statements on it.
    pub fn require_keyspace(&self, name: &str) -> Result<&Arc<Keyspace>, CqlError> {
        self.keyspace(name)
            .ok_or_else(|| CqlError::invalid(format!("keyspace {name} does not exist")))
    }

    pub fn table(&self, keyspace: &str, table: &str) -> Option<&Arc<Table>> {
        self.keyspace(keyspace)?.tables.get(table)
    }

    /// Returns the table or materialized view of a statement, or the error of Cassandra's `Schema.validateTable`.
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

    /// Returns the snapshot of that tag and keyspace.
    ///
    /// # Errors
    /// There is no such snapshot.
    pub(crate) fn require_snapshot(&self, tag: &str, keyspace: &str) -> Result<&Arc<Snapshot>, CqlError> {
        let snapshot = self.snapshots.get(&(tag.to_owned(), keyspace.to_owned()));
        snapshot.ok_or_else(|| {
            CqlError::invalid(format!(
                "There is no snapshot {tag} of keyspace {keyspace}; system_views.snapshots has those that there are"
            ))
        })
    }

    /// Returns the current version of the table, with its keyspace. If the table was dropped, the version in its newest snapshot is
    /// returned. `None` if there is neither.
    pub(crate) fn last_known(&self, table: &Table) -> Option<(&Arc<Keyspace>, &Arc<Table>)> {
        let has_table = |keyspace: &Keyspace| {
            let known = keyspace.tables.get(&table.name);
            known.is_some_and(|known| known.is_same_as(table))
        };
        let today = self.keyspace(&table.keyspace).filter(|of| has_table(of));
        let newest = || {
            let snapshots = self.snapshots.values();
            let of_keyspace = snapshots.filter(|snapshot| snapshot.keyspace.name == table.keyspace);
            let with_table = of_keyspace.filter(|snapshot| has_table(&snapshot.keyspace));
            with_table
                .max_by_key(|snapshot| snapshot.taken_ms)
                .map(|snapshot| &snapshot.keyspace)
        };
        let keyspace = today.or_else(newest)?;
        Some((keyspace, keyspace.tables.get(&table.name)?))
    }

    /// Returns true if the keyspace of that name still has the id that it had at an earlier time.
    pub(crate) fn is_same_keyspace(&self, name: &str, id: Option<Uuid>) -> bool {
        self.keyspace(name).is_some_and(|keyspace| keyspace.id == id)
    }

    /// Returns the indexes and views that still lack rows which existed before them.
    pub fn unbuilt(&self) -> Vec<Derivation> {
        let mut unbuilt = Vec::new();
        for table in self.stored_tables() {
            let indexes = table.indexes.iter().filter(|index| !index.is_complete);
            unbuilt.extend(indexes.map(|index| DerivedTable::Index(index.clone()).of(table)));
            let Some(view) = table.view.as_ref().filter(|view| !view.is_built) else {
                continue;
            };
            if let Some(base) = self.table(&table.keyspace, &view.base_table) {
                unbuilt.push(DerivedTable::View(table.clone()).of(base));
            }
        }
        unbuilt
    }

    /// Returns all tables whose rows are in the store.
    pub fn stored_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.keyspaces
            .values()
            .flat_map(|keyspace| keyspace.tables.values())
            .filter(|table| table.kind != TableKind::Virtual)
    }

    /// Returns all tables whose rows no compaction may sweep: the current ones, and those in snapshots whose rows are in the current
    /// tablets.
    pub fn kept_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        let snapshots = self.snapshots.values();
        let snapshots = snapshots.filter(|snapshot| snapshot.pinned.is_none());
        self.stored_tables()
            .chain(snapshots.flat_map(|snapshot| snapshot.keyspace.tables.values()))
    }

    /// Returns the index whose hidden table has that number, with its base table.
    pub fn index_of_hidden_table(&self, number: u32) -> Option<(&Arc<Table>, &Arc<Index>)> {
        self.stored_tables().find_map(|table| {
            let mut indexes = table.indexes.iter();
            let index = indexes.find(|index| index.table.number.0 == number)?;
            Some((table, index))
        })
    }

    /// Returns all tables with an origin, among the current tables and those in snapshots.
    pub fn branches(&self) -> impl Iterator<Item = &Arc<Table>> {
        let of_snapshots = self.snapshots.values();
        let of_snapshots = of_snapshots.flat_map(|snapshot| snapshot.keyspace.tables.values());
        self.stored_tables()
            .chain(of_snapshots)
            .filter(|table| table.origin.is_some())
    }

    /// Returns true if any table has an origin.
    pub fn has_origins(&self) -> bool {
        self.branches().next().is_some()
    }

    /// Returns true if any index has its entries in the order of their values.
    pub fn has_ordered_indexes(&self) -> bool {
        let mut indexes = self.stored_tables().flat_map(|table| &table.indexes);
        indexes.any(|index| index.order.is_some())
    }

    /// Returns true if any index has its entries in posting lists.
    pub fn has_posting_lists(&self) -> bool {
        let mut indexes = self.stored_tables().flat_map(|table| &table.indexes);
        indexes.any(|index| index.has_posting_lists)
    }

    /// Returns true if any vector has more dimensions than binaries before format 14 of the schema can read.
    pub fn has_wide_vectors(&self) -> bool {
        let columns = self.stored_tables().flat_map(|table| &table.columns);
        let is_wide = |ty: &CqlType| ty.holds_wide_vector();
        let of_keyspace = |keyspace: &Arc<Keyspace>| {
            let mut fields = keyspace.types.values().flat_map(|ty| &ty.fields);
            let mut functions = keyspace.functions.values();
            let mut aggregates = keyspace.aggregates.values();
            fields.any(|field| is_wide(&field.ty))
                || functions.any(|function| {
                    is_wide(&function.returns) || function.arguments.iter().any(|(_, ty)| is_wide(ty))
                })
                || aggregates
                    .any(|aggregate| is_wide(&aggregate.returns) || aggregate.arg_types.iter().any(is_wide))
        };
        columns.map(|column| &column.ty).any(is_wide) || self.keyspaces.values().any(of_keyspace)
    }

    /// Returns true if any indexed values have tuples or user types that may end with nulls.
    pub fn has_indexes_without_trailing_nulls(&self) -> bool {
        let mut tables = self.stored_tables();
        tables.any(|table| {
            let mut indexes = table.indexes.iter();
            indexes.any(|index| index.target.may_have_trailing_nulls(table))
        })
    }

    /// Returns true if transactions may use a table.
    pub fn has_transactional_tables(&self) -> bool {
        self.stored_tables()
            .any(|table| !table.options.transactional_mode.is_off())
    }

    /// Returns true if any column of a table or view is masked.
    pub fn has_masks(&self) -> bool {
        self.stored_tables().any(|table| table.is_masked())
    }

    /// Returns true if any column of a table has constraints.
    pub fn has_constraints(&self) -> bool {
        self.stored_tables().any(|table| table.has_constraints)
    }

    /// Returns true if any keyspace has user-defined functions or aggregates.
    pub fn has_functions(&self) -> bool {
        let has_any =
            |keyspace: &Arc<Keyspace>| !(keyspace.functions.is_empty() && keyspace.aggregates.is_empty());
        self.keyspaces.values().any(has_any)
    }
}

impl Schema {
    /// Returns a copy of the schema in which the keyspace is added, or replaces that of the same name.
    pub(crate) fn with_keyspace(&self, keyspace: Keyspace) -> Schema {
        let mut schema = self.clone();
        schema.keyspaces.insert(keyspace.name.clone(), Arc::new(keyspace));
        schema
    }

    /// Returns a copy of the schema in which the table is added, or replaces that of the same name.
    pub(crate) fn with_table(&self, table: Table) -> Schema {
        let mut schema = self.clone();
        if let Some(keyspace) = self.keyspace(&table.keyspace) {
            let mut keyspace = Keyspace::clone(keyspace);
            keyspace.tables.insert(table.name.clone(), Arc::new(table));
            schema.keyspaces.insert(keyspace.name.clone(), Arc::new(keyspace));
        }
        schema
    }
}
