//! Aggregates the counters of a store.

use std::sync::Arc;

use slatedb_common::metrics::{DefaultMetricsRecorder, MetricValue};

use super::{PERMIT_BYTES, Store, StoreKind};
use crate::bucket::metered_object_store::BucketStats;
use crate::compaction::{EndedCompaction, RunningCompaction};
use crate::store::stats::StoreStats;
use crate::tablet::Tablet;
use crate::tablet::stats::TabletTotals;

impl Store {
    /// Returns the used part of a local store's disk, from 0 to 100. `None` for a bucket, which has no limit.
    pub fn disk_usage_percentage(&self) -> Option<u8> {
        match &self.kind {
            StoreKind::Local(local) => Some(local.space.usage_percentage()),
            StoreKind::Remote(_) | StoreKind::Pinned(_) => None,
        }
    }

    /// Returns the counters of the store.
    pub fn stats(&self) -> StoreStats {
        let tablets = self.tablets();
        let metrics = Metrics::read(&self.metrics);
        let staged: u64 = tablets.iter().map(|tablet| tablet.stage.bytes() as u64).sum();
        let (log, disk_free_bytes) = match &self.kind {
            StoreKind::Local(local) => (local.log.stats(), Some(local.space.free_bytes())),
            StoreKind::Remote(remote) => (remote.log_stats(), None),
            StoreKind::Pinned(_) => Default::default(),
        };
        let disk_cache = self.remote().ok().and_then(|remote| remote.disk_cache_stats());
        let mut scans = [0; 3];
        for tablet in tablets.iter() {
            let counts = tablet.tables.lookups.counts();
            scans
                .iter_mut()
                .zip(counts)
                .for_each(|(sum, count)| *sum += count);
        }
        let [hits, blocks, indexes] = scans;
        let tablets: Vec<_> = tablets.iter().map(|tablet| tablet.stats()).collect();
        let mut totals = match &self.kind {
            StoreKind::Local(_) | StoreKind::Pinned(_) => TabletTotals::default(),
            StoreKind::Remote(remote) => remote.totals_of_closed(),
        };
        tablets.iter().for_each(|tablet| totals.add(tablet));
        StoreStats {
            log,
            tablets,
            totals,
            in_flight_bytes: u64::from(self.in_flight_permits)
                .saturating_sub(self.in_flight.available_permits() as u64)
                .saturating_mul(PERMIT_BYTES as u64),
            memtable_bytes: metrics.sum("slatedb.db.total_mem_size_bytes") + staged,
            flushes: metrics.sum("slatedb.db.immutable_memtable_flushes"),
            compactions_running: metrics.sum("slatedb.compactor.running_compactions"),
            compacted_bytes: metrics.sum("slatedb.compactor.bytes_compacted"),
            back_pressure: metrics.sum("slatedb.db.backpressure_count"),
            row_cache: self.row_cache.stats(),
            block_cache_bytes: self.block_cache_bytes,
            block_cache_hits: hits + metrics.sum_with("slatedb.db_cache.access_count", &["hit"]),
            block_cache_misses: blocks
                + indexes
                + metrics.sum_with("slatedb.db_cache.access_count", &["miss"]),
            block_reads: blocks + metrics.sum_with("slatedb.db_cache.access_count", &["miss", "data_block"]),
            index_reads: indexes
                + metrics.sum_with("slatedb.db_cache.access_count", &["miss", "index"])
                + metrics.sum_with("slatedb.db_cache.access_count", &["miss", "filter"]),
            disk_free_bytes,
            bucket: self.bucket_stats(),
            disk_cache,
            refresh_age: self.refresh_age(),
        }
    }
}

impl Store {
    /// Returns the requests to the store's bucket and to the log's since the store was opened. `None` for a local store. Cheap, unlike
    /// [`Store::stats`].
    pub fn bucket_stats(&self) -> Option<BucketStats> {
        match &self.kind {
            StoreKind::Local(_) | StoreKind::Pinned(_) => None,
            StoreKind::Remote(remote) => Some(remote.bucket_stats()),
        }
    }

    /// Returns the tablets that take no more writes, with their errors. Empty as long as all is well.
    pub fn failed_tablets(&self) -> Vec<String> {
        let tablets = self.tablets();
        let failed = |tablet: &Arc<Tablet>| {
            let error = tablet.stage.failure()?;
            Some(format!("tablet {}: {error}", tablet.id()))
        };
        tablets.iter().filter_map(failed).collect()
    }

    /// Returns descriptions of what is wrong with the store. Tablets may take no more writes, or a read-only store may have read nothing
    /// new for a while. Empty as long as all is well.
    pub fn troubles(&self) -> Vec<String> {
        let mut troubles = self.failed_tablets();
        if let Some(age) = self.refresh_age().filter(|age| *age > self.refresh_age_max()) {
            let answered = self.refresh_failure();
            let answered = answered.map_or_else(String::new, |error| format!(": {error}"));
            troubles.push(format!(
                "nothing new was read from the bucket for {} s{answered}",
                age.as_secs()
            ));
        }
        troubles
    }
}

impl Store {
    /// Returns the compactions that are scheduled or run now.
    pub fn running_compactions(&self) -> Vec<RunningCompaction> {
        let tablets = self.tablets();
        let running = tablets.iter().flat_map(|tablet| tablet.compactions.running());
        running.collect()
    }

    /// Returns the last compactions that have ended since the store was opened, oldest first.
    pub fn ended_compactions(&self) -> Vec<EndedCompaction> {
        self.compaction_history.list()
    }
}

/// The metrics that SlateDB has recorded for all tablets.
struct Metrics(slatedb_common::metrics::Metrics);

impl Metrics {
    fn read(recorder: &DefaultMetricsRecorder) -> Self {
        Metrics(recorder.snapshot())
    }

    fn sum(&self, name: &str) -> u64 {
        self.sum_with(name, &[])
    }

    /// Returns the sum over the metrics of this name that have labels with all these values.
    fn sum_with(&self, name: &str, labels: &[&str]) -> u64 {
        self.0
            .by_name(name)
            .iter()
            .filter(|metric| {
                let has = |label: &&str| metric.labels.iter().any(|(_, value)| value == label);
                labels.iter().all(has)
            })
            .map(|metric| match &metric.value {
                MetricValue::Counter(value) => *value,
                MetricValue::Gauge(value) | MetricValue::UpDownCounter(value) => {
                    u64::try_from(*value).unwrap_or(0)
                }
                MetricValue::Histogram { .. } => 0,
            })
            .sum()
    }
}
