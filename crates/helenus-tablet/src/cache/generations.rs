//! Generations of partitions, which invalidate cached rows while a compaction purges deletions.
//!
//! The row cache holds rows as they are stored. A deletion in the header of a partition is stored beside its rows, and readers apply it. A
//! compaction may purge that deletion together with the covered rows in files. A covered row in the cache would then be read as live.
//!
//! **The invariant**: a row is taken from the cache only if no deletion of its partition has been purged since it was cached, and none is
//! being purged. A compaction closes the partition's generation before it purges the deletion. The next generation opens when readers see
//! the output of the compaction and no reader can read its inputs. A cached row has the generation in which it was read. While the
//! generation is closed, no row of the partition is cached.
//!
//! A reader reads the header before the row. It therefore sees either the deletion, or a row from files in which the deletion has taken
//! effect.
//!
//! Partitions share generations by their hash. Only partitions of tables that ever had a header have generations.

use std::hash::{DefaultHasher, Hasher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Number of generations. Partitions share them by hash.
const SLOTS: usize = 1 << 14;
/// Increment of a generation. The bits below it count the compactions that keep a slot closed.
const STEP: u64 = 1 << 32;

/// The generation of a partition at the time of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    Open(u64),
    Closed,
}

impl Generation {
    /// The generation of partitions without a header.
    pub const NONE: Generation = Generation::Open(0);
}

/// The index of a generation.
pub(crate) type Slot = u32;

/// Returns the hash of a partition's prefix.
pub(crate) fn hash(prefix: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(prefix);
    hasher.finish()
}

/// The generations of a tablet's partitions.
#[derive(Default)]
pub(crate) struct CacheGenerations {
    /// True if any generation was ever closed.
    was_ever_closed: AtomicBool,
    /// Counter that applies to all partitions.
    all: AtomicU64,
    /// Counters of the slots. Allocated when the first slot is closed, because most tablets have no headers.
    each: OnceLock<Box<[AtomicU64]>>,
}

impl CacheGenerations {
    /// Returns true if any generation has been closed since the tablet was opened.
    pub fn was_ever_closed(&self) -> bool {
        self.was_ever_closed.load(Ordering::Acquire)
    }

    pub fn slot(hash: u64) -> Slot {
        (hash % SLOTS as u64) as Slot
    }

    fn at(&self, slot: Slot) -> Option<&AtomicU64> {
        self.each.get()?.get(slot as usize)
    }

    pub fn read(&self, slot: Slot) -> Generation {
        let all = self.all.load(Ordering::Acquire);
        let own = self.at(slot).map_or(0, |own| own.load(Ordering::Acquire));
        match (all | own) % STEP {
            // Both counters only grow, so any change of either changes their sum.
            0 => Generation::Open(all.wrapping_add(own) / STEP),
            _ => Generation::Closed,
        }
    }

    pub fn close(&self, slot: Slot) {
        self.was_ever_closed.store(true, Ordering::Release);
        self.each
            .get_or_init(|| (0..SLOTS).map(|_| AtomicU64::new(0)).collect());
        self.add(slot, STEP + 1);
    }

    pub fn open(&self, slot: Slot) {
        self.add(slot, STEP - 1);
    }

    fn add(&self, slot: Slot, change: u64) {
        if let Some(own) = self.at(slot) {
            own.fetch_add(change, Ordering::AcqRel);
        }
    }

    pub fn close_all(&self) {
        self.was_ever_closed.store(true, Ordering::Release);
        self.all.fetch_add(STEP + 1, Ordering::AcqRel);
    }

    pub fn open_all(&self) {
        self.all.fetch_add(STEP - 1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fence_opens_with_its_last_closer_and_changes() {
        let generations = CacheGenerations::default();
        let (slot, other) = (CacheGenerations::slot(7), CacheGenerations::slot(8));
        let before = generations.read(slot);
        assert_eq!(before, Generation::NONE);
        generations.close(slot);
        generations.close(slot);
        generations.open(slot);
        assert_eq!(generations.read(slot), Generation::Closed);
        assert_eq!(generations.read(other), Generation::NONE);
        generations.open(slot);
        let after = generations.read(slot);
        assert!(after != before && after != Generation::Closed);
        generations.close_all();
        assert_eq!(generations.read(other), Generation::Closed);
        generations.open_all();
        assert!(generations.read(slot) != after && generations.read(other) != Generation::NONE);
    }
}
