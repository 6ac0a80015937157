//! Puts back what a backup has: rows are copied to tables under new numbers, and then a change of the schema makes these the tables.

use std::collections::BTreeSet;
use std::sync::Arc;

use helenus_cql::ast::Permission;
use helenus_cql::error::CqlError;
use helenus_cql::value::timestamp;
use helenus_row::TableId;
use helenus_tablet::{BackupDocument, BackupLocation, Store, StoreError};
use serde::{Deserialize, Serialize};

use super::{backup_error, key, schema_of, times};
use crate::engine::ddl::snapshots::{Restoring, begin_copy};
use crate::engine::history::then::{numbers_of_tables, uncertain};
use crate::engine::past::time_of;
use crate::engine::snapshots::{Clear, Restore};
use crate::engine::{Engine, copying, ddl};
use crate::failure::store_error;
use crate::schema::roles::{Role, Roles};
use crate::schema::{Keyspace, Schema, Snapshot};
use crate::storage::agreement::add_header_table;

/// What is put back of a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestoreBackup {
    /// The URL of the place.
    pub from: String,
    /// The backup; without, the newest.
    pub name: Option<String>,
    /// Without, all.
    pub keyspace: Option<String>,
    /// A table of the keyspace, with its indexes and views; without, all.
    pub table: Option<String>,
    /// Roles too, with what they are granted and their service levels. Others that there are stay.
    #[serde(default)]
    pub roles: bool,
    /// The file of this node with the key of encrypted backups.
    pub key_file: Option<String>,
    /// A time between two backups of a store that keeps its past, in the place of a backup, as a literal of type timestamp has it.
    pub as_of: Option<String>,
}

/// What has been put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RestoredBackup {
    pub backup: String,
    pub taken_ms: i64,
    pub keyspaces: Vec<RestoredKeyspace>,
    pub roles: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RestoredKeyspace {
    pub keyspace: String,
    /// Without views.
    pub tables: Vec<String>,
    /// The snapshot of what the tables were until now, if some of them were there.
    pub replaced: Option<String>,
}

/// An open backup, or a time after one.
struct Source {
    /// Of the backup.
    name: String,
    taken_ms: i64,
    /// Beyond every write timestamp that the store had given, in microseconds.
    clock_us: i64,
    schema: Schema,
    store: Arc<Store>,
    header_tables: BTreeSet<u32>,
}

impl Engine {
    /// Puts tables back as they are in a backup, a keyspace at a time, and roles if they are asked for. Tables of these names that are there
    /// become a snapshot.
    ///
    /// # Errors
    /// There is no such backup, keyspace or table, or what a keyspace has now stands in the way ([`CqlError::Invalid`]); or something can't be read
    /// or written. The keyspaces before are put back then, and of the others nothing.
    pub async fn restore_backup(
        self: &Arc<Self>,
        wanted: &RestoreBackup,
    ) -> Result<RestoredBackup, CqlError> {
        if wanted.table.is_some() && wanted.keyspace.is_none() {
            return Err(CqlError::invalid("a table is named with its keyspace"));
        }
        let key = key(wanted.key_file.as_deref())?;
        let location = BackupLocation::open(&wanted.from, key).map_err(backup_error)?;
        let source = match &wanted.as_of {
            None => self.open_source(&location, wanted.name.as_deref()).await?,
            Some(_) if wanted.name.is_some() => {
                return Err(CqlError::invalid("name a backup or a time, not both"));
            }
            Some(literal) => {
                self.open_source_then(&location, time_of(literal)?, wanted)
                    .await?
            }
        };
        let keyspaces = wanted_keyspaces(&source, wanted)?;
        // What is written to restored tables is younger than what they have.
        self.context.timestamps.raise(source.clock_us);
        let mut restored = RestoredBackup {
            backup: source.name.clone(),
            taken_ms: source.taken_ms,
            keyspaces: Vec::new(),
            roles: Vec::new(),
        };
        for keyspace in keyspaces {
            let done = self
                .restore_keyspace(&source, keyspace, wanted.table.as_deref())
                .await?;
            restored.keyspaces.push(done);
        }
        if wanted.roles {
            restored.roles = self.restore_roles(&source.schema).await?;
        }
        Ok(restored)
    }

    async fn open_source(&self, location: &BackupLocation, name: Option<&str>) -> Result<Source, CqlError> {
        let document = location.find(name).await.map_err(backup_error)?;
        let schema = schema_of(&document)?;
        let store = &self.context.store;
        let opened = store
            .open_backup(location, &document, &[], ddl::origins(&schema))
            .await;
        Ok(Source {
            store: opened.map_err(backup_error)?,
            schema,
            header_tables: document.content.header_tables.iter().copied().collect(),
            name: document.name,
            taken_ms: document.content.taken_ms,
            clock_us: document.content.clock_us,
        })
    }

    /// Opens the last backup before a time, with what later ones have of the logs until then.
    async fn open_source_then(
        &self,
        location: &BackupLocation,
        time_ms: i64,
        wanted: &RestoreBackup,
    ) -> Result<Source, CqlError> {
        let listed = location.list().await.map_err(backup_error)?;
        let later = later_backups(&listed.documents, time_ms).map_err(CqlError::invalid)?;
        let Some(((begin, history), last)) = later.first().and_then(|first| {
            let begin = (first, first.content.history.as_ref()?);
            Some((begin, later.last()?))
        }) else {
            return Err(CqlError::invalid("that time can't be restored"));
        };
        if begin.tablets.is_empty() {
            return Err(CqlError::invalid(format!(
                "backup {} has no tablets, so that no time after it can be restored: it was written before there was a table, by an older helenus",
                begin.name
            )));
        }
        let schema = times::schema_between(&later, time_ms)?;
        let is_wanted =
            |keyspace: &&Arc<Keyspace>| wanted.keyspace.as_ref().is_none_or(|name| *name == keyspace.name);
        let keyspaces: Vec<&Arc<Keyspace>> = schema.keyspaces.values().filter(is_wanted).collect();
        let numbers = numbers_of_tables(keyspaces.iter().map(|keyspace| keyspace.as_ref()));
        // What other keyspaces need may be missing.
        let tables = keyspaces.iter().flat_map(|keyspace| keyspace.tables.values());
        let origins = tables.flat_map(|table| table.origins()).collect();
        let store = &self.context.store;
        let after = later.get(1..).unwrap_or_default();
        let opened = store.open_backup(location, begin, after, origins).await;
        let opened = opened.map_err(backup_error)?;
        let ops = store.ops_of_backups(location, &later, &history.positions, time_ms, &numbers);
        let ops = ops.await.map_err(|error| uncertain_or(error, time_ms))?;
        opened.add_to_pinned(ops).map_err(store_error)?;
        self.complete_batches_then(&opened, schema.clone(), time_ms)
            .await?;
        Ok(Source {
            name: begin.name.clone(),
            taken_ms: time_ms,
            clock_us: last.content.clock_us,
            header_tables: last.content.header_tables.iter().copied().collect(),
            schema,
            store: opened,
        })
    }

    async fn restore_keyspace(
        self: &Arc<Self>,
        source: &Source,
        keyspace: Arc<Keyspace>,
        table: Option<&str>,
    ) -> Result<RestoredKeyspace, CqlError> {
        let then = Snapshot {
            tag: source.name.clone(),
            taken_ms: source.taken_ms,
            expires_ms: None,
            pinned: None,
            keyspace,
        };
        let now_ms = self.now_ms();
        let begun = ddl::change(self, |schema| {
            let begun = begin_copy(schema, &then, table, now_ms).map_err(CqlError::invalid)?;
            Ok(Some(begun))
        });
        let Some(Restoring { tag, numbers }) = begun.await? else {
            return Err(CqlError::Server("nothing was begun".to_owned()));
        };
        let copied = Restore {
            tag: Some(tag.clone()),
            ..Restore::default()
        };
        let restored = match self.copy_from_backup(source, &then.keyspace.name, &numbers).await {
            Ok(()) => self.put_back(&copied).await,
            Err(error) => Err(error),
        };
        match restored {
            Ok(restored) => Ok(RestoredKeyspace {
                keyspace: restored.keyspace,
                tables: restored.tables,
                replaced: restored.replaced,
            }),
            Err(error) => {
                // What was copied is swept.
                let which = Clear {
                    tag: Some(tag),
                    ..Clear::default()
                };
                self.clear_snapshots(&which).await?;
                Err(error)
            }
        }
    }

    async fn copy_from_backup(
        &self,
        source: &Source,
        keyspace: &str,
        numbers: &[(TableId, TableId)],
    ) -> Result<(), CqlError> {
        for (table, to) in numbers {
            if source.header_tables.contains(&table.0) {
                add_header_table(&self.context, *to).await?;
            }
            let rows = copying::copy(&self.context, &source.store, *table, *to).await?;
            tracing::info!(
                backup = source.name,
                keyspace,
                table = table.0,
                to = to.0,
                rows,
                "rows were copied"
            );
        }
        Ok(())
    }

    /// Puts the roles of a schema back in the place of those of the same names; their names.
    async fn restore_roles(&self, then: &Schema) -> Result<Vec<String>, CqlError> {
        ddl::change(self, |schema| {
            Ok(with_roles(schema, then).map(|schema| (schema, ())))
        })
        .await?;
        let names: Vec<String> = then.access.roles.keys().cloned().collect();
        tracing::info!(roles = names.join(" "), "roles were put back");
        Ok(names)
    }
}

/// Returns the schema with the roles of a backup, or `None` if it has them. Permissions on a table or keyspace that is another one today are left
/// out.
fn with_roles(schema: &Schema, then: &Schema) -> Option<Schema> {
    let mut roles = Roles::clone(&schema.access);
    let then_roles = &then.access;
    let of_then = |(name, of): (&String, &Arc<Role>)| {
        let mut role = Role::clone(of);
        role.permissions.retain(|on, permissions| {
            let is_same = on.is_system_data() || on.is_same(then, schema);
            if !is_same {
                let permissions = permissions.iter().map(Permission::name).collect::<Vec<_>>();
                tracing::warn!(role = %name, permissions = permissions.join(" "), %on, "permissions were not put back: this is not what the backup has under that name");
            }
            is_same
        });
        (name.clone(), Arc::new(role))
    };
    roles.roles.extend(then_roles.roles.iter().map(of_then));
    roles.identities.extend(then_roles.identities.clone());
    roles.service_levels.extend(then_roles.service_levels.clone());
    (roles != *schema.access).then(|| Schema {
        access: Arc::new(roles),
        ..schema.clone()
    })
}

/// Returns the refusal of a time that a clock has shown twice, or what has failed.
fn uncertain_or(error: StoreError, time_ms: i64) -> CqlError {
    match error {
        StoreError::PastUncertain { from_ms, to_ms } => uncertain(time_ms, from_ms, to_ms),
        other => backup_error(other),
    }
}

/// Returns the last backup before a time, and those after it until one that was written later than that time.
///
/// # Errors
/// In words: the time is not between two backups of a store that keeps its past.
fn later_backups(backups: &[BackupDocument], time_ms: i64) -> Result<Vec<BackupDocument>, String> {
    let time = timestamp::to_cql_text(time_ms);
    let Some(begin) = backups
        .iter()
        .rposition(|backup| backup.content.taken_ms <= time_ms)
    else {
        return Err(format!("there is no backup from before {time}"));
    };
    let later = backups.get(begin..).unwrap_or_default();
    let end = later.iter().position(|backup| backup.content.taken_ms > time_ms);
    let Some(later) = end.and_then(|end| later.get(..=end)) else {
        return Err(format!(
            "there is no backup from after {time}: write one, and it has the time since the last"
        ));
    };
    match later.iter().find(|backup| backup.content.history.is_none()) {
        Some(backup) => Err(format!(
            "backup {} has no history: it was written without the setting point_in_time_window",
            backup.name
        )),
        None => Ok(later.to_vec()),
    }
}

fn wanted_keyspaces(source: &Source, wanted: &RestoreBackup) -> Result<Vec<Arc<Keyspace>>, CqlError> {
    let keyspaces = &source.schema.keyspaces;
    let Some(name) = &wanted.keyspace else {
        return Ok(keyspaces.values().cloned().collect());
    };
    match keyspaces.get(name) {
        Some(keyspace) => Ok(vec![keyspace.clone()]),
        None => {
            let names: Vec<&str> = keyspaces.keys().map(String::as_str).collect();
            Err(CqlError::invalid(format!(
                "backup {} has no keyspace {name}; it has {}",
                source.name,
                names.join(", ")
            )))
        }
    }
}

#[cfg(test)]
#[path = "restoring_tests.rs"]
mod tests;
