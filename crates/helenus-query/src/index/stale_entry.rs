//! Index entries that seem to stand for nothing, and how many were found.

use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use parking_lot::Mutex;

use crate::rows::PartitionKey;

/// Entries that one read has removed at most.
pub const STALE_MAX: usize = 32;

/// Entries of one value that seem to stand for nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleEntries {
    /// The number of the index's hidden table.
    pub index: u32,
    /// The value that they are for.
    pub value: Bytes,
    pub entries: Vec<StaleEntry>,
}

/// An entry, by the row that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleEntry {
    pub(crate) partition: PartitionKey,
    /// Encoded; empty where the entry is for a partition.
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

/// What was found and done since the node began.
#[derive(Default)]
pub struct StaleCounts {
    /// Entries that readers came across.
    pub found: AtomicU64,
    /// Entries of this node's rows that were removed; one that several reads came across at the same time may count more than once.
    pub removed: AtomicU64,
    /// What is looked after now, one for each read.
    pub(crate) running: Mutex<Vec<StaleEntries>>,
}
