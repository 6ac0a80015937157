//! Snapshots: tables as they were at some time. No byte is copied for them. There are two kinds:
//!
//! - What TRUNCATE, DROP and a restore leave behind. The rows stay where they lie, under the numbers that the tables had: a table that is
//!   truncated takes a new number anyway, and one that is dropped leaves its own behind. While the snapshot is there, compaction does not
//!   sweep its rows.
//! - Of tables in use, as `nodetool snapshot` takes them. The files of all tablets are pinned as they were at that moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::types::CqlType;
use helenus_tablet::PinnedTablet;

use super::{Keyspace, Table};

/// The snapshots that there are, by tag and keyspace.
pub type Snapshots = BTreeMap<(String, String), Arc<Snapshot>>;

/// Tables of a keyspace as they were at some time, with their indexes and views.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Its name, as Cassandra forms those of snapshots that it takes itself: `truncated-<milliseconds>-<table>`.
    pub tag: String,
    /// Milliseconds since the Unix epoch.
    pub taken_ms: i64,
    /// When it is removed; never without.
    pub expires_ms: Option<i64>,
    /// The tablets as they were, of a snapshot of tables in use.
    pub pinned: Option<Arc<[PinnedTablet]>>,
    /// The keyspace as it was, with the tables that the snapshot has, and the types and functions that these need.
    pub keyspace: Arc<Keyspace>,
}

impl Snapshot {
    /// What finds it among others.
    pub fn key(&self) -> (String, String) {
        (self.tag.clone(), self.keyspace.name.clone())
    }

    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms)
    }

    /// Its tables without views, which come with their base tables.
    pub fn base_tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.keyspace.tables.values().filter(|table| !table.is_view())
    }

    /// Returns the views of one of its tables. They are found by the base that they name, since a schema that was read may not have linked
    /// them.
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
    /// Returns the keyspace with some of its tables, and of its types and functions those that these tables need.
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
