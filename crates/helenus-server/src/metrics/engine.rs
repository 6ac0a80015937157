//! Metrics of the query engine and its store. They are set just before metrics are read. Their number does not depend on the schema or on
//! the clients.

use std::sync::atomic::Ordering;
use std::time::Duration;

use helenus_query::engine::PreparedMetrics;
use helenus_query::engine::history::HistoryFigures;
use helenus_query::index::stale_entry::StaleCounts;
use helenus_query::metrics::TransportQueue;
use helenus_query::metrics::rate_limits::{RateLimitKind, RateLimitMetrics};
use helenus_tablet::StoreStats;
use metrics::{counter, gauge};

/// Sets the counters of stale index entries.
pub(crate) fn record_stale(counts: &StaleCounts) {
    let found = counts.found.load(Ordering::Relaxed);
    counter!("helenus_index_entries_stale_total").absolute(found);
    let removed = counts.removed.load(Ordering::Relaxed);
    counter!("helenus_index_entries_removed_total").absolute(removed);
}

/// Sets the counters of requests that rate limits refused.
pub(crate) fn record_rate_limits(refused: &RateLimitMetrics) {
    for kind in RateLimitKind::ALL {
        counter!("helenus_rate_limited_total", "kind" => kind.name()).absolute(refused.count(kind));
    }
}

/// Sets the gauges of prepared statements and their bytes.
pub(crate) fn record_prepared(prepared: &PreparedMetrics) {
    gauge!("helenus_prepared_statements").set(prepared.statements as f64);
    gauge!("helenus_prepared_statement_bytes").set(prepared.bytes as f64);
}

/// Sets the gauge of requests that wait until others have ended.
pub(crate) fn record_waiting(queue: TransportQueue) {
    gauge!("helenus_requests_waiting").set(queue.waiting as f64);
}

/// Sets the gauge of parts of full table scans that are being read.
pub(crate) fn record_scan_parts(running: usize) {
    gauge!("helenus_scan_parts_running").set(running as f64);
}

/// Sets the gauges of the history that is kept. `reach` is how far back it can be read.
pub(crate) fn record_history(figures: &HistoryFigures, reach: Duration, window: Duration) {
    gauge!("helenus_past_window_seconds").set(window.as_secs_f64());
    gauge!("helenus_past_moments").set(figures.cuts as f64);
    gauge!("helenus_past_log_bytes").set(figures.log_bytes as f64);
    gauge!("helenus_past_reach_seconds").set(reach.as_secs_f64());
    counter!("helenus_past_times_opened_total").absolute(figures.times_opened);
}

/// Sets the gauges and counters of the store. Values are summed over all tablets, so that the number of metrics does not grow with them.
pub(crate) fn record_store(stats: &StoreStats) {
    let sum = |field: fn(&helenus_tablet::TabletStats) -> u64| stats.tablets.iter().map(field).sum::<u64>();
    let gauges = [
        ("helenus_store_tablets", stats.tablets.len() as u64),
        ("helenus_store_in_flight_bytes", stats.in_flight_bytes),
        ("helenus_store_memtable_bytes", stats.memtable_bytes),
        ("helenus_store_data_bytes", sum(|tablet| tablet.data_bytes)),
        ("helenus_store_level0_files", sum(|tablet| tablet.level0_files)),
        ("helenus_store_sorted_runs", sum(|tablet| tablet.sorted_runs)),
        ("helenus_store_compactions_running", stats.compactions_running),
        ("helenus_log_segments", stats.log.segments),
        ("helenus_log_bytes", stats.log.live_bytes),
        ("helenus_block_cache_bytes", stats.block_cache_bytes),
        ("helenus_row_cache_bytes", stats.row_cache.bytes),
        ("helenus_row_cache_rows", stats.row_cache.rows),
    ];
    for (name, value) in gauges {
        gauge!(name).set(value as f64);
    }
    if let Some(bucket) = stats.bucket {
        let requests = [
            ("get", bucket.gets),
            ("put", bucket.puts),
            ("list", bucket.lists),
            ("delete", bucket.deletes),
        ];
        for (kind, count) in requests {
            counter!("helenus_bucket_requests_total", "kind" => kind).absolute(count);
        }
        counter!("helenus_bucket_read_bytes_total").absolute(bucket.read_bytes);
        counter!("helenus_bucket_written_bytes_total").absolute(bucket.written_bytes);
    }
    if let Some(cache) = stats.disk_cache {
        gauge!("helenus_disk_cache_bytes").set(cache.bytes as f64);
        gauge!("helenus_disk_cache_capacity_bytes").set(cache.capacity_bytes as f64);
        counter!("helenus_disk_cache_hits_total").absolute(cache.hits);
        counter!("helenus_disk_cache_misses_total").absolute(cache.misses);
        counter!("helenus_disk_cache_inserted_total").absolute(cache.inserted);
        counter!("helenus_disk_cache_errors_total").absolute(cache.errors);
    }
    if let Some(age) = stats.refresh_age {
        gauge!("helenus_read_only_age_seconds").set(age.as_secs_f64());
    }
    if let Some(free_bytes) = stats.disk_free_bytes {
        gauge!("helenus_store_disk_free_bytes").set(free_bytes as f64);
    }
    let totals = stats.totals;
    let counters = [
        ("helenus_store_batches_total", totals.batches),
        ("helenus_store_operands_total", totals.operands),
        ("helenus_store_gets_total", totals.gets),
        ("helenus_store_scans_total", totals.scans),
        ("helenus_slices_total", totals.slices),
        ("helenus_slice_live_rows_total", totals.rows_live),
        ("helenus_slice_dead_rows_total", totals.rows_dead),
        ("helenus_store_flushes_total", stats.flushes),
        ("helenus_store_compacted_bytes_total", stats.compacted_bytes),
        ("helenus_store_back_pressure_total", stats.back_pressure),
        ("helenus_log_groups_total", stats.log.groups),
        ("helenus_log_records_total", stats.log.records),
        ("helenus_log_syncs_total", stats.log.syncs),
        ("helenus_log_written_bytes_total", stats.log.bytes),
        ("helenus_log_failures_total", stats.log.failures),
        ("helenus_block_cache_hits_total", stats.block_cache_hits),
        ("helenus_block_cache_misses_total", stats.block_cache_misses),
        ("helenus_row_cache_hits_total", totals.row_cache_hits),
        ("helenus_row_cache_misses_total", totals.row_cache_misses),
    ];
    for (name, value) in counters {
        counter!(name).absolute(value);
    }
}
