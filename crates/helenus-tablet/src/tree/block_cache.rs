//! The cache that all tablets of a store share. It contains indexes and filters of SSTables, decoded blocks ([`crate::tree`]), and the
//! entries that SlateDB caches for its own reads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use slatedb::Error;
use slatedb::db_cache::{CacheFetch, CacheLoader, CachedEntry, CachedKey, DbCache};
use slatedb::manifest::SsTableId;

use crate::tree::SortedBlock;
use crate::tree::sstable::OpenTable;

/// Minimum size of a shard of the cache, which has a lock of its own, so that a large file's index does not fill it.
const SHARD_BYTES_MIN: u64 = 32 << 20;
const SHARDS_MAX: u64 = 16;
/// Approximate size of a block, from which the number of entries is estimated.
const BLOCK_BYTES: u64 = 4 << 10;
/// Bytes of an entry besides its content.
const ENTRY_OVERHEAD_BYTES: u64 = 96;

#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    SlateDb(CachedKey),
    Table(SsTableId),
    Block(SsTableId, usize),
}

#[derive(Clone)]
enum Item {
    SlateDb(CachedEntry),
    Table(Arc<OpenTable>),
    Block(Arc<SortedBlock>),
}

#[derive(Clone)]
struct Bytes;

impl Weighter<Key, Item> for Bytes {
    fn weight(&self, _key: &Key, item: &Item) -> u64 {
        let bytes = match item {
            Item::SlateDb(entry) => entry.size(),
            Item::Table(table) => table.size(),
            Item::Block(rows) => rows.size(),
        };
        bytes as u64 + ENTRY_OVERHEAD_BYTES
    }
}

/// Hits and misses of reads.
#[derive(Debug, Default)]
pub(crate) struct Lookups {
    hits: AtomicU64,
    block_misses: AtomicU64,
    table_misses: AtomicU64,
}

impl Lookups {
    /// Returns the hits, the misses of blocks, and the misses of indexes and filters.
    pub fn counts(&self) -> [u64; 3] {
        [&self.hits, &self.block_misses, &self.table_misses].map(|counter| counter.load(Ordering::Relaxed))
    }

    pub fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    pub fn missed_block(&self) {
        self.block_misses.fetch_add(1, Ordering::Relaxed);
    }

    pub fn missed_table(&self) {
        self.table_misses.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) struct BlockCache(Cache<Key, Item, Bytes>);

impl BlockCache {
    pub fn new(capacity_bytes: u64) -> Arc<BlockCache> {
        let shards = (capacity_bytes / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX);
        let options = OptionsBuilder::new()
            .shards(shards as usize)
            .estimated_items_capacity((capacity_bytes / BLOCK_BYTES).max(1) as usize)
            .weight_capacity(capacity_bytes)
            .build();
        let hash = DefaultHashBuilder::default();
        Arc::new(BlockCache(match options {
            Ok(options) => Cache::with_options(options, Bytes, hash, DefaultLifecycle::default()),
            // Building fails only if one of the two sizes is missing, and both are given.
            Err(_) => Cache::with_weighter(1024, capacity_bytes, Bytes),
        }))
    }

    pub fn table(&self, id: SsTableId) -> Option<Arc<OpenTable>> {
        match self.0.get(&Key::Table(id))? {
            Item::Table(table) => Some(table),
            _ => None,
        }
    }

    pub fn block(&self, id: SsTableId, block: usize) -> Option<Arc<SortedBlock>> {
        match self.0.get(&Key::Block(id, block))? {
            Item::Block(rows) => Some(rows),
            _ => None,
        }
    }

    /// Opens a table. Concurrent callers share one read.
    pub async fn open_table(
        &self,
        id: SsTableId,
        open: impl Future<Output = Result<OpenTable, Error>>,
    ) -> Result<Option<Arc<OpenTable>>, Error> {
        let opened = async { open.await.map(|table| Item::Table(Arc::new(table))) };
        let item = self.0.get_or_insert_async(&Key::Table(id), opened).await?;
        Ok(match item {
            Item::Table(table) => Some(table),
            _ => None,
        })
    }

    /// Reads a block. Concurrent callers share one read.
    pub async fn read_block(
        &self,
        id: SsTableId,
        block: usize,
        read: impl Future<Output = Result<SortedBlock, Error>>,
    ) -> Result<Option<Arc<SortedBlock>>, Error> {
        let read = async { read.await.map(|rows| Item::Block(Arc::new(rows))) };
        let item = self.0.get_or_insert_async(&Key::Block(id, block), read).await?;
        Ok(match item {
            Item::Block(rows) => Some(rows),
            _ => None,
        })
    }

    fn entry(&self, key: &CachedKey) -> Option<CachedEntry> {
        match self.0.get(&Key::SlateDb(key.clone()))? {
            Item::SlateDb(entry) => Some(entry),
            _ => None,
        }
    }

    async fn fetch(&self, key: CachedKey, loader: CacheLoader) -> Result<CacheFetch, Error> {
        if let Some(entry) = self.entry(&key) {
            return Ok(CacheFetch::hit(entry));
        }
        let mut loaded = None;
        let load = async {
            let entry = loader().await?;
            loaded = Some(entry.clone());
            Ok::<_, Error>(Item::SlateDb(entry))
        };
        let item = self.0.get_or_insert_async(&Key::SlateDb(key), load).await?;
        match (loaded, item) {
            (Some(entry), _) => Ok(CacheFetch::miss(entry)),
            (None, Item::SlateDb(entry)) => Ok(CacheFetch::hit(entry)),
            (None, _) => Err(Error::internal(
                "internal error: wrong kind of entry in the block cache".into(),
            )),
        }
    }
}

#[async_trait]
impl DbCache for BlockCache {
    async fn get_block(&self, key: &CachedKey) -> Result<Option<CachedEntry>, Error> {
        Ok(self.entry(key))
    }

    async fn get_index(&self, key: &CachedKey) -> Result<Option<CachedEntry>, Error> {
        Ok(self.entry(key))
    }

    async fn get_filter(&self, key: &CachedKey) -> Result<Option<CachedEntry>, Error> {
        Ok(self.entry(key))
    }

    async fn get_stats(&self, key: &CachedKey) -> Result<Option<CachedEntry>, Error> {
        Ok(self.entry(key))
    }

    async fn insert(&self, key: CachedKey, value: CachedEntry) {
        self.0.insert(Key::SlateDb(key), Item::SlateDb(value));
    }

    async fn remove(&self, key: &CachedKey) {
        self.0.remove(&Key::SlateDb(key.clone()));
    }

    fn entry_count(&self) -> u64 {
        self.0.len() as u64
    }

    async fn fetch_block(&self, key: CachedKey, loader: CacheLoader) -> Result<CacheFetch, Error> {
        self.fetch(key, loader).await
    }

    async fn fetch_index(&self, key: CachedKey, loader: CacheLoader) -> Result<CacheFetch, Error> {
        self.fetch(key, loader).await
    }

    async fn fetch_filter(&self, key: CachedKey, loader: CacheLoader) -> Result<CacheFetch, Error> {
        self.fetch(key, loader).await
    }

    async fn fetch_stats(&self, key: CachedKey, loader: CacheLoader) -> Result<CacheFetch, Error> {
        self.fetch(key, loader).await
    }
}
