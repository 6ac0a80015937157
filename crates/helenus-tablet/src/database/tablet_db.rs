//! The database of a tablet, as this process has it: open for writing, or followed.

use std::sync::Arc;

use slatedb::Db;
use slatedb::manifest::VersionedManifest;

use super::followed::FollowedManifest;
use crate::error::StoreError;

/// A tablet's database.
pub(crate) enum TabletDb {
    /// Open in this process, the only one that writes to it.
    Owned(Db),
    /// Open elsewhere, or nowhere. Only its files are read here.
    Followed(Arc<FollowedManifest>),
    /// As it was at one time. Only its files are read.
    Pinned(Arc<VersionedManifest>),
}

impl TabletDb {
    /// Returns the newest manifest that is known; `None` of a followed tablet that has no database yet.
    pub fn manifest(&self) -> Option<Arc<VersionedManifest>> {
        match self {
            TabletDb::Owned(db) => Some(Arc::new(db.manifest())),
            TabletDb::Followed(followed) => followed.newest(),
            TabletDb::Pinned(manifest) => Some(manifest.clone()),
        }
    }

    /// Returns the database, to write to it.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`] if only its files are read.
    pub fn owned(&self) -> Result<&Db, StoreError> {
        match self {
            TabletDb::Owned(db) => Ok(db),
            TabletDb::Followed(_) | TabletDb::Pinned(_) => Err(StoreError::ReadOnly),
        }
    }

    /// Returns the manifest of a database that another process may change.
    pub fn followed(&self) -> Option<&Arc<FollowedManifest>> {
        match self {
            TabletDb::Owned(_) | TabletDb::Pinned(_) => None,
            TabletDb::Followed(followed) => Some(followed),
        }
    }
}
