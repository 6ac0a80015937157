//! Standby tablets: databases that are opened before this node owns the tablet, to shorten a hand-over.
//!
//! An owner that hands a tablet over closes it and then records the new owner. The new owner begins to open the database meanwhile. A
//! standby tablet serves neither reads nor writes until [`Store::open_tablet`] promotes it. The promotion first checks whether another
//! process has opened the tablet since.

use std::sync::Arc;
use std::time::{Duration, Instant};

use helenus_row::TokenRange;

use super::Remote;
use super::tablets::OpenedDatabase;
use crate::error::StoreError;
use crate::store::Store;

/// A standby tablet that is not promoted within this time is closed: this node did not become the owner.
const STANDBY_TIMEOUT: Duration = Duration::from_secs(5);

/// A tablet opened before this node owns it.
pub(super) struct StandbyTablet {
    tokens: TokenRange,
    began: Instant,
    opened: OpenedDatabase,
}

impl Store {
    /// Opens a tablet that its owner hands over to this node, as far as that is possible before this node owns the tablet. The owner has
    /// closed it.
    ///
    /// # Errors
    /// The tablet cannot be opened, or is already open, or is being opened or closed. [`Store::open_tablet`] then does all of the work.
    pub async fn open_standby(self: &Arc<Self>, id: u32, tokens: TokenRange) -> Result<(), StoreError> {
        let store = self.clone();
        // The opening continues if the future is dropped.
        let opening = self
            .remote()?
            .serving
            .spawn(async move { store.open_standby_now(id, tokens).await });
        opening
            .await
            .unwrap_or_else(|error| Err(StoreError::Unavailable(error.to_string())))
    }

    async fn open_standby_now(self: Arc<Self>, id: u32, tokens: TokenRange) -> Result<(), StoreError> {
        let remote = self.remote()?;
        let changing = remote.try_lock(id);
        let is_open = || self.tablets.load().iter().any(|tablet| tablet.id() == id);
        if changing.is_none() || is_open() {
            return Err(StoreError::InvalidConfig(format!("tablet {id} is in use")));
        }
        let began = Instant::now();
        let opened = remote.open_database(&self, id, tokens).await?;
        let took_ms = began.elapsed().as_millis();
        tracing::debug!(
            tablet = id,
            took_ms,
            "the tablet's database is open ahead of time"
        );
        let standby = StandbyTablet {
            tokens,
            began,
            opened,
        };
        if let Some(older) = remote.standby.lock().insert(id, standby) {
            tokio::spawn(older.opened.tablet.close_unserved());
        }
        let store = Arc::downgrade(&self);
        tokio::spawn(async move {
            tokio::time::sleep(STANDBY_TIMEOUT).await;
            if let Some(store) = store.upgrade()
                && let Ok(remote) = store.remote()
            {
                remote.expire_standby(id, began);
            }
        });
        Ok(())
    }
}

impl Remote {
    /// Promotes a standby tablet, if no other process has opened it since. Must be called after this node has become the owner.
    pub(super) async fn promote_standby(&self, id: u32, tokens: TokenRange) -> Option<OpenedDatabase> {
        let standby = self.standby.lock().remove(&id)?;
        // A process that opens a tablet first records that in the manifest, so that the refresh of the manifest fails here.
        let is_current = standby.opened.own.log.closed().is_none() && standby.tokens == tokens;
        let is_ours = match standby.opened.tablet.db.owned() {
            Ok(db) if is_current => db.refresh_manifest().await.is_ok(),
            _ => false,
        };
        tracing::debug!(tablet = id, is_ours, "the tablet was opened ahead");
        if is_ours {
            return Some(standby.opened);
        }
        tokio::spawn(standby.opened.tablet.close_unserved());
        None
    }

    fn expire_standby(&self, id: u32, began: Instant) {
        let mut all = self.standby.lock();
        if all.get(&id).is_some_and(|standby| standby.began == began)
            && let Some(standby) = all.remove(&id)
        {
            tracing::info!(
                tablet = id,
                "a tablet that was opened ahead did not become this node's"
            );
            tokio::spawn(standby.opened.tablet.close_unserved());
        }
    }

    /// Closes all standby tablets.
    pub(super) fn close_standbys(&self) {
        let all = std::mem::take(&mut *self.standby.lock());
        all.into_values()
            .for_each(|standby| drop(tokio::spawn(standby.opened.tablet.close_unserved())));
    }
}
