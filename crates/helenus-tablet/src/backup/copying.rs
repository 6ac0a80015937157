//! Copies the files of pinned tablets to the backup location, except files that are there already.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt};
use serde::Serialize;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::digest::{digest, sha256};
use super::document::{BackupContent, BackupDocument, BackupFile, backup_name, check_backup_name};
use super::history::newest_path;
use super::location::BackupLocation;
use super::retention::{Keep, retain};
use super::running::Running;
use super::stored_files::stored_files;
use crate::error::{StoreError, chain};
use crate::history::chunk;
use crate::store::history::LogToCopy;
use crate::store::{Store, unfinished_batches};
use crate::tablet::pin::PinnedTablet;

/// Files that are copied or read concurrently.
pub(super) const FILES: usize = 4;
/// Interval between log messages about the progress of a backup.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// Content and destination of a backup.
pub struct BackupOrder<'o> {
    pub location: &'o BackupLocation,
    /// The host id of the node that writes the backup.
    pub node: Uuid,
    /// The backup's name. `None` for a name made from the time of the cut.
    pub name: Option<&'o str>,
    pub tablets: &'o [PinnedTablet],
    /// Pinned tablets of the tables' origins, one list for each cut. Their files belong to the backup too.
    pub origins: Vec<Arc<[PinnedTablet]>>,
    /// Pinned tablets of origins that tables had at some time since the previous backup. A restore to a time between the two backups needs
    /// them.
    pub former_origins: Vec<Arc<[PinnedTablet]>>,
    pub content: BackupContent,
    /// Limits by which older backups are removed afterwards.
    pub keep: Keep,
}

/// Outcome of a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BackupReport {
    pub name: String,
    pub copied_files: u64,
    pub copied_bytes: u64,
    /// Files that an earlier backup had already copied.
    pub reused_files: u64,
    pub reused_bytes: u64,
    /// Names of older backups that were removed by the retention limits.
    pub removed_backups: Vec<String>,
    /// Removed files, which no remaining backup needs.
    pub removed_files: u64,
    pub removed_bytes: u64,
    /// Reason why older backups could not be removed. `None` if the removal succeeded.
    pub warning: Option<String>,
}

impl Store {
    /// Writes a backup of pinned tablets. The caller must keep them pinned until this returns.
    ///
    /// # Errors
    /// [`StoreError::InvalidConfig`] if the location belongs to another store, has a backup of that name, or is in use by another node.
    /// Other errors if files can't be read or written. After an error there is no such backup; the next one reuses the files that were
    /// copied.
    pub async fn back_up(&self, order: BackupOrder<'_>) -> Result<BackupReport, StoreError> {
        let name = match order.name {
            Some(name) => name.to_owned(),
            None => backup_name(order.content.taken_ms),
        };
        check_backup_name(&name).map_err(StoreError::InvalidConfig)?;
        order.location.claim(self.identity_of_backups()).await?;
        let running = Running::begin(order.location, order.node).await?;
        let done = self.back_up_alone(&order, &name).await;
        running.end().await;
        done
    }

    async fn back_up_alone(&self, order: &BackupOrder<'_>, name: &str) -> Result<BackupReport, StoreError> {
        let location = order.location;
        let listed = location.list().await?;
        let is_there = listed.documents.iter().any(|document| document.name == name);
        if is_there {
            let why = format!("there is a backup {name} in {location} already");
            return Err(StoreError::InvalidConfig(why));
        }
        for (path, why) in &listed.unreadable {
            tracing::warn!(path, why, "a backup can't be read");
        }
        let files = self.files()?;
        // Reading from the object store directly keeps the copied files out of the disk cache.
        let from = self.objects().unwrap_or(files.objects);
        let copier = Copier {
            from,
            location: location.clone(),
            known: known_files(&listed.documents),
            there: location.files().await?,
            background: files.databases.background,
        };
        let mut report = BackupReport {
            name: name.to_owned(),
            ..BackupReport::default()
        };
        let before = listed
            .documents
            .iter()
            .rev()
            .find_map(|before| before.content.history.as_ref());
        let former = order.former_origins.iter().filter(|_| before.is_some());
        let origins = order.origins.iter().chain(former).map(|pinned| pinned.as_ref());
        let cuts: Vec<&[PinnedTablet]> = [order.tablets].into_iter().chain(origins).collect();
        let copier = Arc::new(copier);
        let mut files = copier.clone().copy_all(&cuts, &mut report).await?;
        if let (Some(_), Some(before)) = (&order.content.history, before) {
            let logs = self.history_to_copy(&before.positions).await?;
            files.extend(copier.copy_history(name, logs, &mut report).await?);
        }
        let content = order.content.clone();
        let document = BackupDocument::new(name, self.identity_of_backups(), content, order.tablets, files);
        location.put(&document).await?;
        let removed = retain(location, order.keep, document.content.taken_ms).await;
        match removed {
            Ok(removed) => {
                report.removed_backups = removed.backups;
                report.removed_files = removed.files;
                report.removed_bytes = removed.bytes;
            }
            Err(error) => {
                tracing::warn!(%error, "older backups could not be removed");
                report.warning = Some(format!("older backups could not be removed: {error}"));
            }
        }
        Ok(report)
    }

    /// Returns the id that ties a backup location to this store.
    fn identity_of_backups(&self) -> Uuid {
        self.identity().unwrap_or(self.store_id)
    }
}

/// Returns the files that earlier backups list, by path.
fn known_files(documents: &[BackupDocument]) -> HashMap<String, BackupFile> {
    let files = documents.iter().flat_map(|document| &document.files);
    files.map(|file| (file.path.clone(), file.clone())).collect()
}

/// A file that is now in the backup location.
struct Copied {
    file: BackupFile,
    /// True if the file was there before this backup.
    is_reused: bool,
}

impl BackupReport {
    fn count(&mut self, copied: &Copied) {
        let (files, bytes) = match copied.is_reused {
            true => (&mut self.reused_files, &mut self.reused_bytes),
            false => (&mut self.copied_files, &mut self.copied_bytes),
        };
        *files += 1;
        *bytes += copied.file.bytes;
    }

    fn log_progress(&self, all: usize) {
        tracing::info!(
            name = self.name,
            files = self.copied_files + self.reused_files,
            of = all,
            copied_bytes = self.copied_bytes,
            "backing up"
        );
    }
}

/// Copies the files of a store.
struct Copier {
    from: Arc<dyn ObjectStore>,
    location: BackupLocation,
    /// Files that the documents of earlier backups list, by path.
    known: HashMap<String, BackupFile>,
    /// Bytes of each file that is in the backup location, by path.
    there: HashMap<String, u64>,
    /// The runtime for background work, so that copying does not delay client requests.
    background: tokio::runtime::Handle,
}

impl Copier {
    /// Copies the missing files of the given cuts. Returns all of their files, including those that were there already.
    async fn copy_all(
        self: Arc<Self>,
        cuts: &[&[PinnedTablet]],
        report: &mut BackupReport,
    ) -> Result<Vec<BackupFile>, StoreError> {
        let mut files = Vec::new();
        let mut tables = BTreeSet::new();
        for cut in cuts {
            if let Some(copied) = self.copy_unfinished_batches(cut).await? {
                report.count(&copied);
                files.push(copied.file);
            }
        }
        let tablets: BTreeSet<(u32, u64)> = cuts
            .iter()
            .flat_map(|cut| cut.iter().map(|tablet| (tablet.id, tablet.manifest)))
            .collect();
        for (id, manifest) in &tablets {
            let stored = stored_files(&self.from, *id, *manifest).await?;
            let copied = self.copy_document(&stored.manifest).await?;
            report.count(&copied);
            files.push(copied.file);
            tables.extend(stored.tables);
        }
        let all = tablets.len() + tables.len();
        let mut waiting = tables.into_iter();
        let mut copies = JoinSet::new();
        let mut reported = Instant::now();
        loop {
            for path in waiting.by_ref().take(FILES - copies.len()) {
                let copier = self.clone();
                let copying = async move { copier.copy_table(&path).await };
                copies.spawn_on(copying, &self.background);
            }
            let Some(copied) = copies.join_next().await else {
                break;
            };
            let copied = copied.map_err(|error| StoreError::Unavailable(error.to_string()))??;
            report.count(&copied);
            files.push(copied.file);
            if reported.elapsed() >= PROGRESS_INTERVAL {
                reported = Instant::now();
                report.log_progress(all);
            }
        }
        Ok(files)
    }

    /// Copies the history of logs: their chunks, and the newest frames, which are in no chunk yet.
    async fn copy_history(
        &self,
        name: &str,
        logs: Vec<LogToCopy>,
        report: &mut BackupReport,
    ) -> Result<Vec<BackupFile>, StoreError> {
        let mut files = Vec::new();
        for log in logs {
            for path in &log.chunks {
                let copied = self.copy_document(path).await?;
                report.count(&copied);
                files.push(copied.file);
            }
            for (at, part) in log.newest.into_iter().enumerate() {
                let path = newest_path(name, log.log, at);
                let encoded = chunk::encode(&part)
                    .map_err(|error| StoreError::Unavailable(format!("cannot compress {path}: {error}")))?;
                let file = BackupFile {
                    path: path.to_string(),
                    bytes: encoded.len() as u64,
                    sha256: sha256(&encoded),
                };
                self.location.write(&path, encoded.into()).await?;
                let copied = Copied {
                    file,
                    is_reused: false,
                };
                report.count(&copied);
                files.push(copied.file);
            }
        }
        Ok(files)
    }

    /// Copies the operations of batches that were unfinished at a cut. `None` if there were none.
    async fn copy_unfinished_batches(&self, cut: &[PinnedTablet]) -> Result<Option<Copied>, StoreError> {
        let Some(path) = unfinished_batches::path(cut) else {
            return Ok(None);
        };
        match self.from.head(&path).await {
            Ok(_) => self.copy_document(&path).await.map(Some),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => {
                let why = format!("cannot read {path}: {}", chain(&error));
                Err(StoreError::Unavailable(why))
            }
        }
    }

    /// Copies a manifest or another small file. The content is compared too, because a name is not unique: a store that was restored from a
    /// copy of its folder assigns the same manifest numbers again.
    async fn copy_document(&self, path: &Path) -> Result<Copied, StoreError> {
        let failed = |error| StoreError::Unavailable(format!("cannot read {path}: {}", chain(&error)));
        let content = self
            .from
            .get(path)
            .await
            .map_err(failed)?
            .bytes()
            .await
            .map_err(failed)?;
        let file = BackupFile {
            path: path.to_string(),
            bytes: content.len() as u64,
            sha256: sha256(&content),
        };
        let is_intact = self.there.get(&file.path) == Some(&file.bytes);
        match self.known.get(&file.path) {
            Some(known) if *known != file => Err(StoreError::InvalidConfig(format!(
                "{} has another {path}: this store was restored from a copy since then. Use another place for its backups",
                self.location
            ))),
            Some(_) if is_intact => Ok(Copied {
                file,
                is_reused: true,
            }),
            _ => {
                self.location.write(path, content.into()).await?;
                Ok(Copied {
                    file,
                    is_reused: false,
                })
            }
        }
    }

    /// Copies an SSTable if it is not there yet. The name of an SSTable is unique, so its content is not compared.
    async fn copy_table(&self, path: &Path) -> Result<Copied, StoreError> {
        let there = self.there.get(path.as_ref()).copied();
        let known = self.known.get(path.as_ref());
        if let Some(file) = known.filter(|known| there == Some(known.bytes)) {
            let file = file.clone();
            return Ok(Copied {
                file,
                is_reused: true,
            });
        }
        let found = self.from.head(path).await;
        let bytes = found
            .map_err(|error| StoreError::Unavailable(format!("cannot read {path}: {}", chain(&error))))?
            .size;
        // A file left by an interrupted backup has no recorded checksum. The store's file has the same name and length, so its checksum is
        // used.
        let is_reused = there == Some(bytes);
        let sha256 = match is_reused {
            true => digest(&self.from, path, bytes, None).await?,
            false => self.upload(path, bytes).await?,
        };
        let file = BackupFile {
            path: path.to_string(),
            bytes,
            sha256,
        };
        Ok(Copied { file, is_reused })
    }

    /// Writes a file in parts. Returns its SHA-256.
    async fn upload(&self, path: &Path, bytes: u64) -> Result<String, StoreError> {
        let failed = |error| self.location.failed(&format!("cannot write {path}"), &error);
        let mut upload = self.location.objects.put_multipart(path).await.map_err(failed)?;
        match digest(&self.from, path, bytes, Some(upload.as_mut())).await {
            Ok(sha256) => {
                upload.complete().await.map_err(failed)?;
                Ok(sha256)
            }
            Err(error) => {
                // A failed abort is ignored, because the remaining parts only cost space.
                let _ = upload.abort().await;
                Err(error)
            }
        }
    }
}

#[cfg(test)]
#[path = "copying_tests.rs"]
mod tests;
