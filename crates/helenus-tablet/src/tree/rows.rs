//! Sorted rows packed in one buffer: a block of an SSTable, or a memtable.
//!
//! A binary search of a large memtable would touch dozens of places that the processor's cache does not hold. Large blocks therefore have
//! *fences*: the leading bytes of every [`FENCE_ROWS`]th key, one after the other. A search compares fences first, and then a few keys.

use bytes::Bytes;
use slatedb::{RowEntry, ValueDeletable};

/// The kind of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// A value to be merged into older versions.
    Operand,
    /// The row as a whole. Older versions are hidden.
    Whole,
    /// A deleted row. Older versions are hidden.
    Deleted,
}

const KIND_BITS: u32 = 2;
/// Rows from one fence to the next.
const FENCE_ROWS: usize = 16;
/// Number of rows from which a block has fences. Blocks of SSTables are smaller.
const FENCED_ROWS_MIN: usize = 256;
/// Bytes of a row besides its key and value.
const ROW_BYTES: usize = size_of::<StoredEntry>();

#[derive(Clone, Copy, PartialEq, Eq)]
struct StoredEntry {
    start: u64,
    key_len: u32,
    value_len: u32,
    /// The sequence number, with the kind in the lowest bits.
    seq: u64,
}

/// Versions of rows in ascending order of keys. Those of one key go from new to old.
#[derive(Default, PartialEq, Eq)]
pub(crate) struct SortedBlock {
    /// Keys and values in turn.
    content: Bytes,
    rows: Box<[StoredEntry]>,
    /// The leading bytes of every [`FENCE_ROWS`]th key. Empty in a small block.
    fences: Box<[u128]>,
}

impl SortedBlock {
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the bytes used in memory.
    pub fn size(&self) -> usize {
        self.content.len() + self.rows.len() * ROW_BYTES + size_of_val(&*self.fences)
    }

    /// Returns the bytes of all keys and values.
    pub fn content_len(&self) -> usize {
        self.content.len()
    }

    /// Returns the key of the row at a place. Empty if the place is beyond the last row, since no row has an empty key.
    pub fn key(&self, at: usize) -> &[u8] {
        let Some(row) = self.rows.get(at) else {
            return &[];
        };
        let start = row.start as usize;
        self.content
            .get(start..start + row.key_len as usize)
            .unwrap_or_default()
    }

    /// Returns the key of the row at a place as a slice that keeps the block in memory.
    pub fn owned_key(&self, at: usize) -> Bytes {
        self.content.slice_ref(self.key(at))
    }

    pub fn value(&self, at: usize) -> Bytes {
        let Some(row) = self.rows.get(at) else {
            return Bytes::new();
        };
        let start = row.start as usize + row.key_len as usize;
        self.content.slice(start..start + row.value_len as usize)
    }

    /// Returns the value of the row at a place, borrowed. Empty if the place is beyond the last row.
    pub fn value_ref(&self, at: usize) -> &[u8] {
        let Some(row) = self.rows.get(at) else {
            return &[];
        };
        let start = row.start as usize + row.key_len as usize;
        self.content
            .get(start..start + row.value_len as usize)
            .unwrap_or_default()
    }

    pub fn seq(&self, at: usize) -> u64 {
        self.rows.get(at).map_or(0, |row| row.seq >> KIND_BITS)
    }

    pub fn kind(&self, at: usize) -> EntryKind {
        match self.rows.get(at).map_or(0, |row| row.seq & 3) {
            0 => EntryKind::Operand,
            1 => EntryKind::Whole,
            _ => EntryKind::Deleted,
        }
    }

    /// Returns the first place whose key is not below `key`.
    pub fn lower_bound(&self, key: &[u8]) -> usize {
        self.partition_point(key, |row| row < key)
    }

    /// Returns the first place whose key is above `key`.
    pub fn upper_bound(&self, key: &[u8]) -> usize {
        self.partition_point(key, |row| row <= key)
    }

    /// Returns the first place for which `is_before` does not hold. It must hold for smaller keys than `key`, and not for greater ones.
    fn partition_point(&self, key: &[u8], is_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = self.places_around(key);
        while low < high {
            let middle = low + (high - low) / 2;
            match is_before(self.key(middle)) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// Returns bounds of the places at which `key` may be, or before which it may be inserted.
    fn places_around(&self, key: &[u8]) -> (usize, usize) {
        if self.fences.is_empty() {
            return (0, self.len());
        }
        let leading = leading_bytes(key);
        let below = self.fences.partition_point(|fence| *fence < leading);
        let behind = match self.fences.get(below) {
            Some(fence) if *fence == leading => self.fences.partition_point(|fence| *fence <= leading),
            _ => below,
        };
        let low = below.saturating_sub(1) * FENCE_ROWS;
        (low, (behind * FENCE_ROWS).min(self.len()))
    }
}

/// Returns the leading bytes of a key as a number. Of two keys with different numbers, the one with the smaller number is smaller.
pub(super) fn leading_bytes(key: &[u8]) -> u128 {
    let bytes = key.first_chunk().copied().unwrap_or_else(|| {
        let mut padded = [0; size_of::<u128>()];
        padded.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
        padded
    });
    u128::from_be_bytes(bytes)
}

/// Builds a [`SortedBlock`] from rows that are added in order.
pub(super) struct SortedBlockBuilder {
    content: Vec<u8>,
    rows: Vec<StoredEntry>,
    fences: Vec<u128>,
}

impl SortedBlockBuilder {
    pub fn with_capacity(rows: usize, bytes: usize) -> SortedBlockBuilder {
        SortedBlockBuilder {
            content: Vec::with_capacity(bytes),
            rows: Vec::with_capacity(rows),
            fences: Vec::new(),
        }
    }

    pub fn push(&mut self, key: &[u8], value: &[u8], seq: u64, kind: EntryKind) {
        let len = |part: &[u8]| u32::try_from(part.len()).unwrap_or(u32::MAX);
        self.rows.push(StoredEntry {
            start: self.content.len() as u64,
            key_len: len(key),
            value_len: len(value),
            seq: seq << KIND_BITS | kind as u64,
        });
        self.content.extend_from_slice(key);
        self.content.extend_from_slice(value);
        self.add_fence();
    }

    /// Adds a row whose key begins with the first `shared` bytes of the key before. `None` if the key before is shorter.
    pub fn push_shared(
        &mut self,
        shared: usize,
        suffix: &[u8],
        value: &[u8],
        seq: u64,
        kind: EntryKind,
    ) -> Option<()> {
        let start = self.content.len();
        if shared > 0 {
            let before = self.rows.last()?;
            if shared > before.key_len as usize {
                return None;
            }
            let from = before.start as usize;
            self.content.extend_from_within(from..from + shared);
        }
        self.rows.push(StoredEntry {
            start: start as u64,
            key_len: u32::try_from(shared + suffix.len()).ok()?,
            value_len: u32::try_from(value.len()).ok()?,
            seq: seq << KIND_BITS | kind as u64,
        });
        self.content.extend_from_slice(suffix);
        self.content.extend_from_slice(value);
        self.add_fence();
        Some(())
    }

    /// Adds a version of another block.
    pub fn copy(&mut self, from: &SortedBlock, at: usize) {
        let Some(row) = from.rows.get(at) else {
            return;
        };
        let start = row.start as usize;
        let end = start + row.key_len as usize + row.value_len as usize;
        self.rows.push(StoredEntry {
            start: self.content.len() as u64,
            ..*row
        });
        self.content
            .extend_from_slice(from.content.get(start..end).unwrap_or_default());
        self.add_fence();
    }

    /// Adds the fence of the last row, if it has one. When the block becomes large, the fences of all earlier rows are added too.
    fn add_fence(&mut self) {
        let last = self.rows.len().saturating_sub(1);
        if self.rows.len() == FENCED_ROWS_MIN {
            let earlier = (0..self.rows.len()).step_by(FENCE_ROWS);
            self.fences = earlier.map(|at| self.leading_bytes_of(at)).collect();
        } else if self.rows.len() > FENCED_ROWS_MIN && last.is_multiple_of(FENCE_ROWS) {
            self.fences.push(self.leading_bytes_of(last));
        }
    }

    fn leading_bytes_of(&self, at: usize) -> u128 {
        let key = self.rows.get(at).and_then(|row| {
            let start = row.start as usize;
            self.content.get(start..start + row.key_len as usize)
        });
        leading_bytes(key.unwrap_or_default())
    }

    pub fn finish(self) -> SortedBlock {
        SortedBlock {
            content: self.content.into_boxed_slice().into(),
            rows: self.rows.into(),
            fences: self.fences.into(),
        }
    }
}

/// Packs the rows of a block that SlateDB has decoded.
impl From<Vec<RowEntry>> for SortedBlock {
    fn from(entries: Vec<RowEntry>) -> SortedBlock {
        let bytes = entries.iter().map(|row| row.key.len() + row.value.len()).sum();
        let mut rows = SortedBlockBuilder::with_capacity(entries.len(), bytes);
        for RowEntry { key, value, seq, .. } in &entries {
            match value {
                ValueDeletable::Value(value) => rows.push(key, value, *seq, EntryKind::Whole),
                ValueDeletable::Merge(operand) => rows.push(key, operand, *seq, EntryKind::Operand),
                ValueDeletable::Tombstone => rows.push(key, &[], *seq, EntryKind::Deleted),
            }
        }
        rows.finish()
    }
}
