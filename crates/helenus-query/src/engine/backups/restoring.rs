//! Puts back what a backup has: rows are copied to tables under new numbers, and then a change of the schema makes these the tables.

use std::collections::BTreeSet;
use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_row::TableId;
use helenus_tablet::{BackupDocument, BackupLocation, Store};
use serde::{Deserialize, Serialize};

use super::{backup_error, key, schema_of};
use crate::engine::ddl::snapshots::{Restoring, begin_copy};
use crate::engine::snapshots::{Clear, Restore};
use crate::engine::{Engine, copying, ddl};
use crate::schema::roles::Roles;
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

/// An open backup.
struct Source {
    document: BackupDocument,
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
        let document = location
            .find(wanted.name.as_deref())
            .await
            .map_err(backup_error)?;
        let schema = schema_of(&document)?;
        let keyspaces = wanted_keyspaces(&document, &schema, wanted)?;
        let origins = ddl::origins(&schema);
        let store = self.context.store.open_backup(&location, &document, origins);
        let store = store.await;
        let source = Source {
            store: store.map_err(backup_error)?,
            header_tables: document.content.header_tables.iter().copied().collect(),
            document,
        };
        // What is written to restored tables is younger than what they have.
        self.context.timestamps.raise(source.document.content.clock_us);
        let mut restored = RestoredBackup {
            backup: source.document.name.clone(),
            taken_ms: source.document.content.taken_ms,
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
            restored.roles = self.restore_roles(&schema.access).await?;
        }
        Ok(restored)
    }

    async fn restore_keyspace(
        self: &Arc<Self>,
        source: &Source,
        keyspace: Arc<Keyspace>,
        table: Option<&str>,
    ) -> Result<RestoredKeyspace, CqlError> {
        let then = Snapshot {
            tag: source.document.name.clone(),
            taken_ms: source.document.content.taken_ms,
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
                backup = source.document.name,
                keyspace,
                table = table.0,
                to = to.0,
                rows,
                "rows were copied"
            );
        }
        Ok(())
    }

    /// Puts roles back in the place of those of the same names; their names.
    async fn restore_roles(&self, then: &Roles) -> Result<Vec<String>, CqlError> {
        ddl::change(self, |schema| {
            Ok(with_roles(schema, then).map(|schema| (schema, ())))
        })
        .await?;
        let names: Vec<String> = then.roles.keys().cloned().collect();
        tracing::info!(roles = names.join(" "), "roles were put back");
        Ok(names)
    }
}

/// The schema with the roles of a backup; none if it has them.
fn with_roles(schema: &Schema, then: &Roles) -> Option<Schema> {
    let mut roles = Roles::clone(&schema.access);
    let of_then = |(name, of): (&String, &Arc<_>)| (name.clone(), Arc::clone(of));
    roles.roles.extend(then.roles.iter().map(of_then));
    roles.identities.extend(then.identities.clone());
    roles.service_levels.extend(then.service_levels.clone());
    (roles != *schema.access).then(|| Schema {
        access: Arc::new(roles),
        ..schema.clone()
    })
}

fn wanted_keyspaces(
    backup: &BackupDocument,
    schema: &Schema,
    wanted: &RestoreBackup,
) -> Result<Vec<Arc<Keyspace>>, CqlError> {
    let Some(name) = &wanted.keyspace else {
        return Ok(schema.keyspaces.values().cloned().collect());
    };
    match schema.keyspaces.get(name) {
        Some(keyspace) => Ok(vec![keyspace.clone()]),
        None => {
            let names: Vec<&str> = schema.keyspaces.keys().map(String::as_str).collect();
            Err(CqlError::invalid(format!(
                "backup {} has no keyspace {name}; it has {}",
                backup.name,
                names.join(", ")
            )))
        }
    }
}

#[cfg(test)]
#[path = "restoring_tests.rs"]
mod tests;
