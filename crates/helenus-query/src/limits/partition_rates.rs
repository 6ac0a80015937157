//! Request rates of the partitions of tables with `per_partition_rate_limit`.
//!
//! Each partition has a token bucket for reads and one for writes. The buckets live in a table of a fixed size, which consists of sets of a
//! few buckets. In a full set, the bucket that is full soonest makes room for another partition. So a partition with few requests is
//! forgotten first. A partition near its limit is forgotten only for others that are nearer to theirs. Keyed limiters of crates
//! (`governor`) grow with the number of keys.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::time::Instant;

use helenus_cql::error::LimitedOperation;
use parking_lot::Mutex;
use uuid::Uuid;

use super::token_bucket;

/// Number of sets of buckets. With [`BUCKETS`], they take half a megabyte once a table has a limit.
const SETS: usize = 4096;
/// Buckets of a set: two cache lines of the processor.
const BUCKETS: usize = 8;

/// The bucket of a partition.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    /// A hash of the table, the operation and the partition.
    key: u64,
    full_at_ns: u64,
}

type BucketSet = Mutex<[Bucket; BUCKETS]>;

/// The rates of partitions that this node has served.
pub(crate) struct PartitionRates {
    /// The sets. They are allocated by the first request to a table with a limit.
    sets: OnceLock<Box<[BucketSet]>>,
    hasher: RandomState,
    began: Instant,
}

impl Default for PartitionRates {
    fn default() -> PartitionRates {
        PartitionRates {
            sets: OnceLock::new(),
            hasher: RandomState::new(),
            began: Instant::now(),
        }
    }
}

impl PartitionRates {
    /// Counts an operation on a partition. Returns false if it exceeds the rate.
    pub(crate) fn allows(
        &self,
        table: Uuid,
        operation: LimitedOperation,
        partition: &[u8],
        rate_per_second: u32,
    ) -> bool {
        let key = self.hasher.hash_one((table, operation, partition));
        let now_ns = helenus_tablet::nanos(self.began.elapsed());
        self.allows_at(key, rate_per_second, now_ns)
    }

    fn allows_at(&self, key: u64, rate_per_second: u32, now_ns: u64) -> bool {
        let sets = self
            .sets
            .get_or_init(|| (0..SETS).map(|_| BucketSet::default()).collect());
        // The low bits choose the set. The whole key distinguishes the buckets of a set.
        let Some(set) = sets.get(key as usize % SETS) else {
            return true;
        };
        let mut set = set.lock();
        let Some(bucket) = bucket_of(set.as_mut_slice(), key) else {
            return true;
        };
        match token_bucket::take(bucket.full_at_ns, rate_per_second, now_ns) {
            Some(full_at_ns) => {
                bucket.full_at_ns = full_at_ns;
                true
            }
            None => false,
        }
    }
}

/// Returns the bucket of a key. A new key replaces the bucket that is full soonest.
fn bucket_of(set: &mut [Bucket], key: u64) -> Option<&mut Bucket> {
    let own = set.iter().position(|bucket| bucket.key == key);
    if let Some(place) = own {
        return set.get_mut(place);
    }
    let bucket = set.iter_mut().min_by_key(|bucket| bucket.full_at_ns)?;
    *bucket = Bucket { key, full_at_ns: 0 };
    Some(bucket)
}

#[cfg(test)]
#[path = "partition_rates_tests.rs"]
mod tests;
