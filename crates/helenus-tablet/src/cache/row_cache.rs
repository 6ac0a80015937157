//! Merged rows by key, updated by writes: a row that is read or written repeatedly needs no walk of the LSM tree.
//!
//! All tablets of a node share one cache, so that a hot tablet gets the memory. Each opening of a tablet uses the cache through its own
//! handle (`row_cache_handle.rs`).
//!
//! One writer (the log thread, as it stages a group) and any number of readers use the cache. The writer folds each operation into the
//! cached row. A read that began before the write does not fill the cache, because its row may be older.
//!
//! **The invariant**: a row is found only by the opening that cached it. Another node may have written a tablet between its closing and its
//! next opening. So the rows of an earlier opening are never found; they are evicted eventually.
//!
//! A cached row is the stored row, including cells that a deletion in the partition's header covers. It is valid only in the [`Generation`]
//! of its partition in which it was read.
//!
//! Eviction is SIEVE: a hit marks the row; a hand that walks from old to new rows evicts the first unmarked one. One pass over a large
//! range does not displace the rows that are read repeatedly.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::Mutex;

use crate::cache::generations::Generation;

const SHARDS: usize = 128;
/// Number of versions that the keys of a shard share. A write to a key changes its version, which rejects fills that began before.
const VERSIONS: usize = 512;
/// Bytes of an entry besides its key and value.
const ENTRY_OVERHEAD: usize = 128;
const NIL: u32 = u32::MAX;
/// Limits of the size up to which a row is written whole: `WHOLE_FACTOR` times the operation plus `WHOLE_SLACK` bytes.
const WHOLE_FACTOR: usize = 4;
const WHOLE_SLACK: usize = 256;
/// Number of operations above the last whole value in the tree after which the row is written whole regardless of its size.
const OPERANDS_MAX: u32 = 32;

/// The size of the row cache. Each tablet counts its own hits and misses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowCacheStats {
    /// Number of cached rows. Rows of closed tablets count until they are evicted.
    pub rows: u64,
    pub bytes: u64,
    pub capacity_bytes: u64,
}

/// Result of a lookup.
pub(crate) enum Lookup {
    /// The merged row. `None` if the row is known not to exist.
    Hit(Option<Bytes>),
    /// The row is not cached. The token permits caching the row after it was read.
    Miss(FillToken),
}

/// Permission to cache a row after a miss. Void if the key has been written since.
pub(crate) struct FillToken {
    id: CachedRowId,
    version: u32,
    generation: Generation,
}

/// Identifies a cached row, together with its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CachedRowId {
    /// Hash of the key, with the opening mixed in.
    pub hash: u64,
    /// Number of the tablet's opening, unique within the process.
    pub opening: u32,
}

/// The effect of an operation on the cached row.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UpdateOutcome {
    /// The row is not cached.
    Unknown,
    /// The operation was folded into the cached row, which is much larger than the operation.
    Cached,
    /// The cached row with the operation folded in, which should be written whole.
    Whole(Bytes),
}

/// Decides whether a row should be written whole. `operands` counts the operations since the row was last written whole.
fn is_whole(value: &Bytes, operand_len: usize, operands: u32) -> bool {
    value.len() <= WHOLE_FACTOR * operand_len + WHOLE_SLACK || operands > OPERANDS_MAX
}

/// Returns the bytes that an entry takes of the capacity.
fn entry_bytes(key: &[u8], value: Option<&Bytes>) -> usize {
    ENTRY_OVERHEAD + key.len() + value.map_or(0, Bytes::len)
}

struct Slot {
    key: Bytes,
    value: Option<Bytes>,
    id: CachedRowId,
    /// The partition's generation when the row was read.
    generation: Generation,
    operands: u32,
    visited: bool,
    newer: u32,
    older: u32,
}

impl Slot {
    fn bytes(&self) -> usize {
        entry_bytes(&self.key, self.value.as_ref())
    }
}

struct Shard {
    table: HashTable<u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    hand: u32,
    bytes: usize,
    capacity: usize,
    versions: [u32; VERSIONS],
}

pub(crate) struct RowCache {
    shards: Box<[Mutex<Shard>]>,
    hasher: DefaultHashBuilder,
    capacity: u64,
    /// Number of openings so far.
    openings: AtomicU32,
}

impl RowCache {
    pub fn new(capacity: u64) -> Self {
        let shards = (0..SHARDS)
            .map(|_| Mutex::new(Shard::new(capacity as usize / SHARDS)))
            .collect();
        RowCache {
            shards,
            hasher: DefaultHashBuilder::default(),
            capacity,
            openings: AtomicU32::new(0),
        }
    }

    /// Returns a new opening's number, which no cached row has.
    pub(super) fn next_opening(&self) -> u32 {
        self.openings.fetch_add(1, Ordering::Relaxed)
    }

    pub fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        // The shard is chosen by bits that the hash table does not use: the table uses the low bits and the top seven.
        &self.shards[(hash >> 32) as usize % SHARDS]
    }

    /// Looks a row up. `generation` is the current one of its partition.
    pub(super) fn lookup(&self, id: CachedRowId, key: &[u8], generation: Generation) -> Lookup {
        let mut shard = self.shard(id.hash).lock();
        if let Some(index) = shard.find_current(generation, id, key) {
            let slot = &mut shard.slots[index as usize];
            slot.visited = true;
            return Lookup::Hit(slot.value.clone());
        }
        let version = *shard.version(id.hash);
        Lookup::Miss(FillToken {
            id,
            version,
            generation,
        })
    }

    /// Caches a row that was read after a miss, unless the key may have been written since. `generation` is the partition's current one.
    pub fn fill(&self, token: &FillToken, key: &[u8], value: Option<&Bytes>, generation: Generation) {
        if generation == Generation::Closed || generation != token.generation {
            return;
        }
        let mut shard = self.shard(token.id.hash).lock();
        if *shard.version(token.id.hash) == token.version {
            shard.insert(token.id, key, value, generation);
        }
    }

    /// Folds an operation into the row if it is cached. `merge` returns the row with the operation folded in. `None` means that this
    /// failed; the row is then removed from the cache.
    pub(super) fn fold(
        &self,
        id: CachedRowId,
        key: &[u8],
        operand: &Bytes,
        generation: Generation,
        merge: impl FnOnce(&Bytes) -> Option<Bytes>,
    ) -> UpdateOutcome {
        let mut shard = self.shard(id.hash).lock();
        shard.pass(id.hash);
        let Some(index) = shard.find_current(generation, id, key) else {
            return UpdateOutcome::Unknown;
        };
        let slot = &mut shard.slots[index as usize];
        slot.visited = true;
        let merged = match &slot.value {
            None => Some(operand.clone()),
            Some(value) => merge(value),
        };
        let Some(value) = merged else {
            shard.remove(index);
            return UpdateOutcome::Unknown;
        };
        let operands = slot.operands + 1;
        if is_whole(&value, operand.len(), operands) {
            shard.replace(index, value.clone(), 0);
            UpdateOutcome::Whole(value)
        } else {
            shard.replace(index, value, operands);
            UpdateOutcome::Cached
        }
    }

    /// Removes the row of a written key and voids the tokens of earlier reads. A key that is known to be absent stays cached.
    pub(super) fn forget(&self, id: CachedRowId, key: &[u8]) {
        let mut shard = self.shard(id.hash).lock();
        shard.pass(id.hash);
        let found = shard.find(id, key);
        if let Some(index) = found.filter(|&index| shard.slots[index as usize].value.is_some()) {
            shard.remove(index);
        }
    }

    /// Removes the row of a key whose write arrives late. The row may have a tombstone that the files no longer have.
    pub(super) fn remove(&self, id: CachedRowId, key: &[u8]) {
        let mut shard = self.shard(id.hash).lock();
        shard.pass(id.hash);
        if let Some(index) = shard.find(id, key) {
            shard.remove(index);
        }
    }

    pub fn stats(&self) -> RowCacheStats {
        let mut stats = RowCacheStats {
            capacity_bytes: self.capacity,
            ..RowCacheStats::default()
        };
        for shard in &self.shards {
            let shard = shard.lock();
            stats.rows += shard.table.len() as u64;
            stats.bytes += shard.bytes as u64;
        }
        stats
    }
}

impl Shard {
    fn new(capacity: usize) -> Self {
        Shard {
            table: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            newest: NIL,
            oldest: NIL,
            hand: NIL,
            bytes: 0,
            capacity,
            versions: [0; VERSIONS],
        }
    }

    /// Returns the version of the keys that share this hash.
    fn version(&mut self, hash: u64) -> &mut u32 {
        &mut self.versions[(hash >> 40) as usize % VERSIONS]
    }

    /// Voids the fill tokens of earlier reads.
    fn pass(&mut self, hash: u64) {
        let version = self.version(hash);
        *version = version.wrapping_add(1);
    }

    /// Returns the slot of a row. A row of another generation is removed, and counts as missing.
    fn find_current(&mut self, generation: Generation, id: CachedRowId, key: &[u8]) -> Option<u32> {
        let index = self.find(id, key)?;
        if generation == Generation::Closed || self.slots[index as usize].generation != generation {
            self.remove(index);
            return None;
        }
        Some(index)
    }

    fn find(&self, id: CachedRowId, key: &[u8]) -> Option<u32> {
        let is_row = |&index: &u32| {
            let slot = &self.slots[index as usize];
            slot.id.opening == id.opening && slot.key == key
        };
        self.table.find(id.hash, is_row).copied()
    }

    fn insert(&mut self, id: CachedRowId, key: &[u8], value: Option<&Bytes>, generation: Generation) {
        if let Some(index) = self.find(id, key) {
            self.remove(index);
        }
        let bytes = entry_bytes(key, value);
        if bytes > self.capacity / 8 {
            return;
        }
        // Key and value are copied, because the slices that the tree returns would keep whole blocks in memory.
        let slot = Slot {
            key: Bytes::copy_from_slice(key),
            value: value.map(|value| Bytes::copy_from_slice(value)),
            id,
            generation,
            operands: 0,
            visited: false,
            newer: NIL,
            older: self.newest,
        };
        self.bytes += bytes;
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[index as usize] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        };
        match self.newest {
            NIL => self.oldest = index,
            newest => self.slots[newest as usize].newer = index,
        }
        self.newest = index;
        let slots = &self.slots;
        self.table
            .insert_unique(id.hash, index, |&other| slots[other as usize].id.hash);
        self.evict();
    }

    fn replace(&mut self, index: u32, value: Bytes, operands: u32) {
        let slot = &mut self.slots[index as usize];
        self.bytes -= slot.bytes();
        slot.value = Some(value);
        slot.operands = operands;
        let bytes = slot.bytes();
        self.bytes += bytes;
        if bytes > self.capacity / 8 {
            self.remove(index);
        } else {
            self.evict();
        }
    }

    fn remove(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        self.bytes -= slot.bytes();
        let (newer, older, hash) = (slot.newer, slot.older, slot.id.hash);
        slot.key = Bytes::new();
        slot.value = None;
        match newer {
            NIL => self.newest = older,
            newer => self.slots[newer as usize].older = older,
        }
        match older {
            NIL => self.oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
        if self.hand == index {
            self.hand = newer;
        }
        if let Ok(entry) = self.table.find_entry(hash, |&other| other == index) {
            entry.remove();
        }
        self.free.push(index);
    }

    fn evict(&mut self) {
        while self.bytes > self.capacity {
            let mut at = if self.hand == NIL { self.oldest } else { self.hand };
            if at == NIL {
                return;
            }
            while self.slots[at as usize].visited {
                self.slots[at as usize].visited = false;
                let newer = self.slots[at as usize].newer;
                at = if newer == NIL { self.oldest } else { newer };
            }
            self.hand = at;
            self.remove(at);
        }
    }
}

#[cfg(test)]
#[path = "row_cache_tests.rs"]
mod tests;
