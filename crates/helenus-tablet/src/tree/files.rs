//! The SSTables of a tablet: the current set, their indexes and filters, and their decoded blocks.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use object_store::ObjectStore;
use object_store::path::Path;
use parking_lot::Mutex;
use slatedb::db_cache::{CacheFetch, CacheLoader, CachedEntry, CachedKey, DbCache};
use slatedb::manifest::{SsTableView, VersionedManifest};
use slatedb::{Error, ErrorKind, FilterPolicy, SstReader};

use super::read_ahead;
use super::rows::SortedBlock;
use super::sstable::{OpenTable, TABLE_BYTES, Table};
use crate::cache::disk::object_store::refreshed;
use crate::metadata::slatedb_layout::{inherited_tables, tablet_path};
use crate::trace;
use crate::tree::block_cache::{BlockCache, Lookups};
use crate::tree::sst_filter;

/// Cost of a read from a file in a task's budget. A row from memory costs 1.
const READ_BUDGET: usize = 16;

/// The files of one manifest.
#[derive(Default)]
pub(crate) struct Files {
    /// Sequence number up to which all batches are in the files.
    pub flushed: u64,
    /// The tables of level 0, from new to old.
    pub level0: Vec<Arc<Table>>,
    /// The sorted runs, from new to old, each with its tables in order of keys.
    pub runs: Vec<Vec<Arc<Table>>>,
    /// The number of the manifest.
    pub manifest: u64,
}

impl Files {
    fn is_of(&self, manifest: &VersionedManifest) -> bool {
        self.manifest == manifest.id()
            && self.flushed == manifest.last_l0_seq()
            && self.level0.len() == manifest.l0().len()
            && self.runs.len() == manifest.compacted().len()
    }
}

/// Reads a tablet's SSTables.
pub(crate) struct SsTables {
    store: Arc<dyn ObjectStore>,
    root: Path,
    cache: Arc<BlockCache>,
    policy: Arc<dyn FilterPolicy>,
    pub lookups: Lookups,
    /// The latest set of files. Locked while it is refreshed, so that it never goes back to an older set.
    seen: Mutex<Arc<Files>>,
}

impl SsTables {
    pub fn new(
        tablet: u32,
        store: Arc<dyn ObjectStore>,
        cache: Arc<BlockCache>,
        policy: Arc<dyn FilterPolicy>,
    ) -> SsTables {
        SsTables {
            store,
            root: tablet_path(tablet),
            cache,
            policy,
            lookups: Lookups::default(),
            seen: Mutex::default(),
        }
    }

    /// Refreshes the set of files from the newest manifest. If it has changed, passes it to `announce` and returns true.
    pub fn refresh_files(
        &self,
        newest: impl FnOnce() -> Option<Arc<VersionedManifest>>,
        announce: impl FnOnce(Arc<Files>),
    ) -> bool {
        let mut seen = self.seen.lock();
        let Some(manifest) = newest().filter(|manifest| !seen.is_of(manifest)) else {
            return false;
        };
        *seen = Arc::new(self.files(&manifest));
        announce(seen.clone());
        true
    }

    /// Returns the files of a manifest. Those that a clone shares lie in the folders of the tablets that wrote them.
    pub fn files(&self, manifest: &VersionedManifest) -> Files {
        let inherited = inherited_tables(manifest);
        let table = |view: &SsTableView, run: Option<u32>| {
            let root = inherited.get(&view.sst.id).unwrap_or(&self.root);
            Arc::new(Table::new(view, run, root.clone()))
        };
        Files {
            flushed: manifest.last_l0_seq(),
            level0: manifest.l0().iter().map(|view| table(view, None)).collect(),
            runs: manifest
                .compacted()
                .iter()
                .map(|run| {
                    let views = run.sst_views().iter();
                    views.map(|view| table(view, Some(run.id))).collect()
                })
                .collect(),
            manifest: manifest.id(),
        }
    }

    /// Returns the number of the manifest that was seen last.
    pub fn manifest(&self) -> u64 {
        self.seen.lock().manifest
    }

    /// Returns a table's index and filter. `None` if they are not in memory.
    pub fn cached_table(&self, table: &Table) -> Option<Arc<OpenTable>> {
        let found = self.cache.table(table.handle.id)?;
        self.lookups.hit();
        Some(found)
    }

    pub async fn table(&self, table: &Table) -> Result<Arc<OpenTable>, Error> {
        match self.cached_table(table) {
            Some(found) => Ok(found),
            None => Box::pin(self.open(table)).await,
        }
    }

    async fn open(&self, table: &Table) -> Result<Arc<OpenTable>, Error> {
        self.lookups.missed_table();
        trace::step(|| format!("Reading the index and the filter of {table} from disk"));
        let open = async {
            let index = Arc::new(OneIndex::default());
            let reader = SstReader::new(table.root.clone(), self.store.clone(), Some(index.clone()), None);
            let file = reader.open_with_handle(table.handle.clone())?;
            let entries = undamaged(|| file.index()).await?;
            let filter =
                sst_filter::read(&self.store, &table.root, &table.handle, self.policy.as_ref()).await;
            let filter_bytes = filter.as_ref().map_or(0, |filter| filter.size());
            Ok(OpenTable {
                bytes: TABLE_BYTES + index.size() + filter_bytes,
                file,
                index: entries,
                filter,
            })
        };
        let opened = self.cache.open_table(table.handle.id, open).await?;
        consume_read_budget().await;
        opened.ok_or_else(|| Error::internal("internal error: wrong kind of entry in the block cache".into()))
    }

    /// Returns a block of a table. `None` if it is not in memory.
    pub fn cached_block(&self, table: &Table, block: usize) -> Option<Arc<SortedBlock>> {
        let found = self.cache.block(table.handle.id, block)?;
        self.lookups.hit();
        trace::block(table, true);
        Some(found)
    }

    pub async fn block(
        &self,
        table: &Table,
        open: &OpenTable,
        block: usize,
    ) -> Result<Arc<SortedBlock>, Error> {
        match self.cached_block(table, block) {
            Some(rows) => Ok(rows),
            None => Box::pin(self.read(table, open, block)).await,
        }
    }

    /// Reads consecutive blocks at once, without adding them to the cache. `None` if they must be read one by one.
    pub async fn blocks_ahead(
        &self,
        table: &Table,
        open: &OpenTable,
        blocks: Range<usize>,
    ) -> Option<Vec<Arc<SortedBlock>>> {
        let read = read_ahead::read(self.store.as_ref(), table, open, blocks).await?;
        for _ in &read {
            self.lookups.missed_block();
        }
        trace::block(table, false);
        consume_read_budget().await;
        Some(read)
    }

    async fn read(&self, table: &Table, open: &OpenTable, block: usize) -> Result<Arc<SortedBlock>, Error> {
        self.lookups.missed_block();
        trace::block(table, false);
        let read = async {
            let rows = undamaged(|| open.file.read_block(block)).await;
            rows.map(SortedBlock::from)
        };
        let rows = self.cache.read_block(table.handle.id, block, read).await?;
        consume_read_budget().await;
        rows.ok_or_else(|| Error::internal("internal error: wrong kind of entry in the block cache".into()))
    }
}

/// Reads a second time, bypassing the disk cache, if the first result is damaged.
async fn undamaged<T, F: Future<Output = Result<T, Error>>>(read: impl Fn() -> F) -> Result<T, Error> {
    match read().await {
        Err(error) if error.kind() == ErrorKind::Data => refreshed(read()).await,
        done => done,
    }
}

/// Consumes a part of the task's budget. A read from a file often ends without having waited, and takes as long as several reads from
/// memory.
async fn consume_read_budget() {
    for _ in 0..READ_BUDGET {
        tokio::task::coop::consume_budget().await;
    }
}

/// Keeps the index of one table for SlateDB's block reader, and no other entry.
#[derive(Default)]
struct OneIndex(OnceLock<CachedEntry>);

impl OneIndex {
    fn size(&self) -> usize {
        self.0.get().map_or(0, CachedEntry::size)
    }
}

#[async_trait]
impl DbCache for OneIndex {
    async fn get_block(&self, _key: &CachedKey) -> Result<Option<CachedEntry>, Error> {
        Ok(None)
    }

    async fn get_index(&self, _key: &CachedKey) -> Result<Option<CachedEntry>, Error> {
        Ok(self.0.get().cloned())
    }

    async fn get_filter(&self, _key: &CachedKey) -> Result<Option<CachedEntry>, Error> {
        Ok(None)
    }

    async fn get_stats(&self, _key: &CachedKey) -> Result<Option<CachedEntry>, Error> {
        Ok(None)
    }

    async fn insert(&self, _key: CachedKey, _value: CachedEntry) {}

    async fn remove(&self, _key: &CachedKey) {}

    fn entry_count(&self) -> u64 {
        u64::from(self.0.get().is_some())
    }

    async fn fetch_index(&self, _key: CachedKey, loader: CacheLoader) -> Result<CacheFetch, Error> {
        if let Some(index) = self.0.get() {
            return Ok(CacheFetch::hit(index.clone()));
        }
        let index = loader().await?;
        Ok(CacheFetch::miss(self.0.get_or_init(|| index).clone()))
    }
}
