//! Makes the files of a tablet visible to readers as its manifest changes.

use std::sync::Arc;

use slatedb::Db;

use super::Tablet;
use crate::error::StoreError;

impl Tablet {
    /// Makes the tablet's current files visible to readers. Returns true if they differ from the files before.
    pub(crate) fn see_files(&self) -> bool {
        let has_changed = self
            .tables
            .refresh_files(|| self.db.manifest(), |files| self.stage.see_files(files));
        self.compactions.manifest_visible(self.tables.manifest());
        if has_changed && self.db.followed().is_some() {
            // The row cache of an owned tablet needs no such reset, because writes keep it up to date.
            self.cache.forget_all();
        }
        has_changed
    }

    /// Looks for newer files of a tablet that another process may write to.
    pub(crate) async fn follow(&self) -> Result<(), StoreError> {
        let Some(followed) = self.db.followed() else {
            return Ok(());
        };
        followed.refresh().await?;
        self.see_files();
        Ok(())
    }

    /// Makes the newest files visible to readers after a file of manifest `used` was not found.
    ///
    /// # Errors
    /// [`StoreError::NotOwned`] if the tablet is gone.
    pub(crate) async fn follow_after_loss(&self, used: u64) -> Result<(), StoreError> {
        let Some(followed) = self.db.followed() else {
            return Err(StoreError::ReadOnly);
        };
        match followed.refresh_after_loss(used).await {
            Ok(_) => {
                self.see_files();
                Ok(())
            }
            Err(StoreError::FileGone(_)) => Err(StoreError::NotOwned(self.tokens.first)),
            Err(error) => Err(error),
        }
    }
}

/// Makes a tablet's files visible to readers as they change, until the tablet is closed.
pub(crate) fn track_manifest(tablet: &Arc<Tablet>, db: &Db) -> impl Future<Output = ()> + use<> {
    let mut status = db.subscribe();
    let tablet = Arc::downgrade(tablet);
    async move {
        while status.changed().await.is_ok() {
            let Some(tablet) = tablet.upgrade() else {
                return;
            };
            tablet.see_files();
            if status.borrow_and_update().close_reason.is_some() {
                return;
            }
        }
    }
}
