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
const FENCES: usize = 1 << 14;
/// A fence's generation lies above the number of compactions that keep it closed.
const GENERATION: u64 = 1 << 32;

/// Where a partition's fence stood at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fence {
    Open(u64),
    Closed,
}

impl Fence {
    /// Of partitions that have no header.
    pub const NONE: Fence = Fence::Open(0);
}

/// A fence, by its place.
pub(crate) type Place = u32;

/// The hash of a partition's prefix.
pub(crate) fn hash(prefix: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(prefix);
    hasher.finish()
}

/// The fences of a tablet.
#[derive(Default)]
pub(crate) struct Fences {
    /// Something was closed at some time.
    is_used: AtomicBool,
    /// Closed for all partitions.
    all: AtomicU64,
    /// Made when the first one is closed: most tablets have no headers.
    each: OnceLock<Box<[AtomicU64]>>,
}

impl Fences {
    /// False as long as every fence is as it was when the tablet was opened.
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    pub fn place(hash: u64) -> Place {
        (hash % FENCES as u64) as Place
    }

    fn at(&self, place: Place) -> Option<&AtomicU64> {
        self.each.get()?.get(place as usize)
    }

    pub fn read(&self, place: Place) -> Fence {
        let all = self.all.load(Ordering::Acquire);
        let own = self.at(place).map_or(0, |own| own.load(Ordering::Acquire));
        match (all | own) % GENERATION {
            // Both only grow, so their sum tells of any change.
            0 => Fence::Open(all.wrapping_add(own) / GENERATION),
            _ => Fence::Closed,
        }
    }

    pub fn close(&self, place: Place) {
        self.is_used.store(true, Ordering::Release);
        self.each
            .get_or_init(|| (0..FENCES).map(|_| AtomicU64::new(0)).collect());
        self.add(place, GENERATION + 1);
    }

    pub fn open(&self, place: Place) {
        self.add(place, GENERATION - 1);
    }

    fn add(&self, place: Place, change: u64) {
        if let Some(own) = self.at(place) {
            own.fetch_add(change, Ordering::AcqRel);
        }
    }

    pub fn close_all(&self) {
        self.is_used.store(true, Ordering::Release);
        self.all.fetch_add(GENERATION + 1, Ordering::AcqRel);
    }

    pub fn open_all(&self) {
        self.all.fetch_add(GENERATION - 1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_closed_until_all_who_closed_it_have_opened_it_and_is_another_then() {
        let fences = Fences::default();
        let (place, other) = (Fences::place(7), Fences::place(8));
        let before = fences.read(place);
        assert_eq!(before, Fence::NONE);
        fences.close(place);
        fences.close(place);
        fences.open(place);
        assert_eq!(fences.read(place), Fence::Closed);
        assert_eq!(fences.read(other), Fence::NONE);
        fences.open(place);
        let after = fences.read(place);
        assert!(after != before && after != Fence::Closed);
        fences.close_all();
        assert_eq!(fences.read(other), Fence::Closed);
        fences.open_all();
        assert!(fences.read(place) != after && fences.read(other) != Fence::NONE);
    }
}
