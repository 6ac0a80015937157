//! The schema document. It consists of a *base*, which is the whole schema as of some time, and the changes since. A statement adds a few
//! lines, however many tables there are. When there are many lines, a new base is written.
//!
//! The document `schema` has a line of JSON each: first its [`Head`], then one for each [`Line`]. It is changed by compare-and-set. Bases
//! are documents of their own, and their names are never reused (see [`crate::schema::documents`] for their content). Up to format 2 there
//! was only the base.

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::error::CqlError;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{KeyspaceDoc, RoleDoc, ServiceLevelDoc, SnapshotDoc, TableDoc, service_level};
use crate::schema::roles::{Role, Roles};
use crate::schema::{EntryTable, Keyspace, Schema, Snapshots, Table, documents};

pub(crate) const NAME: &str = "schema";
/// Bytes of lines after which a new base is written, if the base is small.
const LINES_BYTES: usize = 64 << 10;
/// A large base is replaced after lines of its size divided by this number. Reading the lines and writing the base then cost about the
/// same.
const BASE_PART: usize = 64;

#[derive(Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) format: u32,
    pub(crate) version: Uuid,
    pub(crate) next_table_number: u32,
    pub(crate) base: Option<Base>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Base {
    pub(crate) name: String,
    /// The preceding base, and below the number of lines beside it. This base contains both, so a node that has read both need not read
    /// this base.
    pub(crate) of: Option<String>,
    pub(crate) lines: usize,
    pub(crate) bytes: usize,
}

/// A change of the schema.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    /// A keyspace with its types, functions and aggregates. Its tables do not change.
    Keyspace(KeyspaceDoc),
    DropKeyspace(String),
    Table {
        keyspace: String,
        table: Box<TableDoc>,
    },
    DropTable {
        keyspace: String,
        table: String,
    },
    Role(RoleDoc),
    DropRole(String),
    /// The role of each certificate identity.
    Identities(BTreeMap<String, String>),
    /// All service levels.
    ServiceLevels(Vec<ServiceLevelDoc>),
    /// A new snapshot that TRUNCATE, DROP or a restore has left, or one that has lost some of its tables.
    Snapshot(Box<SnapshotDoc>),
    DropSnapshot(String),
    /// A new snapshot of tables in use.
    PinnedSnapshot(Box<SnapshotDoc>),
    DropPinnedSnapshot {
        tag: String,
        keyspace: String,
    },
}

/// The stored form of a schema.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    pub(crate) base: Option<Base>,
    pub(crate) lines: Vec<Arc<str>>,
    /// True if the schema was read from an older format without a journal.
    pub(crate) is_old: bool,
}

impl Journal {
    pub(crate) fn bytes(&self) -> usize {
        self.lines.iter().map(|line| line.len()).sum()
    }

    /// Returns true if a new base must be written before `more` bytes of lines are added.
    pub(crate) fn is_full(&self, more: usize) -> bool {
        let base_bytes = self.base.as_ref().map_or(0, |base| base.bytes);
        self.is_old || self.bytes() + more > LINES_BYTES.max(base_bytes / BASE_PART)
    }
}

pub(crate) fn unwritable(error: &serde_json::Error) -> CqlError {
    CqlError::Server(format!("can't write the schema: {error}"))
}

pub(crate) fn damaged(why: impl std::fmt::Display) -> CqlError {
    CqlError::Server(format!("the schema document is damaged: {why}"))
}

/// Returns the lines that change one schema into the other.
pub(crate) fn difference(before: &Schema, after: &Schema) -> Vec<Line> {
    let stored = |keyspace: &&Arc<Keyspace>| !keyspace.is_virtual;
    let mut lines = Vec::new();
    for gone in before.keyspaces.values().filter(stored) {
        if !after.keyspaces.contains_key(&gone.name) {
            lines.push(Line::DropKeyspace(gone.name.clone()));
        }
    }
    for keyspace in after.keyspaces.values().filter(stored) {
        match before.keyspaces.get(&keyspace.name) {
            Some(old) if Arc::ptr_eq(old, keyspace) => {}
            Some(old) => within(old, keyspace, &mut lines),
            None => {
                lines.push(Line::Keyspace(documents::keyspace_head(keyspace)));
                lines.extend(keyspace.tables.values().map(|table| line(table)));
            }
        }
    }
    roles(&before.access, &after.access, &mut lines);
    snapshots(&before.snapshots, &after.snapshots, &mut lines);
    lines
}

fn snapshots(before: &Arc<Snapshots>, after: &Arc<Snapshots>, lines: &mut Vec<Line>) {
    if Arc::ptr_eq(before, after) {
        return;
    }
    let gone = before.iter().filter(|(key, _)| !after.contains_key(*key));
    lines.extend(gone.map(|((tag, keyspace), snapshot)| match snapshot.pinned {
        None => Line::DropSnapshot(tag.clone()),
        Some(_) => Line::DropPinnedSnapshot {
            tag: tag.clone(),
            keyspace: keyspace.clone(),
        },
    }));
    for (key, snapshot) in after.iter() {
        let is_same = |old: &Arc<_>| Arc::ptr_eq(old, snapshot);
        if before.get(key).is_some_and(is_same) {
            continue;
        }
        let document = Box::new(SnapshotDoc::from(snapshot.as_ref()));
        lines.push(match snapshot.pinned {
            None => Line::Snapshot(document),
            Some(_) => Line::PinnedSnapshot(document),
        });
    }
}

fn roles(before: &Roles, after: &Roles, lines: &mut Vec<Line>) {
    for name in before.roles.keys() {
        if !after.roles.contains_key(name) {
            lines.push(Line::DropRole(name.clone()));
        }
    }
    for (name, role) in &after.roles {
        if before.roles.get(name) != Some(role) {
            lines.push(Line::Role(RoleDoc::from(role.as_ref())));
        }
    }
    if before.identities != after.identities {
        lines.push(Line::Identities(after.identities.clone()));
    }
    if before.service_levels != after.service_levels {
        let levels = after.service_levels.values().map(ServiceLevelDoc::from);
        lines.push(Line::ServiceLevels(levels.collect()));
    }
}

fn line(table: &Table) -> Line {
    Line::Table {
        keyspace: table.keyspace.clone(),
        table: Box::new(documents::table_doc(table)),
    }
}

fn within(before: &Keyspace, after: &Keyspace, lines: &mut Vec<Line>) {
    let is_same = before.id == after.id
        && before.types == after.types
        && before.functions == after.functions
        && before.aggregates == after.aggregates
        && before.replication == after.replication
        && before.durable_writes == after.durable_writes;
    if !is_same {
        lines.push(Line::Keyspace(documents::keyspace_head(after)));
    }
    for name in before.tables.keys() {
        if !after.tables.contains_key(name) {
            lines.push(Line::DropTable {
                keyspace: after.name.clone(),
                table: name.clone(),
            });
        }
    }
    for (name, table) in &after.tables {
        let is_same = |old: &Arc<Table>| Arc::ptr_eq(old, table);
        if !before.tables.get(name).is_some_and(is_same) {
            lines.push(line(table));
        }
    }
}

/// Applies a line to the schema.
pub(crate) fn apply(schema: &mut Schema, text: &str, entry_table: EntryTable) -> Result<(), CqlError> {
    match serde_json::from_str(text).map_err(damaged)? {
        Line::Keyspace(head) => {
            let mut keyspace = documents::read_keyspace(head, entry_table).map_err(damaged)?;
            if let Some(old) = schema.keyspaces.get(&keyspace.name) {
                keyspace.tables = old.tables.clone();
            }
            schema.keyspaces.insert(keyspace.name.clone(), Arc::new(keyspace));
        }
        Line::DropKeyspace(name) => {
            schema.keyspaces.remove(&name);
        }
        Line::Table { keyspace, table } => {
            let keyspace = changed(schema, &keyspace)?;
            let table = documents::read_table_into(keyspace, &table, entry_table).map_err(damaged)?;
            keyspace.tables.insert(table.name.clone(), Arc::new(table));
        }
        Line::DropTable { keyspace, table } => {
            changed(schema, &keyspace)?.tables.remove(&table);
        }
        Line::Role(role) => {
            let role = Role::try_from(role).map_err(damaged)?;
            let access = Arc::make_mut(&mut schema.access);
            access.roles.insert(role.name.clone(), Arc::new(role));
        }
        Line::DropRole(name) => {
            Arc::make_mut(&mut schema.access).roles.remove(&name);
        }
        Line::Identities(identities) => Arc::make_mut(&mut schema.access).identities = identities,
        Line::ServiceLevels(levels) => {
            Arc::make_mut(&mut schema.access).service_levels = service_level::by_name(levels);
        }
        Line::Snapshot(snapshot) | Line::PinnedSnapshot(snapshot) => {
            let snapshot = documents::read_snapshot(*snapshot, entry_table).map_err(damaged)?;
            let snapshots = Arc::make_mut(&mut schema.snapshots);
            snapshots.insert(snapshot.key(), Arc::new(snapshot));
        }
        Line::DropSnapshot(tag) => {
            let snapshots = Arc::make_mut(&mut schema.snapshots);
            snapshots.retain(|(known, _), snapshot| *known != tag || snapshot.pinned.is_some());
        }
        Line::DropPinnedSnapshot { tag, keyspace } => {
            Arc::make_mut(&mut schema.snapshots).remove(&(tag, keyspace));
        }
    }
    Ok(())
}

/// Returns the keyspace for a change. It is copied first if other schemas share it.
fn changed<'s>(schema: &'s mut Schema, name: &str) -> Result<&'s mut Keyspace, CqlError> {
    let keyspace = schema.keyspaces.get_mut(name);
    let keyspace = keyspace.ok_or_else(|| damaged(format!("there is no keyspace {name}")))?;
    Ok(Arc::make_mut(keyspace))
}

/// Returns the number of lines that the known schema already contains. `None` if it has another base, so that everything must be read.
pub(crate) fn kept(known: &Schema, head: &Head, lines: &[Arc<str>]) -> Option<usize> {
    let journal = &known.journal;
    if known.document_version == 0 || journal.is_old {
        return None;
    }
    let count = journal.lines.len();
    if journal.base == head.base {
        let is_longer = lines.get(..count).is_some_and(|same| same == journal.lines);
        return is_longer.then_some(count);
    }
    let base = head.base.as_ref()?;
    let is_next = base.of == journal.base.as_ref().map(|base| base.name.clone()) && base.lines == count;
    is_next.then_some(0)
}
