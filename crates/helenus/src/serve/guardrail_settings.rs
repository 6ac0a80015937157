//! The settings of guardrails, with the names of `cassandra.yaml`.

use std::sync::Arc;

use helenus_query::engine::guardrail_settings::{
    Flag, Guardrails, Threshold, ThresholdKind, ValueAct, ValueKind,
};

use super::config::Config;
use super::setting::{Setting, size, time};

const LIMIT: &str = "a whole number, or -1 for none";
const PERCENTAGE: &str = "a whole number from 1 to 100, or -1 for none";
const SIZE_OR_NONE: &str = "a number of bytes, also as 512KiB, 64MiB or 2GiB, or null for none";
const SPAN: &str = "a time such as 500ms, 10s or 5m, or null for none";
const FLAG: &str = "true or false";
const LEVELS: &str = "consistency levels, separated by commas";
const PROPERTIES: &str = "table options, separated by commas";

/// Makes the two settings, warn and fail, of each guardrail with thresholds.
macro_rules! thresholds {
    ($($kind:ident $name:literal $about:literal $allowed:ident $read:ident;)*) => {
        &[$(
            Setting { name: concat!($name, "_warn_threshold"), about: concat!($about, " beyond which a client is warned"), allowed: $allowed, set: |c, v| {
                let warn = $read(v)?;
                change(c, ThresholdKind::$kind, |known| Threshold { warn, ..known })
            } },
            Setting { name: concat!($name, "_fail_threshold"), about: concat!($about, " beyond which a request is refused"), allowed: $allowed, set: |c, v| {
                let fail = $read(v)?;
                change(c, ThresholdKind::$kind, |known| Threshold { fail, ..known })
            } },
        )*]
    };
}

macro_rules! flags {
    ($($flag:ident $name:literal $about:literal;)*) => {
        &[$(
            Setting { name: $name, about: concat!("whether clients may use ", $about), allowed: FLAG, set: |c, v| {
                let is_enabled = v.parse().map_err(|_| "neither".to_owned())?;
                guardrails(c).set_enabled(Flag::$flag, is_enabled);
                Ok(())
            } },
        )*]
    };
}

macro_rules! warned_flags {
    ($($flag:ident $name:literal $about:literal;)*) => {
        &[$(
            Setting { name: $name, about: concat!("whether clients are warned that use ", $about), allowed: FLAG, set: |c, v| {
                let is_warned = v.parse().map_err(|_| "neither".to_owned())?;
                guardrails(c).set_warned(Flag::$flag, is_warned);
                Ok(())
            } },
        )*]
    };
}

macro_rules! values {
    ($($kind:ident $act:ident $name:literal $about:literal $allowed:ident $read:ident;)*) => {
        &[$(
            Setting { name: $name, about: $about, allowed: $allowed, set: |c, v| {
                let values = $read(v)?;
                guardrails(c).set_values(ValueKind::$kind, ValueAct::$act, values);
                Ok(())
            } },
        )*]
    };
}

#[rustfmt::skip]
const THRESHOLDS: &[Setting] = thresholds! {
    CollectionSize "collection_size" "the size of a collection in a write" SIZE_OR_NONE bytes;
    ColumnValueSize "column_value_size" "the size of a value of a column in a write, or of an element of a collection," SIZE_OR_NONE bytes;
    ColumnsPerTable "columns_per_table" "the number of columns of a table" LIMIT limit;
    DataDiskUsage "data_disk_usage_percentage" "the used part of the disk of a store in a folder" PERCENTAGE percentage;
    FieldsPerUdt "fields_per_udt" "the number of fields of a user type" LIMIT limit;
    InSelectCartesianProduct "in_select_cartesian_product" "the number of keys that the INs of a read give together" LIMIT limit;
    ItemsPerCollection "items_per_collection" "the number of elements of a collection in a write" LIMIT limit;
    Keyspaces "keyspaces" "the number of keyspaces" LIMIT limit;
    MaterializedViewsPerTable "materialized_views_per_table" "the number of views of a table" LIMIT limit;
    MaximumReplicationFactor "maximum_replication_factor" "the replication factor of a keyspace" LIMIT limit;
    MaximumTimestamp "maximum_timestamp" "the time from now to a later timestamp of a write" SPAN span;
    MinimumReplicationFactor "minimum_replication_factor" "the least replication factor of a keyspace," LIMIT limit;
    MinimumTimestamp "minimum_timestamp" "the time from an earlier timestamp of a write to now" SPAN span;
    PageSize "page_size" "the rows of a page" LIMIT limit;
    PartitionKeysInSelect "partition_keys_in_select" "the number of partitions that the IN of a read names" LIMIT limit;
    PartitionSize "partition_size" "the size of a partition in an SSTable, which is logged while it is written," SIZE_OR_NONE bytes;
    PartitionTombstones "partition_tombstones" "the number of tombstones of a partition in an SSTable, which is logged while it is written," LIMIT limit;
    SaiFrozenTermSize "sai_frozen_term_size" "the size of a frozen value in a write that a storage-attached index gets" SIZE_OR_NONE bytes;
    SaiStringTermSize "sai_string_term_size" "the size of a plain value in a write that a storage-attached index gets" SIZE_OR_NONE bytes;
    SaiVectorTermSize "sai_vector_term_size" "the size of a vector in a write that a storage-attached index gets" SIZE_OR_NONE bytes;
    SecondaryIndexesPerTable "secondary_indexes_per_table" "the number of indexes of a table" LIMIT limit;
    Tables "tables" "the number of tables of all keyspaces" LIMIT limit;
    VectorDimensions "vector_dimensions" "the number of dimensions of a vector" LIMIT limit;
};

#[rustfmt::skip]
const FLAGS: &[Setting] = flags! {
    AllowFiltering "allow_filtering_enabled" "ALLOW FILTERING";
    AlterTable "alter_table_enabled" "ALTER TABLE to add, drop and rename columns";
    CompactTables "compact_tables_enabled" "WITH COMPACT STORAGE in new tables";
    DropKeyspace "drop_keyspace_enabled" "DROP KEYSPACE";
    DropTruncateTable "drop_truncate_table_enabled" "DROP TABLE and TRUNCATE";
    GroupBy "group_by_enabled" "GROUP BY";
    NonPartitionRestrictedIndexQuery "non_partition_restricted_index_query_enabled" "an index without naming partitions";
    ReadBeforeWriteListOperations "read_before_write_list_operations_enabled" "changes of list elements by place or by value";
    SecondaryIndexes "secondary_indexes_enabled" "CREATE INDEX";
    SimpleStrategy "simplestrategy_enabled" "SimpleStrategy";
    UncompressedTables "uncompressed_tables_enabled" "tables without compression";
    UserTimestamps "user_timestamps_enabled" "USING TIMESTAMP";
    VectorType "vector_type_enabled" "vectors in new columns and fields";
    ZeroTtlOnTwcs "zero_ttl_on_twcs_enabled" "TimeWindowCompactionStrategy without default_time_to_live";
};

#[rustfmt::skip]
const WARNED_FLAGS: &[Setting] = warned_flags! {
    ZeroTtlOnTwcs "zero_ttl_on_twcs_warned" "TimeWindowCompactionStrategy without default_time_to_live";
};

#[rustfmt::skip]
const VALUES: &[Setting] = values! {
    ReadConsistencyLevels Warned "read_consistency_levels_warned" "levels of reads that a client is warned of" LEVELS levels;
    ReadConsistencyLevels Disallowed "read_consistency_levels_disallowed" "levels of reads that are refused" LEVELS levels;
    TableProperties Warned "table_properties_warned" "table options that a client is warned of" PROPERTIES properties;
    TableProperties Ignored "table_properties_ignored" "table options that are left out, with a warning" PROPERTIES properties;
    TableProperties Disallowed "table_properties_disallowed" "table options that are refused" PROPERTIES properties;
    WriteConsistencyLevels Warned "write_consistency_levels_warned" "levels of writes that a client is warned of" LEVELS levels;
    WriteConsistencyLevels Disallowed "write_consistency_levels_disallowed" "levels of writes that are refused" LEVELS levels;
};

/// Returns the settings of all guardrails.
pub(super) fn all() -> impl Iterator<Item = &'static Setting> {
    [THRESHOLDS, FLAGS, WARNED_FLAGS, VALUES].into_iter().flatten()
}

/// Sets several guardrails: all of them, or none if one fails.
///
/// # Errors
/// Returns the reason why a change is refused.
pub(super) fn set(config: &mut Config, changes: &[(&str, &str)]) -> Result<(), String> {
    let mut changed = config.clone();
    for (name, value) in changes {
        let setting = all().find(|setting| setting.name == *name);
        let setting = setting.ok_or_else(|| format!("there is no guardrail {name}"))?;
        (setting.set)(&mut changed, value)
            .map_err(|why| format!("{name} = \"{value}\": {why}; allowed is {}", setting.allowed))?;
    }
    changed.limits.guardrails.check_order()?;
    *config = changed;
    Ok(())
}

/// Returns true if a guardrail has a setting with this name.
pub(super) fn has(name: &str) -> bool {
    all().any(|setting| setting.name == name)
}

fn guardrails(config: &mut Config) -> &mut Guardrails {
    Arc::make_mut(&mut config.limits.guardrails)
}

fn change(
    config: &mut Config,
    kind: ThresholdKind,
    change: impl FnOnce(Threshold) -> Threshold,
) -> Result<(), String> {
    let guardrails = guardrails(config);
    guardrails.set_threshold(kind, change(guardrails.threshold(kind)));
    Ok(())
}

fn limit(text: &str) -> Result<Option<i64>, String> {
    match text.parse() {
        _ if text == "null" => Ok(None),
        Ok(-1) => Ok(None),
        Ok(0) => Err("0 would refuse everything".to_owned()),
        Ok(limit) if limit > 0 => Ok(Some(limit)),
        Ok(_) => Err("it must be at least 1".to_owned()),
        Err(_) => Err("not a whole number".to_owned()),
    }
}

fn percentage(text: &str) -> Result<Option<i64>, String> {
    match limit(text)? {
        Some(101..) => Err("more than 100".to_owned()),
        percentage => Ok(percentage),
    }
}

fn bytes(text: &str) -> Result<Option<i64>, String> {
    match text {
        "null" => Ok(None),
        text => size(text).map(|bytes| i64::try_from(bytes).ok()),
    }
}

/// Parses a time. Returns microseconds, or `None` for `null`.
fn span(text: &str) -> Result<Option<i64>, String> {
    match text {
        "null" => Ok(None),
        text => match text.strip_suffix("us").map(str::parse) {
            Some(Ok(micros)) if micros > 0 => Ok(Some(micros)),
            _ => time(text).map(|span| i64::try_from(span.as_micros()).ok()),
        },
    }
}

/// Returns the values of a list, separated by commas. The list may be in brackets, as `system_views.settings` shows it.
fn list(text: &str) -> Vec<String> {
    let inner = text.trim().trim_start_matches('[').trim_end_matches(']');
    inner
        .split(',')
        .map(str::trim)
        .filter(|value| !value.is_empty())
        .map(str::to_owned)
        .collect()
}

fn levels(text: &str) -> Result<Vec<String>, String> {
    const KNOWN: [&str; 11] = [
        "ANY",
        "ONE",
        "TWO",
        "THREE",
        "QUORUM",
        "ALL",
        "LOCAL_QUORUM",
        "EACH_QUORUM",
        "SERIAL",
        "LOCAL_SERIAL",
        "LOCAL_ONE",
    ];
    let levels: Vec<String> = list(text)
        .iter()
        .map(|level| level.to_ascii_uppercase())
        .collect();
    match levels.iter().find(|level| !KNOWN.contains(&level.as_str())) {
        Some(unknown) => Err(format!("there is no consistency level {unknown}")),
        None => Ok(levels),
    }
}

fn properties(text: &str) -> Result<Vec<String>, String> {
    Ok(list(text).iter().map(|name| name.to_ascii_lowercase()).collect())
}

#[cfg(test)]
#[path = "guardrail_settings_tests.rs"]
mod tests;
