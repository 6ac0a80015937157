//! The table `system_views.settings`: the settings of `cassandra.yaml` that have a meaning here, with this node's values.

use std::sync::Arc;
use std::time::Duration;

use super::local::PARTITIONER;
use super::row::{row, text};
use super::{Row, storage_port};
use crate::engine::Engine;
use crate::limits::AutoSnapshot;
use crate::limits::guardrails::{Flag, Guardrails, Threshold, ThresholdKind, Unit, ValueKind};
use crate::schema::Table;

/// Settings that are always true, and settings that are always false.
const ALLOWED: [&str; 7] = [
    "materialized_views_enabled",
    "start_native_transport",
    "sasi_indexes_enabled",
    "use_statements_enabled",
    "user_defined_functions_enabled",
    "default_secondary_index_enabled",
    "native_transport_allow_older_protocols",
];
const REFUSED: [&str; 9] = [
    "cdc_enabled",
    "diagnostic_events_enabled",
    "incremental_backups",
    "native_transport_rate_limiting_enabled",
    "partition_denylist_enabled",
    "scripted_user_defined_functions_enabled",
    "snapshot_before_compaction",
    "transient_replication_enabled",
    "read_thresholds_enabled",
];
/// Prefixes of the settings about sizes that are not measured: `…_warn_threshold` and `…_fail_threshold`.
const UNMEASURED: [&str; 3] = ["coordinator_read_size", "local_read_size", "row_index_read_size"];
const FIXED: [(&str, &str); 4] = [
    ("default_keyspace_rf", "1"),
    ("default_secondary_index", "legacy_local_table"),
    ("partitioner", PARTITIONER),
    ("unlogged_batch_across_partitions_warn_threshold", "10"),
];

pub(crate) fn rows(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let setting =
        |name: &str, value: Option<&str>| row(table, [("name", text(name)), ("value", value.and_then(text))]);
    let unmeasured =
        |name: &str| ["warn", "fail"].map(|act| setting(&format!("{name}_{act}_threshold"), None));
    let mut rows = Vec::new();
    rows.extend(ALLOWED.map(|name| setting(name, Some("true"))));
    rows.extend(REFUSED.map(|name| setting(name, Some("false"))));
    let masks = engine.masks_columns().to_string();
    rows.push(setting("dynamic_data_masking_enabled", Some(&masks)));
    let AutoSnapshot { is_on, ttl } = engine.limits().auto_snapshot;
    let ttl = ttl.map(|ttl| format!("{}s", ttl.as_secs()));
    rows.push(setting("auto_snapshot", Some(&is_on.to_string())));
    rows.push(setting("auto_snapshot_ttl", ttl.as_deref()));
    rows.extend(FIXED.map(|(name, value)| setting(name, Some(value))));
    rows.extend(UNMEASURED.iter().flat_map(|name| unmeasured(name)));
    let guarded = of_guardrails(&engine.context.limits().guardrails);
    rows.extend(
        guarded
            .iter()
            .map(|(name, value)| setting(name, value.as_deref())),
    );
    rows.extend(
        of_node(engine)
            .iter()
            .map(|(name, value)| setting(name, Some(value))),
    );
    rows
}

/// Returns the settings of guardrails and their values, as Cassandra shows them.
pub fn of_guardrails(guardrails: &Guardrails) -> Vec<(String, Option<String>)> {
    let mut settings = Vec::new();
    for kind in ThresholdKind::ALL {
        let Threshold { warn, fail } = guardrails.threshold(kind);
        for (act, value) in [("warn", warn), ("fail", fail)] {
            settings.push((
                format!("{}_{act}_threshold", kind.name()),
                shown_threshold(kind, value),
            ));
        }
    }
    for flag in Flag::ALL {
        settings.push((flag.setting(), Some(guardrails.is_enabled(flag).to_string())));
    }
    for flag in Flag::WARNED {
        settings.push((
            flag.warning_setting(),
            Some(guardrails.is_warned(flag).to_string()),
        ));
    }
    for kind in ValueKind::ALL {
        for act in kind.acts() {
            let values = guardrails.values(kind, *act).join(", ");
            settings.push((
                format!("{}_{}", kind.name(), act.suffix()),
                Some(format!("[{values}]")),
            ));
        }
    }
    settings
}

/// Returns a threshold as Cassandra shows it.
fn shown_threshold(kind: ThresholdKind, value: Option<i64>) -> Option<String> {
    match (kind.unit(), value) {
        (Unit::Count | Unit::Percentage, value) => Some(value.unwrap_or(-1).to_string()),
        (Unit::Bytes, value) => value.and_then(|bytes| usize::try_from(bytes).ok()).map(size),
        (Unit::Microseconds, value) => value.map(|span| format!("{span}us")),
    }
}

/// Returns the settings of this node with their present values.
fn of_node(engine: &Arc<Engine>) -> Vec<(&'static str, String)> {
    let (node, limits) = (&engine.node, &engine.context.limits());
    let address = node.native_address.ip().to_string();
    let timeouts = &limits.timeouts;
    let compaction = engine.throttles.compaction.rate().unwrap_or(0);
    vec![
        ("batch_size_fail_threshold", size(limits.batch_size_fail_bytes)),
        ("batch_size_warn_threshold", size(limits.batch_size_warn_bytes)),
        ("cas_contention_timeout", time(timeouts.cas_contention_timeout)),
        ("cluster_name", node.cluster_name.clone()),
        ("compaction_throughput", format!("{}/s", rate(compaction))),
        (
            "counter_write_request_timeout",
            time(timeouts.counter_write_request_timeout),
        ),
        ("listen_address", address.clone()),
        ("native_transport_port", node.native_address.port().to_string()),
        (
            "prepared_statements_cache_size",
            size(limits.prepared_cache_bytes),
        ),
        ("range_request_timeout", time(timeouts.range_request_timeout)),
        ("read_request_timeout", time(timeouts.read_request_timeout)),
        ("request_timeout", time(limits.request_timeout)),
        ("rpc_address", address),
        ("storage_port", storage_port(engine).to_string()),
        (
            "tombstone_failure_threshold",
            limits.tombstone_failure_threshold.to_string(),
        ),
        (
            "tombstone_warn_threshold",
            limits.tombstone_warn_threshold.to_string(),
        ),
        ("write_request_timeout", time(timeouts.write_request_timeout)),
    ]
}

/// Returns a time as Cassandra writes it.
fn time(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}

/// Returns the bytes of a rate as Cassandra writes them. 0 means no limit.
fn rate(bytes: u64) -> String {
    match bytes {
        0 => "0MiB".to_owned(),
        bytes => size(usize::try_from(bytes).unwrap_or(usize::MAX)),
    }
}

/// Returns a size as Cassandra writes it.
fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes != 0 && bytes.is_multiple_of(1 << 20) => format!("{}MiB", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{}KiB", bytes >> 10),
        bytes => format!("{bytes}B"),
    }
}
