//! One tablet: a range of tokens in one SlateDB database, read through the row cache.

mod dead_front;
pub(crate) mod extents;
pub(crate) mod flush;
mod followed_scan;
pub(crate) mod late_writes;
pub(crate) mod manifest;
pub(crate) mod memory_purge;
pub(crate) mod obsolete_files;
mod origin_scan;
pub(crate) mod origins;
mod over_origin;
mod partition_reads;
pub(crate) mod pin;
mod row_reads;
pub(crate) mod scan;
pub(crate) mod stage_apply;
pub(crate) mod stats;

pub use row_reads::{CacheMiss, CachedRead};

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use helenus_row::TokenRange;

use crate::boxed;
use crate::cache::generations;
use crate::cache::generations::{CacheGenerations, Generation};
use crate::cache::row_cache_handle::RowCacheHandle;
use crate::clock::StoreClock;
use crate::compaction::{CompactionState, OldestByTable, see};
use crate::data_model::DataModel;
use crate::database::tablet_db::TabletDb;
use crate::error::StoreError;
use crate::log::{Log, Route};
use crate::measurement;
use crate::operation::Op;
use crate::stage::backpressure::CompactionBacklog;
use crate::stage::{Cached, RangeView, Stage, is_empty};
use crate::tablet::dead_front::DeadFront;
use crate::tablet::flush::Flushes;
use crate::tablet::followed_scan::{FollowedScan, TreeScanRequest};
use crate::tablet::late_writes::is_late;
use crate::tablet::memory_purge::MemoryPurges;
use crate::tablet::obsolete_files::Scans;
use crate::tablet::origins::Origins;
use crate::tablet::scan::Scan;
use crate::tablet::stats::TabletCounters;
use crate::tree::SsTables;
use crate::tree::limits::ReadLimits;

/// A tablet of the store.
pub struct Tablet {
    pub(crate) id: u32,
    pub(crate) tokens: TokenRange,
    pub(crate) db: TabletDb,
    pub(crate) cache: RowCacheHandle,
    pub(crate) stage: Arc<Stage>,
    pub(crate) row_cache_on: bool,
    pub(crate) model: Arc<dyn DataModel>,
    pub(crate) clock: Arc<StoreClock>,
    pub(crate) counters: TabletCounters,
    pub(crate) compactions: Arc<CompactionState>,
    pub(crate) scans: Arc<Scans>,
    pub(crate) tables: Arc<SsTables>,
    pub(crate) flushes: Flushes,
    pub(crate) memory_purges: MemoryPurges,
    pub(crate) backlog: CompactionBacklog,
    /// The log that contains the tablet's writes.
    pub(crate) log: Arc<NodeLog>,
    pub(crate) limits: ReadLimits,
    /// Origins of the tables of the tablet's store.
    pub(crate) origins: Arc<Origins>,
    /// False once the tablet is being closed.
    pub(crate) accepts_writes: AtomicBool,
}

/// The open tablets at one time, in the order of their token ranges.
pub type OpenTablets = Arc<Vec<Arc<Tablet>>>;

/// The log of a node. Each write names the tablets to which its operations go.
pub(crate) type NodeLog = Log<OpenTablets>;

impl Route for OpenTablets {
    fn check(&self, ops: &[Op]) -> Result<(), StoreError> {
        check_open(self, ops.iter().map(|op| op.token))
    }
}

/// Refuses tokens whose tablet takes no writes. Under the log's lock, success means that the tablet is not handed over before every write
/// that has been queued so far is durable.
///
/// # Errors
/// [`StoreError::NotOwned`] for the first such token.
pub fn check_open(tablets: &OpenTablets, tokens: impl IntoIterator<Item = i64>) -> Result<(), StoreError> {
    for token in tokens {
        let tablet = find(tablets, token).ok_or(StoreError::NotOwned(token))?;
        if !tablet.accepts_writes.load(Ordering::Acquire) {
            return Err(StoreError::NotOwned(token));
        }
    }
    Ok(())
}

/// Returns the index of the tablet of a token, if there is one. `tablets` are in ascending order and may leave gaps.
pub(crate) fn tablet_of(tablets: &[Arc<Tablet>], token: i64) -> usize {
    tablets.partition_point(|tablet| tablet.token_range().last < token)
}

/// Returns the tablet of a token. `None` if the token lies in a gap. `tablets` are in ascending order.
pub(crate) fn find(tablets: &[Arc<Tablet>], token: i64) -> Option<&Arc<Tablet>> {
    let tablet = tablets.get(tablet_of(tablets, token))?;
    tablet.token_range().contains(token).then_some(tablet)
}

impl Tablet {
    /// Returns the tablet's number, which names its folder.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Requests that all files are compacted to one run, in the background. Deleted rows are purged by this.
    pub fn rewrite(&self) {
        self.compactions.force();
    }

    pub fn token_range(&self) -> TokenRange {
        self.tokens
    }

    /// Returns the generation of a key's partition, under which its rows are cached.
    pub(crate) fn generation(&self, key: &[u8]) -> Generation {
        let generations = &self.compactions.generations;
        if !generations.was_ever_closed() || self.model.may_copy(key) {
            return Generation::NONE;
        }
        let len = self.model.partition_prefix_len(key, true);
        match len.and_then(|len| key.get(..len)) {
            Some(prefix) => generations.read(CacheGenerations::slot(generations::hash(prefix))),
            None => Generation::Closed,
        }
    }

    /// Stages operations that are in the log, each with the number of its record, all at once for readers.
    ///
    /// # Errors
    /// See [`Stage::insert`].
    pub(crate) fn stage_ops(&self, ops: Vec<(u64, Op)>) -> Result<(), StoreError> {
        let up_to = ops.last().map_or(0, |(lsn, _)| *lsn);
        let now_ms = self.clock.now_ms();
        let mut oldest = OldestByTable::new();
        let applied = self.stage.insert(&self.cache, ops.into_iter(), |op| {
            self.cached(op, now_ms, &mut oldest)
        });
        self.compactions.write_times.record(up_to, oldest);
        applied
    }

    /// Returns the inputs for updating the cached row of an operation. Records the age of the operation in `oldest`.
    pub(crate) fn cached(&self, op: &Op, now_ms: i64, oldest: &mut OldestByTable) -> Cached {
        let written_us = self.oldest_us(op);
        if let Some(written_us) = written_us {
            see(oldest, self.model.table_of(&op.key), written_us);
        }
        Cached {
            is_late: written_us.is_some_and(|written_us| is_late(written_us, now_ms)),
            generation: self.generation(&op.key),
        }
    }

    /// Returns the oldest timestamp in an operation. An operation that cannot be decoded may be of any age, so the minimum is returned.
    fn oldest_us(&self, op: &Op) -> Option<i64> {
        self.model
            .oldest_us(&op.key, &op.operand)
            .unwrap_or(Some(i64::MIN))
    }

    /// Returns the merged rows in a range of keys, in order or in reverse. The scan sees every write that was acknowledged before the call,
    /// and each batch whole or not at all. Later writes are not seen.
    pub async fn scan(&self, range: impl RangeBounds<Bytes>, reversed: bool) -> Result<Scan, StoreError> {
        self.counters.scans.fetch_add(1, Ordering::Relaxed);
        let start = range.start_bound().cloned();
        let end = range.end_bound().cloned();
        if is_empty(&start, &end) {
            return Ok(Scan::empty());
        }
        if let Some(kept) = self.cached_partition(&start, &end, reversed).await? {
            return Ok(kept);
        }
        Box::pin(self.scan_all(start, end, reversed)).await
    }

    /// Returns the merged rows in a range of keys, bypassing the row cache.
    pub(crate) async fn scan_all(
        &self,
        start: Bound<Bytes>,
        end: Bound<Bytes>,
        reversed: bool,
    ) -> Result<Scan, StoreError> {
        let guard = self.scans.begin();
        measurement::count(|store| store.scans += 1);
        let partition = self.partition_of(&start, &end).map(|(prefix, ..)| prefix);
        let mut bounds = (start, end);
        let Some(view) = self.stage.range(&mut bounds, partition.as_ref(), reversed)? else {
            return Ok(Scan::empty());
        };
        let RangeView {
            staged,
            tree,
            read_point,
        } = view;
        // Dead ranges are not used for a followed tablet, because writes of another process do not cut them off here.
        let is_followed = self.db.followed().is_some();
        let dead = partition.as_ref().filter(|_| !is_followed).and_then(|partition| {
            DeadFront::new(
                self.stage.clone(),
                read_point,
                partition.clone(),
                &bounds,
                reversed,
            )
        });
        let over_origin = match self.origins.of_range(&bounds) {
            Some(origin) => Some(origin_scan::begin(origin, &bounds, self.tokens, reversed).await?),
            None => None,
        };
        let request = TreeScanRequest {
            model: self.model.clone(),
            bounds,
            partition,
            reversed,
            limits: self.limits.clone(),
        };
        let continuation = self.db.followed().map(|followed| {
            let (followed, tables) = (followed.clone(), self.tables.clone());
            Box::new(FollowedScan::new(
                followed,
                tables,
                tree.manifest(),
                request.clone(),
            ))
        });
        let rows = request.begin(tree);
        let scan = Scan::new(rows, staged, reversed, self.model.clone(), guard);
        let scan = scan.with_continuation(continuation).with_dead_front(dead);
        Ok(scan.with_origin(over_origin))
    }

    /// Returns the partition in which the range lies: its prefix, and the bounds without the prefix. SSTables without the partition are
    /// then skipped. `None` if the range is not known to lie in one partition.
    pub(crate) fn partition_of(
        &self,
        start: &Bound<Bytes>,
        end: &Bound<Bytes>,
    ) -> Option<(Bytes, Bound<Bytes>, Bound<Bytes>)> {
        let (Bound::Included(from) | Bound::Excluded(from)) = start else {
            return None;
        };
        let len = self.model.partition_prefix_len(from, false)?;
        let prefix = from.get(..len).filter(|prefix| !prefix.is_empty())?;
        let behind = |key: &Bytes| key.starts_with(prefix).then(|| key.slice(len..));
        let end = match end {
            Bound::Unbounded => return None,
            Bound::Included(to) => Bound::Included(behind(to)?),
            Bound::Excluded(to) if successor(prefix).as_deref() == Some(to) => Bound::Unbounded,
            Bound::Excluded(to) => Bound::Excluded(behind(to)?),
        };
        let start = match start {
            Bound::Excluded(_) => Bound::Excluded(from.slice(len..)),
            _ => Bound::Included(from.slice(len..)),
        };
        Some((from.slice(..len), start, end))
    }

    /// Counts the live rows of a slice of a partition, and its dead rows that no compaction has purged yet.
    pub fn passed(&self, live: u64, dead: u64) {
        self.compactions.reads.add(live, dead);
        self.memory_purges.met(dead);
    }

    /// Returns true if a key that begins with `prefix` is staged or in a memtable.
    pub fn has_unflushed(&self, prefix: &[u8]) -> bool {
        self.stage.has_in_memory(prefix)
    }

    /// Writes staged rows and memtables to SSTables.
    #[boxed]
    pub async fn flush(&self) -> Result<(), StoreError> {
        self.db.owned()?;
        self.stage.applied().await?;
        self.flushes.flush().await
    }

    /// Rejects further writes, and waits until those that are in the log have been staged.
    pub(crate) async fn stop_writes(&self) {
        self.accepts_writes.store(false, Ordering::Release);
        self.log.barrier(OpenTablets::default()).await;
    }

    /// Closes the database of a tablet that is no longer served. Every write is in the log, so nothing is left to write. The next owner may
    /// open the tablet before this is done.
    pub(crate) async fn close_unserved(self: Arc<Self>) {
        self.limits.give_up();
        self.stage.close();
        let options = slatedb::config::CloseOptions { flush_type: None };
        let Ok(db) = self.db.owned() else { return };
        if let Err(error) = db.close_with_options(options).await {
            tracing::debug!(tablet = self.id, %error, "a database was not closed in order");
        }
    }

    /// Returns the number of the last record that is in files, as of the newest manifest seen.
    pub(crate) fn flushed_lsn(&self) -> u64 {
        self.db
            .manifest()
            .map_or(0, |manifest| manifest.replay_after_wal_id())
    }
}

/// Returns the least byte string above all that begin with `prefix`. `None` if there is none.
pub(crate) fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut next = prefix.to_vec();
    while let Some(last) = next.pop() {
        if last < u8::MAX {
            next.push(last + 1);
            return Some(next);
        }
    }
    None
}

#[cfg(test)]
#[path = "tablet_tests.rs"]
mod tests;
