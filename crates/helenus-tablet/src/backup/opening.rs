//! Opens a backup, to read it.

use std::collections::BTreeMap;
use std::sync::Arc;

use object_store::path::Path;
use uuid::Uuid;

use super::digest::sha256;
use super::document::BackupDocument;
use super::location::BackupLocation;
use crate::error::StoreError;
use crate::metadata::slatedb_layout::manifest_path;
use crate::store::Store;
use crate::store::pinned::TabletFiles;
use crate::tablet::origins::TableOrigin;
use crate::tablet::pin::PinnedTablet;

impl Store {
    /// Returns the tablets of a backup as a store, which can only be read, with the origins that its tables had. The files of the origins
    /// may be those of `later` backups. It takes its memory and its threads from this one.
    ///
    /// # Errors
    /// A manifest is missing or damaged. Blocks of SSTables have checksums of their own, by which they are read.
    pub async fn open_backup(
        self: &Arc<Self>,
        location: &BackupLocation,
        backup: &BackupDocument,
        later: &[BackupDocument],
        origins: Vec<(u32, Arc<TableOrigin>)>,
    ) -> Result<Arc<Store>, StoreError> {
        let tablets: Vec<PinnedTablet> = backup.tablets.iter().map(PinnedTablet::from).collect();
        let of_origins = origins.iter().flat_map(|(_, origin)| origin.all_pinned());
        let all: BTreeMap<Uuid, &PinnedTablet> = tablets
            .iter()
            .chain(of_origins)
            .map(|tablet| (tablet.checkpoint, tablet))
            .collect();
        for tablet in all.into_values() {
            check_manifest(location, backup, later, tablet).await?;
        }
        let files = TabletFiles {
            objects: location.objects.clone(),
            read_timeout: None,
            ..self.files()?
        };
        self.open_pinned_from(files, &tablets, origins).await
    }
}

/// Refuses a manifest that is not as the backup says: manifests have no checksums of their own.
async fn check_manifest(
    location: &BackupLocation,
    backup: &BackupDocument,
    later: &[BackupDocument],
    tablet: &PinnedTablet,
) -> Result<(), StoreError> {
    let path: Path = manifest_path(tablet.id, tablet.manifest);
    let mut files = [backup].into_iter().chain(later).flat_map(|of| &of.files);
    let file = files.find(|file| file.path == path.as_ref());
    let content = location.read(&path).await?;
    let problem = match (content, file) {
        (None, _) => "it is missing",
        (Some(_), None) => "the backup does not list it",
        (Some(content), Some(file)) if sha256(&content) != file.sha256 => "it does not match its checksum",
        (Some(_), Some(_)) => return Ok(()),
    };
    Err(StoreError::Corrupt {
        file: format!("{location}/{path}"),
        detail: format!("{problem}; see helenus backup verify"),
    })
}
