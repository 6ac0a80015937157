//! The writes of a tablet that are in the log and not yet in its LSM tree.
//!
//! A write is visible and acknowledged as soon as it is staged. It reaches the tree later, together with thousands of others in one sorted
//! batch ([`crate::tablet::stage_apply`]). That costs a fraction of small batches, and no writer waits for the tree. A key that is written
//! several times meanwhile reaches the tree once.
//!
//! Readers see the stage together with the tree that belongs to it, so that each write is seen exactly once while a batch is being applied.

pub(crate) mod backpressure;
pub(crate) mod dead_ranges;

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::cache::generations::Generation;
use crate::cache::hot_keys::HotKeySketch;
use crate::cache::partition_cache;
use crate::cache::row_cache::UpdateOutcome;
use crate::cache::row_cache_handle::RowCacheHandle;
use crate::data_model::{DataModel, DataModelError, RowMerge};
use crate::error::StoreError;
use crate::operation::Op;
use crate::stage::dead_ranges::{Bounds, DeadRanges, KeyRange};
use crate::tree::changes::{Change, ChangeTable};
use crate::tree::{Files, MemTable, Tree};

struct Inner {
    active: ChangeTable,
    applying: Option<Arc<ChangeTable>>,
    tree: Arc<Tree>,
    /// Number of times staged writes have been taken to be applied.
    taken: u64,
    dead: DeadRanges,
    hot_keys: HotKeySketch,
    /// The error for which the tree takes no more writes. `None` if it takes them.
    failed: Option<StoreError>,
    /// The error for which the tablet cannot be read: a record of the log could not be staged. `None` if it can be read.
    stopped: Option<DataModelError>,
    closed: bool,
}

/// The inputs for updating a cached row that is written.
pub(crate) struct Cached {
    /// True if the write may be older than a tombstone that the cached row has and the files no longer have.
    pub is_late: bool,
    /// The cache generation of the row's partition.
    pub generation: Generation,
}

/// Limits of a stage's size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StageLimits {
    /// Size from which the stage is applied without waiting for more writes.
    pub apply_bytes: usize,
    /// Size from which writers wait.
    pub full_bytes: usize,
}

impl StageLimits {
    /// Returns the limits for a tablet that has `memtable_bytes` for its memtables.
    pub fn new(memtable_bytes: u64) -> StageLimits {
        let full_bytes = (memtable_bytes / 4).max(1 << 18) as usize;
        StageLimits {
            apply_bytes: (full_bytes / 8).clamp(1 << 17, 1 << 20),
            full_bytes,
        }
    }
}

/// The stage of one tablet. One thread (the log's) writes, one task drains, and any number of readers read.
pub(crate) struct Stage {
    inner: Mutex<Inner>,
    room: Notify,
    /// Notified when the first write is staged. `due` is notified when the stage is to be applied without delay.
    pub begun: Notify,
    pub due: Notify,
    /// The last log record up to which the tree contains all writes.
    applied: watch::Sender<u64>,
    limits: StageLimits,
    model: Arc<dyn DataModel>,
}

/// The staged change of a key, and the tree below the stage. The change is `None` if the key has none.
pub(crate) struct View {
    pub change: Option<Change>,
    pub tree: Arc<Tree>,
}

/// The staged changes of a range, and the tree below the stage.
pub(crate) struct RangeView {
    /// The staged changes, in ascending order of keys.
    pub staged: Vec<(Bytes, Change)>,
    pub tree: Arc<Tree>,
    /// The writes that the view shows, for [`Stage::add_dead`].
    pub read_point: ReadPoint,
}

/// A point between two batches, at which a reader has seen the staged writes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadPoint(u64);

/// A range of a partition's rows in which a reader has found none alive.
#[derive(Debug)]
pub(crate) struct DeadRows {
    pub partition: Bytes,
    pub keys: KeyRange,
    pub count: u64,
}

impl Stage {
    pub fn new(tree: Tree, limits: StageLimits, model: Arc<dyn DataModel>) -> Stage {
        Stage {
            inner: Mutex::new(Inner {
                active: ChangeTable::default(),
                applying: None,
                tree: Arc::new(tree),
                taken: 0,
                dead: DeadRanges::default(),
                hot_keys: HotKeySketch::new(),
                failed: None,
                stopped: None,
                closed: false,
            }),
            room: Notify::new(),
            begun: Notify::new(),
            due: Notify::new(),
            applied: watch::Sender::new(0),
            limits,
            model,
        }
    }

    /// Waits until there is room, or until the timeout. Returns false on timeout.
    ///
    /// # Errors
    /// The error for which there will never be room again.
    pub async fn wait_for_room(&self, longest: Duration) -> Result<bool, StoreError> {
        let is_full = || {
            let inner = self.inner.lock();
            inner.failed.is_none() && inner.active.bytes >= self.limits.full_bytes
        };
        if is_full() {
            let waiting = async {
                loop {
                    // The notification counts from here on, so none between the check and the wait is lost.
                    let notified = self.room.notified();
                    if !is_full() {
                        return;
                    }
                    notified.await;
                }
            };
            let _ = tokio::time::timeout(longest, waiting).await;
        }
        let inner = self.inner.lock();
        match &inner.failed {
            Some(error) => Err(error.clone()),
            None => Ok(inner.active.bytes < self.limits.full_bytes),
        }
    }

    /// Inserts operations with the numbers of their records, all at once for readers, and updates the row cache with them. `cached` returns
    /// the inputs of that update for each operation.
    ///
    /// # Errors
    /// An operation could not be merged. The tablet then stops: it takes no writes, answers no reads, and the log keeps those of its
    /// records that are in no SSTable.
    pub fn insert(
        &self,
        cache: &RowCacheHandle,
        ops: impl Iterator<Item = (u64, Op)>,
        cached: impl FnMut(&Op) -> Cached,
    ) -> Result<(), StoreError> {
        let mut inner = self.inner.lock();
        let applied = self.insert_group(&mut inner, cache, ops, cached);
        applied.map_err(|error| {
            tracing::error!(%error, "tablet stopped: a write in the log could not be merged");
            let stopped = DataModelError(format!(
                "the tablet is stopped, a write in the log could not be merged: {}",
                error.0
            ));
            inner.stopped = Some(stopped.clone());
            cache.forget_all();
            drop(inner);
            let stopped = StoreError::from(stopped);
            self.fail(stopped.clone());
            stopped
        })
    }

    fn insert_group(
        &self,
        inner: &mut Inner,
        cache: &RowCacheHandle,
        ops: impl Iterator<Item = (u64, Op)>,
        mut cached: impl FnMut(&Op) -> Cached,
    ) -> Result<(), DataModelError> {
        let was_empty = inner.active.rows.is_empty();
        for (lsn, op) in ops {
            let Cached { is_late, generation } = cached(&op);
            let Op { key, operand, .. } = op;
            inner.active.last_lsn = lsn;
            inner.active.operands += 1;
            partition_cache::forget(self.model.as_ref(), cache, &key, &operand);
            inner.cut_dead(self.model.as_ref(), &key, &operand);
            let hash = cache.hash(&key);
            if is_late {
                cache.remove(hash, &key);
            }
            let whole = cache.fold(hash, &key, &operand, generation, |value| {
                let merged = self
                    .model
                    .merge(&key, Some(value), std::slice::from_ref(&operand));
                merged
                    .inspect_err(|error| tracing::error!(%error, "a cached row could not be merged"))
                    .ok()
            });
            let change = match whole {
                UpdateOutcome::Whole(value) if self.model.may_copy(&key) => {
                    inner.active.folded += 1;
                    Change::Whole(value)
                }
                UpdateOutcome::Whole(_) | UpdateOutcome::Cached => Change::Operand(operand),
                UpdateOutcome::Unknown => {
                    if inner.hot_keys.count(hash) {
                        inner.active.hot.push(key.clone());
                    }
                    Change::Operand(operand)
                }
            };
            inner.active.add(&*self.model, key, change)?;
        }
        if was_empty {
            self.begun.notify_one();
        }
        if inner.active.bytes >= self.limits.apply_bytes {
            self.due.notify_one();
        }
        Ok(())
    }

    /// Returns true if a key that begins with `prefix` is staged, or in a memtable of the tree.
    pub fn has_in_memory(&self, prefix: &[u8]) -> bool {
        let inner = self.inner.lock();
        let staged = [Some(&inner.active), inner.applying.as_deref()];
        staged.into_iter().flatten().any(|table| table.has_prefix(prefix)) || inner.tree.has_in_memory(prefix)
    }

    /// Returns the staged change of a key, and the tree below the stage.
    pub fn view(&self, key: &[u8]) -> Result<View, DataModelError> {
        let inner = self.inner.lock();
        inner.check()?;
        let change = inner.change(&*self.model, key)?;
        Ok(View {
            change,
            tree: inner.tree.clone(),
        })
    }

    /// Returns the staged changes of a range, and the tree below the stage. `None` if no key is left to scan.
    ///
    /// `partition` is the prefix of the partition if the range lies in one. The bound where the scan begins is then moved past rows that
    /// are known to be dead.
    pub fn range(
        &self,
        bounds: &mut Bounds,
        partition: Option<&Bytes>,
        reversed: bool,
    ) -> Result<Option<RangeView>, DataModelError> {
        let inner = self.inner.lock();
        inner.check()?;
        if let Some(partition) = partition {
            inner.dead.skip(partition, bounds, reversed);
        }
        if is_empty(&bounds.0, &bounds.1) {
            return Ok(None);
        }
        Ok(Some(RangeView {
            staged: inner.staged(&*self.model, bounds)?,
            tree: inner.tree.clone(),
            read_point: ReadPoint(inner.taken),
        }))
    }

    /// Makes scans skip rows that a reader has found dead, whatever the time. The rows are not skipped if a write that the reader did not
    /// see may have revived one.
    pub fn add_dead(&self, rows: DeadRows, seen: ReadPoint) {
        let mut inner = self.inner.lock();
        let are_later_writes_staged = match inner.taken - seen.0 {
            0 => true,
            1 => inner.applying.is_some(),
            _ => false,
        };
        if are_later_writes_staged && !inner.may_live_in(&*self.model, &rows.keys) {
            inner.dead.add(&rows.partition, rows.keys, rows.count);
        }
    }

    /// Takes the staged writes, to be applied to the tree. `None` if there are none, or if the tree takes no more writes.
    pub fn begin_apply(&self) -> Option<Arc<ChangeTable>> {
        let mut inner = self.inner.lock();
        if inner.active.rows.is_empty() || inner.failed.is_some() {
            return None;
        }
        let table = Arc::new(std::mem::take(&mut inner.active));
        inner.taken += 1;
        inner.applying = Some(table.clone());
        self.room.notify_waiters();
        Some(table)
    }

    /// Records that the writes that were taken are in the tree, in `memtable`.
    pub fn end_apply(&self, table: &ChangeTable, memtable: Arc<MemTable>) {
        let replaced = {
            let mut inner = self.inner.lock();
            let tree = Arc::new(inner.tree.with_batch(memtable));
            (std::mem::replace(&mut inner.tree, tree), inner.applying.take())
        };
        self.applied.send_replace(table.last_lsn);
        drop(replaced);
    }

    /// Replaces the memtables that are not frozen by `memtable`, their content after a purge. No batch may have been applied meanwhile.
    pub fn see_purged(&self, memtable: Arc<MemTable>) {
        let mut inner = self.inner.lock();
        let tree = Arc::new(inner.tree.with_batch(memtable));
        let before = std::mem::replace(&mut inner.tree, tree);
        drop(inner);
        drop(before);
    }

    /// Freezes the tree's memtables: later writes are not joined with their content. Returns the tree.
    pub fn freeze(&self) -> Arc<Tree> {
        let mut inner = self.inner.lock();
        inner.tree = Arc::new(inner.tree.freeze());
        inner.tree.clone()
    }

    /// Replaces the files of the tree.
    pub fn see_files(&self, files: Arc<Files>) {
        let mut inner = self.inner.lock();
        let tree = Arc::new(inner.tree.with_files(files));
        let before = std::mem::replace(&mut inner.tree, tree);
        drop(inner);
        drop(before);
    }

    /// Returns the tree below the stage.
    pub fn tree(&self) -> Arc<Tree> {
        self.inner.lock().tree.clone()
    }

    /// Records that the tree takes no more writes. Staged writes stay readable, and they are in the log.
    pub fn fail(&self, error: StoreError) {
        self.inner.lock().failed = Some(error);
        self.room.notify_waiters();
        self.applied.send_modify(|_| {});
    }

    /// Waits until all writes that are staged now are in the tree.
    pub async fn applied(&self) -> Result<(), StoreError> {
        let target = {
            let inner = self.inner.lock();
            match (&inner.applying, inner.active.rows.is_empty()) {
                (None, true) => return Ok(()),
                (Some(applying), true) => applying.last_lsn,
                _ => inner.active.last_lsn,
            }
        };
        let mut applied = self.applied.subscribe();
        self.begun.notify_one();
        self.due.notify_one();
        let failed = || self.inner.lock().failed.clone();
        let waited = applied.wait_for(|lsn| *lsn >= target || failed().is_some()).await;
        match (waited.is_ok(), failed()) {
            (_, Some(error)) => Err(error),
            (true, None) => Ok(()),
            (false, None) => Err(StoreError::Closed),
        }
    }

    /// Closes the stage to further writes.
    pub fn close(&self) {
        self.inner.lock().closed = true;
        self.begun.notify_one();
        self.due.notify_one();
    }

    pub fn is_closed(&self) -> bool {
        self.inner.lock().closed
    }

    /// Returns the error for which the tree takes no more writes. `None` if it takes them.
    pub fn failure(&self) -> Option<StoreError> {
        self.inner.lock().failed.clone()
    }

    /// Returns true if the tablet cannot be read.
    pub fn is_stopped(&self) -> bool {
        self.inner.lock().stopped.is_some()
    }

    pub fn has_failed(&self) -> bool {
        self.inner.lock().failed.is_some()
    }

    /// Returns the approximate bytes of staged writes and of memtables that are not flushed.
    pub fn bytes(&self) -> usize {
        let inner = self.inner.lock();
        let applying = inner.applying.as_ref().map_or(0, |applying| applying.bytes);
        inner.active.bytes + applying + inner.tree.memory_bytes()
    }
}

impl Inner {
    fn check(&self) -> Result<(), DataModelError> {
        self.stopped.clone().map_or(Ok(()), Err)
    }

    fn change(&self, model: &dyn RowMerge, key: &[u8]) -> Result<Option<Change>, DataModelError> {
        let newer = self.active.get(key);
        let older = self.applying.as_ref().and_then(|applying| applying.get(key));
        match (older, newer) {
            (Some(older), Some(newer)) => older.then(model, key, newer).map(Some),
            (older, newer) => Ok(newer.or(older).cloned()),
        }
    }

    /// Returns the changes in a range, in order. The range must not be empty.
    fn staged(&self, model: &dyn RowMerge, bounds: &Bounds) -> Result<Vec<(Bytes, Change)>, DataModelError> {
        let own = |(key, change): (&Bytes, &Change)| (key.clone(), change.clone());
        let bound = |bound| Bound::as_ref(bound).map(Bytes::as_ref);
        let (start, end) = (bound(&bounds.0), bound(&bounds.1));
        let active = self.active.range(start, end);
        let Some(applying) = &self.applying else {
            return Ok(active.map(own).collect());
        };
        let mut staged: Vec<(Bytes, Change)> = Vec::new();
        let mut older = applying.range(start, end).map(own).peekable();
        for (key, change) in active {
            while let Some(before) = older.next_if(|(before, _)| before < key) {
                staged.push(before);
            }
            let change = match older.next_if(|(before, _)| before == key) {
                Some((_, before)) => before.then(model, key, change)?,
                None => change.clone(),
            };
            staged.push((key.clone(), change));
        }
        staged.extend(older);
        Ok(staged)
    }

    /// Returns true if a staged change of one of the keys may leave something alive.
    fn may_live_in(&self, model: &dyn RowMerge, keys: &KeyRange) -> bool {
        let (start, end) = (Bound::Included(&*keys.start), Bound::Excluded(&*keys.end));
        let mut tables = std::iter::once(&self.active).chain(self.applying.as_deref());
        let may_live = |(key, change): (&Bytes, &Change)| match change {
            Change::Whole(value) | Change::Operand(value) => model.may_be_alive(key, value),
        };
        tables.any(|table| table.range(start, end).any(may_live))
    }

    /// Makes scans see the row at `key` again if `operand`, which is being written to it, may be alive.
    fn cut_dead(&mut self, model: &dyn DataModel, key: &Bytes, operand: &Bytes) {
        if self.dead.is_empty() {
            return;
        }
        let len = model.partition_prefix_len(key, true);
        if let Some(partition) = len.and_then(|len| key.get(..len)) {
            self.dead.cut(partition, key, || model.may_be_alive(key, operand));
        }
    }
}

/// Returns true if no key lies within the bounds.
pub(crate) fn is_empty(start: &Bound<Bytes>, end: &Bound<Bytes>) -> bool {
    match (start, end) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(to))
        | (Bound::Excluded(from), Bound::Included(to)) => from >= to,
    }
}
