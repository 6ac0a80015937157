//! Pending writes: they were computed under the locks of their partitions and are not durable yet. The next requests that lock the
//! partitions see them.
//!
//! Reads that precede a write (of conditions, counters, indexes, views, list elements) see the store with the pending writes applied.
//! Otherwise each such write to a partition would wait until the log has synced the one before. No other read sees a pending write.
//!
//! Invariants:
//! - A write is *published* while its partitions are locked. The locks are released once the write has been queued in the log. If it must
//!   wait for other tablets first, they are released once it is published. So writes to a partition are published in the order in which
//!   they are computed.
//! - A write follows from the newest writes that were pending in its partitions when these were locked, and is queued after them. So the
//!   order of records in the log is the order of computing.
//! - If a write fails, all that follow from it fail: the log refuses those that are queued ([`helenus_tablet::WriteTurn`]), and a write
//!   that was never queued has no place from which another one could follow. A refused write has no effect.
//! - A request that writes nothing (its condition does not hold, or a list operation fails) is answered only once everything it has read is
//!   durable.
//! - Pending changes are looked up before the store. A change that becomes durable in between is merged twice, which has the same result as
//!   merging it once.
//!
//! Blind writes publish nothing and follow from nothing. They hold shared locks until they are durable, so none is pending while a
//! partition is locked alone.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::merge::merge;
use helenus_row::{ByteRange, key};
use helenus_tablet::WritePlace;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::rows::{corrupt, corrupt_key};

/// The progress of a write.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Computed,
    Queued(WritePlace),
    /// The write has been applied, or never will be. `None` if it was never queued.
    Ended(Option<WritePlace>),
}

/// A write, as seen by the writes that follow from it.
#[derive(Debug)]
pub(super) struct PendingWrite(watch::Sender<Stage>);

impl PendingWrite {
    pub fn new() -> Arc<PendingWrite> {
        Arc::new(PendingWrite(watch::Sender::new(Stage::Computed)))
    }

    pub fn queued(&self, place: WritePlace) {
        self.0.send_replace(Stage::Queued(place));
    }

    pub fn end(&self) {
        self.0.send_modify(|stage| {
            *stage = Stage::Ended(match *stage {
                Stage::Computed => None,
                Stage::Queued(place) => Some(place),
                Stage::Ended(place) => place,
            });
        });
    }

    /// Returns the place in the log from which other writes follow. [`WritePlace::NOWHERE`] if the write is not queued yet, or never will
    /// be.
    pub fn place(&self) -> WritePlace {
        match *self.0.borrow() {
            Stage::Queued(place) | Stage::Ended(Some(place)) => place,
            Stage::Computed | Stage::Ended(None) => WritePlace::NOWHERE,
        }
    }

    /// Returns true if the write has not been queued yet.
    pub fn is_coming(&self) -> bool {
        matches!(*self.0.borrow(), Stage::Computed)
    }

    /// Waits until the write has been queued, or never will be.
    pub async fn await_queued(&self) {
        self.wait_for(|stage| !matches!(stage, Stage::Computed)).await;
    }

    /// Waits until the write has been applied, or never will be.
    pub async fn await_end(&self) {
        self.wait_for(|stage| matches!(stage, Stage::Ended(_))).await;
    }

    async fn wait_for(&self, is_reached: impl FnMut(&Stage) -> bool) {
        // Waiting cannot fail, because this write holds the sender.
        let _ = self.0.subscribe().wait_for(is_reached).await;
    }
}

/// The merged operands of a key's pending writes, and the newest of these writes.
struct PendingChange {
    operand: Bytes,
    newest: Arc<PendingWrite>,
}

#[derive(Default)]
struct Changes {
    newest: Option<Arc<PendingWrite>>,
    by_key: BTreeMap<Bytes, PendingChange>,
}

/// The pending writes of partitions that share a lock.
#[derive(Default)]
pub(super) struct PendingWrites(Mutex<Changes>);

impl PendingWrites {
    /// Returns the newest pending write, which follows from all others. `None` if no write is pending.
    pub fn newest(&self) -> Option<Arc<PendingWrite>> {
        self.0.lock().newest.clone()
    }

    /// Returns the merge operand of a key. `None` if no write to it is pending.
    pub fn operand(&self, key: &[u8]) -> Option<Bytes> {
        Some(self.0.lock().by_key.get(key)?.operand.clone())
    }

    /// Returns the merge operands of a range of keys, in ascending order.
    pub fn operands(&self, range: &ByteRange) -> Vec<(Bytes, Bytes)> {
        let end = range.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let start = Bound::Included(range.start.as_ref());
        let changes = self.0.lock();
        if changes.by_key.is_empty() || range.end.as_ref().is_some_and(|end| *end <= range.start) {
            return Vec::new();
        }
        let found = changes.by_key.range::<[u8], _>((start, end));
        found
            .map(|(key, change)| (key.clone(), change.operand.clone()))
            .collect()
    }

    /// Adds the operand of a write for one key.
    ///
    /// # Errors
    /// The operand is damaged.
    pub fn add(&self, write: &Arc<PendingWrite>, key: &Bytes, operand: &Bytes) -> Result<(), CqlError> {
        let mut changes = self.0.lock();
        let operand = match changes.by_key.get(key) {
            Some(before) => over(key, Some(&before.operand), operand)?,
            None => operand.clone(),
        };
        let newest = write.clone();
        changes
            .by_key
            .insert(key.clone(), PendingChange { operand, newest });
        changes.newest = Some(write.clone());
        Ok(())
    }

    /// Removes a write that has ended and that changed `keys`. Where a later write was merged with it, the merged operand stays.
    pub fn remove<'k>(&self, write: &Arc<PendingWrite>, keys: impl Iterator<Item = &'k Bytes>) {
        let mut changes = self.0.lock();
        for key in keys {
            let is_newest = |change: &PendingChange| Arc::ptr_eq(&change.newest, write);
            if changes.by_key.get(key).is_some_and(is_newest) {
                changes.by_key.remove(key);
            }
        }
        changes.newest.take_if(|newest| Arc::ptr_eq(newest, write));
    }
}

/// Returns a row with a pending operand applied.
///
/// # Errors
/// The row or the operand is damaged.
pub(super) fn over(key: &[u8], row: Option<&Bytes>, operand: &Bytes) -> Result<Bytes, CqlError> {
    let kind = key::key_kind(key).map_err(corrupt_key)?;
    merge(kind, row, std::slice::from_ref(operand)).map_err(corrupt)
}

#[cfg(test)]
#[path = "pending_tests.rs"]
mod tests;
