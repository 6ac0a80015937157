//! The paths of SlateDB's databases, and the retention of their small documents.

use std::time::Duration;

use hashbrown::HashMap;
use object_store::path::Path;
use slatedb::config::GarbageCollectorDirectoryOptions;
use slatedb::manifest::{SsTableId, VersionedManifest};

/// Retention of SlateDB's small documents: old manifests and lists of compactions.
pub(crate) const DOCUMENTS: GarbageCollectorDirectoryOptions = GarbageCollectorDirectoryOptions {
    // The interval is long, because each run lists the bucket once for each tablet.
    interval: Some(Duration::from_secs(300)),
    min_age: Duration::from_secs(120),
    dry_run: false,
};

/// Returns the path of a tablet's database in the object store.
pub(crate) fn tablet_path(id: u32) -> Path {
    Path::from(format!("tablets/{id}"))
}

/// Returns the path of a manifest of a tablet.
pub(crate) fn manifest_path(id: u32, number: u64) -> Path {
    tablet_path(id)
        .join("manifest")
        .join(format!("{number:020}.manifest"))
}

/// Returns the tablet and the number of a manifest. `None` if the path is not a manifest's.
pub(crate) fn tablet_of_manifest(path: &Path) -> Option<(u32, u64)> {
    let mut parts = path.parts();
    let (_, id, _) = (parts.next()?, parts.next()?, parts.next()?);
    let (name, id) = (parts.next()?, id.as_ref().parse().ok()?);
    let number = name.as_ref().strip_suffix(".manifest")?.parse().ok()?;
    (manifest_path(id, number) == *path).then_some((id, number))
}

/// Returns the path of an SSTable that was written by the tablet with the folder `root`.
pub(crate) fn table_path(root: &Path, id: SsTableId) -> Path {
    root.clone().join("compacted").join(format!("{}.sst", id.value()))
}

/// Returns the SSTables of a clone that lie in the folders of the tablets that it was made from, with these folders.
pub(crate) fn inherited_tables(manifest: &VersionedManifest) -> HashMap<SsTableId, Path> {
    let databases = manifest.external_dbs().iter();
    databases
        .flat_map(|db| db.sst_ids.iter().map(|id| (*id, Path::from(db.path.as_str()))))
        .collect()
}
