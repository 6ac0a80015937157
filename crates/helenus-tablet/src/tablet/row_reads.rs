//! Reads of single rows, through the row cache.

use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::Tablet;
use crate::boxed;
use crate::cache::row_cache::{FillToken, Lookup};
use crate::error::StoreError;
use crate::stage::View;
use crate::tree::changes::Change;
use crate::{measurement, trace};

/// The result of a look-up in the row cache alone.
pub enum CachedRead {
    /// The merged row. `None` if the row is known to be absent.
    Hit(Option<Bytes>),
    Miss(CacheMiss),
}

/// A row that the row cache does not have. [`Tablet::get_missed`] reads it.
pub struct CacheMiss {
    /// Hash of the row's key.
    hash: u64,
    /// Permission to cache the row. `None` if the row is to be kept out of the row cache.
    fill: Option<FillToken>,
}

impl Tablet {
    /// Returns the merged row at `key`. The read sees every write that was acknowledged before the call.
    #[boxed]
    pub async fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        match self.get_cached(key) {
            CachedRead::Hit(row) => Ok(row),
            CachedRead::Miss(miss) => self.read_missed(key, miss).await,
        }
    }

    /// Looks up the row at `key` in the row cache alone, without waiting.
    pub fn get_cached(&self, key: &[u8]) -> CachedRead {
        self.counters.gets.fetch_add(1, Ordering::Relaxed);
        let hash = self.cache.hash(key);
        if !self.caches(key) {
            return CachedRead::Miss(CacheMiss { hash, fill: None });
        }
        match self.cache.lookup(hash, key, self.generation(key)) {
            Lookup::Hit(value) => {
                measurement::count(|store| store.row_cache_hits += 1);
                trace::step(|| "Row cache hit");
                CachedRead::Hit(value)
            }
            Lookup::Miss(token) => CachedRead::Miss(CacheMiss {
                hash,
                fill: Some(token),
            }),
        }
    }

    /// Returns the merged row at `key`, which [`Tablet::get_cached`] has not found. The read sees every write that was acknowledged before
    /// the call.
    #[boxed]
    pub async fn get_missed(&self, key: &[u8], miss: CacheMiss) -> Result<Option<Bytes>, StoreError> {
        self.read_missed(key, miss).await
    }

    async fn read_missed(&self, key: &[u8], miss: CacheMiss) -> Result<Option<Bytes>, StoreError> {
        let value = self.read_hashed(key, miss.hash).await?;
        if let Some(token) = &miss.fill {
            self.cache.fill(token, key, value.as_ref(), self.generation(key));
        }
        Ok(value)
    }

    /// Returns true if the row at `key` is looked up in the row cache, and inserted into it.
    fn caches(&self, key: &[u8]) -> bool {
        self.row_cache_on && self.model.caches_row(key)
    }

    /// Returns the merged row, bypassing the row cache.
    pub(crate) async fn read(&self, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.read_hashed(key, self.cache.hash(key)).await
    }

    /// Returns the merged row of a key with this hash, bypassing the row cache.
    async fn read_hashed(&self, key: &[u8], hash: u64) -> Result<Option<Bytes>, StoreError> {
        measurement::count(|store| store.row_cache_misses += 1);
        trace::step(|| "Row cache miss: reading memtable and runs");
        let View { change, tree } = self.stage.view(key)?;
        if let Some(Change::Whole(row)) = change {
            return Ok(Some(row));
        }
        let below = match tree.get(self.model.as_ref(), key, hash, &self.limits).await {
            Err(StoreError::FileGone(_)) => Box::pin(self.read_again(key, hash, tree.manifest())).await?,
            found => found?,
        };
        let below = match self.origins.of(key) {
            Some(origin) => Box::pin(origin.under(self.model.as_ref(), key, below)).await?,
            None => below,
        };
        match change {
            None => Ok(below),
            Some(change) => Ok(Some(change.over(self.model.as_ref(), key, below.as_ref())?)),
        }
    }

    /// Returns the merged row of a followed tablet, after a file of manifest `used` was not found.
    async fn read_again(&self, key: &[u8], hash: u64, mut used: u64) -> Result<Option<Bytes>, StoreError> {
        loop {
            self.follow_after_loss(used).await?;
            let tree = self.stage.tree();
            match tree.get(self.model.as_ref(), key, hash, &self.limits).await {
                Err(StoreError::FileGone(_)) => used = tree.manifest(),
                found => return found,
            }
        }
    }
}
