//! The settings of a configuration as text: their values and their defaults. Secrets are hidden.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use helenus_query::engine::guardrails_shown;
use helenus_tablet::{SaslMechanism, StoreUrl};

use super::config::Config;

/// Returns the value of a setting as text. Empty if it has no value.
type Show = fn(&Config) -> String;

/// Values of settings by name, in the order of the settings.
#[rustfmt::skip]
const SHOWN: &[(&str, Show)] = &[
    ("store", |c| store(&c.store.url)),
    ("log_store", |c| log_store(c)),
    ("log_store_tls", |c| c.store.log_topic_config.tls.to_string()),
    ("log_store_tls_authority", |c| path(&c.store.log_topic_config.tls_authority)),
    ("log_store_sasl_mechanism", |c| sasl_mechanism(c.store.log_topic_config.sasl_mechanism).to_owned()),
    ("log_store_user", |c| text(&c.store.log_topic_config.user)),
    ("log_store_password", |c| secret(&c.store.log_topic_config.password)),
    ("log_store_replicas_min", |c| c.store.log_topic_config.replicas_min.to_string()),
    ("log_store_partitions", |c| c.store.log_topic_config.partitions.to_string()),
    ("log_interval", |c| interval(c.store.log_interval)),
    ("read_only", |c| c.store.read_only.to_string()),
    ("read_only_refresh_interval", |c| time(c.store.read_only_refresh_interval)),
    ("log_store_endpoint", |c| text(&c.store.log_store_endpoint)),
    ("listen", |c| c.server.listen.to_string()),
    ("http", |c| c.http.map_or_else(off, |address| address.to_string())),
    ("rpc", |c| text(&c.rpc)),
    ("rpc_advertise", |c| text(&c.rpc_advertise)),
    ("name", |c| text(&c.name)),
    ("cluster_secret", |c| secret(&c.cluster_secret)),
    ("rpc_tls_certificate", |c| path(&c.rpc_tls_certificate)),
    ("rpc_tls_key", |c| path(&c.rpc_tls_key)),
    ("rpc_tls_authority", |c| path(&c.rpc_tls_authority)),
    ("lease", |c| time(c.lease)),
    ("merge_after", |c| time(c.merge_after)),
    ("request_timeout", |c| time(c.limits.request_timeout)),
    ("advertise", |c| text(&c.advertise)),
    ("cluster_name", |c| c.cluster_name.clone()),
    ("release_version", |c| c.release_version.clone()),
    ("data_center", |c| c.data_center.clone()),
    ("rack", |c| c.rack.clone()),
    ("log", |c| c.log.clone()),
    ("log_format", |c| c.log_format.name().to_owned()),
    ("worker_threads", |c| text(&c.worker_threads)),
    ("authenticator", |c| class(c.control.authenticates, "AllowAllAuthenticator", "PasswordAuthenticator")),
    ("authorizer", |c| class(c.control.authorizes, "AllowAllAuthorizer", "CassandraAuthorizer")),
    ("auto_snapshot", |c| c.limits.auto_snapshot.is_on.to_string()),
    ("auto_snapshot_ttl", |c| c.limits.auto_snapshot.ttl.map_or_else(off, time)),
    ("point_in_time_window", |c| c.limits.point_in_time_window.map_or_else(off, time)),
    ("backup_to", |c| c.backup_to.as_ref().map_or_else(off, store)),
    ("backup_interval", |c| time(c.backup_interval)),
    ("backup_keep", |c| c.backup_keep.to_string()),
    ("backup_key_file", |c| path(&c.backup_key_file)),
    ("dynamic_data_masking_enabled", |c| c.limits.dynamic_data_masking_enabled.to_string()),
    ("tls_certificate", |c| path(&c.tls_certificate)),
    ("tls_key", |c| path(&c.tls_key)),
    ("tls_authority", |c| path(&c.tls_authority)),
    ("tls_optional", |c| c.tls_optional.to_string()),
    ("tls_reload", |c| time(c.tls_reload)),
    ("superuser_password", |c| secret(&c.superuser_password)),
    ("connections_max", |c| c.server.connections_max.to_string()),
    ("frame_bytes_max", |c| size(c.server.frame_bytes_max as u64)),
    ("connection_in_flight_bytes", |c| size(c.server.connection_in_flight_bytes as u64)),
    ("node_in_flight_bytes", |c| size(c.server.node_in_flight_bytes as u64)),
    ("requests_running_max", |c| c.server.requests_running_max.to_string()),
    ("overload_wait_target", |c| c.server.overload.wait_target.map_or_else(off, time)),
    ("overload_interval", |c| time(c.server.overload.interval)),
    ("overload_waiting_min", |c| c.server.overload.waiting_min.to_string()),
    ("idle_timeout", |c| c.server.idle_timeout.map_or_else(off, time)),
    ("startup_timeout", |c| time(c.server.startup_timeout)),
    ("slow_request_log_timeout", |c| c.server.slow_request_log_timeout.map_or_else(off, time)),
    ("slow_request_log_values", |c| c.server.slow_request_log_values.to_string()),
    ("slow_requests_kept", |c| c.server.slow_requests_kept.to_string()),
    ("otlp_endpoint", |c| c.otlp_endpoint.clone().unwrap_or_else(off)),
    ("otlp_sample_ratio", |c| c.otlp_sample_ratio.to_string()),
    ("shutdown_timeout", |c| time(c.server.shutdown_timeout)),
    ("statement_len_max", |c| size(c.limits.statement_len_max as u64)),
    ("batch_size_warn_bytes", |c| size(c.limits.batch_size_warn_bytes as u64)),
    ("batch_size_fail_bytes", |c| size(c.limits.batch_size_fail_bytes as u64)),
    ("tombstone_warn_threshold", |c| c.limits.tombstone_warn_threshold.to_string()),
    ("tombstone_failure_threshold", |c| c.limits.tombstone_failure_threshold.to_string()),
    ("prepared_cache_bytes", |c| size(c.limits.prepared_cache_bytes as u64)),
    ("read_request_timeout", |c| time(c.limits.timeouts.read_request_timeout)),
    ("range_request_timeout", |c| time(c.limits.timeouts.range_request_timeout)),
    ("write_request_timeout", |c| time(c.limits.timeouts.write_request_timeout)),
    ("counter_write_request_timeout", |c| time(c.limits.timeouts.counter_write_request_timeout)),
    ("cas_contention_timeout", |c| time(c.limits.timeouts.cas_contention_timeout)),
    ("answer_bytes_max", |c| size(c.limits.answer_bytes_max as u64)),
    ("answers_bytes_max", |c| size(c.limits.answers_bytes_max as u64)),
    ("scan_concurrency", |c| c.limits.scan_concurrency.to_string()),
    ("partition_sampling_interval", |c| c.limits.partition_sampling_interval.to_string()),
    ("page_bytes_max", |c| size(c.limits.page_bytes_max as u64)),
    ("tablet_count", |c| c.store.tablet_count.to_string()),
    ("block_cache_bytes", |c| size(c.store.block_cache_bytes)),
    ("row_cache_bytes", |c| size(c.store.row_cache_bytes)),
    ("cache_dir", |c| path(&c.store.cache_dir)),
    ("cache_disk_bytes", |c| c.store.cache_disk_bytes.map_or_else(String::new, size)),
    ("memtable_bytes", |c| size(c.store.memtable_bytes)),
    ("write_in_flight_bytes", |c| size(c.store.write_in_flight_bytes)),
    ("log_segment_bytes", |c| size(c.store.log_segment_bytes)),
    ("log_max_bytes", |c| size(c.store.log_max_bytes)),
    ("disk_reserve_bytes", |c| size(c.store.disk_reserve_bytes)),
    ("flush_interval", |c| c.store.flush_interval.map_or_else(off, time)),
    ("write_timeout", |c| time(c.store.write_timeout)),
    ("read_timeout", |c| time(c.store.read_timeout)),
    ("compaction_poll_interval", |c| time(c.store.compaction_poll_interval)),
    ("bucket_put_dollars_per_1000", |c| c.bucket_prices.put_dollars_per_1000.to_string()),
    ("bucket_get_dollars_per_1000", |c| c.bucket_prices.get_dollars_per_1000.to_string()),
    ("bucket_read_dollars_per_gb", |c| c.bucket_prices.read_dollars_per_gb.to_string()),
    ("compaction_throughput", |c| rate(c.store.throttles.compaction.rate())),
    ("flush_throughput", |c| rate(c.store.throttles.flush.rate())),
    ("bucket_throughput", |c| rate(c.store.throttles.bucket.rate())),
    ("background_threads", |c| c.store.background_threads.to_string()),
];

/// Text in the place of a secret.
const HIDDEN: &str = "(hidden)";

/// Descriptions of defaults that depend on the machine or on the store.
const COMPUTED: &[(&str, &str)] = &[
    ("cache_dir", "./helenus-cache of a store in a bucket"),
    (
        "cache_disk_bytes",
        "half of the free space of the disk, at most 100GiB and 8 times the memory",
    ),
    ("rpc", "port 7000 on the address of listen"),
    ("rpc_advertise", "the address of rpc"),
    ("advertise", "the address of listen, or the machine's"),
    ("name", "made of the host's name and the address for other nodes"),
    (
        "cluster_secret",
        "one that the first node creates and stores in the bucket",
    ),
    ("worker_threads", "one per core"),
    (
        "connection_in_flight_bytes",
        "a 160th of the memory, from 16MiB to 256MiB",
    ),
    ("node_in_flight_bytes", "a 16th of the memory, from 16MiB to 4GiB"),
    ("answers_bytes_max", "an eighth of the memory, at least 256MiB"),
    ("scan_concurrency", "half of the cores, at least 1"),
    ("tablet_count", "one per core, from 2 to 16; 16 in a bucket"),
    ("block_cache_bytes", "a 64th of the memory, from 32MiB to 16GiB"),
    ("row_cache_bytes", "a 96th of the memory, from 16MiB to 4GiB"),
    ("memtable_bytes", "a 48th of the memory, from 64MiB to 4GiB"),
    (
        "write_in_flight_bytes",
        "an eighth of memtable_bytes, at least 16MiB",
    ),
    ("log_max_bytes", "memtable_bytes, at least 256MiB"),
    ("disk_reserve_bytes", "memtable_bytes and 64MiB"),
    ("flush_interval", "off; 5m in a bucket"),
    ("compaction_poll_interval", "1s; 5s in a bucket"),
    ("background_threads", "half of the cores, from 1 to 8"),
];

/// Returns the names of the settings that are shown.
#[cfg(test)]
pub fn names() -> impl Iterator<Item = &'static str> {
    SHOWN.iter().map(|(name, _)| *name)
}

/// Returns the names of the settings with computed defaults.
#[cfg(test)]
pub fn computed() -> impl Iterator<Item = &'static str> {
    COMPUTED.iter().map(|(name, _)| *name)
}

/// Returns the value of a setting. Empty if it has none.
pub fn value(name: &str, config: &Config) -> String {
    let found = SHOWN.iter().find(|(known, _)| *known == name);
    match found {
        Some((_, show)) => show(config),
        None => guardrail(name, config)
            .or_else(|| audit_option(name, config))
            .or_else(|| full_query_log_option(name, config))
            .unwrap_or_default(),
    }
}

/// Returns the value of a guardrail's setting, in the form in which it can be set.
fn guardrail(name: &str, config: &Config) -> Option<String> {
    let mut settings = guardrails_shown(&config.limits.guardrails).into_iter();
    let (_, value) = settings.find(|(known, _)| known == name)?;
    Some(value?.trim_matches(['[', ']']).to_owned())
}

/// Returns the value of an option of the audit log.
fn audit_option(name: &str, config: &Config) -> Option<String> {
    let option = name.strip_prefix("audit_logging_options_")?;
    let mut options = config.audit.by_name().into_iter();
    options
        .find(|(known, _)| *known == option)
        .map(|(_, value)| value)
}

/// Returns the value of an option of the full query log.
fn full_query_log_option(name: &str, config: &Config) -> Option<String> {
    let options = &config.full_query_log;
    match name.strip_prefix("full_query_logging_options_")? {
        "allow_nodetool_archive_command" => Some(options.allow_nodetool_archive_command.to_string()),
        "max_queue_weight" => Some(size(u64::from(options.queue_bytes_max))),
        "max_log_size" => Some(size(options.log_bytes_max)),
        option => {
            let mut shown = options.by_name().into_iter();
            shown.find(|(known, _)| *known == option).map(|(_, value)| value)
        }
    }
}

/// Returns the default of a setting. A description if it depends on the machine or on the store, and empty if there is none.
pub fn default(name: &str, defaults: &Config) -> String {
    match COMPUTED.iter().find(|(known, _)| *known == name) {
        Some((_, words)) => (*words).to_owned(),
        None => value(name, defaults),
    }
}

/// Returns true if the default depends on the machine or on the store.
pub fn is_computed(name: &str) -> bool {
    COMPUTED.iter().any(|(known, _)| *known == name)
}

fn off() -> String {
    "off".to_owned()
}

fn text<T: Display>(value: &Option<T>) -> String {
    value.as_ref().map_or_else(String::new, T::to_string)
}

fn path(value: &Option<PathBuf>) -> String {
    value
        .as_ref()
        .map_or_else(String::new, |path| path.display().to_string())
}

fn secret(value: &Option<String>) -> String {
    value.as_ref().map_or("", |_| HIDDEN).to_owned()
}

fn class(is_strict: bool, lenient: &str, strict: &str) -> String {
    if is_strict { strict } else { lenient }.to_owned()
}

/// Returns the location of a store in a form that can be set. A relative path cannot be a URL.
fn store(url: &StoreUrl) -> String {
    match url {
        StoreUrl::File(folder) if folder.is_relative() => folder.display().to_string(),
        _ => url.to_string(),
    }
}

fn log_store(config: &Config) -> String {
    match &config.store.log_topic {
        Some(topic) => topic.to_string(),
        None => text(&config.store.log_store),
    }
}

fn sasl_mechanism(mechanism: SaslMechanism) -> &'static str {
    match mechanism {
        SaslMechanism::Plain => "PLAIN",
        SaslMechanism::ScramSha256 => "SCRAM-SHA-256",
        SaslMechanism::ScramSha512 => "SCRAM-SHA-512",
    }
}

/// Returns an interval as text. Empty if it is 0, which means none.
fn interval(interval: Duration) -> String {
    match interval.is_zero() {
        true => String::new(),
        false => time(interval),
    }
}

/// Returns a time in the largest unit that divides it.
fn time(time: Duration) -> String {
    let millis = time.as_millis();
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s")];
    let unit = units
        .into_iter()
        .find(|(size, _)| millis >= *size && millis.is_multiple_of(*size));
    unit.map_or_else(
        || format!("{millis}ms"),
        |(size, name)| format!("{}{name}", millis / size),
    )
}

/// Returns a size in the largest unit that divides it.
fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units
        .into_iter()
        .find(|(shift, _)| bytes >= 1 << shift && bytes.is_multiple_of(1 << shift));
    unit.map_or_else(
        || bytes.to_string(),
        |(shift, unit)| format!("{}{unit}", bytes >> shift),
    )
}

fn rate(rate: Option<u64>) -> String {
    rate.map_or_else(off, |rate| format!("{}/s", size(rate)))
}
