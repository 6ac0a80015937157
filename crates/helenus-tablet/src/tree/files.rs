//! A local tablet's SSTables: which there are, their indexes and filters, and their blocks, decoded.

use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use bytes::Bytes;
use object_store::ObjectStore;
use object_store::path::Path;
use parking_lot::Mutex;
use slatedb::db_cache::{CacheFetch, CacheLoader, CachedEntry, CachedKey, DbCache};
use slatedb::manifest::{SsTableHandle, SsTableView, VersionedManifest};
use slatedb::{Db, Error, Filter, FilterPolicy, FilterQuery, SstFile, SstIndex, SstReader};

use super::rows::Rows;
use crate::block_cache::{BlockCache, Lookups};
use crate::database::tablet_path;
use crate::sst_filter;
use crate::trace::{self, Sstable};

/// What an open table takes beside its index and its filter.
const TABLE_BYTES: usize = 2 << 10;

/// What a read from a file takes of a task's turn, of which a row from memory takes 1.
const READ_BUDGET: usize = 16;

/// The files of one moment.
#[derive(Default)]
pub(crate) struct Files {
    /// All batches up to that sequence number are in them.
    pub flushed: u64,
    /// From new to old.
    pub level0: Vec<Table>,
    /// From new to old, the tables of each in order.
    pub runs: Vec<Vec<Table>>,
    /// The number of the manifest.
    manifest: u64,
}

impl Files {
    fn is_of(&self, manifest: &VersionedManifest) -> bool {
        self.manifest == manifest.id()
            && self.flushed == manifest.last_l0_seq()
            && self.level0.len() == manifest.l0().len()
            && self.runs.len() == manifest.compacted().len()
    }
}

/// One SSTable.
#[derive(Clone)]
pub(crate) struct Table {
    handle: SsTableHandle,
    first: Bytes,
    /// Unknown, there may be any greater key.
    last: Option<Bytes>,
    /// The sorted run that it is part of; level 0 has none.
    run: Option<u32>,
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Sstable {
            id: self.handle.id.value(),
            run: self.run.as_ref(),
        }
        .fmt(f)
    }
}

impl Table {
    fn new(view: &SsTableView, run: Option<u32>) -> Table {
        let info = &view.sst.info;
        Table {
            run,
            first: info.first_entry.clone().unwrap_or_default(),
            last: info.last_entry.clone(),
            handle: view.sst.clone(),
        }
    }

    pub fn may_have(&self, key: &[u8]) -> bool {
        self.first.as_ref() <= key && !self.ends_before(key)
    }

    fn ends_before(&self, key: &[u8]) -> bool {
        self.last.as_ref().is_some_and(|last| last.as_ref() < key)
    }

    /// False if no key lies within the bounds.
    pub fn may_overlap(&self, bounds: &(Bound<Bytes>, Bound<Bytes>)) -> bool {
        let is_before = match &bounds.0 {
            Bound::Unbounded => false,
            Bound::Included(start) => self.ends_before(start),
            Bound::Excluded(start) => self.last.as_ref().is_some_and(|last| last <= start),
        };
        let is_behind = match &bounds.1 {
            Bound::Unbounded => false,
            Bound::Included(end) => self.first > end,
            Bound::Excluded(end) => self.first >= end,
        };
        !is_before && !is_behind
    }
}

/// Those of a run that may have the key.
pub(crate) fn covering<'a>(run: &'a [Table], key: &'a [u8]) -> impl Iterator<Item = &'a Table> {
    let from = run.partition_point(|table| table.ends_before(key));
    run.iter().skip(from).take_while(|table| table.may_have(key))
}

/// An SSTable's index and filter.
pub(crate) struct OpenTable {
    file: SstFile,
    index: SstIndex,
    filter: Option<Arc<dyn Filter>>,
    bytes: usize,
}

impl OpenTable {
    /// Bytes of memory.
    pub fn size(&self) -> usize {
        self.bytes
    }

    /// False if it, the table of that name, has nothing of what is asked for.
    pub fn might_match(&self, table: &Table, query: &FilterQuery) -> bool {
        let might_match = self
            .filter
            .as_ref()
            .is_none_or(|filter| filter.might_match(query));
        if !might_match {
            trace::step(|| trace::skipped(table));
        }
        might_match
    }

    /// The blocks that may have keys within the bounds: the first, and the one behind the last.
    pub fn blocks(&self, start: Bound<&[u8]>, end: Bound<&[u8]>) -> (usize, usize) {
        // A block's key in the index is at most its first, and above the keys of the blocks before it, or the last of them.
        let first = match start {
            Bound::Unbounded => 0,
            Bound::Included(start) | Bound::Excluded(start) => {
                self.index.partition_point(|key| key < start).saturating_sub(1)
            }
        };
        let behind = match end {
            Bound::Unbounded => self.index.len(),
            Bound::Included(end) => self.index.partition_point(|key| key <= end),
            Bound::Excluded(end) => self.index.partition_point(|key| key < end),
        };
        (first, behind)
    }
}

/// How a tablet's SSTables are read.
pub(crate) struct SsTables {
    store: Arc<dyn ObjectStore>,
    root: Path,
    cache: Arc<BlockCache>,
    policy: Arc<dyn FilterPolicy>,
    pub lookups: Lookups,
    /// What was seen last. Held while it is looked for, so that it never goes back.
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

    /// Looks which files there are; true if they are others than before, which is told.
    pub fn look(&self, db: &Db, tell: impl FnOnce(Arc<Files>)) -> bool {
        let mut seen = self.seen.lock();
        let manifest = db.manifest();
        if seen.is_of(&manifest) || !manifest.external_dbs().is_empty() {
            return false;
        }
        *seen = Arc::new(Files {
            flushed: manifest.last_l0_seq(),
            level0: manifest.l0().iter().map(|view| Table::new(view, None)).collect(),
            runs: manifest
                .compacted()
                .iter()
                .map(|run| {
                    let views = run.sst_views().iter();
                    views.map(|view| Table::new(view, Some(run.id))).collect()
                })
                .collect(),
            manifest: manifest.id(),
        });
        tell(seen.clone());
        true
    }

    /// The number of the manifest that was seen last.
    pub fn manifest(&self) -> u64 {
        self.seen.lock().manifest
    }

    /// A table's index and filter, if they are in memory.
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
            let reader = SstReader::new(self.root.clone(), self.store.clone(), Some(index.clone()), None);
            let file = reader.open_with_handle(table.handle.clone())?;
            let entries = file.index().await?;
            let filter = sst_filter::read(&self.store, &self.root, &table.handle, self.policy.as_ref()).await;
            let filter_bytes = filter.as_ref().map_or(0, |filter| filter.size());
            Ok(OpenTable {
                bytes: TABLE_BYTES + index.size() + filter_bytes,
                file,
                index: entries,
                filter,
            })
        };
        let opened = self.cache.open_table(table.handle.id, open).await?;
        give_way().await;
        opened.ok_or_else(|| Error::internal("the block cache holds something else".into()))
    }

    /// A block of a table, if it is in memory.
    pub fn cached_block(&self, table: &Table, block: usize) -> Option<Arc<Rows>> {
        let found = self.cache.block(table.handle.id, block)?;
        self.lookups.hit();
        trace::block(table, true);
        Some(found)
    }

    pub async fn block(&self, table: &Table, open: &OpenTable, block: usize) -> Result<Arc<Rows>, Error> {
        match self.cached_block(table, block) {
            Some(rows) => Ok(rows),
            None => Box::pin(self.read(table, open, block)).await,
        }
    }

    async fn read(&self, table: &Table, open: &OpenTable, block: usize) -> Result<Arc<Rows>, Error> {
        self.lookups.missed_block();
        trace::block(table, false);
        let read = async { open.file.read_block(block).await.map(Rows::from) };
        let rows = self.cache.read_block(table.handle.id, block, read).await?;
        give_way().await;
        rows.ok_or_else(|| Error::internal("the block cache holds something else".into()))
    }
}

/// A read from a file often ends without having waited, and takes as long as several from memory: so much sooner it is the others' turn.
async fn give_way() {
    for _ in 0..READ_BUDGET {
        tokio::task::coop::consume_budget().await;
    }
}

/// Keeps the index of one table for SlateDB's reader of its blocks, and nothing else.
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
