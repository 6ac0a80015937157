//! Partition locks: whoever reads before it writes (lightweight transactions, counters, index maintenance) holds
//! its partitions' locks in between. Blind writes share them: what has a timestamp already and is not yet to be read
//! would be hidden under a condition that was tested without it.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::{Duration, Instant};

use helenus_cql::error::{Consistency, CqlError, WriteType};
use helenus_row::TableId;
use helenus_tablet::OpenTablets;
use smallvec::SmallVec;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use crate::trace;

/// Locks are striped: two partitions may share one, which costs waiting and nothing else.
const STRIPES: usize = 4096;

/// The locks of a node.
pub struct PartitionLocks {
    stripes: Vec<Arc<RwLock<()>>>,
    hasher: std::collections::hash_map::RandomState,
}

/// How a partition is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Nobody else writes to it.
    Alone,
    /// Others that share it may write to it.
    Shared,
}

/// A partition and how it is to be locked.
pub type LockRequest = (TableId, i64, Access);

/// Held locks; released when dropped.
pub struct PartitionGuard {
    /// Most writes are to one partition.
    _held: SmallVec<[StripeGuard; 1]>,
    /// In a cluster, the tablets that were open once the locks were held: what is read under them may be written to these only.
    pub(super) tablets: Option<OpenTablets>,
}

impl PartitionGuard {
    /// Where a write goes that follows from what was read under these locks ([`helenus_tablet::WriteBatch::tablets`]).
    pub fn tablets(&self) -> Option<OpenTablets> {
        self.tablets.clone()
    }
}

/// One stripe's lock.
#[allow(dead_code, reason = "held to be dropped")]
enum StripeGuard {
    Alone(OwnedRwLockWriteGuard<()>),
    Shared(OwnedRwLockReadGuard<()>),
}

impl StripeGuard {
    fn now(stripe: &Arc<RwLock<()>>, access: Access) -> Option<StripeGuard> {
        match access {
            Access::Alone => stripe.clone().try_write_owned().ok().map(StripeGuard::Alone),
            Access::Shared => stripe.clone().try_read_owned().ok().map(StripeGuard::Shared),
        }
    }

    async fn wait(stripe: &Arc<RwLock<()>>, access: Access) -> StripeGuard {
        match access {
            Access::Alone => StripeGuard::Alone(stripe.clone().write_owned().await),
            Access::Shared => StripeGuard::Shared(stripe.clone().read_owned().await),
        }
    }
}

impl Default for PartitionLocks {
    fn default() -> PartitionLocks {
        PartitionLocks {
            stripes: (0..STRIPES).map(|_| Arc::default()).collect(),
            hasher: std::collections::hash_map::RandomState::new(),
        }
    }
}

impl PartitionLocks {
    /// Like [`PartitionLocks::lock`], but waits no longer than that, where there is a limit: the holder may be waiting for an object
    /// store that does not answer.
    ///
    /// # Errors
    /// Cassandra's, of lightweight transactions that are in each other's way.
    pub(super) async fn lock_within(
        &self,
        partitions: impl IntoIterator<Item = LockRequest>,
        longest: Option<Duration>,
    ) -> Result<PartitionGuard, CqlError> {
        let lock = self.lock(partitions);
        let Some(longest) = longest else {
            return Ok(lock.await);
        };
        let locked = tokio::time::timeout(longest, lock).await;
        locked.map_err(|_| CqlError::WriteTimeout {
            message: format!(
                "another write to this partition was not confirmed within {} ms; nothing of this one was done",
                longest.as_millis()
            ),
            consistency: Consistency::One,
            received: 0,
            block_for: 1,
            write_type: WriteType::Simple,
        })
    }

    /// Locks every partition given, in an order that can't deadlock.
    pub async fn lock(&self, partitions: impl IntoIterator<Item = LockRequest>) -> PartitionGuard {
        let stripe = |(table, token, access): LockRequest| {
            let hash = self.hasher.hash_one((table, token));
            ((hash % STRIPES as u64) as usize, access)
        };
        let mut wanted: SmallVec<[(usize, Access); 4]> = partitions.into_iter().map(stripe).collect();
        // A stripe that is wanted both ways is taken alone, which comes first.
        wanted.sort_unstable();
        wanted.dedup_by_key(|(at, _)| *at);
        let mut held = SmallVec::with_capacity(wanted.len());
        for (at, access) in wanted {
            let Some(stripe) = self.stripes.get(at) else {
                continue;
            };
            held.push(match StripeGuard::now(stripe, access) {
                Some(lock) => lock,
                None => {
                    let since = Instant::now();
                    let lock = StripeGuard::wait(stripe, access).await;
                    trace::waited_for_locks(since.elapsed());
                    lock
                }
            });
        }
        PartitionGuard {
            _held: held,
            tablets: None,
        }
    }
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
