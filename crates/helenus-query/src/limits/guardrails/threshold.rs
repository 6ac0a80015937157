//! Guardrails with a warning threshold and a failure threshold (Cassandra's `MaxThreshold` and `MinThreshold`).

/// The values beyond which a client is warned or its request is refused. `None` if the threshold is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Threshold {
    pub warn: Option<i64>,
    pub fail: Option<i64>,
}

/// The unit of a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Count,
    Bytes,
    /// A percentage from 1 to 100.
    Percentage,
    /// The distance from the current time, before or after it.
    Microseconds,
}

/// The values that have thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThresholdKind {
    CollectionSize,
    ColumnValueSize,
    ColumnsPerTable,
    /// The used percentage of the disk with the data.
    DataDiskUsage,
    FieldsPerUdt,
    InSelectCartesianProduct,
    ItemsPerCollection,
    Keyspaces,
    MaterializedViewsPerTable,
    MaximumReplicationFactor,
    MaximumTimestamp,
    MinimumReplicationFactor,
    MinimumTimestamp,
    PageSize,
    PartitionKeysInSelect,
    PartitionSize,
    PartitionTombstones,
    SaiFrozenTermSize,
    SaiStringTermSize,
    SaiVectorTermSize,
    SecondaryIndexesPerTable,
    Tables,
    VectorDimensions,
}

use ThresholdKind::*;

impl ThresholdKind {
    pub const ALL: [ThresholdKind; 23] = [
        CollectionSize,
        ColumnValueSize,
        ColumnsPerTable,
        DataDiskUsage,
        FieldsPerUdt,
        InSelectCartesianProduct,
        ItemsPerCollection,
        Keyspaces,
        MaterializedViewsPerTable,
        MaximumReplicationFactor,
        MaximumTimestamp,
        MinimumReplicationFactor,
        MinimumTimestamp,
        PageSize,
        PartitionKeysInSelect,
        PartitionSize,
        PartitionTombstones,
        SaiFrozenTermSize,
        SaiStringTermSize,
        SaiVectorTermSize,
        SecondaryIndexesPerTable,
        Tables,
        VectorDimensions,
    ];

    /// Returns the prefix of the settings' names.
    pub fn name(self) -> &'static str {
        match self {
            CollectionSize => "collection_size",
            ColumnValueSize => "column_value_size",
            ColumnsPerTable => "columns_per_table",
            DataDiskUsage => "data_disk_usage_percentage",
            FieldsPerUdt => "fields_per_udt",
            InSelectCartesianProduct => "in_select_cartesian_product",
            ItemsPerCollection => "items_per_collection",
            Keyspaces => "keyspaces",
            MaterializedViewsPerTable => "materialized_views_per_table",
            MaximumReplicationFactor => "maximum_replication_factor",
            MaximumTimestamp => "maximum_timestamp",
            MinimumReplicationFactor => "minimum_replication_factor",
            MinimumTimestamp => "minimum_timestamp",
            PageSize => "page_size",
            PartitionKeysInSelect => "partition_keys_in_select",
            PartitionSize => "partition_size",
            PartitionTombstones => "partition_tombstones",
            SaiFrozenTermSize => "sai_frozen_term_size",
            SaiStringTermSize => "sai_string_term_size",
            SaiVectorTermSize => "sai_vector_term_size",
            SecondaryIndexesPerTable => "secondary_indexes_per_table",
            Tables => "tables",
            VectorDimensions => "vector_dimensions",
        }
    }

    /// Returns the guardrail's name in messages.
    pub(super) fn guardrail(self) -> &'static str {
        match self {
            DataDiskUsage => "replica_disk_usage",
            kind => kind.name(),
        }
    }

    /// Returns the unit of the thresholds.
    pub fn unit(self) -> Unit {
        match self {
            CollectionSize | ColumnValueSize | PartitionSize => Unit::Bytes,
            SaiFrozenTermSize | SaiStringTermSize | SaiVectorTermSize => Unit::Bytes,
            DataDiskUsage => Unit::Percentage,
            MaximumTimestamp | MinimumTimestamp => Unit::Microseconds,
            _ => Unit::Count,
        }
    }

    /// Returns true if the threshold does not allow the value.
    pub(super) fn is_beyond(self, value: i64, threshold: i64) -> bool {
        match self {
            MinimumReplicationFactor | MinimumTimestamp => value < threshold,
            _ => value > threshold,
        }
    }

    /// Checks that the warning threshold does not lie beyond the failure threshold.
    pub(super) fn check_order(self, Threshold { warn, fail }: Threshold) -> Result<(), String> {
        let (Some(warn), Some(fail)) = (warn, fail) else {
            return Ok(());
        };
        // The thresholds of `MinimumTimestamp` are distances before the current time, so they have the usual order.
        let (is_beyond, order) = match self {
            MinimumReplicationFactor => (warn < fail, "greater"),
            _ => (warn > fail, "lower"),
        };
        if !is_beyond {
            return Ok(());
        }
        let name = self.name();
        Err(format!(
            "The warn threshold {warn} for {name}_warn_threshold should be {order} than the fail threshold {fail}"
        ))
    }

    pub(super) fn reason(self) -> Option<&'static str> {
        match self {
            PartitionSize => Some("Too large partitions can cause performance problems."),
            PartitionTombstones => {
                Some("Partitions with too many tombstones can cause performance problems.")
            }
            MaximumTimestamp => {
                Some("Timestamps too far in the future can lead to data that can't be easily overwritten")
            }
            MinimumTimestamp => {
                Some("Timestamps too far in the past can cause writes can be unexpectedly lost")
            }
            _ => None,
        }
    }

    /// Returns Cassandra's message for `what`.
    pub(super) fn message(self, is_warning: bool, what: &str, value: i64, threshold: i64) -> String {
        let which = if is_warning { "warning" } else { "failure" };
        match (self, is_warning) {
            (CollectionSize, _) => format!(
                "Detected collection {what} of size {value}, this exceeds the {which} threshold of {threshold}."
            ),
            (ItemsPerCollection, _) => format!(
                "Detected collection {what} with {value} items, this exceeds the {which} threshold of {threshold}."
            ),
            (ColumnValueSize | SaiFrozenTermSize | SaiStringTermSize | SaiVectorTermSize, _) => format!(
                "Value of column '{what}' has size {value}, this exceeds the {which} threshold of {threshold}."
            ),
            (PartitionSize, _) => format!(
                "Partition {what} has size {value}, this exceeds the {which} threshold of {threshold}."
            ),
            (PartitionTombstones, _) => format!(
                "Partition {what} has {value} tombstones, this exceeds the {which} threshold of {threshold}."
            ),
            (DataDiskUsage, true) => "Replica disk usage exceeds warning threshold".to_owned(),
            (DataDiskUsage, false) => {
                "Write request failed because disk usage exceeds failure threshold".to_owned()
            }
            (VectorDimensions, _) => {
                format!(
                    "{what} has a vector of {value} dimensions, this exceeds the {which} threshold of {threshold}."
                )
            }
            (MaximumReplicationFactor, _) => format!(
                "The keyspace {what} has a replication factor of {value}, above the {which} threshold of {threshold}."
            ),
            (MinimumReplicationFactor, _) => format!(
                "The keyspace {what} has a replication factor of {value}, below the {which} threshold of {threshold}."
            ),
            (MaximumTimestamp, _) => format!(
                "The modification to table {what} has a timestamp {value} after the maximum allowable {which} threshold {threshold}"
            ),
            (MinimumTimestamp, _) => format!(
                "The modification to table {what} has a timestamp {value} before the minimum allowable {which} threshold {threshold}"
            ),
            (_, true) => self.warning(what, value, threshold),
            (_, false) => self.failure(what, value, threshold),
        }
    }

    fn warning(self, what: &str, value: i64, threshold: i64) -> String {
        match self {
            Keyspaces => format!(
                "Creating keyspace {what}, current number of keyspaces {value} exceeds warning threshold of {threshold}."
            ),
            Tables => format!(
                "Creating table {what}, current number of tables {value} exceeds warning threshold of {threshold}."
            ),
            ColumnsPerTable => format!(
                "The table {what} has {value} columns, this exceeds the warning threshold of {threshold}."
            ),
            FieldsPerUdt => format!(
                "The user type {what} has {value} columns, this exceeds the warning threshold of {threshold}."
            ),
            SecondaryIndexesPerTable => format!(
                "Creating secondary index {what}, current number of indexes {value} exceeds warning threshold of {threshold}."
            ),
            MaterializedViewsPerTable => format!(
                "Creating materialized view {what}, current number of views {value} exceeds warning threshold of {threshold}."
            ),
            PageSize => format!(
                "Query for table {what} with page size {value} exceeds warning threshold of {threshold}."
            ),
            PartitionKeysInSelect => format!(
                "Query with partition keys in IN clause on table {what}, with number of partition keys {value} exceeds \
                 warning threshold of {threshold}."
            ),
            _ => format!(
                "The cartesian product of the IN restrictions on {what} produces {value} values, this exceeds warning \
                 threshold of {threshold}."
            ),
        }
    }

    fn failure(self, what: &str, value: i64, threshold: i64) -> String {
        match self {
            Keyspaces => {
                format!(
                    "Cannot have more than {threshold} keyspaces, aborting the creation of keyspace {what}"
                )
            }
            Tables => {
                format!("Cannot have more than {threshold} tables, aborting the creation of table {what}")
            }
            ColumnsPerTable => {
                format!(
                    "Tables cannot have more than {threshold} columns, but {value} provided for table {what}"
                )
            }
            FieldsPerUdt => format!(
                "User types cannot have more than {threshold} columns, but {value} provided for user type {what}."
            ),
            SecondaryIndexesPerTable => format!(
                "Tables cannot have more than {threshold} secondary indexes, aborting the creation of secondary index {what}"
            ),
            MaterializedViewsPerTable => format!(
                "Tables cannot have more than {threshold} materialized views, aborting the creation of materialized view {what}"
            ),
            PageSize => {
                format!(
                    "Aborting query for table {what}, page size {value} exceeds fail threshold of {threshold}."
                )
            }
            PartitionKeysInSelect => format!(
                "Aborting query with partition keys in IN clause on table {what}, number of partition keys {value} \
                 exceeds fail threshold of {threshold}."
            ),
            _ => format!(
                "Aborting query because the cartesian product of the IN restrictions on {what} produces {value} values, \
                 this exceeds fail threshold of {threshold}."
            ),
        }
    }
}
