//! Merged rows by key, written through: what is read or written again costs no walk of the LSM tree.
//!
//! One writer (the tablet's applier) and any number of readers. The writer announces the keys of a batch, writes the batch to the
//! LSM tree, then settles the keys. In between, readers of these keys go to the tree, as those who scan do, since it may or may not
//! show the batch yet; and no reader's miss is filled in, since what it read may be older than the batch.
//!
//! Eviction is SIEVE: a hit marks the row; a hand that walks from old to new rows evicts the first unmarked one. One pass over much
//! data does not displace the rows that are read again.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::Mutex;

const SHARDS: usize = 64;
/// Keys of a shard share this many fences; a fence keeps fills out while, and if, one of its keys is written.
const FENCES: usize = 128;
/// What an entry takes beside its key and value.
const ENTRY_OVERHEAD: usize = 128;
const NIL: u32 = u32::MAX;

/// What the row cache has done and holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowCacheStats {
    pub hits: u64,
    pub misses: u64,
    pub rows: u64,
    pub bytes: u64,
    pub capacity_bytes: u64,
}

/// The answer to a reader.
pub(crate) enum Lookup {
    /// The merged row; `None` is known to be absent.
    Hit(Option<Bytes>),
    /// Read the tree, then hand the ticket back with what was found.
    Miss(Ticket),
}

/// Leave to fill in what a miss found, void if the key was written meanwhile.
pub(crate) struct Ticket {
    hash: u64,
    version: Option<u32>,
}

/// A cached row as its writer sees it.
pub(crate) struct Known {
    pub value: Option<Bytes>,
    /// Operands in the tree since the row was last written there as a whole.
    pub operands: u32,
}

#[derive(Clone, Copy, Default)]
struct Fence {
    writers: u32,
    version: u32,
}

struct Slot {
    key: Bytes,
    value: Option<Bytes>,
    hash: u64,
    operands: u32,
    visited: bool,
    in_flux: bool,
    newer: u32,
    older: u32,
}

impl Slot {
    fn bytes(&self) -> usize {
        ENTRY_OVERHEAD + self.key.len() + self.value.as_ref().map_or(0, Bytes::len)
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
    fences: [Fence; FENCES],
}

pub(crate) struct RowCache {
    shards: Box<[Mutex<Shard>]>,
    hasher: DefaultHashBuilder,
    capacity: u64,
    hits: AtomicU64,
    misses: AtomicU64,
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
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    pub fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        // The table uses the low and the top seven bits; the shard is chosen by others.
        &self.shards[(hash >> 32) as usize % SHARDS]
    }

    pub fn lookup(&self, key: &[u8]) -> Lookup {
        let hash = self.hash(key);
        let mut shard = self.shard(hash).lock();
        if let Some(index) = shard.find(hash, key) {
            let slot = &mut shard.slots[index as usize];
            slot.visited = true;
            if !slot.in_flux {
                let value = slot.value.clone();
                drop(shard);
                self.hits.fetch_add(1, Ordering::Relaxed);
                return Lookup::Hit(value);
            }
        }
        let fence = *shard.fence(hash);
        drop(shard);
        self.misses.fetch_add(1, Ordering::Relaxed);
        Lookup::Miss(Ticket {
            hash,
            version: (fence.writers == 0).then_some(fence.version),
        })
    }

    /// Keeps what a miss found, unless the key may have been written since.
    pub fn fill(&self, ticket: &Ticket, key: &[u8], value: Option<&Bytes>) {
        let Some(version) = ticket.version else { return };
        let mut shard = self.shard(ticket.hash).lock();
        let fence = *shard.fence(ticket.hash);
        if fence.writers == 0 && fence.version == version {
            shard.insert(ticket.hash, key, value, 0);
        }
    }

    /// The writer is about to write `key`. Each call is followed by one of `finish`.
    pub fn begin(&self, hash: u64, key: &[u8]) -> Option<Known> {
        let mut shard = self.shard(hash).lock();
        shard.fence(hash).writers += 1;
        let index = shard.find(hash, key)?;
        let slot = &mut shard.slots[index as usize];
        slot.in_flux = true;
        slot.visited = true;
        Some(Known {
            value: slot.value.clone(),
            operands: slot.operands,
        })
    }

    /// The tree shows the write of `key`. The row is now `known`, or not known.
    pub fn finish(&self, hash: u64, key: &[u8], known: Option<(Bytes, u32)>) {
        let mut shard = self.shard(hash).lock();
        let fence = shard.fence(hash);
        fence.writers -= 1;
        fence.version = fence.version.wrapping_add(1);
        let Some(index) = shard.find(hash, key) else {
            return;
        };
        match known {
            Some((value, operands)) => shard.replace(index, value, operands),
            None => shard.remove(index),
        }
    }

    /// The writer knows a row whole. No batch may be under way.
    pub fn insert(&self, hash: u64, key: &[u8], value: Option<&Bytes>) {
        self.shard(hash).lock().insert(hash, key, value, 0);
    }

    pub fn stats(&self) -> RowCacheStats {
        let mut stats = RowCacheStats {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
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
            fences: [Fence::default(); FENCES],
        }
    }

    fn fence(&mut self, hash: u64) -> &mut Fence {
        &mut self.fences[(hash >> 40) as usize % FENCES]
    }

    fn find(&self, hash: u64, key: &[u8]) -> Option<u32> {
        self.table
            .find(hash, |&index| self.slots[index as usize].key == key)
            .copied()
    }

    fn insert(&mut self, hash: u64, key: &[u8], value: Option<&Bytes>, operands: u32) {
        if let Some(index) = self.find(hash, key) {
            self.remove(index);
        }
        // Copies: what the tree returns is a slice of a whole block.
        let slot = Slot {
            key: Bytes::copy_from_slice(key),
            value: value.map(|value| Bytes::copy_from_slice(value)),
            hash,
            operands,
            visited: false,
            in_flux: false,
            newer: NIL,
            older: self.newest,
        };
        let bytes = slot.bytes();
        if bytes > self.capacity / 8 {
            return;
        }
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
            .insert_unique(hash, index, |&other| slots[other as usize].hash);
        self.evict();
    }

    fn replace(&mut self, index: u32, value: Bytes, operands: u32) {
        let slot = &mut self.slots[index as usize];
        self.bytes -= slot.bytes();
        slot.value = Some(value);
        slot.operands = operands;
        slot.in_flux = false;
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
        let (newer, older, hash) = (slot.newer, slot.older, slot.hash);
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
#[path = "cache_tests.rs"]
mod tests;
