//! Restores backups. Rows are copied to tables under new numbers, and then a change of the schema puts these tables in place.

use std::collections::BTreeSet;
use std::sync::Arc;

use helenus_cql::ast::Permission;
use helenus_cql::error::CqlError;
use helenus_cql::value::timestamp;
use helenus_row::TableId;
use helenus_tablet::{BackupDocument, BackupLocation, Store, StoreError};
use serde::{Deserialize, Serialize};

use super::{backup_error, key, schema_of, times};
use crate::engine::as_of::time_of;
use crate::engine::ddl::snapshots::{Restoring, begin_copy};
use crate::engine::history::as_of::{numbers_of_tables, uncertain};
use crate::engine::snapshots::{Clear, Restore};
use crate::engine::{Engine, copying, ddl};
use crate::failure::store_error;
use crate::schema::roles::{Role, Roles};
use crate::schema::{Keyspace, Schema, Snapshot};
use crate::storage::agreement::add_header_table;

/// Settings of a restore from a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestoreBackup {
    /// The URL of the location.
    pub from: String,
    /// The backup. `None` for the newest one.
    pub name: Option<String>,
    /// The keyspace to restore. `None` for all.
    pub keyspace: Option<String>,
    /// A table of the keyspace, which is restored with its indexes and views. `None` for all tables.
    pub table: Option<String>,
    /// True if roles are restored too, with their permissions and service levels. Roles that are not in the backup stay.
    #[serde(default)]
    pub roles: bool,
    /// A file on this node with the key of encrypted backups. `None` if they are not encrypted.
    pub key_file: Option<String>,
    /// A time to restore in place of a named backup, as a literal of type timestamp. The time must lie between two backups that contain
    /// history.
    pub as_of: Option<String>,
}

/// The result of a restore.
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
    /// Names of the restored tables, without views.
    pub tables: Vec<String>,
    /// Tag of the snapshot of the tables that were replaced. `None` if there were none.
    pub replaced: Option<String>,
}

/// An open backup, or an open time after a backup.
struct Source {
    /// Name of the backup.
    name: String,
    taken_ms: i64,
    /// Microseconds, greater than every write timestamp in the backup's store.
    clock_us: i64,
    schema: Schema,
    store: Arc<Store>,
    header_tables: BTreeSet<u32>,
}

impl Engine {
    /// Restores tables from a backup, one keyspace after the other, and then roles if they are wanted. Existing tables of the same names
    /// become a snapshot.
    ///
    /// # Errors
    /// [`CqlError::Invalid`] if there is no such backup, keyspace or table, or if the restored tables conflict with the present content of
    /// a keyspace. Otherwise something can't be read or written. Keyspaces before the failed one are restored then, and nothing of the
    /// others.
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
                self.open_source_as_of(&location, time_of(literal)?, wanted)
                    .await?
            }
        };
        let keyspaces = requested_keyspaces(&source, wanted)?;
        // New writes must have later timestamps than the restored rows.
        self.context.writing.timestamps.raise(source.clock_us);
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

    /// Opens the last backup before a time, and adds the writes up to that time from the logs in later backups.
    async fn open_source_as_of(
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
        // Origins of unwanted keyspaces may be missing from the backups, so only those of wanted ones are opened.
        let tables = keyspaces.iter().flat_map(|keyspace| keyspace.tables.values());
        let origins = tables.flat_map(|table| table.origins()).collect();
        let store = &self.context.store;
        let after = later.get(1..).unwrap_or_default();
        let opened = store.open_backup(location, begin, after, origins).await;
        let opened = opened.map_err(backup_error)?;
        let ops = store.ops_of_backups(location, &later, &history.positions, time_ms, &numbers);
        let ops = ops.await.map_err(|error| uncertain_or(error, time_ms))?;
        opened.add_to_pinned(ops).map_err(store_error)?;
        self.complete_batches_as_of(&opened, schema.clone(), time_ms)
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
        let earlier = Snapshot {
            tag: source.name.clone(),
            taken_ms: source.taken_ms,
            expires_ms: None,
            pinned: None,
            keyspace,
        };
        let now_ms = self.now_ms();
        let begun = ddl::change(self, |schema| {
            let begun = begin_copy(schema, &earlier, table, now_ms).map_err(CqlError::invalid)?;
            Ok(Some(begun))
        });
        let Some(Restoring { tag, numbers }) = begun.await? else {
            return Err(CqlError::Server("nothing was begun".to_owned()));
        };
        let copied = Restore {
            tag: Some(tag.clone()),
            ..Restore::default()
        };
        let restored = match self
            .copy_from_backup(source, &earlier.keyspace.name, &numbers)
            .await
        {
            Ok(()) => self.apply_restore(&copied).await,
            Err(error) => Err(error),
        };
        match restored {
            Ok(restored) => Ok(RestoredKeyspace {
                keyspace: restored.keyspace,
                tables: restored.tables,
                replaced: restored.replaced,
            }),
            Err(error) => {
                // Clearing the snapshot lets compaction sweep the rows that were copied.
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

    /// Restores roles, which replace existing roles of the same names. Returns their names.
    async fn restore_roles(&self, earlier: &Schema) -> Result<Vec<String>, CqlError> {
        ddl::change(self, |schema| {
            Ok(with_roles(schema, earlier).map(|schema| (schema, ())))
        })
        .await?;
        let names: Vec<String> = earlier.access.roles.keys().cloned().collect();
        tracing::info!(roles = names.join(" "), "roles were restored");
        Ok(names)
    }
}

/// Returns the schema with the roles of a backup. `None` if it has them already. Permissions are left out if their table or keyspace is no
/// longer the one of the backup.
fn with_roles(schema: &Schema, earlier: &Schema) -> Option<Schema> {
    let mut roles = Roles::clone(&schema.access);
    let earlier_roles = &earlier.access;
    let as_earlier = |(name, of): (&String, &Arc<Role>)| {
        let mut role = Role::clone(of);
        role.permissions.retain(|on, permissions| {
            let is_same = on.is_system_data() || on.is_same(earlier, schema);
            if !is_same {
                let permissions = permissions.iter().map(Permission::name).collect::<Vec<_>>();
                tracing::warn!(role = %name, permissions = permissions.join(" "), %on, "permissions were not restored: the resource of that name is not the one in the backup");
            }
            is_same
        });
        (name.clone(), Arc::new(role))
    };
    roles.roles.extend(earlier_roles.roles.iter().map(as_earlier));
    roles.identities.extend(earlier_roles.identities.clone());
    roles.service_levels.extend(earlier_roles.service_levels.clone());
    (roles != *schema.access).then(|| Schema {
        access: Arc::new(roles),
        ..schema.clone()
    })
}

/// Returns the refusal of a time that a clock has shown twice, or converts another error.
fn uncertain_or(error: StoreError, time_ms: i64) -> CqlError {
    match error {
        StoreError::HistoryUncertain { from_ms, to_ms } => uncertain(time_ms, from_ms, to_ms),
        other => backup_error(other),
    }
}

/// Returns the last backup before a time, and the following ones up to the first that was written after that time.
///
/// # Errors
/// A message: the time is not between two backups with history.
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

fn requested_keyspaces(source: &Source, wanted: &RestoreBackup) -> Result<Vec<Arc<Keyspace>>, CqlError> {
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
