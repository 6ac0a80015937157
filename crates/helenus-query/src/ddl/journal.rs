//! The schema document: a *base*, which is the whole schema at some time, and the changes made to it since. A statement adds a few lines to
//! what there is, whatever the number of tables; when the lines have become many, a new base is written beside them.
//!
//! The document `schema` has a line of JSON each: first its [`Head`], then one for each [`Line`]. It is changed by compare-and-set. Bases are
//! documents of their own, of names that are used once (see [`super::document`] for what is in them). Up to format 2 there was the base alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_tablet::{MetaDoc, MetaExpect, Store, StoreError};
use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::document::{self, KeyspaceDoc, RoleDoc, TableDoc};
use crate::access::{Access, Role};
use crate::engine::store_error;
use crate::schema::{Keyspace, Schema, Table};

const NAME: &str = "schema";
/// Raised when an older binary could not understand the document.
const FORMAT: u32 = 6;
/// What a document without roles is written in, one without functions and aggregates of users too, and one without compact tables too: older
/// binaries know all of it.
const FORMAT_WITHOUT_ROLES: u32 = 5;
const FORMAT_WITHOUT_FUNCTIONS: u32 = 4;
const FORMAT_WITHOUT_COMPACT: u32 = 3;
/// Bytes of lines after which a new base is written, if the base is not large.
const LINES_BYTES: usize = 64 << 10;
/// Of a large one, this part of its size: so the two cost about the same.
const BASE_PART: usize = 64;
/// A base may be replaced while it is read; then there is another.
const READS_MAX: usize = 8;

#[derive(Serialize, Deserialize)]
struct Head {
    format: u32,
    version: Uuid,
    next_table_number: u32,
    base: Option<Base>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Base {
    name: String,
    /// What it holds: the base before it and the lines that stood beside that one. Who knows those need not read this one.
    of: Option<String>,
    lines: usize,
    bytes: usize,
}

/// A change.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// A keyspace with its types, functions and aggregates. Its tables stay as they are.
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
    /// Whom each identity stands for.
    Identities(BTreeMap<String, String>),
}

/// How a schema is written down.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    base: Option<Base>,
    lines: Vec<Arc<str>>,
    /// It was read in a format before this one.
    is_old: bool,
}

impl Journal {
    fn bytes(&self) -> usize {
        self.lines.iter().map(|line| line.len()).sum()
    }

    /// True if a new base is due before that many bytes of lines are added.
    fn is_full(&self, more: usize) -> bool {
        let base_bytes = self.base.as_ref().map_or(0, |base| base.bytes);
        self.is_old || self.bytes() + more > LINES_BYTES.max(base_bytes / BASE_PART)
    }
}

fn unwritable(error: &serde_json::Error) -> CqlError {
    CqlError::Server(format!("can't write the schema: {error}"))
}

fn damaged(why: impl std::fmt::Display) -> CqlError {
    CqlError::Server(format!("the schema document is damaged: {why}"))
}

/// The lines that lead from one schema to the next.
fn difference(before: &Schema, after: &Schema) -> Vec<Line> {
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
                lines.push(Line::Keyspace(document::keyspace_head(keyspace)));
                lines.extend(keyspace.tables.values().map(|table| line(table)));
            }
        }
    }
    roles(&before.access, &after.access, &mut lines);
    lines
}

fn roles(before: &Access, after: &Access, lines: &mut Vec<Line>) {
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
}

fn line(table: &Table) -> Line {
    Line::Table {
        keyspace: table.keyspace.clone(),
        table: Box::new(document::table_doc(table)),
    }
}

fn within(before: &Keyspace, after: &Keyspace, lines: &mut Vec<Line>) {
    let is_same = before.types == after.types
        && before.functions == after.functions
        && before.aggregates == after.aggregates
        && before.replication == after.replication
        && before.durable_writes == after.durable_writes;
    if !is_same {
        lines.push(Line::Keyspace(document::keyspace_head(after)));
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

/// Does to the schema what a line says.
fn apply(schema: &mut Schema, text: &str) -> Result<(), CqlError> {
    match serde_json::from_str(text).map_err(damaged)? {
        Line::Keyspace(head) => {
            let mut keyspace = document::read_keyspace(head).map_err(damaged)?;
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
            let table = document::read_table_into(keyspace, &table).map_err(damaged)?;
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
    }
    Ok(())
}

/// The keyspace, to be changed: copied once, if others see it too.
fn changed<'s>(schema: &'s mut Schema, name: &str) -> Result<&'s mut Keyspace, CqlError> {
    let keyspace = schema.keyspaces.get_mut(name);
    let keyspace = keyspace.ok_or_else(|| damaged(format!("there is no keyspace {name}")))?;
    Ok(Arc::make_mut(keyspace))
}

/// Writes the change from one schema to the next, which has a version of its own, durably, if the document is as the first one was read;
/// gives the next one as it is written, or none if another node was first.
pub async fn store(
    store: &Arc<Store>,
    before: &Schema,
    mut after: Schema,
) -> Result<Option<Schema>, CqlError> {
    let mut added: Vec<Arc<str>> = Vec::new();
    for line in difference(before, &after) {
        let text = serde_json::to_string(&line).map_err(|error| unwritable(&error))?;
        added.push(text.into());
    }
    let mut journal = Journal::clone(&before.journal);
    let more = added.iter().map(|line| line.len()).sum();
    // In a bucket a base also shows that there was a document. The first document has none: a base without one is taken for its loss.
    let wants_base = store.is_shared() && before.document_version > 0 && journal.base.is_none();
    let replaced = (wants_base || journal.is_full(more)).then(|| journal.base.take());
    if let Some(replaced) = &replaced {
        journal = new_base(store, before, replaced.as_ref()).await?;
    }
    journal.lines.extend(added);
    let head = Head {
        format: if !after.access.is_empty() {
            FORMAT
        } else if after.has_functions() {
            FORMAT_WITHOUT_ROLES
        } else if after.stored_tables().any(|table| table.has_been_compact()) {
            FORMAT_WITHOUT_FUNCTIONS
        } else {
            FORMAT_WITHOUT_COMPACT
        },
        version: after.version,
        next_table_number: after.next_table_number,
        base: journal.base.clone(),
    };
    let mut text = serde_json::to_string(&head).map_err(|error| unwritable(&error))?;
    for line in &journal.lines {
        text.push('\n');
        text.push_str(line);
    }
    let expect = match before.document_version {
        0 => MetaExpect::Absent,
        version => MetaExpect::Version(version),
    };
    let written = store.meta_put(NAME, text.as_bytes(), expect).await;
    match written {
        Ok(version) => {
            after.document_version = version;
            after.journal = Arc::new(journal);
            if let Some(Some(unused)) = replaced {
                delete_later(store, unused.name);
            }
            Ok(Some(after))
        }
        Err(StoreError::MetaConflict(_)) => {
            if let (Some(_), Some(unused)) = (replaced, journal.base) {
                delete_later(store, unused.name);
            }
            Ok(None)
        }
        Err(error) => Err(store_error(error)),
    }
}

/// Who reads it just now finds it gone, and the document with another.
fn delete_later(store: &Arc<Store>, name: String) {
    let store = store.clone();
    tokio::spawn(async move {
        if let Err(error) = store.meta_delete(&name).await {
            tracing::debug!(%error, name, "a former schema stays in the store");
        }
    });
}

/// Writes a schema whole. Nobody reads it before the document names it.
async fn new_base(store: &Store, schema: &Schema, replaced: Option<&Base>) -> Result<Journal, CqlError> {
    let content = document::encode(schema)?;
    let base = Base {
        name: format!("{NAME}.{}", Uuid::new_v4().simple()),
        of: replaced.map(|base| base.name.clone()),
        lines: schema.journal.lines.len(),
        bytes: content.len(),
    };
    store
        .meta_put(&base.name, &content, MetaExpect::Absent)
        .await
        .map_err(store_error)?;
    Ok(Journal {
        base: Some(base),
        ..Journal::default()
    })
}

/// A schema of system keyspaces only.
fn empty(is_shared: bool) -> Result<Schema, CqlError> {
    let mut schema = Schema {
        version: Uuid::nil(),
        generation: 1,
        document_version: 0,
        next_table_number: 1,
        keyspaces: BTreeMap::new(),
        access: Arc::default(),
        journal: Arc::default(),
    };
    for keyspace in crate::system::keyspaces(is_shared) {
        schema.keyspaces.insert(keyspace.name.clone(), Arc::new(keyspace));
    }
    schema.version = version_of(&document::encode(&schema)?);
    Ok(schema)
}

/// The version that drivers compare, of a schema that has none of its own.
fn version_of(document: &[u8]) -> Uuid {
    let digest: [u8; 16] = Md5::digest(document).into();
    uuid::Builder::from_md5_bytes(digest).into_uuid()
}

/// Reads the schema.
pub async fn load(store: &Store) -> Result<Schema, CqlError> {
    let empty = empty(store.is_shared())?;
    match load_newer(store, &empty).await? {
        Some(schema) => Ok(schema),
        None => {
            refuse_remains(store).await?;
            Ok(empty)
        }
    }
}

/// A base without the document that names it is what is left of a schema.
async fn refuse_remains(store: &Store) -> Result<(), CqlError> {
    let names = store.meta_list().await.map_err(store_error)?;
    let is_base = |name: &&String| name.strip_prefix(NAME).is_some_and(|rest| rest.starts_with('.'));
    match names.iter().find(is_base) {
        None => Ok(()),
        Some(base) => Err(damaged(format!(
            "the document meta/{NAME} is missing, though there is meta/{base}"
        ))),
    }
}

/// Reads the schema if it is newer than this one, of which what has not changed is kept.
pub async fn load_newer(store: &Store, known: &Schema) -> Result<Option<Schema>, CqlError> {
    for _ in 0..READS_MAX {
        let document = match store.meta_get(NAME).await.map_err(store_error)? {
            Some(document) if document.version > known.document_version => document,
            _ => return Ok(None),
        };
        if let Some(schema) = read(store, known, &document).await? {
            return Ok(Some(schema));
        }
    }
    Err(damaged("its base is not there"))
}

/// None if the base is gone: then the document has another.
async fn read(store: &Store, known: &Schema, document: &MetaDoc) -> Result<Option<Schema>, CqlError> {
    let text = std::str::from_utf8(&document.content).map_err(damaged)?;
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let found = document::format(first).map_err(damaged)?;
    if found > FORMAT {
        return Err(CqlError::Server(format!(
            "the schema was written in format {found}, and this binary understands up to {FORMAT}: use a newer helenus"
        )));
    }
    if found < FORMAT_WITHOUT_COMPACT {
        return read_old(store, document).map(Some);
    }
    let head: Head = serde_json::from_str(first).map_err(damaged)?;
    let lines: Vec<Arc<str>> = lines.map(Arc::from).collect();
    let (mut schema, done) = match kept(known, &head, &lines) {
        Some(done) => (known.clone(), done),
        None => match &head.base {
            None => (empty(store.is_shared())?, 0),
            Some(base) => match store.meta_get(&base.name).await.map_err(store_error)? {
                Some(content) => {
                    let mut schema = empty(store.is_shared())?;
                    document::read(&content.content, &mut schema)?;
                    (schema, 0)
                }
                None => return Ok(None),
            },
        },
    };
    for line in lines.iter().skip(done) {
        apply(&mut schema, line)?;
    }
    if done < lines.len() {
        super::view::link(&mut schema)?;
    }
    schema.version = head.version;
    schema.document_version = document.version;
    schema.next_table_number = head.next_table_number;
    schema.journal = Arc::new(Journal {
        base: head.base,
        lines,
        is_old: false,
    });
    Ok(Some(schema))
}

/// How many of the lines the known schema has already; none if it stands on something else.
fn kept(known: &Schema, head: &Head, lines: &[Arc<str>]) -> Option<usize> {
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

fn read_old(store: &Store, document: &MetaDoc) -> Result<Schema, CqlError> {
    let mut schema = empty(store.is_shared())?;
    document::read(&document.content, &mut schema)?;
    schema.document_version = document.version;
    schema.version = version_of(&document::encode(&schema)?);
    schema.journal = Arc::new(Journal {
        is_old: true,
        ..Journal::default()
    });
    Ok(schema)
}

#[cfg(test)]
#[path = "journal_tests.rs"]
pub(super) mod tests;
