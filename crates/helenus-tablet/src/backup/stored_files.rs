//! Finds the files of a pinned tablet.

use std::collections::BTreeSet;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path;
use slatedb::admin::Admin;

use crate::error::{StoreError, from_slatedb};
use crate::metadata::slatedb_layout::{inherited_tables, manifest_path, table_path, tablet_path};

/// The paths of a tablet's files.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StoredFiles {
    pub manifest: Path,
    /// Paths of the SSTables. Some SSTables of a tablet that was split lie in the folders of its ancestors.
    pub tables: BTreeSet<Path>,
}

/// Returns the files of tablet `id` that its manifest number `manifest` lists.
///
/// # Errors
/// The manifest does not exist, or can't be read.
pub(super) async fn stored_files(
    objects: &Arc<dyn ObjectStore>,
    id: u32,
    manifest: u64,
) -> Result<StoredFiles, StoreError> {
    let root = tablet_path(id);
    let path = manifest_path(id, manifest);
    let read = Admin::builder(root.clone(), objects.clone())
        .build()
        .read_manifest(Some(manifest))
        .await;
    let read = read.map_err(|error| from_slatedb(&error))?;
    let read = read.ok_or_else(|| StoreError::FileGone(path.to_string()))?;
    let inherited = inherited_tables(&read);
    let tables = read.all_sst_views().map(|view| {
        let id = view.sst.id;
        table_path(inherited.get(&id).unwrap_or(&root), id)
    });
    Ok(StoredFiles {
        tables: tables.collect(),
        manifest: path,
    })
}
