//! Progress of a write from the locks of its partitions into the log. See [`super::pending`].

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::ByteRange;
use helenus_tablet::{Op, OpenTablets, Store, StoreError, WritePlace, WriteTurn, check_open};

use super::locks::{AloneLocks, PartitionGuard};
use super::pending::PendingWrite;
use crate::failure::ExecutionError;

impl PartitionGuard {
    /// Returns true if a partition is locked alone.
    pub(crate) fn is_alone(&self) -> bool {
        self.alone.is_some()
    }

    /// Returns true if writes to the partitions that are locked alone were pending when the locks were taken.
    pub(crate) fn has_pending(&self) -> bool {
        self.alone.as_ref().is_some_and(|locks| !locks.follows.is_empty())
    }

    /// Returns the pending operand of the row at `key`. `None` if no write to it is pending, or its partition is not locked alone.
    pub(super) fn pending_operand(&self, key: &[u8]) -> Option<Bytes> {
        let locks = self.alone.as_ref().filter(|locks| !locks.follows.is_empty())?;
        locks
            .stripes
            .iter()
            .find_map(|(_, stripe)| stripe.pending.operand(key))
    }

    /// Returns the pending operands of rows of one partition, in ascending order.
    pub(super) fn pending_operands(&self, range: &ByteRange) -> Vec<(Bytes, Bytes)> {
        let Some(locks) = self.alone.as_ref().filter(|locks| !locks.follows.is_empty()) else {
            return Vec::new();
        };
        let stripes = locks
            .stripes
            .iter()
            .map(|(_, stripe)| stripe.pending.operands(range));
        // All keys of a partition belong to one stripe.
        stripes
            .into_iter()
            .find(|found| !found.is_empty())
            .unwrap_or_default()
    }

    /// Publishes operands to the requests that lock the partitions next. `None` if no partition is locked alone.
    ///
    /// # Errors
    /// An operand is damaged.
    pub(crate) fn publish(&self, ops: &[Op]) -> Result<Option<Arc<PendingTurn>>, CqlError> {
        let Some(locks) = &self.alone else {
            return Ok(None);
        };
        let mut turn = PendingTurn {
            locks: locks.clone(),
            transaction: self.tablets.clone().map(|tablets| (tablets, self.tokens.clone())),
            write: PendingWrite::new(),
            keys: Vec::with_capacity(ops.len()),
        };
        for op in ops {
            if let Some(place) = locks.place_of(op)
                && let Some((_, stripe)) = locks.stripes.get(place)
            {
                // The key is recorded first. If the operand cannot be merged, dropping the turn then removes all operands.
                turn.keys.push((place, op.key.clone()));
                stripe.pending.add(&turn.write, &op.key, &op.operand)?;
            }
        }
        Ok(Some(Arc::new(turn)))
    }

    /// Releases the exclusive locks. Nothing may be read or published under these locks afterwards.
    pub(crate) fn unlock(&self) {
        if let Some(locks) = &self.alone {
            locks.unlock();
        }
    }

    /// Waits until everything that was read under these locks is durable.
    ///
    /// # Errors
    /// A part is not durable, or may not be.
    pub(crate) async fn confirm(&self, store: &Store) -> Result<(), ExecutionError> {
        let Some(locks) = &self.alone else {
            return Ok(());
        };
        locks.await_queued().await;
        match locks.place() {
            Some(place) => Ok(store.confirm(place).await?),
            None => Ok(()),
        }
    }

    /// Waits until no write to the partitions that are locked alone is pending. Reads of the store then see all writes.
    pub(crate) async fn await_pending(&self) {
        for write in self.alone.iter().flat_map(|locks| &locks.follows) {
            write.await_end().await;
        }
    }
}

impl AloneLocks {
    fn unlock(&self) {
        let held = std::mem::take(&mut *self.held.lock());
        drop(held);
    }

    /// Waits until each pending write has been queued, or never will be.
    async fn await_queued(&self) {
        for write in &self.follows {
            write.await_queued().await;
        }
    }

    /// Returns the place in the log of the writes that were pending. `None` if there were none.
    fn place(&self) -> Option<WritePlace> {
        let places = self.follows.iter().map(|write| write.place());
        places.reduce(WritePlace::of_both)
    }
}

/// The turn of a published write. The write is no longer pending once the turn is dropped.
pub(crate) struct PendingTurn {
    locks: Arc<AloneLocks>,
    /// The tablets that were open when a transaction's partitions were locked, and the tokens of these partitions. `None` on a node that is
    /// alone.
    transaction: Option<(OpenTablets, Vec<i64>)>,
    write: Arc<PendingWrite>,
    /// The changed keys, each with the index of its stripe among the locked ones.
    keys: Vec<(usize, Bytes)>,
}

impl PendingTurn {
    /// Releases the exclusive locks before this write is queued. The caller must queue it soon.
    pub(crate) fn unlock(&self) {
        self.locks.unlock();
    }

    /// Waits until the writes that this one follows from are queued.
    pub(crate) async fn await_turn(&self) {
        if self.locks.follows.iter().any(|write| write.is_coming()) {
            self.unlock();
            self.locks.await_queued().await;
        }
    }
}

impl WriteTurn for PendingTurn {
    fn follows(&self) -> Option<WritePlace> {
        self.locks.place()
    }

    fn refusal(&self) -> Option<StoreError> {
        let (tablets, tokens) = self.transaction.as_ref()?;
        check_open(tablets, tokens.iter().copied()).err()
    }

    fn queued(&self, place: WritePlace) {
        self.write.queued(place);
    }

    fn passed(&self) {
        self.unlock();
    }
}

impl Drop for PendingTurn {
    fn drop(&mut self) {
        for (place, (_, stripe)) in self.locks.stripes.iter().enumerate() {
            let keys = self.keys.iter().filter(|(of, _)| *of == place);
            stripe.pending.remove(&self.write, keys.map(|(_, key)| key));
        }
        self.write.end();
    }
}
