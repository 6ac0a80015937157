//! Measures partitions while SSTables are written, to find those that are large or full of tombstones (`guardPartitionThreshold` of
//! Cassandra's `SortedTableWriter`). As in Cassandra, only the part of a partition that goes into the SSTable counts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use helenus_row::{archive, key, tombstones};
use helenus_tablet::PartitionMeter;

/// A partition whose part in an SSTable is beyond a threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MeasuredPartition {
    /// The common prefix of the partition's keys.
    pub prefix: Bytes,
    pub bytes: u64,
    pub tombstones: u64,
}

type Report = Box<dyn Fn(&MeasuredPartition) + Send + Sync>;

/// The thresholds, and the function that receives partitions beyond them.
pub(crate) struct PartitionThresholds {
    /// Bytes beyond which a partition is reported. [`PartitionThresholds::OFF`] if the size does not matter.
    bytes: AtomicU64,
    tombstones: AtomicU64,
    report: OnceLock<Report>,
}

impl Default for PartitionThresholds {
    fn default() -> PartitionThresholds {
        PartitionThresholds {
            bytes: AtomicU64::new(PartitionThresholds::OFF),
            tombstones: AtomicU64::new(PartitionThresholds::OFF),
            report: OnceLock::new(),
        }
    }
}

impl std::fmt::Debug for PartitionThresholds {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("PartitionThresholds")
            .field("bytes", &self.bytes)
            .field("tombstones", &self.tombstones)
            .finish_non_exhaustive()
    }
}

impl PartitionThresholds {
    /// Value of a threshold that is off.
    const OFF: u64 = u64::MAX;

    /// Sets both thresholds. `None` turns a threshold off.
    pub fn set(&self, bytes: Option<u64>, tombstones: Option<u64>) {
        self.bytes
            .store(bytes.unwrap_or(PartitionThresholds::OFF), Ordering::Relaxed);
        self.tombstones
            .store(tombstones.unwrap_or(PartitionThresholds::OFF), Ordering::Relaxed);
    }

    /// Sets the function that receives partitions beyond a threshold. Called once.
    pub fn report_to(&self, report: impl Fn(&MeasuredPartition) + Send + Sync + 'static) {
        if self.report.set(Box::new(report)).is_err() {
            tracing::error!("partitions are reported already");
        }
    }

    /// Returns a meter for a new SSTable. `None` if both thresholds are off.
    pub fn meter(self: &Arc<Self>) -> Option<Box<dyn PartitionMeter>> {
        let bytes_max = self.bytes.load(Ordering::Relaxed);
        let tombstones_max = self.tombstones.load(Ordering::Relaxed);
        if bytes_max == PartitionThresholds::OFF && tombstones_max == PartitionThresholds::OFF {
            return None;
        }
        Some(Box::new(Meter {
            thresholds: self.clone(),
            bytes_max,
            tombstones_max,
            prefix: Vec::new(),
            bytes: 0,
            tombstones: 0,
        }))
    }
}

struct Meter {
    thresholds: Arc<PartitionThresholds>,
    bytes_max: u64,
    tombstones_max: u64,
    /// Key prefix of the current partition. Empty before the first one.
    prefix: Vec<u8>,
    bytes: u64,
    tombstones: u64,
}

impl Meter {
    /// Reports the current partition if it is beyond a threshold, and resets the counts.
    fn leave_partition(&mut self) {
        let is_beyond = self.bytes > self.bytes_max || self.tombstones > self.tombstones_max;
        if let Some(report) = self.thresholds.report.get().filter(|_| is_beyond) {
            report(&MeasuredPartition {
                prefix: Bytes::copy_from_slice(&self.prefix),
                bytes: self.bytes,
                tombstones: self.tombstones,
            });
        }
        self.prefix.clear();
        (self.bytes, self.tombstones) = (0, 0);
    }

    fn count_tombstones(&mut self, key: &[u8], value: &Bytes) {
        let counted = key::key_kind(key).map(|kind| tombstones::count(kind, value));
        // Readers report entries that cannot be decoded.
        if let Ok(Ok(count)) = counted {
            self.tombstones += count;
        }
    }
}

impl PartitionMeter for Meter {
    fn add(&mut self, key: &[u8], value: &Bytes) {
        if archive::is_archive_key(key) {
            return;
        }
        let Some(prefix) = key::partition_prefix_len(key).and_then(|len| key.get(..len)) else {
            return;
        };
        if prefix != self.prefix {
            self.leave_partition();
            self.prefix.extend_from_slice(prefix);
        }
        self.bytes += (key.len() + value.len()) as u64;
        if self.tombstones_max != PartitionThresholds::OFF {
            self.count_tombstones(key, value);
        }
    }

    fn end(&mut self) {
        self.leave_partition();
    }
}

#[cfg(test)]
#[path = "partition_meter_tests.rs"]
mod tests;
