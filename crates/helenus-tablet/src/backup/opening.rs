//! Opens a backup for reading.

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
    /// Opens the tablets of a backup as a read-only store, with the given origins of its tables. Files of the origins may belong to `later`
    /// backups. The opened store shares the memory and the threads of this one.
    ///
    /// # Errors
    /// A manifest is missing or damaged. SSTables are not checked here, because their blocks have checksums that each read verifies.
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

/// Checks a manifest against the checksum in the backup's document. Manifests have no checksums of their own.
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
