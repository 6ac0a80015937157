//! The manifest of a tablet whose database another process has open, and may change at any time.
//!
//! Manifests are numbered without gaps, so a look for a newer one is a GET of the next number, which mostly is not there. Old manifests are
//! deleted after a while ([`DOCUMENTS`]), and the next one might be among them, so twice in that time the newest is found by a listing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use object_store::ObjectStore;
use parking_lot::Mutex;
use slatedb::admin::Admin;
use slatedb::manifest::VersionedManifest;

use crate::error::{StoreError, from_slatedb};
use crate::metadata::slatedb_layout::{DOCUMENTS, tablet_path};

/// Manifests that one look follows by their numbers before it asks for a listing.
const STEPS_MAX: usize = 16;

/// The outcome of a look for manifests by their numbers.
enum Stepped {
    /// The last manifest behind the known one; none if the known one is the last.
    Last(Option<Arc<VersionedManifest>>),
    /// There are more than a look follows.
    TooMany,
}

/// The newest manifest that has been read.
pub(crate) struct FollowedManifest {
    tablet: u32,
    admin: Admin,
    /// How long a look may take.
    timeout: Duration,
    /// None as long as there is no database: the first owner of the tablet creates it.
    newest: Mutex<Option<Arc<VersionedManifest>>>,
    /// When the last listing that succeeded began. Held during a look.
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

    /// Returns the newest manifest that has been read.
    pub fn newest(&self) -> Option<Arc<VersionedManifest>> {
        self.newest.lock().clone()
    }

    /// Reads the newest manifest, if it is not known.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        self.look(false).await.map(drop)
    }

    /// Reads the newest manifest after a file of manifest `used` was not found: files are deleted only after a newer manifest without them has
    /// been written.
    ///
    /// # Errors
    /// [`StoreError::FileGone`] if there is no database any more, since the tablet was split or merged.
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

    /// Returns the newest manifest; `None` if there is none. With `lists` off, a listing may be left out where numbers do.
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
            // Only a listing tells that there is none.
            return Ok(self.newest().filter(|_| !lists));
        };
        let mut newest = self.newest.lock();
        if newest.as_ref().is_none_or(|newest| newest.id() < found.id()) {
            *newest = Some(found);
        }
        Ok(newest.clone())
    }

    /// Looks for the last manifest behind the known one by its number.
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
