//! The database of a tablet as seen by this process: open for writing, followed, or pinned.

use std::sync::Arc;

use slatedb::Db;
use slatedb::manifest::VersionedManifest;

use super::followed::FollowedManifest;
use crate::error::StoreError;

/// A tablet's database.
pub(crate) enum TabletDb {
    /// The database is open in this process, which is the only writer.
    Owned(Db),
    /// The database is open in another process, or in none. Only its files are read here.
    Followed(Arc<FollowedManifest>),
    /// The database as of a consistent cut. Only its files are read.
    Pinned(Arc<VersionedManifest>),
}

impl TabletDb {
    /// Returns the newest known manifest. `None` if a followed tablet has no database yet.
    pub fn manifest(&self) -> Option<Arc<VersionedManifest>> {
        match self {
            TabletDb::Owned(db) => Some(Arc::new(db.manifest())),
            TabletDb::Followed(followed) => followed.newest(),
            TabletDb::Pinned(manifest) => Some(manifest.clone()),
        }
    }

    /// Returns the database for writing.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`] if only its files are read.
    pub fn owned(&self) -> Result<&Db, StoreError> {
        match self {
            TabletDb::Owned(db) => Ok(db),
            TabletDb::Followed(_) | TabletDb::Pinned(_) => Err(StoreError::ReadOnly),
        }
    }

    /// Returns the manifest of a database that another process may change. `None` if the database is owned or pinned.
    pub fn followed(&self) -> Option<&Arc<FollowedManifest>> {
        match self {
            TabletDb::Owned(_) | TabletDb::Pinned(_) => None,
            TabletDb::Followed(followed) => Some(followed),
        }
    }
}
