//! Help texts of the metrics, as shown in `/metrics`.

use metrics::{describe_counter, describe_gauge, describe_histogram};

const GAUGES: &[(&str, &str)] = &[
    (
        "helenus_block_cache_bytes",
        "Memory of the cache of blocks of SSTables",
    ),
    (
        "helenus_build_info",
        "1, with the version of the program as a label",
    ),
    (
        "helenus_cluster_document_version",
        "Version of the cluster document that this node has seen last",
    ),
    (
        "helenus_cluster_lease_valid",
        "1 as long as this node may serve its tablets by its own clock",
    ),
    ("helenus_cluster_nodes", "Nodes of the cluster"),
    ("helenus_cluster_nodes_alive", "Nodes whose lease has not run out"),
    (
        "helenus_cluster_nodes_leaving",
        "Nodes that hand their tablets over before they end",
    ),
    (
        "helenus_cluster_serving",
        "1 as long as this node is a full member of the cluster",
    ),
    ("helenus_cluster_tablets", "Tablets of the store"),
    (
        "helenus_cluster_tablets_moving",
        "Tablets that are handed from one node to another",
    ),
    ("helenus_cluster_tablets_owned", "Tablets that this node owns"),
    (
        "helenus_cluster_tablets_without_owner",
        "Tablets that no node owns. They can be neither read nor written",
    ),
    ("helenus_connections", "Connections of clients"),
    (
        "helenus_disk_cache_bytes",
        "Bytes of files of the bucket that the disk cache holds",
    ),
    (
        "helenus_disk_cache_capacity_bytes",
        "Bytes that the disk cache may hold",
    ),
    (
        "helenus_log_bytes",
        "Bytes of the log whose writes are not all in SSTables yet",
    ),
    (
        "helenus_log_segments",
        "Files or objects of the log whose writes are not all in SSTables yet",
    ),
    (
        "helenus_backup_interval_seconds",
        "Age of the newest scheduled backup at which the next one is written",
    ),
    (
        "helenus_backup_last_success_seconds",
        "Time of the newest scheduled backup, in seconds since 1970; 0 without one, and except at the node that writes them",
    ),
    (
        "helenus_certificate_expiry_seconds",
        "When the node's certificate expires, in seconds since 1970, by use",
    ),
    (
        "helenus_clock_skew_seconds",
        "The largest difference between the clock of another node and this node's; positive if the other is ahead",
    ),
    (
        "helenus_past_log_bytes",
        "Bytes of the log that are kept for history; 0 except at the node that keeps history",
    ),
    (
        "helenus_past_moments",
        "Consistent cuts that are kept for history; 0 except at the node that keeps history",
    ),
    (
        "helenus_past_reach_seconds",
        "How far back times can be read; 0 except at the node that keeps history",
    ),
    (
        "helenus_past_window_seconds",
        "How far back times shall be readable (point_in_time_window)",
    ),
    (
        "helenus_past_times_opened_total",
        "Times of history that were opened for reads; those of requests that found one open are not counted",
    ),
    (
        "helenus_prepared_statement_bytes",
        "Bytes of the prepared statements that are kept, with their plans",
    ),
    ("helenus_prepared_statements", "Prepared statements that are kept"),
    (
        "helenus_read_only_age_seconds",
        "Time for which a read-only node has read nothing new from the bucket",
    ),
    (
        "helenus_ready",
        "1 if clients should be sent to this node, 0 if /health/ready says why not",
    ),
    (
        "helenus_request_in_flight_bytes",
        "Bytes of the requests that run",
    ),
    (
        "helenus_long_requests_running",
        "Long requests that have not ended; they run on threads that serve no socket",
    ),
    ("helenus_requests_running", "Requests that run"),
    (
        "helenus_requests_waiting",
        "Requests that were read and wait for others to end",
    ),
    ("helenus_row_cache_bytes", "Bytes of the rows in the row cache"),
    ("helenus_row_cache_rows", "Rows in the row cache"),
    (
        "helenus_scan_parts_running",
        "Parts of reads of whole tables that are read beside their requests",
    ),
    (
        "helenus_store_compactions_running",
        "Compactions that run on this node",
    ),
    (
        "helenus_store_data_bytes",
        "Bytes of the SSTables of this node's tablets",
    ),
    (
        "helenus_store_disk_free_bytes",
        "Free bytes of the disk that holds the data",
    ),
    (
        "helenus_store_in_flight_bytes",
        "Bytes of writes that are not acknowledged yet",
    ),
    (
        "helenus_store_level0_files",
        "SSTables of level 0, which no compaction has merged yet",
    ),
    (
        "helenus_store_memtable_bytes",
        "Bytes of writes in memory that are in no SSTable yet",
    ),
    (
        "helenus_store_sorted_runs",
        "Sorted runs below level 0; a read looks into each that may have its key",
    ),
    ("helenus_store_tablets", "Tablets that are open on this node"),
];

const COUNTERS: &[(&str, &str)] = &[
    (
        "helenus_backup_bytes_total",
        "Bytes that scheduled backups have copied",
    ),
    (
        "helenus_backup_failures_total",
        "Attempts to write a scheduled backup that failed",
    ),
    (
        "helenus_block_cache_hits_total",
        "Blocks, indexes and filters of SSTables that were found in memory",
    ),
    (
        "helenus_block_cache_misses_total",
        "Blocks, indexes and filters of SSTables that were read from files",
    ),
    (
        "helenus_bucket_read_bytes_total",
        "Bytes that were read from the bucket",
    ),
    (
        "helenus_bucket_requests_total",
        "Requests to the bucket by kind; retries count once",
    ),
    (
        "helenus_bucket_written_bytes_total",
        "Bytes that were written to the bucket",
    ),
    (
        "helenus_cluster_document_requests_total",
        "Requests for the cluster document by kind",
    ),
    (
        "helenus_cluster_expulsions_total",
        "Nodes that this node has expelled because their lease had run out",
    ),
    (
        "helenus_cluster_lease_renewals_total",
        "Renewals of this node's lease",
    ),
    (
        "helenus_cluster_leases_lost_total",
        "Times that this node's lease has run out",
    ),
    (
        "helenus_cluster_relayed_total",
        "Statements forwarded on the short path, whose answers went straight to the client's connection",
    ),
    (
        "helenus_cluster_remote_total",
        "Requests to other nodes by kind and outcome",
    ),
    (
        "helenus_cluster_tablets_closed_total",
        "Tablets that this node has closed",
    ),
    (
        "helenus_cluster_tablets_opened_total",
        "Tablets that this node has opened",
    ),
    (
        "helenus_cluster_tablets_reshaped_total",
        "Tablets that this node has split or merged",
    ),
    (
        "helenus_connections_refused_total",
        "Connections that were refused because there were too many",
    ),
    (
        "helenus_disk_cache_errors_total",
        "Reads and writes of the disk cache that failed",
    ),
    (
        "helenus_disk_cache_hits_total",
        "Parts of files that the disk cache held",
    ),
    (
        "helenus_disk_cache_inserted_total",
        "Parts of files that were put into the disk cache",
    ),
    (
        "helenus_disk_cache_misses_total",
        "Parts of files that were read from the bucket",
    ),
    (
        "helenus_full_query_log_dropped_total",
        "Requests that are not in the full query log because its queue was full or its disk failed",
    ),
    (
        "helenus_index_entries_removed_total",
        "Stale index entries that were removed",
    ),
    (
        "helenus_index_entries_stale_total",
        "Stale index entries that reads found",
    ),
    (
        "helenus_log_failures_total",
        "Groups of the log that could not be written",
    ),
    (
        "helenus_log_groups_total",
        "Groups of records that were written to the log at once",
    ),
    ("helenus_log_records_total", "Records of the log"),
    ("helenus_log_syncs_total", "Times that the log was synced"),
    ("helenus_log_written_bytes_total", "Bytes written to the log"),
    (
        "helenus_long_requests_total",
        "Requests that were moved to threads that serve no socket because they compute for long",
    ),
    (
        "helenus_rate_limited_total",
        "Requests that were refused because a partition or a role has exceeded its rate, by which of them",
    ),
    (
        "helenus_protocol_negotiations_total",
        "Connections whose client offered a version of the protocol that this node does not speak; drivers then offer another one",
    ),
    ("helenus_received_bytes_total", "Bytes received from clients"),
    (
        "helenus_request_errors_total",
        "Requests that were answered with an error, by its kind",
    ),
    (
        "helenus_requests_shed_total",
        "Requests that were refused before they were parsed, because they had waited too long",
    ),
    (
        "helenus_row_cache_hits_total",
        "Rows that the row cache held, those known to be absent too",
    ),
    (
        "helenus_row_cache_misses_total",
        "Rows that had to be read from memtables and SSTables",
    ),
    ("helenus_sent_bytes_total", "Bytes sent to clients"),
    (
        "helenus_slice_dead_rows_total",
        "Rows without live cells that reads of slices skipped",
    ),
    (
        "helenus_slice_live_rows_total",
        "Rows that reads of slices returned",
    ),
    ("helenus_slices_total", "Reads of slices of partitions"),
    (
        "helenus_slow_requests_total",
        "Requests that took longer than slow_request_log_timeout",
    ),
    (
        "helenus_spans_total",
        "Spans of requests by what became of them: exported, failed or dropped because the collector was slow",
    ),
    (
        "helenus_store_back_pressure_total",
        "Times that writes waited for memtables to be flushed",
    ),
    (
        "helenus_store_batches_total",
        "Batches that were written to the LSM trees",
    ),
    (
        "helenus_store_compacted_bytes_total",
        "Bytes that compactions have written",
    ),
    (
        "helenus_store_flushes_total",
        "Memtables that were written to SSTables",
    ),
    ("helenus_store_gets_total", "Reads of single rows"),
    (
        "helenus_store_operands_total",
        "Changes of rows that were written",
    ),
    ("helenus_store_scans_total", "Reads of ranges of keys"),
];

const HISTOGRAMS: &[(&str, &str)] = &[
    (
        "helenus_request_duration_seconds",
        "From the last byte of a request to the moment at which its answer was ready, by kind of message",
    ),
    (
        "helenus_request_stage_seconds",
        "Where the time of requests goes, of one in 16",
    ),
    (
        "helenus_stall_seconds",
        "CPU time of tasks that computed for 25 ms or more at a stretch on a thread that serves sockets; its other connections waited",
    ),
];

/// Sets the help texts, and the metrics that never change.
pub(crate) fn describe() {
    GAUGES
        .iter()
        .for_each(|(name, help)| describe_gauge!(*name, *help));
    COUNTERS
        .iter()
        .for_each(|(name, help)| describe_counter!(*name, *help));
    HISTOGRAMS
        .iter()
        .for_each(|(name, help)| describe_histogram!(*name, *help));
    metrics::gauge!("helenus_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
}
