//! The schema document in the store. It is read, and written by compare-and-set.

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_tablet::{MetaDoc, MetaExpect, Store, StoreError};
use md5::{Digest, Md5};
use uuid::Uuid;

use crate::analysis::restrictions::view_filter::link;
use crate::failure::store_error;
use crate::index::entries::hidden_table;
use crate::schema::documents::formats::{self, JOURNAL, JOURNAL_LEAST};
use crate::schema::documents::journal::{Base, Head, NAME, apply, damaged, difference, kept, unwritable};
use crate::schema::{Journal, Keyspace, Schema, documents};

/// Function that returns the virtual system keyspaces. Its argument is true for a node on a shared store.
pub(crate) type SystemKeyspaces = fn(bool) -> Vec<Keyspace>;

/// Maximum number of tries to read the schema. A base may be replaced while it is read, and the document then names a new one.
const READS_MAX: usize = 8;

/// Writes the change from `before` to `after` durably. `after` has its own version. Succeeds only if the document is still the one that
/// `before` was read from. Returns the schema as written, or `None` if another node changed the document first.
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
    // In a bucket, a base also proves that there was a document. The first document has no base, because a base without a document means
    // that the document was lost.
    let needs_base = store.is_shared() && before.document_version > 0 && journal.base.is_none();
    let replaced = (needs_base || journal.is_full(more)).then(|| journal.base.take());
    if let Some(replaced) = &replaced {
        journal = new_base(store, before, replaced.as_ref()).await?;
    }
    journal.lines.extend(added);
    let of_lines = journal.lines.iter().map(|line| formats::of_line(line));
    let head = Head {
        format: of_lines.fold(formats::of_journal(&after), u32::max),
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

/// Deletes a replaced base in the background. A node that is reading it finds it missing, and then reads the document with its new base.
fn delete_later(store: &Arc<Store>, name: String) {
    let store = store.clone();
    tokio::spawn(async move {
        if let Err(error) = store.meta_delete(&name).await {
            tracing::debug!(%error, name, "a former schema stays in the store");
        }
    });
}

/// Writes a whole schema as a new base. No node reads the base before the document names it.
async fn new_base(store: &Store, schema: &Schema, replaced: Option<&Base>) -> Result<Journal, CqlError> {
    let content = documents::encode(schema)?;
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

/// Returns a schema that contains only the system keyspaces.
fn empty(is_shared: bool, system: SystemKeyspaces) -> Result<Schema, CqlError> {
    let mut schema = Schema {
        version: Uuid::nil(),
        generation: 1,
        document_version: 0,
        next_table_number: 1,
        keyspaces: BTreeMap::new(),
        access: Arc::default(),
        snapshots: Arc::default(),
        journal: Arc::default(),
    };
    for keyspace in system(is_shared) {
        schema.keyspaces.insert(keyspace.name.clone(), Arc::new(keyspace));
    }
    schema.version = version_of(&documents::encode(&schema)?);
    Ok(schema)
}

/// Returns the version for drivers of a schema document that does not contain one.
fn version_of(document: &[u8]) -> Uuid {
    let digest: [u8; 16] = Md5::digest(document).into();
    uuid::Builder::from_md5_bytes(digest).into_uuid()
}

/// Reads the schema.
pub async fn load(store: &Store, system: SystemKeyspaces) -> Result<Schema, CqlError> {
    let empty = empty(store.is_shared(), system)?;
    match load_newer(store, &empty, system).await? {
        Some(schema) => Ok(schema),
        None => {
            refuse_remains(store).await?;
            Ok(empty)
        }
    }
}

/// Decodes a whole schema, without the virtual keyspaces.
///
/// # Errors
/// The schema is damaged, or was written by a newer binary.
pub(crate) fn read_whole(document: &[u8]) -> Result<Schema, CqlError> {
    let mut schema = empty(false, |_| Vec::new())?;
    documents::read(document, &mut schema, hidden_table)?;
    link(&mut schema)?;
    Ok(schema)
}

/// Refuses a store that has a base but no document, because then the document was lost.
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

/// Returns true if the document may differ from the one that was last read.
pub async fn has_changed(store: &Store) -> Result<bool, CqlError> {
    store.meta_may_differ(NAME).await.map_err(store_error)
}

/// Reads the schema if it is newer than `known`. Unchanged parts of `known` are reused. `None` if the schema is not newer.
pub async fn load_newer(
    store: &Store,
    known: &Schema,
    system: SystemKeyspaces,
) -> Result<Option<Schema>, CqlError> {
    for _ in 0..READS_MAX {
        let document = match store.meta_get(NAME).await.map_err(store_error)? {
            Some(document) if document.version > known.document_version => document,
            _ => return Ok(None),
        };
        if let Some(schema) = read(store, known, &document, system).await? {
            return Ok(Some(schema));
        }
    }
    Err(damaged("its base is not there"))
}

/// Reads the schema of a document. `None` if the base is gone, because the document in the store has a new one.
async fn read(
    store: &Store,
    known: &Schema,
    document: &MetaDoc,
    system: SystemKeyspaces,
) -> Result<Option<Schema>, CqlError> {
    let text = std::str::from_utf8(&document.content).map_err(damaged)?;
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let found = documents::format(first).map_err(damaged)?;
    if found > JOURNAL {
        return Err(CqlError::Server(format!(
            "the schema was written in format {found}, and this binary understands up to {JOURNAL}: use a newer helenus"
        )));
    }
    if found < JOURNAL_LEAST {
        return read_old(store, document, system).map(Some);
    }
    let head: Head = serde_json::from_str(first).map_err(damaged)?;
    let lines: Vec<Arc<str>> = lines.map(Arc::from).collect();
    let (mut schema, done) = match kept(known, &head, &lines) {
        Some(done) => (known.clone(), done),
        None => match &head.base {
            None => (empty(store.is_shared(), system)?, 0),
            Some(base) => match store.meta_get(&base.name).await.map_err(store_error)? {
                Some(content) => {
                    let mut schema = empty(store.is_shared(), system)?;
                    documents::read(&content.content, &mut schema, hidden_table)?;
                    link(&mut schema)?;
                    (schema, 0)
                }
                None => return Ok(None),
            },
        },
    };
    for line in lines.iter().skip(done) {
        apply(&mut schema, line, hidden_table)?;
    }
    if done < lines.len() {
        link(&mut schema)?;
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

fn read_old(store: &Store, document: &MetaDoc, system: SystemKeyspaces) -> Result<Schema, CqlError> {
    let mut schema = empty(store.is_shared(), system)?;
    documents::read(&document.content, &mut schema, hidden_table)?;
    link(&mut schema)?;
    schema.document_version = document.version;
    schema.version = version_of(&documents::encode(&schema)?);
    schema.journal = Arc::new(Journal {
        is_old: true,
        ..Journal::default()
    });
    Ok(schema)
}

#[cfg(test)]
#[path = "schema_store_tests.rs"]
pub(super) mod tests;
