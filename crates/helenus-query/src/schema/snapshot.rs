//! Snapshots: tables as of an earlier time. They copy no data. There are two kinds:
//!
//! - Snapshots that TRUNCATE, DROP and a restore take. The rows stay in place, under the old numbers of the tables. A truncated table takes
//!   a new number anyway, and a dropped one no longer uses its number. As long as the snapshot exists, compaction does not sweep its rows.
//! - Snapshots of tables in use, as `nodetool snapshot` takes them. The files of all tablets are pinned at a consistent cut.

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::types::CqlType;
use helenus_tablet::PinnedTablet;

use super::{Keyspace, Table};

/// All snapshots, by tag and keyspace.
pub type Snapshots = BTreeMap<(String, String), Arc<Snapshot>>;

/// Tables of a keyspace as of an earlier time, with their indexes and views.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The snapshot's name. Automatic snapshots have names like Cassandra's: `truncated-<milliseconds>-<table>`.
    pub tag: String,
    /// Time of the snapshot, in milliseconds since the Unix epoch.
    pub taken_ms: i64,
    /// Time at which the snapshot is removed. `None` if it does not expire.
    pub expires_ms: Option<i64>,
    /// The pinned tablets of a snapshot of tables in use. `None` for the other kind.
    pub pinned: Option<Arc<[PinnedTablet]>>,
    /// The keyspace as of that time, with the snapshot's tables and the types and functions that they need.
    pub keyspace: Arc<Keyspace>,
}

impl Snapshot {
    /// Returns the key in [`Snapshots`].
    pub fn key(&self) -> (String, String) {
        (self.tag.clone(), self.keyspace.name.clone())
    }

    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms)
    }

    /// Returns the tables that are not views. Views come with their base tables.
    pub fn base_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.keyspace.tables.values().filter(|table| !table.is_view())
    }

    /// Returns the views of a table of the snapshot. They are found by the name of their base table, because tables and views of a schema
    /// that was read may not be linked.
    pub fn views_of<'s>(&'s self, base: &'s Table) -> impl Iterator<Item = &'s Arc<Table>> {
        let is_of = |view: &&Arc<Table>| {
            view.view
                .as_ref()
                .is_some_and(|view| view.base_table == base.name)
        };
        self.keyspace.tables.values().filter(is_of)
    }
}

impl Keyspace {
    /// Returns the keyspace with the given tables only, and with the types and functions that they need.
    pub(crate) fn narrowed_to(&self, tables: Vec<Arc<Table>>) -> Keyspace {
        let masks = |signature: &String| {
            tables
                .iter()
                .any(|table| table.is_masked_by(&self.name, signature))
        };
        let functions = self.functions.iter().filter(|(signature, _)| masks(signature));
        let functions: BTreeMap<_, _> = functions
            .map(|(signature, of)| (signature.clone(), of.clone()))
            .collect();
        let has_type = |name: &str| {
            let references = |ty: &CqlType| ty.references_udt(&self.name, name);
            let columns = tables.iter().flat_map(|table| &table.columns);
            let dropped = tables.iter().flat_map(|table| table.dropped_columns.values());
            columns.map(|column| &column.ty).any(references)
                || dropped.map(|column| &column.ty).any(references)
                || functions.values().any(|of| of.references_udt(&self.name, name))
        };
        let types = self.types.iter().filter(|(name, _)| has_type(name));
        Keyspace {
            types: types.map(|(name, ty)| (name.clone(), ty.clone())).collect(),
            functions,
            aggregates: BTreeMap::new(),
            tables: tables
                .iter()
                .map(|table| (table.name.clone(), table.clone()))
                .collect(),
            ..self.clone()
        }
    }
}
