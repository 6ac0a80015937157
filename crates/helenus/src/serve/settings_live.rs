//! The settings that can change while the node runs.

use super::config::Config;
use super::guardrail_settings;

/// Copies a setting from the second configuration into the first.
pub type Take = fn(&mut Config, &Config);

/// The settings that can change while the node runs, besides those of guardrails.
#[rustfmt::skip]
pub const LIVE: &[(&str, Take)] = &[
    ("log", |c, new| c.log.clone_from(&new.log)),
    ("slow_request_log_timeout", |c, new| c.server.slow_request_log_timeout = new.server.slow_request_log_timeout),
    ("partition_sampling_interval", |c, new| c.limits.partition_sampling_interval = new.limits.partition_sampling_interval),
    ("slow_requests_kept", |c, new| c.server.slow_requests_kept = new.server.slow_requests_kept),
    ("request_timeout", |c, new| c.limits.request_timeout = new.limits.request_timeout),
    ("read_request_timeout", |c, new| c.limits.timeouts.read_request_timeout = new.limits.timeouts.read_request_timeout),
    ("range_request_timeout", |c, new| c.limits.timeouts.range_request_timeout = new.limits.timeouts.range_request_timeout),
    ("write_request_timeout", |c, new| c.limits.timeouts.write_request_timeout = new.limits.timeouts.write_request_timeout),
    ("counter_write_request_timeout", |c, new| c.limits.timeouts.counter_write_request_timeout = new.limits.timeouts.counter_write_request_timeout),
    ("cas_contention_timeout", |c, new| c.limits.timeouts.cas_contention_timeout = new.limits.timeouts.cas_contention_timeout),
    ("auto_snapshot", |c, new| c.limits.auto_snapshot.is_on = new.limits.auto_snapshot.is_on),
    ("auto_snapshot_ttl", |c, new| c.limits.auto_snapshot.ttl = new.limits.auto_snapshot.ttl),
    ("dynamic_data_masking_enabled", |c, new| c.limits.dynamic_data_masking_enabled = new.limits.dynamic_data_masking_enabled),
    ("statement_len_max", |c, new| c.limits.statement_len_max = new.limits.statement_len_max),
    ("batch_size_warn_bytes", |c, new| c.limits.batch_size_warn_bytes = new.limits.batch_size_warn_bytes),
    ("batch_size_fail_bytes", |c, new| c.limits.batch_size_fail_bytes = new.limits.batch_size_fail_bytes),
    ("tombstone_warn_threshold", |c, new| c.limits.tombstone_warn_threshold = new.limits.tombstone_warn_threshold),
    ("tombstone_failure_threshold", |c, new| c.limits.tombstone_failure_threshold = new.limits.tombstone_failure_threshold),
    ("answer_bytes_max", |c, new| c.limits.answer_bytes_max = new.limits.answer_bytes_max),
    ("page_bytes_max", |c, new| c.limits.page_bytes_max = new.limits.page_bytes_max),
    ("compaction_throughput", |c, new| c.store.throttles.compaction.set_rate(new.store.throttles.compaction.rate())),
    ("flush_throughput", |c, new| c.store.throttles.flush.set_rate(new.store.throttles.flush.rate())),
    ("bucket_throughput", |c, new| c.store.throttles.bucket.set_rate(new.store.throttles.bucket.rate())),
];

/// Returns the names of the live settings, without guardrails.
#[cfg(test)]
pub fn names() -> impl Iterator<Item = &'static str> {
    LIVE.iter().map(|(name, _)| *name)
}

/// Returns true if a setting can change while the node runs.
pub fn is_live(name: &str) -> bool {
    LIVE.iter().any(|(known, _)| *known == name) || guardrail_settings::has(name)
}
