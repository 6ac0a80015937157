//! Partitions that are large or full of tombstones, found while SSTables are written (`guardPartitionThreshold` of Cassandra's
//! `SortedTableWriter`). As there, a partition is measured by what the one SSTable gets of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use helenus_row::{archive, key, tombstones};
use helenus_tablet::PartitionMeter;

/// A partition of which an SSTable has more than it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MeasuredPartition {
    /// The beginning of its keys.
    pub prefix: Bytes,
    pub bytes: u64,
    pub tombstones: u64,
}

type Report = Box<dyn Fn(&MeasuredPartition) + Send + Sync>;

/// From when on partitions are reported, and to whom.
pub(crate) struct PartitionThresholds {
    /// More than that is reported; [`PartitionThresholds::OFF`] if nothing is.
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
    /// No threshold.
    const OFF: u64 = u64::MAX;

    /// Sets both thresholds; none if nothing is to be reported.
    pub fn set(&self, bytes: Option<u64>, tombstones: Option<u64>) {
        self.bytes
            .store(bytes.unwrap_or(PartitionThresholds::OFF), Ordering::Relaxed);
        self.tombstones
            .store(tombstones.unwrap_or(PartitionThresholds::OFF), Ordering::Relaxed);
    }

    /// Sets to whom partitions are reported. Done once.
    pub fn report_to(&self, report: impl Fn(&MeasuredPartition) + Send + Sync + 'static) {
        if self.report.set(Box::new(report)).is_err() {
            tracing::error!("partitions are reported already");
        }
    }

    /// Returns a meter for an SSTable that is about to be written, if there is a threshold.
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
    /// Of the partition that is being measured; empty before the first.
    prefix: Vec<u8>,
    bytes: u64,
    tombstones: u64,
}

impl Meter {
    /// Reports the partition, if it is beyond a threshold.
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
        // What can't be understood is told of by those who read it.
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
