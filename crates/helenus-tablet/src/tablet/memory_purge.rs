//! Purges the memtables of a tablet without a flush, when reads have met enough dead rows to pay for it, and before memory is flushed.
//!
//! A purge follows the rules of a compaction (`crate::compaction`). It drops a tombstone only if nothing below may contain data that it
//! shadows, and no newer write has an older timestamp. Late writes find a copy in the archive, or the tombstone itself
//! ([`super::late_writes`]). After a crash the log is replayed, and the rows are as they were before the purge.
//!
//! The task that applies the stage purges too, so no batch is applied meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::boxed;
use crate::cache::generations::{self, CacheGenerations, Slot};
use crate::compaction::CompactionState;
use crate::data_model::{CompactionContext, DataModelError};
use crate::error::StoreError;
use crate::tablet::Tablet;
use crate::tree::{Purge, Purged};

/// Minimum number of dead rows met. Fewer are not worth a purge.
const DEAD_MIN: u64 = 1_000;
/// Dead rows met by reads that cost as much as purging one row in memory.
const DEAD_PER_ROW: u64 = 2;
/// Minimum time between purges.
const INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time to wait for the late writes in progress. If they have not ended by then, nothing is purged.
const LATE_WRITES_TIMEOUT: Duration = Duration::from_millis(100);
/// Time after which a purge that left many dead rows is repeated. By then these rows are old enough to be purged under the rules of a
/// compaction.
const RETRY: Duration = Duration::from_secs(11);
/// Memory is purged before a flush if at least one in this many of its rows is dead.
const DEAD_PART: usize = 8;
/// Number of rows that are sampled to estimate the dead part.
const SAMPLES: usize = 256;

/// State that decides when a tablet's memory is purged.
#[derive(Default)]
pub(crate) struct MemoryPurges {
    /// Dead rows that reads have met since the last purge.
    met: AtomicU64,
    /// Number of dead rows above which a purge is due.
    wanted: AtomicU64,
    is_due: AtomicBool,
    requested: Notify,
    /// Time at which the last purge began. `None` before the first.
    last: Mutex<Option<Instant>>,
    /// Time at which dead rows that the last purge kept are old enough. `None` if it kept few.
    retry: Mutex<Option<Instant>>,
    /// Rows dropped from memory since the tablet was opened.
    dropped: AtomicU64,
}

impl MemoryPurges {
    /// Counts dead rows that a read has met.
    pub fn met(&self, dead: u64) {
        if dead == 0 {
            return;
        }
        let met = self.met.fetch_add(dead, Ordering::Relaxed) + dead;
        let wanted = self.wanted.load(Ordering::Relaxed).max(DEAD_MIN);
        if met >= wanted && !self.is_due.swap(true, Ordering::AcqRel) {
            self.requested.notify_one();
        }
    }

    /// Waits until a purge is due.
    pub async fn due(&self) {
        while !self.is_due.load(Ordering::Acquire) {
            let retry = *self.retry.lock();
            match retry {
                None => self.requested.notified().await,
                Some(retry) => {
                    tokio::select! {
                        () = self.requested.notified() => {}
                        () = tokio::time::sleep_until(retry.into()) => self.is_due.store(true, Ordering::Release),
                    }
                }
            }
        }
        let last = *self.last.lock();
        if let Some(last) = last {
            tokio::time::sleep_until((last + INTERVAL).into()).await;
        }
    }

    /// Records that a purge of `rows` rows begins.
    fn begun(&self, rows: usize) {
        *self.last.lock() = Some(Instant::now());
        *self.retry.lock() = None;
        self.met.store(0, Ordering::Relaxed);
        self.wanted.store(rows as u64 * DEAD_PER_ROW, Ordering::Relaxed);
        self.is_due.store(false, Ordering::Release);
    }

    /// Records that a purge has ended.
    fn ended(&self, purged: &Purged) {
        self.dropped.fetch_add(purged.dropped as u64, Ordering::Relaxed);
        if purged.kept * DEAD_PART >= purged.rows {
            *self.retry.lock() = Some(Instant::now() + RETRY);
        }
    }
}

impl Tablet {
    /// Purges the memtables that are not frozen. Only the task that applies the stage calls this.
    pub(crate) async fn purge_memory(&self) -> Result<(), DataModelError> {
        let rows = self.stage.tree().unfrozen_rows();
        self.memory_purges.begun(rows);
        if rows == 0 || self.db.owned().is_err() {
            return Ok(());
        }
        // A late write that begins from here on sees the current memory, or its copy in the archive.
        let late = self.compactions.late.write();
        if tokio::time::timeout(LATE_WRITES_TIMEOUT, late).await.is_err() {
            return Ok(());
        }
        let _memory = self.flushes.memory.lock().await;
        let tree = self.stage.tree();
        let Some(newest) = tree.newest_unfrozen() else {
            return Ok(());
        };
        let Some(oldest) = self.compactions.write_times.newer_than(newest) else {
            return Ok(());
        };
        let context = CompactionContext {
            now_ms: self.clock.machine_ms(),
            newer: Arc::new(move |table| oldest.get(&table).copied().unwrap_or(i64::MAX)),
        };
        let purge = Purge {
            model: self.model.as_ref(),
            filter: self.model.compaction(&context),
            hash: &|key| self.cache.hash(key),
        };
        if let Some(purged) = tree.purge(purge)? {
            self.see_purged(purged);
        }
        Ok(())
    }

    /// Purges the memtables at once and returns the number of rows that lost something. For tests, which write nothing meanwhile.
    #[doc(hidden)]
    #[boxed]
    pub async fn purge_now(&self) -> Result<u64, StoreError> {
        self.stage.applied().await?;
        let dropped = || self.memory_purges.dropped.load(Ordering::Relaxed);
        let before = dropped();
        self.purge_memory().await?;
        Ok(dropped() - before)
    }

    fn see_purged(&self, purged: Purged) {
        self.memory_purges.ended(&purged);
        if purged.dropped == 0 {
            return;
        }
        let slots = purged.headers.iter().filter_map(|key| self.slot(key)).collect();
        let _closed = ClosedGenerations::close(&self.compactions, slots);
        self.stage.see_purged(purged.memtable);
        let (dropped, left) = (purged.dropped, purged.rows);
        tracing::debug!(tablet = self.id, dropped, left, "the memtables have been purged");
    }

    /// Returns the cache generation slot of a key's partition. `None` if the key belongs to no partition.
    fn slot(&self, key: &[u8]) -> Option<Slot> {
        let len = self.model.partition_prefix_len(key, true)?;
        Some(CacheGenerations::slot(generations::hash(key.get(..len)?)))
    }

    /// Returns true if, by an estimate from samples, many rows in memory are dead, and reads of slices may meet them.
    pub(crate) fn is_purge_worthwhile(&self) -> bool {
        let slices = self.compactions.reads.slices.load(Ordering::Relaxed);
        slices > 0 && self.stage.tree().are_many_dead(&*self.model, SAMPLES, DEAD_PART)
    }
}

/// Cache generations that are closed until this guard is dropped. No reader that begins later sees their earlier content.
struct ClosedGenerations<'a> {
    compactions: &'a CompactionState,
    slots: Vec<Slot>,
}

impl<'a> ClosedGenerations<'a> {
    fn close(compactions: &'a CompactionState, slots: Vec<Slot>) -> ClosedGenerations<'a> {
        slots.iter().for_each(|slot| compactions.generations.close(*slot));
        ClosedGenerations { compactions, slots }
    }
}

impl Drop for ClosedGenerations<'_> {
    fn drop(&mut self) {
        let generations = &self.compactions.generations;
        self.slots.iter().for_each(|slot| generations.open(*slot));
    }
}
