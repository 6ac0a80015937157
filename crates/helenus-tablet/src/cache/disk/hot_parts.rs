//! Second chance for parts: a part that was read since it was written is written again when its block is reused.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use foyer::{Statistics, StorageFilterCondition, StorageFilterResult};

/// Limit of the lead of dropped parts over spared ones. With this limit, a cache with only hot parts cannot write all of them again, which
/// would leave no room for new parts.
const SPARED_AHEAD_MAX: i64 = 1024;

/// A bit for each part that was read, chosen by its hash. Parts that share a bit are spared together.
#[derive(Debug)]
pub(super) struct HotParts {
    bits: Box<[AtomicU64]>,
    /// Number of dropped parts minus number of spared parts. At most every second part is spared.
    dropped_ahead: AtomicI64,
}

impl HotParts {
    pub fn new(parts: u64) -> Arc<HotParts> {
        let words = parts.div_ceil(64).next_power_of_two().max(1);
        Arc::new(HotParts {
            bits: (0..words).map(|_| AtomicU64::new(0)).collect(),
            dropped_ahead: AtomicI64::new(0),
        })
    }

    fn bit(&self, hash: u64) -> (&AtomicU64, u64) {
        let word = (hash >> 6) as usize % self.bits.len();
        (&self.bits[word], 1 << (hash % 64))
    }

    pub fn mark(&self, hash: u64) {
        let (word, bit) = self.bit(hash);
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Decides whether a part in a block that is reused is written again.
    pub fn spare(&self, hash: u64) -> bool {
        let (word, bit) = self.bit(hash);
        let is_hot = word.fetch_and(!bit, Ordering::Relaxed) & bit != 0;
        let ahead = self.dropped_ahead.load(Ordering::Relaxed);
        if is_hot && ahead > 0 {
            self.dropped_ahead.fetch_sub(1, Ordering::Relaxed);
            return true;
        }
        if ahead < SPARED_AHEAD_MAX {
            self.dropped_ahead.fetch_add(1, Ordering::Relaxed);
        }
        false
    }
}

/// Adapter of [`HotParts`] for `foyer`.
#[derive(Debug)]
pub(super) struct SecondChance(pub Arc<HotParts>);

impl StorageFilterCondition for SecondChance {
    fn filter(&self, _: &Arc<Statistics>, hash: u64, _: usize) -> StorageFilterResult {
        match self.0.spare(hash) {
            true => StorageFilterResult::Admit,
            false => StorageFilterResult::Reject,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_half_of_parts_are_spared_once_each() {
        let hot = HotParts::new(1 << 16);
        let hash = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (0..1000).for_each(|n| hot.mark(hash(n)));
        let spared = (0..1000).filter(|n| hot.spare(hash(*n))).count();
        assert!((400..=500).contains(&spared), "{spared}");
        assert!((0..1000).all(|n| !hot.spare(hash(n))));
        hot.mark(hash(1));
        assert!(hot.spare(hash(1)));
        assert!(!hot.spare(hash(1)));
    }
}
