//! Which rows in the row cache are still judged by the deletions that they were judged by when they were cached.
//!
//! The row cache holds rows as they are stored: a deletion in their partition's header lies beside them, and readers apply it. When a
//! compaction forgets that deletion together with the rows in files that it covers, a cached row that it covered would be read as alive.
//!
//! **The invariant**: a row is taken from the cache only if no deletion of its partition was forgotten since it was put there, and none is
//! being forgotten. A compaction closes the partition's fence before it forgets the deletion; the fence opens, with another generation,
//! when readers see the compaction's output and nobody can read its inputs any more. A cached row has the generation in which it was
//! read. While a fence is closed nothing of the partition is cached.
//!
//! A reader reads the header before the row. So it either sees the deletion, or a row from files that have the deletion's
//! effect.
//!
//! Partitions share fences by their hash. Only partitions of tables that ever had headers have any.

use std::hash::{DefaultHasher, Hasher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Partitions share so many fences.
const SLOTS: usize = 1 << 14;
/// A fence's generation lies above the number of compactions that keep it closed.
const STEP: u64 = 1 << 32;

/// Where a partition's fence stood at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    Open(u64),
    Closed,
}

impl Generation {
    /// Of partitions that have no header.
    pub const NONE: Generation = Generation::Open(0);
}

/// A fence, by its place.
pub(crate) type Slot = u32;

/// The hash of a partition's prefix.
pub(crate) fn hash(prefix: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(prefix);
    hasher.finish()
}

/// The fences of a tablet.
#[derive(Default)]
pub(crate) struct CacheGenerations {
    /// Something was closed at some time.
    was_ever_closed: AtomicBool,
    /// Closed for all partitions.
    all: AtomicU64,
    /// Made when the first one is closed: most tablets have no headers.
    each: OnceLock<Box<[AtomicU64]>>,
}

impl CacheGenerations {
    /// False as long as every fence is as it was when the tablet was opened.
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
            // Both only grow, so their sum tells of any change.
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
    fn a_fence_is_closed_until_all_who_closed_it_have_opened_it_and_is_another_then() {
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
