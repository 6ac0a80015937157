//! Ranges of partitions in which readers have found nothing alive, such as the front of a queue. Scans that begin in one skip it.
//!
//! **The invariant**: no row in a range is alive, in the stage, the memtables or the files. Deletions, flushes and compactions cannot
//! revive a row. Only a write of something that may be alive can, and it cuts the range off before readers see the write. A range is
//! therefore read and changed under the lock under which writes are staged. A new range is kept only if no write that was staged since its
//! rows were read may have revived one of them.
//!
//! There is one range for each partition. It grows as readers find more dead rows at its ends.

use std::ops::Bound;

use bytes::Bytes;
use hashbrown::HashMap;

/// Maximum number of partitions with a range.
const PARTITIONS_MAX: usize = 4096;

/// Keys of one partition, from `start` and before `end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub start: Bytes,
    pub end: Bytes,
}

impl KeyRange {
    fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && *key < *self.end
    }

    fn touches(&self, other: &KeyRange) -> bool {
        self.start <= other.end && other.start <= self.end
    }
}

/// The bounds of a scan.
pub(crate) type Bounds = (Bound<Bytes>, Bound<Bytes>);

#[derive(Debug)]
struct DeadRange {
    keys: KeyRange,
    /// Dead rows that readers have met in the range.
    rows: u64,
}

/// The dead ranges of one tablet, by the prefix of their partition.
#[derive(Default)]
pub(crate) struct DeadRanges(HashMap<Bytes, DeadRange>);

impl DeadRanges {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Moves the bound where a scan of a partition begins out of a dead range. The bounds may then be empty.
    pub fn skip(&self, partition: &[u8], bounds: &mut Bounds, reversed: bool) {
        let Some(DeadRange { keys, .. }) = self.0.get(partition) else {
            return;
        };
        match (&bounds.0, &bounds.1) {
            (Bound::Included(start) | Bound::Excluded(start), _) if !reversed && keys.contains(start) => {
                bounds.0 = Bound::Included(keys.end.clone());
            }
            (_, Bound::Included(end)) if reversed && keys.contains(end) => {
                bounds.1 = Bound::Excluded(keys.start.clone());
            }
            (_, Bound::Excluded(end)) if reversed && keys.start < *end && *end <= keys.end => {
                bounds.1 = Bound::Excluded(keys.start.clone());
            }
            _ => {}
        }
    }

    /// Returns the dead range of a partition if it contains the key.
    fn over(&mut self, partition: &[u8], key: &[u8]) -> Option<&mut DeadRange> {
        self.0.get_mut(partition).filter(|dead| dead.keys.contains(key))
    }

    /// Ends the range that contains a key before that key, if the value written there may be alive.
    pub fn cut(&mut self, partition: &[u8], key: &[u8], may_be_alive: impl FnOnce() -> bool) {
        let Some(dead) = self.over(partition, key) else {
            return;
        };
        if !may_be_alive() {
            return;
        }
        match *dead.keys.start == *key {
            true => drop(self.0.remove(partition)),
            false => dead.keys.end = Bytes::copy_from_slice(key),
        }
    }

    /// Adds a range of a partition, with the number of dead rows met in it. Touching ranges are joined. Of two separate ones, the one with
    /// more dead rows is kept.
    pub fn add(&mut self, partition: &[u8], keys: KeyRange, rows: u64) {
        if keys.start >= keys.end {
            return;
        }
        // Keys are copied because scans give slices of whole tables, which would stay in memory.
        let copy = |key: &Bytes| Bytes::copy_from_slice(key);
        match self.0.get_mut(partition) {
            Some(known) if known.keys.touches(&keys) => {
                if keys.start < known.keys.start {
                    known.keys.start = copy(&keys.start);
                }
                if known.keys.end < keys.end {
                    known.keys.end = copy(&keys.end);
                }
                known.rows = known.rows.saturating_add(rows);
                return;
            }
            Some(known) if known.rows >= rows => return,
            _ => {}
        }
        if self.0.len() >= PARTITIONS_MAX
            && !self.0.contains_key(partition)
            && let Some(any) = self.0.keys().next().cloned()
        {
            self.0.remove(&any);
        }
        let keys = KeyRange {
            start: copy(&keys.start),
            end: copy(&keys.end),
        };
        self.0
            .insert(Bytes::copy_from_slice(partition), DeadRange { keys, rows });
    }
}

#[cfg(test)]
#[path = "dead_ranges_tests.rs"]
mod tests;
