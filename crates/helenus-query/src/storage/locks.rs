//! Partition locks. A request that reads before it writes (lightweight transactions, counters, index maintenance) holds its partitions'
//! locks in between. Then it leaves its writes to the next holder as pending ([`super::pending`]).
//!
//! Blind writes hold shared locks until they are durable. Otherwise a condition could be tested without a write that already has a
//! timestamp. The conditional write would then hide that write.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::{Duration, Instant};

use helenus_cql::error::{Consistency, CqlError, WriteType};
use helenus_row::TableId;
use helenus_tablet::{Op, OpenTablets, StoreError, check_open};
use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use super::hooks::table_of;
use super::pending::{PendingWrite, PendingWrites};
use crate::measurement;

/// Number of stripes. Two partitions may share a stripe, which only costs waiting.
const STRIPES: usize = 4096;

/// The locks of a node.
pub struct PartitionLocks {
    stripes: Vec<Arc<Stripe>>,
    numbers: StripeNumbers,
}

/// A lock, and the pending writes of its partitions.
#[derive(Default)]
pub(super) struct Stripe {
    lock: Arc<RwLock<()>>,
    pub pending: PendingWrites,
}

/// The function from partitions to stripes.
#[derive(Clone, Default)]
struct StripeNumbers(std::collections::hash_map::RandomState);

impl StripeNumbers {
    fn of(&self, table: TableId, token: i64) -> usize {
        (self.0.hash_one((table, token)) % STRIPES as u64) as usize
    }
}

/// The mode of a partition's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Exclusive: no other request writes to the partition.
    Alone,
    /// Shared: other holders of a shared lock may write to the partition.
    Shared,
}

/// A partition's table and token, and the mode of its lock.
pub type LockRequest = (TableId, i64, Access);

/// Held locks. They are released when the guard is dropped.
pub struct PartitionGuard {
    /// The shared locks. Most writes are to one partition.
    _shared: SmallVec<[OwnedRwLockReadGuard<()>; 1]>,
    /// The exclusive locks. `None` if no partition is locked alone.
    pub(super) alone: Option<Arc<AloneLocks>>,
    /// The tablets that were open once the locks were held. Writes that follow from reads under the locks may go to these tablets only.
    /// `None` if the node is alone.
    pub(super) tablets: Option<OpenTablets>,
    /// Tokens of a transaction's partitions, whose tablets must stay here until its write is queued. Empty for other requests, which write
    /// to all partitions that they read.
    pub(super) tokens: Vec<i64>,
}

impl PartitionGuard {
    /// Refuses a transaction if a tablet of its partitions has been closed since the locks were taken.
    ///
    /// # Errors
    /// [`StoreError::NotOwned`]
    pub(crate) fn check_open(&self) -> Result<(), StoreError> {
        match &self.tablets {
            Some(tablets) => check_open(tablets, self.tokens.iter().copied()),
            None => Ok(()),
        }
    }

    /// Returns true if the partition of a key is locked alone.
    pub(super) fn locks_alone(&self, key: &[u8], token: i64) -> bool {
        let is_locked = |locks: &Arc<AloneLocks>| locks.place_of_key(key, token).is_some();
        self.alone.as_ref().is_some_and(is_locked)
    }

    /// Returns the tablets for a write that follows from reads under these locks ([`helenus_tablet::WriteBatch::tablets`]).
    pub fn tablets(&self) -> Option<OpenTablets> {
        self.tablets.clone()
    }
}

/// Exclusive locks.
pub(super) struct AloneLocks {
    /// The locked stripes, in ascending order of their numbers.
    pub stripes: SmallVec<[(usize, Arc<Stripe>); 1]>,
    numbers: StripeNumbers,
    /// The guards of the locks. Empty once the locks have been released.
    pub held: Mutex<SmallVec<[OwnedRwLockWriteGuard<()>; 1]>>,
    /// The newest pending write of each stripe when the locks were taken.
    pub follows: SmallVec<[Arc<PendingWrite>; 1]>,
}

impl AloneLocks {
    /// Returns the index in `stripes` for an operation's partition. `None` if the partition is not locked.
    pub fn place_of(&self, op: &Op) -> Option<usize> {
        self.place_of_key(&op.key, op.token)
    }

    fn place_of_key(&self, key: &[u8], token: i64) -> Option<usize> {
        let number = self.numbers.of(table_of(key)?, token);
        self.stripes
            .binary_search_by_key(&number, |(number, _)| *number)
            .ok()
    }
}

impl Default for PartitionLocks {
    fn default() -> PartitionLocks {
        PartitionLocks {
            stripes: (0..STRIPES).map(|_| Arc::default()).collect(),
            numbers: StripeNumbers::default(),
        }
    }
}

impl PartitionLocks {
    /// Locks like [`PartitionLocks::lock`], but waits no longer than `longest`, if given. The holder may be waiting for an object store
    /// that does not answer.
    ///
    /// # Errors
    /// A write timeout, as Cassandra returns for contending lightweight transactions.
    pub(super) async fn lock_within(
        &self,
        partitions: &[LockRequest],
        longest: Option<Duration>,
    ) -> Result<PartitionGuard, CqlError> {
        let lock = self.lock(partitions.iter().copied());
        let Some(longest) = longest else {
            return Ok(lock.await);
        };
        let locked = tokio::time::timeout(longest, lock).await;
        locked.map_err(|_| contended(longest))
    }

    /// Locks every given partition, in an order that cannot deadlock.
    pub async fn lock(&self, partitions: impl IntoIterator<Item = LockRequest>) -> PartitionGuard {
        let stripe = |(table, token, access): LockRequest| (self.numbers.of(table, token), access);
        let mut wanted: SmallVec<[(usize, Access); 4]> = partitions.into_iter().map(stripe).collect();
        // A stripe that is wanted in both modes is locked alone, because `Alone` sorts first.
        wanted.sort_unstable();
        wanted.dedup_by_key(|(at, _)| *at);
        let (mut shared, mut held, mut stripes) = (SmallVec::new(), SmallVec::new(), SmallVec::new());
        for (at, access) in wanted {
            let Some(stripe) = self.stripes.get(at) else {
                continue;
            };
            let lock = stripe.lock.clone();
            match access {
                Access::Shared => shared.push(match lock.clone().try_read_owned() {
                    Ok(guard) => guard,
                    Err(_) => waiting(lock.read_owned()).await,
                }),
                Access::Alone => {
                    held.push(match lock.clone().try_write_owned() {
                        Ok(guard) => guard,
                        Err(_) => waiting(lock.write_owned()).await,
                    });
                    stripes.push((at, stripe.clone()));
                }
            }
        }
        PartitionGuard {
            _shared: shared,
            alone: (!stripes.is_empty()).then(|| Arc::new(self.alone(stripes, held))),
            tablets: None,
            tokens: Vec::new(),
        }
    }

    fn alone(
        &self,
        stripes: SmallVec<[(usize, Arc<Stripe>); 1]>,
        held: SmallVec<[OwnedRwLockWriteGuard<()>; 1]>,
    ) -> AloneLocks {
        let follows = stripes.iter().filter_map(|(_, stripe)| stripe.pending.newest());
        AloneLocks {
            follows: follows.collect(),
            stripes,
            numbers: self.numbers.clone(),
            held: Mutex::new(held),
        }
    }
}

/// Returns the error of a write that could not lock its partitions.
pub(crate) fn contended(longest: Duration) -> CqlError {
    CqlError::WriteTimeout {
        message: format!(
            "another write to this partition was not confirmed within {} ms; nothing of this one was done",
            longest.as_millis()
        ),
        consistency: Consistency::One,
        received: 0,
        block_for: 1,
        write_type: WriteType::Simple,
    }
}

/// Waits for a lock, and counts the time.
async fn waiting<G>(lock: impl Future<Output = G>) -> G {
    let since = Instant::now();
    let guard = lock.await;
    measurement::waited_for_locks(since.elapsed());
    guard
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const TABLE: TableId = TableId(1);

    #[tokio::test]
    async fn blind_writes_go_side_by_side_and_conditions_alone() {
        let locks = PartitionLocks::default();
        let one = locks.lock([(TABLE, 7, Access::Shared)]).await;
        let two = locks.lock([(TABLE, 7, Access::Shared)]).await;
        assert!(locks.lock([(TABLE, 7, Access::Alone)]).now_or_never().is_none());
        drop((one, two));
        let alone = locks
            .lock([(TABLE, 7, Access::Shared), (TABLE, 7, Access::Alone)])
            .await;
        assert!(locks.lock([(TABLE, 7, Access::Shared)]).now_or_never().is_none());
        drop(alone);
        assert!(locks.lock([(TABLE, 7, Access::Shared)]).now_or_never().is_some());
    }
}
