//! The manifest of a tablet whose database another process has open, and may change at any time.
//!
//! Manifests are numbered without gaps, so a look for a newer one is a GET of the next number, which usually does not exist. Old manifests
//! are deleted after a while ([`DOCUMENTS`]), and the next number may be among them. Therefore a listing finds the newest manifest twice in
//! that time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use object_store::ObjectStore;
use parking_lot::Mutex;
use slatedb::admin::Admin;
use slatedb::manifest::VersionedManifest;

use crate::error::{StoreError, from_slatedb};
use crate::metadata::slatedb_layout::{DOCUMENTS, tablet_path};

/// Maximum number of manifests that a look follows by number before it falls back to a listing.
const STEPS_MAX: usize = 16;

/// Outcome of a look for manifests by number.
enum Stepped {
    /// The newest manifest. `None` if the known one is the newest.
    Last(Option<Arc<VersionedManifest>>),
    /// There are more manifests than a look follows.
    TooMany,
}

/// Follows the newest manifest of a tablet.
pub(crate) struct FollowedManifest {
    tablet: u32,
    admin: Admin,
    /// Maximum time of a look.
    timeout: Duration,
    /// The newest manifest read so far. `None` until the first owner of the tablet has created its database.
    newest: Mutex<Option<Arc<VersionedManifest>>>,
    /// Start of the last successful listing. `None` if there was none. The lock is held during a look.
    listed: tokio::sync::Mutex<Option<Instant>>,
}

impl FollowedManifest {
    /// Reads the newest manifest of a tablet.
    pub async fn open(
        tablet: u32,
        store: Arc<dyn ObjectStore>,
        timeout: Duration,
    ) -> Result<FollowedManifest, StoreError> {
        let followed = FollowedManifest {
            tablet,
            admin: Admin::builder(tablet_path(tablet), store).build(),
            timeout,
            newest: Mutex::default(),
            listed: tokio::sync::Mutex::default(),
        };
        followed.refresh().await?;
        Ok(followed)
    }

    /// Returns the newest manifest read so far. `None` if there is no database yet.
    pub fn newest(&self) -> Option<Arc<VersionedManifest>> {
        self.newest.lock().clone()
    }

    /// Reads manifests that are newer than the known one.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        self.look(false).await.map(drop)
    }

    /// Reads the newest manifest after a file of manifest `used` was not found. Files are deleted only after a newer manifest without them
    /// has been written.
    ///
    /// # Errors
    /// [`StoreError::FileGone`] if the database does not exist any more, because the tablet was split or merged. [`StoreError::Corrupt`] if
    /// there is no newer manifest.
    pub async fn refresh_after_loss(&self, used: u64) -> Result<Arc<VersionedManifest>, StoreError> {
        let newest = match self.newest() {
            Some(newest) if newest.id() > used => Some(newest),
            _ => self.look(true).await?,
        };
        match newest {
            None => Err(StoreError::FileGone("the tablet's database is gone".to_owned())),
            Some(newest) if newest.id() > used => Ok(newest),
            Some(newest) => Err(StoreError::Corrupt {
                file: format!(
                    "{}/manifest/{:020}.manifest",
                    tablet_path(self.tablet),
                    newest.id()
                ),
                detail: "one of its files is missing".to_owned(),
            }),
        }
    }

    /// Returns the newest manifest. `None` if there is none. With `lists`, the manifests are always listed; otherwise only if a listing is
    /// due or numbers do not suffice.
    async fn look(&self, lists: bool) -> Result<Option<Arc<VersionedManifest>>, StoreError> {
        let mut listed = self.listed.lock().await;
        let began = Instant::now();
        let is_due = listed.is_none_or(|listed| listed.elapsed() > DOCUMENTS.min_age / 2);
        let look = async {
            if !lists && !is_due {
                let known = self.newest().map_or(0, |newest| newest.id());
                if let Stepped::Last(found) = self.step(known).await? {
                    return Ok(found);
                }
            }
            let found = self.read(None).await?.map(Arc::new);
            *listed = Some(began);
            Ok::<_, StoreError>(found)
        };
        let found = tokio::time::timeout(self.timeout, look).await;
        let found = found.unwrap_or_else(|_| {
            let why = "the object store did not answer a read of a manifest";
            Err(StoreError::Unavailable(why.to_owned()))
        });
        let Some(found) = found? else {
            // Only a listing can show that there is no manifest.
            return Ok(self.newest().filter(|_| !lists));
        };
        let mut newest = self.newest.lock();
        if newest.as_ref().is_none_or(|newest| newest.id() < found.id()) {
            *newest = Some(found);
        }
        Ok(newest.clone())
    }

    /// Looks by number for the newest manifest after `known`.
    async fn step(&self, known: u64) -> Result<Stepped, StoreError> {
        let mut last = None;
        for id in (known + 1..).take(STEPS_MAX) {
            match self.read(Some(id)).await? {
                Some(found) => last = Some(Arc::new(found)),
                None => return Ok(Stepped::Last(last)),
            }
        }
        Ok(Stepped::TooMany)
    }

    async fn read(&self, id: Option<u64>) -> Result<Option<VersionedManifest>, StoreError> {
        let read = self.admin.read_manifest(id).await;
        read.map_err(|error| from_slatedb(&error))
    }
}
