//! The settings of a node by name. In order of precedence they come from the command line (`--set NAME=VALUE`, or an option of their own),
//! the environment (`HELENUS_NAME`), and a TOML file (`name = value`).
//!
//! An unknown or wrong setting is refused with its place, the reason, and the allowed values.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use helenus_cql::frame::MAX_BODY_LEN;
use helenus_tablet::{SaslMechanism, StoreUrl, Throttle, TopicUrl};

use super::config::{Config, LogFormat};
use super::setting::{Setting, count, count_or_zero, put, size, time};
use super::settings_shown;
use super::{audit_settings, guardrail_settings, query_log_settings};

const ADDRESS: &str = "HOST:PORT";
const ADDRESS_OR_OFF: &str = "HOST:PORT or off";
const SIZE: &str = "a number of bytes, also as 512KiB, 64MiB or 2GiB";
const RATE_OR_OFF: &str = "a number of bytes per second, such as 512KiB/s or 64MiB/s, or off";
const COUNT: &str = "a whole number from 1";
const TIME: &str = "a time such as 500ms, 10s or 5m";
const TIME_OR_OFF: &str = "a time such as 500ms, 10s or 5m, or off";
const DOLLARS: &str = "a number of dollars from 0 to 1000000, such as 0.005";
const NAME: &str = "a name of 1 to 64 letters, digits, spaces, dashes, dots and underscores";

const PREFIX: &str = "HELENUS_";

/// Beginnings of environment variables that look like settings and are not. Tests, tools and the shell use them.
const NOT_SETTINGS: [&str; 4] = ["HELENUS_TEST", "HELENUS_FUZZ", "HELENUS_BIN", "HELENUS_PASSWORD"];

#[rustfmt::skip]
pub(super) const SETTINGS: &[Setting] = &[
    Setting { name: "store", about: "the location of the data", allowed: "file:///path, a path, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix", set: |c, v| { c.store.url = StoreUrl::parse(v).map_err(|e| e.to_string())?; Ok(()) } },
    Setting { name: "log_store", about: "the location of the log of a store in a bucket, if it is not beside the data", allowed: "s3://bucket/prefix, s3express://bucket, gs://bucket/prefix, az://container/prefix, a folder that all nodes share, or kafka://broker1:9092,broker2:9092/TOPIC", set: log_store },
    Setting { name: "log_store_tls", about: "whether connections to the brokers of a log in a topic use TLS", allowed: "true or false", set: |c, v| put(&mut c.store.log_topic_config.tls, v.parse().map_err(|_| "neither".to_owned())) },
    Setting { name: "log_store_tls_authority", about: "the authorities of the brokers' certificates, if they are not the system's", allowed: "a PEM file", set: |c, v| { c.store.log_topic_config.tls_authority = Some(v.into()); Ok(()) } },
    Setting { name: "log_store_sasl_mechanism", about: "how the node logs in to the brokers, if log_store_user is set", allowed: "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", set: |c, v| put(&mut c.store.log_topic_config.sasl_mechanism, sasl_mechanism(v)) },
    Setting { name: "log_store_user", about: "the user that the node logs in to the brokers with", allowed: "a text", set: |c, v| { c.store.log_topic_config.user = Some(v.to_owned()); Ok(()) } },
    Setting { name: "log_store_password", about: "the password of log_store_user", allowed: "a text", set: |c, v| { c.store.log_topic_config.password = Some(v.to_owned()); Ok(()) } },
    Setting { name: "log_store_replicas_min", about: "the fewest replicas of a topic for the log; a topic that is created has so many", allowed: "1 to 3", set: |c, v| put(&mut c.store.log_topic_config.replicas_min, between(count(v), 1, 3).map(|n| n as u16)) },
    Setting { name: "log_store_partitions", about: "the partitions of a topic that is created for the log; several for each node", allowed: "1 to 10000", set: |c, v| put(&mut c.store.log_topic_config.partitions, between(count(v), 1, 10_000).map(|n| n as u32)) },
    Setting { name: "log_interval", about: "the time from one PUT of the log to the next, at least, in a bucket: fewer PUTs for writes that take longer", allowed: TIME, set: |c, v| put(&mut c.store.log_interval, time(v)) },
    Setting { name: "read_only", about: "whether the node serves reads from the bucket alone, beside the nodes of the store, and takes no part in their cluster", allowed: "true or false", set: |c, v| put(&mut c.store.read_only, v.parse().map_err(|_| "neither".to_owned())) },
    Setting { name: "read_only_refresh_interval", about: "how often a read-only node looks for what the nodes of the store have flushed", allowed: TIME, set: |c, v| put(&mut c.store.read_only_refresh_interval, time(v)) },
    Setting { name: "log_store_endpoint", about: "the endpoint of the log store's bucket, if it is not AWS_ENDPOINT_URL", allowed: "a URL", set: |c, v| { c.store.log_store_endpoint = Some(v.to_owned()); Ok(()) } },
    Setting { name: "listen", about: "the address for CQL clients", allowed: ADDRESS, set: |c, v| put(&mut c.server.listen, address(v)) },
    Setting { name: "http", about: "the address for /health, /metrics and nodetool", allowed: ADDRESS_OR_OFF, set: |c, v| put(&mut c.http, or_off(v, address)) },
    Setting { name: "rpc", about: "the address for other nodes of a shared store; by default port 7000 on the address for clients", allowed: ADDRESS, set: |c, v| put(&mut c.rpc, address(v).map(Some)) },
    Setting { name: "rpc_advertise", about: "the address at which other nodes reach this one, if it is not rpc", allowed: ADDRESS, set: |c, v| { address(v)?; c.rpc_advertise = Some(v.to_owned()); Ok(()) } },
    Setting { name: "name", about: "the name of this node in its cluster, which must be the same after a restart; by default the host's name and the address for other nodes", allowed: NAME, set: |c, v| put(&mut c.name, name(v).map(Some)) },
    Setting { name: "cluster_secret", about: "the secret that all nodes of the cluster share; by default one that the first node creates and stores in the bucket", allowed: "a text of at least 8 characters", set: |c, v| put(&mut c.cluster_secret, secret(v).map(Some)) },
    Setting { name: "rpc_tls_certificate", about: "this node's certificate for TLS between nodes, issued for the name helenus", allowed: "a PEM file", set: |c, v| { c.rpc_tls_certificate = Some(v.into()); Ok(()) } },
    Setting { name: "rpc_tls_key", about: "the private key of rpc_tls_certificate", allowed: "a PEM file", set: |c, v| { c.rpc_tls_key = Some(v.into()); Ok(()) } },
    Setting { name: "rpc_tls_authority", about: "the authority that has signed the certificates of all nodes", allowed: "a PEM file", set: |c, v| { c.rpc_tls_authority = Some(v.into()); Ok(()) } },
    Setting { name: "lease", about: "the time after which other nodes may take the tablets of a node that has stopped answering", allowed: "a time from 500ms to 60s", set: |c, v| put(&mut c.lease, lease(v)) },
    Setting { name: "merge_after", about: "the time for which tablets must have been small, and the nodes unchanged, before tablets are merged", allowed: TIME, set: |c, v| put(&mut c.merge_after, time(v)) },
    Setting { name: "request_timeout", about: "the time that a request to other nodes may take", allowed: TIME, set: |c, v| put(&mut c.limits.request_timeout, time(v)) },
    Setting { name: "advertise", about: "the address at which drivers reach this node, if it is not listen", allowed: ADDRESS, set: |c, v| put(&mut c.advertise, address(v).map(Some)) },
    Setting { name: "cluster_name", about: "the name of the cluster", allowed: NAME, set: |c, v| put(&mut c.cluster_name, name(v)) },
    Setting { name: "release_version", about: "the version of Apache Cassandra that drivers read in system.local", allowed: "a version such as 6.0.0", set: |c, v| put(&mut c.release_version, version(v)) },
    Setting { name: "data_center", about: "the data center of this node", allowed: NAME, set: |c, v| put(&mut c.data_center, name(v)) },
    Setting { name: "rack", about: "the rack of this node", allowed: NAME, set: |c, v| put(&mut c.rack, name(v)) },
    Setting { name: "log", about: "the level of log lines, or a filter", allowed: "error, warn, info, debug, trace, or a filter such as info,helenus_server=debug", set: |c, v| { c.log = v.to_owned(); Ok(()) } },
    Setting { name: "log_format", about: "how log lines are written: as text, or each as a JSON object", allowed: "text or json", set: |c, v| put(&mut c.log_format, LogFormat::parse(v)) },
    Setting { name: "worker_threads", about: "threads that serve requests; by default one per core", allowed: COUNT, set: |c, v| put(&mut c.worker_threads, count(v).map(Some)) },

    Setting { name: "authenticator", about: "PasswordAuthenticator requires clients to log in; a new store has the role cassandra with password cassandra", allowed: "AllowAllAuthenticator or PasswordAuthenticator", set: |c, v| put(&mut c.control.authenticates, class(v, "AllowAllAuthenticator", "PasswordAuthenticator")) },
    Setting { name: "authorizer", about: "CassandraAuthorizer restricts clients to the permissions of their roles; requires PasswordAuthenticator", allowed: "AllowAllAuthorizer or CassandraAuthorizer", set: |c, v| put(&mut c.control.authorizes, class(v, "AllowAllAuthorizer", "CassandraAuthorizer")) },
    Setting { name: "auto_snapshot", about: "whether TRUNCATE, DROP TABLE and DROP KEYSPACE leave a snapshot from which nodetool restore restores the tables", allowed: "true or false", set: |c, v| put(&mut c.limits.auto_snapshot.is_on, v.parse().map_err(|_| "neither".to_owned())) },
    Setting { name: "auto_snapshot_ttl", about: "the time after which such a snapshot is removed; off keeps it until it is cleared", allowed: "a time such as 12h or 7d, or off", set: |c, v| put(&mut c.limits.auto_snapshot.ttl, or_off(v, time)) },
    Setting { name: "point_in_time_window", about: "how far back any second can be read, branched from and restored (AS OF a time), or off; the same on all nodes", allowed: "a time such as 12h or 7d, or off", set: |c, v| put(&mut c.limits.point_in_time_window, or_off(v, time)) },
    Setting { name: "backup_to", about: "where scheduled backups go, or off; of several nodes one writes them, and each must reach the place", allowed: "a folder, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix, or off", set: |c, v| put(&mut c.backup_to, or_off(v, |v| StoreUrl::parse(v).map_err(|error| error.to_string()))) },
    Setting { name: "backup_interval", about: "the age of the newest backup at which the next one is written", allowed: "a time such as 6h or 1d", set: |c, v| put(&mut c.backup_interval, time(v)) },
    Setting { name: "backup_keep", about: "the number of backups that stay when one has been written on schedule", allowed: COUNT, set: |c, v| put(&mut c.backup_keep, count(v)) },
    Setting { name: "backup_key_file", about: "the file with the key with which scheduled backups are encrypted", allowed: "a file with 64 hexadecimal digits", set: |c, v| { c.backup_key_file = Some(v.into()); Ok(()) } },
    Setting { name: "dynamic_data_masking_enabled", about: "whether columns may have masks, and are shown masked to clients that have no UNMASK permission", allowed: "true or false", set: |c, v| put(&mut c.limits.dynamic_data_masking_enabled, v.parse().map_err(|_| "neither".to_owned())) },
    Setting { name: "tls_certificate", about: "this node's certificate for TLS of clients; clients must use TLS if it is set", allowed: "a PEM file", set: |c, v| { c.tls_certificate = Some(v.into()); Ok(()) } },
    Setting { name: "tls_key", about: "the private key of tls_certificate", allowed: "a PEM file", set: |c, v| { c.tls_key = Some(v.into()); Ok(()) } },
    Setting { name: "tls_authority", about: "the authority that must have signed the certificates of clients; without it clients need none", allowed: "a PEM file", set: |c, v| { c.tls_authority = Some(v.into()); Ok(()) } },
    Setting { name: "tls_optional", about: "whether clients without TLS are served too", allowed: "true or false", set: |c, v| put(&mut c.tls_optional, v.parse().map_err(|_| "neither".to_owned())) },
    Setting { name: "tls_reload", about: "the interval of checks for changed certificates; new connections use the new ones", allowed: TIME, set: |c, v| put(&mut c.tls_reload, time(v)) },
    Setting { name: "superuser_password", about: "makes the role cassandra a superuser with this password when the node starts, whatever it was before", allowed: "a text", set: |c, v| { c.superuser_password = Some(v.to_owned()); Ok(()) } },

    Setting { name: "connections_max", about: "the greatest number of connections; lowered if the limit of open files is too small", allowed: COUNT, set: |c, v| put(&mut c.server.connections_max, count(v)) },
    Setting { name: "frame_bytes_max", about: "the greatest length of a request; at most half of node_in_flight_bytes", allowed: "a size from 64KiB to 256MiB", set: |c, v| put(&mut c.server.frame_bytes_max, between(size(v), 64 << 10, MAX_BODY_LEN)) },
    Setting { name: "connection_in_flight_bytes", about: "bytes of requests that may run for one connection", allowed: SIZE, set: |c, v| put(&mut c.server.connection_in_flight_bytes, size(v)) },
    Setting { name: "node_in_flight_bytes", about: "memory for the requests and responses of all connections, half-read requests included; by default a 16th of the memory", allowed: SIZE, set: |c, v| put(&mut c.server.node_in_flight_bytes, size(v)) },
    Setting { name: "requests_running_max", about: "the greatest number of requests that run at a time; others wait", allowed: COUNT, set: |c, v| put(&mut c.server.requests_running_max, count(v)) },
    Setting { name: "overload_wait_target", about: "the waiting time above which requests are refused with OVERLOADED when the node is overloaded", allowed: TIME_OR_OFF, set: |c, v| put(&mut c.server.overload.wait_target, or_off(v, time)) },
    Setting { name: "overload_interval", about: "the time after which a connection whose queue has not been empty counts as overloaded", allowed: TIME, set: |c, v| put(&mut c.server.overload.interval, time(v)) },
    Setting { name: "overload_waiting_min", about: "the number of waiting requests on the node up to which none is refused for waiting", allowed: COUNT, set: |c, v| put(&mut c.server.overload.waiting_min, count(v)) },
    Setting { name: "idle_timeout", about: "the time after which an idle connection is closed", allowed: TIME_OR_OFF, set: |c, v| put(&mut c.server.idle_timeout, or_off(v, time)) },
    Setting { name: "startup_timeout", about: "the time after which a connection that has not logged in is closed", allowed: TIME, set: |c, v| put(&mut c.server.startup_timeout, time(v)) },
    Setting { name: "slow_request_log_timeout", about: "the duration above which a request is logged, with the time of each stage", allowed: TIME_OR_OFF, set: |c, v| put(&mut c.server.slow_request_log_timeout, or_off(v, time)) },
    Setting { name: "slow_request_log_values", about: "whether those lines show the values that are written into statements, not ? in their place", allowed: "true or false", set: |c, v| put(&mut c.server.slow_request_log_values, v.parse().map_err(|_| "neither".to_owned())) },
    Setting { name: "slow_requests_kept", about: "how many of the last such requests are kept for nodetool slowstatements and the console", allowed: "0 to 10000", set: |c, v| put(&mut c.server.slow_requests_kept, between(count_or_zero(v), 0, 10_000)) },
    Setting { name: "otlp_endpoint", about: "the collector of OpenTelemetry that spans of requests are sent to, by OTLP over HTTP", allowed: "http://HOST:PORT, https://HOST:PORT or off", set: |c, v| put(&mut c.otlp_endpoint, or_off(v, collector)) },
    Setting { name: "otlp_sample_ratio", about: "the part of the requests that have a span, of those whose clients send no trace context", allowed: "a number from 0 to 1", set: |c, v| put(&mut c.otlp_sample_ratio, ratio(v)) },
    Setting { name: "shutdown_timeout", about: "the time for which requests may still run when the node stops", allowed: TIME, set: |c, v| put(&mut c.server.shutdown_timeout, time(v)) },

    Setting { name: "statement_len_max", about: "the greatest length of a statement, in bytes", allowed: SIZE, set: |c, v| put(&mut c.limits.statement_len_max, size(v)) },
    Setting { name: "batch_size_warn_bytes", about: "the size above which a batch gets a warning", allowed: SIZE, set: |c, v| put(&mut c.limits.batch_size_warn_bytes, size(v)) },
    Setting { name: "batch_size_fail_bytes", about: "the size above which a batch is refused", allowed: SIZE, set: |c, v| put(&mut c.limits.batch_size_fail_bytes, size(v)) },
    Setting { name: "tombstone_warn_threshold", about: "the number of tombstones above which a read gets a warning", allowed: COUNT, set: |c, v| put(&mut c.limits.tombstone_warn_threshold, count(v)) },
    Setting { name: "tombstone_failure_threshold", about: "the number of tombstones above which a read fails", allowed: COUNT, set: |c, v| put(&mut c.limits.tombstone_failure_threshold, count(v)) },
    Setting { name: "prepared_cache_bytes", about: "memory for prepared statements", allowed: SIZE, set: |c, v| put(&mut c.limits.prepared_cache_bytes, size(v)) },
    Setting { name: "read_request_timeout", about: "the time that a read of named partitions may compute", allowed: TIME, set: |c, v| put(&mut c.limits.timeouts.read_request_timeout, time(v)) },
    Setting { name: "range_request_timeout", about: "the time that a read of a range of partitions may compute, and an aggregate for each 10,000 rows", allowed: TIME, set: |c, v| put(&mut c.limits.timeouts.range_request_timeout, time(v)) },
    Setting { name: "write_request_timeout", about: "the time that a write or batch may compute before it is handed to the log", allowed: TIME, set: |c, v| put(&mut c.limits.timeouts.write_request_timeout, time(v)) },
    Setting { name: "counter_write_request_timeout", about: "the time that a counter update may compute before it is handed to the log", allowed: TIME, set: |c, v| put(&mut c.limits.timeouts.counter_write_request_timeout, time(v)) },
    Setting { name: "cas_contention_timeout", about: "the time that a write with conditions may compute before it is handed to the log", allowed: TIME, set: |c, v| put(&mut c.limits.timeouts.cas_contention_timeout, time(v)) },
    Setting { name: "answer_bytes_max", about: "the greatest size of the rows of one response; a larger read fails", allowed: SIZE, set: |c, v| put(&mut c.limits.answer_bytes_max, size(v)) },
    Setting { name: "answers_bytes_max", about: "memory for the long responses of all clients; further ones wait", allowed: SIZE, set: |c, v| put(&mut c.limits.answers_bytes_max, size(v)) },
    Setting { name: "scan_concurrency", about: "how many parts of reads of whole tables are read at a time; by default one for every two cores", allowed: COUNT, set: |c, v| put(&mut c.limits.scan_concurrency, count(v)) },
    Setting { name: "partition_sampling_interval", about: "of how many reads and writes one is counted in the console's list of the most active partitions; 0 for none", allowed: "0 to 1000000", set: |c, v| put(&mut c.limits.partition_sampling_interval, between(count_or_zero(v), 0, 1_000_000).map(|n| u32::try_from(n).unwrap_or(u32::MAX))) },
    Setting { name: "page_bytes_max", about: "the size of rows after which a page ends; at most a 32nd of node_in_flight_bytes", allowed: SIZE, set: |c, v| put(&mut c.limits.page_bytes_max, size(v)) },

    Setting { name: "tablet_count", about: "the number of tablets of a new store", allowed: "1 to 1024", set: |c, v| put(&mut c.store.tablet_count, between(count(v), 1, 1024)) },
    Setting { name: "block_cache_bytes", about: "memory for blocks of SSTables", allowed: SIZE, set: |c, v| put(&mut c.store.block_cache_bytes, size(v).map(wide)) },
    Setting { name: "row_cache_bytes", about: "memory for rows that were read or written recently; 0 disables the row cache", allowed: SIZE, set: |c, v| put(&mut c.store.row_cache_bytes, size(v).map(wide)) },
    Setting { name: "cache_dir", about: "the folder of the disk cache of a store in a bucket", allowed: "a path", set: |c, v| { c.store.cache_dir = Some(v.into()); Ok(()) } },
    Setting { name: "cache_disk_bytes", about: "the size of the disk cache of a store in a bucket; 0 disables it", allowed: SIZE, set: |c, v| { c.store.cache_disk_bytes = Some(size(v).map(wide)?); Ok(()) } },
    Setting { name: "memtable_bytes", about: "memory for rows that are not in SSTables yet", allowed: "a size from 4MiB", set: |c, v| put(&mut c.store.memtable_bytes, between(size(v), 4 << 20, usize::MAX).map(wide)) },
    Setting { name: "write_in_flight_bytes", about: "bytes of writes in the store above which further writes wait", allowed: SIZE, set: |c, v| put(&mut c.store.write_in_flight_bytes, size(v).map(wide)) },
    Setting { name: "log_segment_bytes", about: "the size of a file of the log", allowed: "a size from 64KiB to 1GiB", set: |c, v| put(&mut c.store.log_segment_bytes, between(size(v), 64 << 10, 1 << 30).map(wide)) },
    Setting { name: "log_max_bytes", about: "the size of the log above which memtables are flushed", allowed: SIZE, set: |c, v| put(&mut c.store.log_max_bytes, size(v).map(wide)) },
    Setting { name: "disk_reserve_bytes", about: "the free space of the disk below which writes are refused", allowed: SIZE, set: |c, v| put(&mut c.store.disk_reserve_bytes, size(v).map(wide)) },
    Setting { name: "flush_interval", about: "the time after which rows in memory are flushed to the bucket, which bounds what read-only nodes lack", allowed: TIME_OR_OFF, set: |c, v| put(&mut c.store.flush_interval, or_off(v, time)) },
    Setting { name: "write_timeout", about: "the time after which a write that the bucket has not confirmed fails", allowed: TIME, set: |c, v| put(&mut c.store.write_timeout, time(v)) },
    Setting { name: "read_timeout", about: "the time after which a read that the bucket has not answered fails", allowed: TIME, set: |c, v| put(&mut c.store.read_timeout, time(v)) },
    Setting { name: "compaction_poll_interval", about: "the interval at which the compactor looks for work", allowed: TIME, set: |c, v| put(&mut c.store.compaction_poll_interval, time(v)) },
    Setting { name: "bucket_put_dollars_per_1000", about: "the price of 1,000 PUT, LIST, COPY or POST requests to the bucket, for the cost in /metrics and nodetool info", allowed: DOLLARS, set: |c, v| put(&mut c.bucket_prices.put_dollars_per_1000, dollars(v)) },
    Setting { name: "bucket_get_dollars_per_1000", about: "the price of 1,000 GET or HEAD requests to the bucket, for the same", allowed: DOLLARS, set: |c, v| put(&mut c.bucket_prices.get_dollars_per_1000, dollars(v)) },
    Setting { name: "bucket_read_dollars_per_gb", about: "the price of 2^30 bytes read from the bucket, for the same; none within a region", allowed: DOLLARS, set: |c, v| put(&mut c.bucket_prices.read_dollars_per_gb, dollars(v)) },
    Setting { name: "compaction_throughput", about: "the bytes per second that compactions may write, of all tablets together", allowed: RATE_OR_OFF, set: |c, v| throttle(&c.store.throttles.compaction, v) },
    Setting { name: "flush_throughput", about: "the bytes per second that flushes may write, of all tablets together; writes wait when flushes fall behind", allowed: RATE_OR_OFF, set: |c, v| throttle(&c.store.throttles.flush, v) },
    Setting { name: "bucket_throughput", about: "the bytes per second that are read from the bucket and written to it; the log and small documents are counted, but never wait", allowed: RATE_OR_OFF, set: |c, v| throttle(&c.store.throttles.bucket, v) },
    Setting { name: "background_threads", about: "threads for flushes and compactions", allowed: COUNT, set: |c, v| put(&mut c.store.background_threads, count(v)) },
];

/// Returns all settings, guardrails last.
pub(super) fn all() -> impl Iterator<Item = &'static Setting> {
    SETTINGS
        .iter()
        .chain(audit_settings::SETTINGS)
        .chain(query_log_settings::SETTINGS)
        .chain(guardrail_settings::all())
}

/// Sets the place of the log: a topic, or a place for objects.
fn log_store(config: &mut Config, text: &str) -> Result<(), String> {
    match TopicUrl::parse(text)
        .transpose()
        .map_err(|error| error.to_string())?
    {
        Some(topic) => config.store.log_topic = Some(topic),
        None => config.store.log_store = Some(StoreUrl::parse(text).map_err(|error| error.to_string())?),
    }
    Ok(())
}

fn throttle(throttle: &Throttle, text: &str) -> Result<(), String> {
    let rate = or_off(text, |text| {
        size(text.strip_suffix("/s").unwrap_or(text)).map(wide)
    })?;
    throttle.set_rate(rate);
    Ok(())
}

fn sasl_mechanism(text: &str) -> Result<SaslMechanism, String> {
    match text {
        "PLAIN" => Ok(SaslMechanism::Plain),
        "SCRAM-SHA-256" => Ok(SaslMechanism::ScramSha256),
        "SCRAM-SHA-512" => Ok(SaslMechanism::ScramSha512),
        _ => Err("none of these".to_owned()),
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = SocketAddr::from_str(text) {
        return Ok(address);
    }
    if !text.contains(':') {
        return Err("the port is missing".to_owned());
    }
    let mut found = text.to_socket_addrs().map_err(|error| error.to_string())?;
    found.next().ok_or_else(|| "no address has that name".to_owned())
}

fn or_off<T>(text: &str, read: fn(&str) -> Result<T, String>) -> Result<Option<T>, String> {
    if text == "off" {
        Ok(None)
    } else {
        read(text).map(Some)
    }
}

/// Returns true for `strict`, and false for `lenient`, which are names of Cassandra's classes. The name may have Cassandra's package before
/// it.
fn class(text: &str, lenient: &str, strict: &str) -> Result<bool, String> {
    match text.strip_prefix("org.apache.cassandra.auth.").unwrap_or(text) {
        name if name == lenient => Ok(false),
        name if name == strict => Ok(true),
        _ => Err("not one of these".to_owned()),
    }
}

fn name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '.' | '_');
    if text.is_empty() || text.chars().count() > 64 || !text.chars().all(plain) {
        return Err("not such a name".to_owned());
    }
    Ok(text.to_owned())
}

/// Parses a version of three numbers, with or without a suffix such as `-alpha1`.
fn version(text: &str) -> Result<String, String> {
    let (numbers, suffix) = text.split_once('-').unwrap_or((text, "x"));
    let is_number =
        |part: &str| !part.is_empty() && part.len() <= 4 && part.bytes().all(|b| b.is_ascii_digit());
    let is_plain =
        !suffix.is_empty() && suffix.len() <= 32 && suffix.bytes().all(|b| b.is_ascii_alphanumeric());
    match numbers.split('.').count() == 3 && numbers.split('.').all(is_number) && is_plain {
        true => Ok(text.to_owned()),
        false => Err("not such a version".to_owned()),
    }
}

fn secret(text: &str) -> Result<String, String> {
    match text.len() {
        0..8 => Err("too short".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

fn lease(text: &str) -> Result<Duration, String> {
    match time(text)? {
        short if short < Duration::from_millis(500) => Err("too short".to_owned()),
        long if long > Duration::from_secs(60) => Err("too long".to_owned()),
        lease => Ok(lease),
    }
}

fn dollars(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(price) if (0.0..=1e6).contains(&price) => Ok(price),
        Ok(_) => Err("not such an amount".to_owned()),
        Err(_) => Err("not a number".to_owned()),
    }
}

fn ratio(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(ratio),
        Ok(_) => Err("not such a number".to_owned()),
        Err(_) => Err("not a number".to_owned()),
    }
}

fn collector(text: &str) -> Result<String, String> {
    let host = ["http://", "https://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme));
    match host {
        Some(host) if !host.is_empty() => Ok(text.to_owned()),
        _ => Err("not such a URL".to_owned()),
    }
}

fn between(value: Result<usize, String>, least: usize, most: usize) -> Result<usize, String> {
    match value? {
        value if value < least => Err("too small".to_owned()),
        value if value > most => Err("too large".to_owned()),
        value => Ok(value),
    }
}

fn wide(value: usize) -> u64 {
    value as u64
}

/// Maximum number of edits (letters changed, added, removed or swapped) between a name and the one that is suggested for it.
const TYPOS_MAX: usize = 3;

fn find(setting: &str, place: &str) -> anyhow::Result<&'static Setting> {
    if let Some(found) = all().find(|known| known.name == setting) {
        return Ok(found);
    }
    let nearest = all()
        .map(|known| (strsim::damerau_levenshtein(known.name, setting), known.name))
        .min()
        .filter(|(typos, _)| *typos <= TYPOS_MAX);
    let hint = nearest.map_or_else(String::new, |(_, name)| format!(" Did you mean {name}?"));
    bail!("{place}: there is no setting {setting}.{hint}\nhelenus serve --help lists the settings.")
}

/// Returns the names of all settings except guardrails, in the order of `--help`.
pub fn names() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().map(|setting| setting.name)
}

/// Sets a setting. `place` is the source of the value, for error messages.
///
/// # Errors
/// Fails if there is no such setting, or the value is not allowed.
pub fn apply(config: &mut Config, setting: &str, value: &str, place: &str) -> anyhow::Result<()> {
    let found = find(setting, place)?;
    (found.set)(config, value).map_err(|why| {
        anyhow!(
            "{place}: {setting} = \"{value}\": {why}; allowed is {}",
            found.allowed
        )
    })
}

/// Returns the settings of a TOML file: names and values, no sections.
fn read_file(path: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let place = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {place}"))?;
    let table: toml::Table = text.parse().map_err(|error| anyhow!("{place}: {error}"))?;
    let mut settings = Vec::new();
    for (name, value) in table {
        let value = match value {
            toml::Value::String(text) => text,
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Float(number) => number.to_string(),
            toml::Value::Boolean(truth) => truth.to_string(),
            toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => {
                let known = find(&name, &place.to_string())?;
                bail!(
                    "{place}: {name}: a {} can't be its value; allowed is {}",
                    value.type_str(),
                    known.allowed
                )
            }
        };
        settings.push((name, value));
    }
    Ok(settings)
}

/// Parses settings that are given as NAME=VALUE.
pub fn pairs(given: &[String]) -> anyhow::Result<Vec<(String, String)>> {
    let pair = |text: &String| {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| anyhow!("--set {text}: allowed is NAME=VALUE"))?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    };
    given.iter().map(pair).collect()
}

/// Returns the configuration that results from the command line, the environment and the file.
///
/// # Errors
/// Returns the first setting that is unknown or wrong.
pub fn load(
    command_line: &[(String, String)],
    file: Option<&Path>,
    environment: &[(String, String)],
) -> anyhow::Result<Config> {
    let sources = Sources {
        command_line: command_line.to_vec(),
        file: file.map(Path::to_owned),
        environment: environment.to_vec(),
    };
    Ok(sources.load()?.0)
}

/// Sources of settings.
pub struct Sources {
    pub command_line: Vec<(String, String)>,
    pub file: Option<PathBuf>,
    pub environment: Vec<(String, String)>,
}

/// Given settings by name. The values are unparsed.
pub type ExplicitSettings = BTreeMap<String, String>;

impl Sources {
    /// Reads the sources again. Returns the resulting configuration, and the given settings.
    ///
    /// # Errors
    /// Returns the first setting that is unknown or wrong.
    pub fn load(&self) -> anyhow::Result<(Config, ExplicitSettings)> {
        let given = self.read()?;
        let config = add_up(&given)?;
        let values = given.into_iter().map(|(name, value, _)| (name, value));
        Ok((config, values.collect()))
    }

    /// Returns true if the log's format is JSON. Works even if other settings are wrong, so that their error is logged as JSON.
    pub fn has_json_lines(&self) -> bool {
        let without_file = Sources {
            command_line: self.command_line.clone(),
            file: None,
            environment: self.environment.clone(),
        };
        let given = self.read().or_else(|_| without_file.read()).unwrap_or_default();
        let format = given.iter().rev().find(|(name, ..)| name == "log_format");
        format.is_some_and(|(_, value, _)| LogFormat::parse(value) == Ok(LogFormat::Json))
    }

    /// Returns names, values and places of all given settings. Later ones take precedence.
    fn read(&self) -> anyhow::Result<Vec<(String, String, String)>> {
        let environment = &self.environment;
        let mut given: Vec<(String, String, String)> = Vec::new();
        let is_setting = |name: &str| {
            !NOT_SETTINGS.iter().any(|other| name.starts_with(other)) && name != "HELENUS_CONFIG"
        };
        let from_environment = |wanted: &str| environment.iter().find(|(name, _)| name == wanted);
        given.extend(log_folders(environment));
        let file = match &self.file {
            Some(path) => Some(path.to_owned()),
            None => from_environment("HELENUS_CONFIG").map(|(_, path)| path.into()),
        };
        if let Some(path) = file {
            for (name, value) in read_file(&path)? {
                given.push((name, value, path.display().to_string()));
            }
        }
        for (variable, value) in environment {
            if let Some(name) = variable.strip_prefix(PREFIX).filter(|_| is_setting(variable)) {
                let place = format!("environment variable {variable}");
                given.push((name.to_ascii_lowercase(), value.clone(), place));
            }
        }
        for (name, value) in &self.command_line {
            given.push((name.clone(), value.clone(), "command line".to_owned()));
        }
        Ok(given)
    }
}

/// Returns the folders of request logs in the folder that systemd grants (`LogsDirectory`). Settings take precedence over them.
fn log_folders(environment: &[(String, String)]) -> Vec<(String, String, String)> {
    const VARIABLE: &str = "LOGS_DIRECTORY";
    let granted = environment.iter().find(|(name, _)| name == VARIABLE);
    let Some(folder) = granted.and_then(|(_, folders)| folders.split(':').find(|folder| !folder.is_empty()))
    else {
        return Vec::new();
    };
    let setting = |name: &str, folder| {
        (
            name.to_owned(),
            folder,
            format!("environment variable {VARIABLE}"),
        )
    };
    vec![
        setting("audit_logging_options_audit_logs_dir", format!("{folder}/audit")),
        setting("full_query_logging_options_log_dir", format!("{folder}/queries")),
    ]
}

fn add_up(given: &[(String, String, String)]) -> anyhow::Result<Config> {
    // The store is set first, because other defaults depend on its location.
    let mut config = Config::new(Config::default_store());
    for (_, url, place) in given.iter().filter(|(name, ..)| name == "store") {
        apply(&mut config, "store", url, place)?;
        config = Config::new(config.store.url);
    }
    for (name, value, place) in given {
        apply(&mut config, name, value, place)?;
    }
    if let StoreUrl::File(folder) = &config.store.url {
        config.audit.store_folder = Some(folder.clone());
        config.full_query_log.store_folder = Some(folder.clone());
    }
    let order = config.limits.guardrails.check_order();
    order.map_err(|why| anyhow!("{why}"))?;
    if config.control.authorizes && !config.control.authenticates {
        bail!("authorizer = \"CassandraAuthorizer\" requires authenticator = \"PasswordAuthenticator\"");
    }
    if config.store.read_only && matches!(config.store.url, StoreUrl::File(_)) {
        bail!("a store in a local folder has one process; read-only nodes are for stores in a bucket");
    }
    Ok(config)
}

/// Returns all settings with their defaults, for `--help`.
pub fn help() -> String {
    let mut text =
        "Settings, for --set NAME=VALUE, HELENUS_NAME=VALUE and name = \"VALUE\" in the file of --config:\n"
            .to_owned();
    let defaults = Config::new(Config::default_store());
    for setting in all() {
        let default = match settings_shown::default(setting.name, &defaults) {
            none if none.is_empty() => "none".to_owned(),
            default => default,
        };
        let _ = writeln!(
            text,
            "  {:<28} {} ({}) [default: {default}]",
            setting.name, setting.about, setting.allowed
        );
    }
    text
}
