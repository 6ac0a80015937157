//! Backups of all keyspaces to another location ([`helenus_tablet::BackupLocation`]), while clients are served.
//!
//! A backup copies the files of a snapshot of all tables in use. It is therefore one consistent cut, which contains all of a batch or
//! nothing. The snapshot has a tag of the node's and pins the files while they are copied. It is cleared at the end, or when the node
//! starts again.

mod restoring;
mod times;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use helenus_cql::error::CqlError;
use helenus_row::murmur3_token;
use helenus_tablet::{
    BackupContent, BackupDocument, BackupHistory, BackupKey, BackupLocation, BackupOrder, BackupReport, Keep,
    PinnedTablet, StoreError, check_backup_name,
};
use serde::Deserialize;

use super::Engine;
use super::ddl::schema_store::read_whole;
use super::history::released::origin_cuts;
use super::snapshots::{Clear, Take, TakenCut};
use crate::boxed;
use crate::failure::store_error;
use crate::schema::names::is_system_name;
use crate::schema::{Keyspace, Schema, documents};

pub use restoring::{RestoreBackup, RestoredBackup, RestoredKeyspace};
pub use times::check_times;

/// Time after which the snapshot expires, if the node fails and never starts again.
const SNAPSHOT_TTL: Duration = Duration::from_secs(7 * 24 * 3600);
/// Key whose token selects the node of a cluster that writes scheduled backups.
const SCHEDULE_KEY: &[u8] = b"scheduled backups";

/// Settings of a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackUp {
    /// The URL of the location.
    pub to: String,
    /// The backup's name. `None` for one made of the backup's time.
    pub name: Option<String>,
    /// Number of newest backups to keep. `None` for no limit.
    pub keep: Option<usize>,
    /// Maximum age of a backup in milliseconds. `None` for no limit.
    pub keep_for_ms: Option<u64>,
    /// A file on this node with the key for encrypted backups. `None` for no encryption.
    pub key_file: Option<String>,
}

impl BackUp {
    fn place(&self) -> Result<BackupLocation, CqlError> {
        let key = key(self.key_file.as_deref())?;
        BackupLocation::create(&self.to, key).map_err(backup_error)
    }
}

/// Reads the key from a file. `None` without a file.
fn key(file: Option<&str>) -> Result<Option<BackupKey>, CqlError> {
    let key = file.map(|file| BackupKey::read(Path::new(file)));
    key.transpose().map_err(backup_error)
}

/// The content of a backup.
struct BackupCut {
    taken_ms: i64,
    schema: Schema,
    tablets: Arc<[PinnedTablet]>,
}

impl Engine {
    /// Writes a backup of all tables in use, with keyspaces and roles. `settings` are those settings of the node that the backup records.
    ///
    /// # Errors
    /// [`CqlError::Invalid`] if this node is writing a backup already, if the store cannot pin its tablets, or if the location has backups
    /// of another store. Otherwise something can't be read or written. No backup is left in any of these cases.
    #[boxed]
    pub async fn back_up(
        &self,
        wanted: &BackUp,
        settings: BTreeMap<String, String>,
    ) -> Result<BackupReport, CqlError> {
        let Ok(_alone) = self.cuts.backing_up.try_lock() else {
            return Err(CqlError::invalid(
                "this node is backing up already: wait until that has ended",
            ));
        };
        if let Some(name) = &wanted.name {
            check_backup_name(name).map_err(CqlError::invalid)?;
        }
        let location = wanted.place()?;
        self.clear_left_backups().await?;
        let take = Take {
            tag: format!("{}{}", self.backup_tags(), self.now_ms()),
            keyspaces: Vec::new(),
            tables: Vec::new(),
            ttl_ms: Some(SNAPSHOT_TTL.as_millis() as u64),
            skip_flush: false,
            as_of: None,
        };
        // With history, times after the backup are restored from its tablets. They must be pinned even if there is no table.
        let taken = self.take_cut(&take, self.cuts.history.is_on()).await?;
        let written = self.write_backup(wanted, &take.tag, &location, settings, &taken);
        let written = written.await;
        let cleared = self.clear_left_backups().await;
        let released = match &taken.hold {
            Some(hold) => self.trim_released(i64::MIN, Some(hold)).await,
            None => Ok(()),
        };
        let report = written?;
        // A snapshot that remains is cleared by the next backup.
        if let Err(error) = cleared.and(released) {
            tracing::warn!(%error, "the snapshot of a backup could not be cleared");
        }
        tracing::info!(
            name = report.name,
            location = %location,
            copied_files = report.copied_files,
            copied_bytes = report.copied_bytes,
            reused_files = report.reused_files,
            reused_bytes = report.reused_bytes,
            removed = report.removed_backups.join(" "),
            "a backup was written"
        );
        Ok(report)
    }

    /// Returns true on the node that writes scheduled backups. In a cluster this is the owner of one token, so that another node takes over
    /// if it fails.
    pub fn writes_scheduled_backups(&self) -> bool {
        self.context.owns(murmur3_token(SCHEDULE_KEY))
    }

    /// Returns the time of the newest backup in a location, in milliseconds since the Unix epoch. `None` if there is no backup.
    ///
    /// # Errors
    /// The location can't be read.
    #[boxed]
    pub async fn newest_backup_ms(&self, wanted: &BackUp) -> Result<Option<i64>, CqlError> {
        let listed = wanted.place()?.list().await.map_err(backup_error)?;
        Ok(listed.documents.last().map(|newest| newest.content.taken_ms))
    }

    /// Refuses a location that backups of this store cannot be written to. Writes and removes an object there.
    ///
    /// # Errors
    /// The location or the key is wrong ([`CqlError::Invalid`]), or the location does not answer.
    #[boxed]
    pub async fn check_backup_place(&self, wanted: &BackUp) -> Result<(), CqlError> {
        let place = wanted.place();
        let place = place.map_err(|error| CqlError::invalid(error.to_string()))?;
        place
            .check(self.context.store.store_id())
            .await
            .map_err(backup_error)
    }

    async fn write_backup(
        &self,
        wanted: &BackUp,
        tag: &str,
        location: &BackupLocation,
        settings: BTreeMap<String, String>,
        taken: &TakenCut,
    ) -> Result<BackupReport, CqlError> {
        let cut = cut(&self.schema(), tag, self.now_ms());
        let is_kept = self.cuts.history.is_on();
        let schema = documents::encode(&cut.schema)?;
        let schema = serde_json::from_slice(&schema);
        let history = match is_kept && !taken.positions.is_empty() {
            true => Some(BackupHistory {
                positions: taken.positions.clone(),
                schema_version: taken.schema_version,
                schema_changes: self.schema_changes().await?,
            }),
            false => None,
        };
        let origins = origin_cuts(&cut.schema);
        let former_origins = match is_kept {
            true => self.former_origins(&origins).await?,
            false => Vec::new(),
        };
        let tablets: &[PinnedTablet] = match cut.tablets.is_empty() && is_kept {
            true => &taken.tablets,
            false => &cut.tablets,
        };
        let order = BackupOrder {
            location,
            node: self.node.host_id,
            name: wanted.name.as_deref(),
            tablets,
            origins: origins.into_values().collect(),
            former_origins,
            content: BackupContent {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                taken_ms: cut.taken_ms,
                clock_us: self.context.store.clock_us().max(self.clock_us()),
                settings,
                header_tables: self.context.hooks.headers.all(),
                schema: schema
                    .map_err(|error| CqlError::Server(format!("can't write the schema: {error}")))?,
                history,
            },
            keep: Keep {
                count: wanted.keep,
                age: wanted.keep_for_ms.map(Duration::from_millis),
            },
        };
        self.context.store.back_up(order).await.map_err(backup_error)
    }

    /// Returns the prefix of the tags of this node's backup snapshots.
    fn backup_tags(&self) -> String {
        format!("backup-{}-", self.node.host_id)
    }

    /// Clears the snapshots that former backups of this node have left. Must not be called while a backup runs.
    ///
    /// # Errors
    /// The schema can't be written.
    pub(super) async fn clear_left_backups(&self) -> Result<(), CqlError> {
        let tags = self.backup_tags();
        let schema = self.schema();
        let left = schema.snapshots.values().map(|snapshot| &snapshot.tag);
        let mut left: Vec<&String> = left.filter(|tag| tag.starts_with(&tags)).collect();
        left.dedup();
        for tag in left {
            let which = Clear {
                tag: Some(tag.clone()),
                ..Clear::default()
            };
            self.clear_snapshots(&which).await?;
        }
        Ok(())
    }
}

/// Returns the content of a backup: the tables of the snapshot with this tag, which contains all tables. Roles, and keyspaces without
/// tables at that time, are today's.
fn cut(today: &Schema, tag: &str, now_ms: i64) -> BackupCut {
    let taken: Vec<_> = today
        .snapshots
        .values()
        .filter(|snapshot| snapshot.tag == tag)
        .collect();
    let mut schema = today.clone();
    schema.snapshots = Arc::default();
    schema.keyspaces = taken
        .iter()
        .map(|snapshot| (snapshot.keyspace.name.clone(), snapshot.keyspace.clone()))
        .collect();
    let is_users = |keyspace: &&Arc<Keyspace>| !keyspace.is_virtual && !is_system_name(&keyspace.name);
    for keyspace in today.keyspaces.values().filter(is_users) {
        // Tables that the keyspace has today were created after the snapshot.
        let without_tables = || {
            Arc::new(Keyspace {
                tables: BTreeMap::new(),
                ..Keyspace::clone(keyspace)
            })
        };
        schema
            .keyspaces
            .entry(keyspace.name.clone())
            .or_insert_with(without_tables);
    }
    let pinned = taken.iter().find_map(|snapshot| snapshot.pinned.clone());
    BackupCut {
        taken_ms: taken.first().map_or(now_ms, |snapshot| snapshot.taken_ms),
        schema,
        tablets: pinned.unwrap_or_default(),
    }
}

/// Returns the schema of a backup.
///
/// # Errors
/// The schema is damaged, or was written by a newer binary.
fn schema_of(backup: &BackupDocument) -> Result<Schema, CqlError> {
    let document = serde_json::to_vec(&backup.content.schema);
    let document = document.map_err(|error| CqlError::Server(error.to_string()))?;
    read_whole(&document)
}

/// Checks a backup apart from its files: this binary must understand its schema.
///
/// # Errors
/// A message that says what is wrong.
pub fn check_backup(backup: &BackupDocument) -> Result<(), String> {
    schema_of(backup).map(|_| ()).map_err(|error| error.to_string())
}

/// Returns the names of a backup's keyspaces, each with its tables but without views.
///
/// # Errors
/// The backup's schema can't be read.
pub fn tables_of_backup(backup: &BackupDocument) -> Result<BTreeMap<String, Vec<String>>, CqlError> {
    let schema = schema_of(backup)?;
    let tables = |keyspace: &Keyspace| {
        let tables = keyspace.tables.values().filter(|table| !table.is_view());
        tables.map(|table| table.name.clone()).collect()
    };
    let keyspaces = schema.keyspaces.values();
    Ok(keyspaces
        .map(|keyspace| (keyspace.name.clone(), tables(keyspace)))
        .collect())
}

/// Converts an error of a backup. A wrong setting becomes [`CqlError::Invalid`].
fn backup_error(error: StoreError) -> CqlError {
    match error {
        StoreError::InvalidConfig(why) => CqlError::invalid(why),
        other => store_error(other),
    }
}
