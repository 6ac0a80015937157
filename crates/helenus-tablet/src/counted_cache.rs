//! The cache of blocks as scans use it that read SSTables by themselves ([`crate::runs`]), with counts of what it had: SlateDB counts
//! only for its own reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use slatedb::Error;
use slatedb::db_cache::foyer::FoyerCache;
use slatedb::db_cache::{CacheFetch, CacheLoader, CacheLookup, CachedEntry, CachedKey, DbCache};

/// Look-ups of scans since the store was opened.
#[derive(Debug, Default)]
pub(crate) struct Lookups {
    hits: AtomicU64,
    block_misses: AtomicU64,
    index_misses: AtomicU64,
}

impl Lookups {
    /// Hits, misses of blocks, misses of indexes.
    pub fn counts(&self) -> [u64; 3] {
        [&self.hits, &self.block_misses, &self.index_misses].map(|counter| counter.load(Ordering::Relaxed))
    }
}

/// The cache, and the counts of one tablet.
pub(crate) struct Counted {
    pub cache: Arc<FoyerCache>,
    pub lookups: Arc<Lookups>,
}

impl Counted {
    fn count(&self, fetch: &Result<CacheFetch, Error>, misses: &AtomicU64) {
        let counter = match fetch {
            Ok(CacheFetch {
                lookup: CacheLookup::Hit,
                ..
            }) => &self.lookups.hits,
            _ => misses,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

#[async_trait]
impl DbCache for Counted {
    async fn get_block(&self, key: &CachedKey) -> Result<Option<CachedEntry>, Error> {
        self.cache.get_block(key).await
    }

    async fn get_index(&self, key: &CachedKey) -> Result<Option<CachedEntry>, Error> {
        self.cache.get_index(key).await
    }

    async fn get_filter(&self, key: &CachedKey) -> Result<Option<CachedEntry>, Error> {
        self.cache.get_filter(key).await
    }

    async fn get_stats(&self, key: &CachedKey) -> Result<Option<CachedEntry>, Error> {
        self.cache.get_stats(key).await
    }

    async fn insert(&self, key: CachedKey, value: CachedEntry) {
        self.cache.insert(key, value).await;
    }

    async fn remove(&self, key: &CachedKey) {
        self.cache.remove(key).await;
    }

    fn entry_count(&self) -> u64 {
        self.cache.entry_count()
    }

    async fn fetch_block(&self, key: CachedKey, loader: CacheLoader) -> Result<CacheFetch, Error> {
        let fetch = self.cache.fetch_block(key, loader).await;
        self.count(&fetch, &self.lookups.block_misses);
        fetch
    }

    async fn fetch_index(&self, key: CachedKey, loader: CacheLoader) -> Result<CacheFetch, Error> {
        let fetch = self.cache.fetch_index(key, loader).await;
        self.count(&fetch, &self.lookups.index_misses);
        fetch
    }
}
