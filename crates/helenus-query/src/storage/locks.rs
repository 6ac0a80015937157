//! Partition locks: whoever reads before it writes (lightweight transactions, counters, index maintenance) holds
//! its partitions' locks in between. Blind writes take none.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::{Duration, Instant};

use helenus_cql::error::{Consistency, CqlError, WriteType};
use helenus_row::TableId;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::trace;

/// Locks are striped: two partitions may share one, which costs waiting and nothing else.
const STRIPES: usize = 4096;

/// The locks of a node.
pub struct PartitionLocks {
    stripes: Vec<Arc<Mutex<()>>>,
    hasher: std::collections::hash_map::RandomState,
}

/// Held locks; released when dropped.
pub struct PartitionGuard {
    _held: Vec<OwnedMutexGuard<()>>,
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
    pub async fn lock_within(
        &self,
        partitions: impl IntoIterator<Item = (TableId, i64)>,
        longest: Option<Duration>,
    ) -> Result<Arc<PartitionGuard>, CqlError> {
        let lock = self.lock(partitions);
        let Some(longest) = longest else {
            return Ok(Arc::new(lock.await));
        };
        let locked = tokio::time::timeout(longest, lock).await;
        locked.map(Arc::new).map_err(|_| CqlError::WriteTimeout {
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
    pub async fn lock(&self, partitions: impl IntoIterator<Item = (TableId, i64)>) -> PartitionGuard {
        let mut stripes: Vec<usize> = partitions
            .into_iter()
            .map(|partition| (self.hasher.hash_one(partition) % STRIPES as u64) as usize)
            .collect();
        stripes.sort_unstable();
        stripes.dedup();
        let mut held = Vec::with_capacity(stripes.len());
        for stripe in stripes.into_iter().filter_map(|at| self.stripes.get(at)) {
            held.push(match stripe.clone().try_lock_owned() {
                Ok(guard) => guard,
                Err(_) => {
                    let since = Instant::now();
                    let guard = stripe.clone().lock_owned().await;
                    trace::waited_for_locks(since.elapsed());
                    guard
                }
            });
        }
        PartitionGuard { _held: held }
    }
}
