//! The row cache as one opening of a tablet uses it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bytes::Bytes;

use crate::cache::generations::Generation;
use crate::cache::row_cache::{CachedRowId, FillToken, Lookup, RowCache, UpdateOutcome};

/// Multiplier that spreads the number of an opening over all bits of a hash.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Finds and caches the rows of one opening of a tablet, and counts its hits and misses.
pub(crate) struct RowCacheHandle {
    cache: Arc<RowCache>,
    opening: AtomicU32,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl RowCacheHandle {
    /// Returns a handle with a new opening, which has no cached rows.
    pub fn new(cache: Arc<RowCache>) -> RowCacheHandle {
        RowCacheHandle {
            opening: AtomicU32::new(cache.next_opening()),
            cache,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Returns the hash of a key. The hash is the same in all openings.
    pub fn hash(&self, key: &[u8]) -> u64 {
        self.cache.hash(key)
    }

    fn id(&self, hash: u64) -> CachedRowId {
        let opening = self.opening.load(Ordering::Acquire);
        CachedRowId {
            hash: hash ^ u64::from(opening).wrapping_mul(SPREAD),
            opening,
        }
    }

    /// Looks a row up. `hash` is the hash of the key, `generation` the current one of its partition.
    pub fn lookup(&self, hash: u64, key: &[u8], generation: Generation) -> Lookup {
        let found = self.cache.lookup(self.id(hash), key, generation);
        let counter = match &found {
            Lookup::Hit(_) => &self.hits,
            Lookup::Miss(_) => &self.misses,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// Caches a row that was read; see [`RowCache::fill`].
    pub fn fill(&self, token: &FillToken, key: &[u8], value: Option<&Bytes>, generation: Generation) {
        self.cache.fill(token, key, value, generation);
    }

    /// Folds an operation into the cached row; see [`RowCache::fold`]. `hash` is the hash of the key.
    pub fn fold(
        &self,
        hash: u64,
        key: &[u8],
        operand: &Bytes,
        generation: Generation,
        merge: impl FnOnce(&Bytes) -> Option<Bytes>,
    ) -> UpdateOutcome {
        self.cache.fold(self.id(hash), key, operand, generation, merge)
    }

    /// Removes a row; see [`RowCache::forget`].
    pub fn forget(&self, key: &[u8]) {
        self.cache.forget(self.id(self.hash(key)), key);
    }

    /// Removes a row, even if it is known to be absent; see [`RowCache::remove`]. `hash` is the hash of the key.
    pub fn remove(&self, hash: u64, key: &[u8]) {
        self.cache.remove(self.id(hash), key);
    }

    /// Starts a new opening. Rows that are cached, or that reads in progress will cache, are never found again.
    pub fn forget_all(&self) {
        self.opening.store(self.cache.next_opening(), Ordering::Release);
    }

    #[cfg(test)]
    pub fn cache(&self) -> &RowCache {
        &self.cache
    }

    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    pub fn misses(&self) -> u64 {
        self.misses.load(Ordering::Relaxed)
    }
}
