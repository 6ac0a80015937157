//! Stale index entries that reads have found, and their counts.

use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::rows::PartitionKey;

/// Maximum number of entries that one read has removed.
pub const STALE_MAX: usize = 32;

/// Probably stale entries of one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleEntries {
    /// The number of the index's hidden table.
    pub index: u32,
    /// The indexed value, as the key of the entries.
    pub value: Bytes,
    pub entries: Vec<StaleEntry>,
}

/// An entry, given by its row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleEntry {
    pub(crate) partition: PartitionKey,
    /// The row's encoded clustering. Empty if the entry is for a partition.
    pub clustering: Bytes,
    /// The entry's own timestamp.
    pub written_us: i64,
}

impl StaleEntry {
    pub fn new(partition_key: Bytes, clustering: Bytes, written_us: i64) -> StaleEntry {
        StaleEntry {
            partition: PartitionKey::new(partition_key),
            clustering,
            written_us,
        }
    }

    /// Returns the serialized key of the row's partition.
    pub fn partition_key(&self) -> &Bytes {
        &self.partition.bytes
    }
}

/// Counts since the node started.
#[derive(Default)]
pub struct StaleCounts {
    /// Number of stale entries that reads have found.
    pub found: AtomicU64,
    /// Number of entries of this node's rows that were removed. An entry that several reads found at the same time may count more than
    /// once.
    pub removed: AtomicU64,
    /// Entries that are being removed, one item for each read.
    pub(crate) running: Mutex<Vec<StaleEntries>>,
}
