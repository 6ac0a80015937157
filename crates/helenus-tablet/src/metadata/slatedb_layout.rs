//! The paths of SlateDB's databases, and the retention of their small documents.

use std::time::Duration;

use object_store::path::Path;
use slatedb::config::GarbageCollectorDirectoryOptions;

/// How SlateDB deletes its small documents: old manifests, lists of compactions.
pub(crate) const DOCUMENTS: GarbageCollectorDirectoryOptions = GarbageCollectorDirectoryOptions {
    // Each look is a listing of a bucket, for each tablet.
    interval: Some(Duration::from_secs(300)),
    min_age: Duration::from_secs(120),
    dry_run: false,
};

/// Where a tablet's database lies in the object store.
pub(crate) fn tablet_path(id: u32) -> Path {
    Path::from(format!("tablets/{id}"))
}
