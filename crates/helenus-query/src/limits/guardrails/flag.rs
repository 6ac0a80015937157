//! Guardrails that allow or forbid a feature (Cassandra's `EnableFlag`).

/// The features that can be disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    AllowFiltering,
    AlterTable,
    CompactTables,
    DropKeyspace,
    DropTruncateTable,
    GroupBy,
    NonPartitionRestrictedIndexQuery,
    ReadBeforeWriteListOperations,
    SecondaryIndexes,
    SimpleStrategy,
    UncompressedTables,
    UserTimestamps,
    VectorType,
    ZeroTtlOnTwcs,
}

impl Flag {
    pub const ALL: [Flag; 14] = [
        Flag::AllowFiltering,
        Flag::AlterTable,
        Flag::CompactTables,
        Flag::DropKeyspace,
        Flag::DropTruncateTable,
        Flag::GroupBy,
        Flag::NonPartitionRestrictedIndexQuery,
        Flag::ReadBeforeWriteListOperations,
        Flag::SecondaryIndexes,
        Flag::SimpleStrategy,
        Flag::UncompressedTables,
        Flag::UserTimestamps,
        Flag::VectorType,
        Flag::ZeroTtlOnTwcs,
    ];
    /// The flags that can warn clients while the feature is enabled.
    pub const WARNED: [Flag; 1] = [Flag::ZeroTtlOnTwcs];

    /// Returns the guardrail's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Flag::AllowFiltering => "allow_filtering",
            Flag::AlterTable => "alter_table",
            Flag::CompactTables => "compact_tables",
            Flag::DropKeyspace => "drop_keyspace_enabled",
            Flag::DropTruncateTable => "drop_truncate_table_enabled",
            Flag::GroupBy => "group_by",
            Flag::NonPartitionRestrictedIndexQuery => "non_partition_restricted_index_query_enabled",
            Flag::ReadBeforeWriteListOperations => "read_before_write_list_operations",
            Flag::SecondaryIndexes => "secondary_indexes",
            Flag::SimpleStrategy => "simplestrategy",
            Flag::UncompressedTables => "uncompressed_tables_enabled",
            Flag::UserTimestamps => "user_timestamps",
            Flag::VectorType => "vector_type",
            Flag::ZeroTtlOnTwcs => "zero_ttl_on_twcs",
        }
    }

    /// Returns the setting, as in `cassandra.yaml`.
    pub fn setting(self) -> String {
        format!("{}_enabled", self.base_name())
    }

    /// Returns the name of the setting that enables warnings. Only the flags in [`Flag::WARNED`] have it.
    pub fn warning_setting(self) -> String {
        format!("{}_warned", self.base_name())
    }

    fn base_name(self) -> &'static str {
        let name = self.name();
        name.strip_suffix("_enabled").unwrap_or(name)
    }

    /// Returns the feature's name in messages.
    pub(super) fn feature(self) -> &'static str {
        match self {
            Flag::AllowFiltering => "Querying with ALLOW FILTERING",
            Flag::AlterTable => "User access to ALTER TABLE statement for column mutation",
            Flag::CompactTables => "Creation of new COMPACT STORAGE tables",
            Flag::DropKeyspace => "DROP KEYSPACE functionality",
            Flag::DropTruncateTable => "DROP and TRUNCATE TABLE functionality",
            Flag::GroupBy => "GROUP BY functionality",
            Flag::NonPartitionRestrictedIndexQuery => "Non-partition key restricted query",
            Flag::ReadBeforeWriteListOperations => "List operation requiring read before write",
            Flag::SecondaryIndexes => "User creation of secondary indexes",
            Flag::SimpleStrategy => "SimpleStrategy",
            Flag::UncompressedTables => "Uncompressed table",
            Flag::UserTimestamps => "User provided timestamps (USING TIMESTAMP)",
            Flag::VectorType => "Vector type usage",
            Flag::ZeroTtlOnTwcs => {
                "0 default_time_to_live on a table with TimeWindowCompactionStrategy compaction strategy"
            }
        }
    }

    pub(super) fn reason(self) -> Option<&'static str> {
        match self {
            Flag::AllowFiltering => Some(
                "ALLOW FILTERING can potentially visit all the data in the table and have unpredictable performance.",
            ),
            Flag::NonPartitionRestrictedIndexQuery => Some(
                "Executing a query on secondary indexes without partition key restriction might degrade performance",
            ),
            Flag::ZeroTtlOnTwcs => Some(
                "It is suspicious to use default_time_to_live set to 0 with such compaction strategy. Please keep in mind \
                 that data will not start to automatically expire after they are older than a respective compaction \
                 window unit of a certain size. Please set TTL for your INSERT or UPDATE statements if you expect data to \
                 be expired as table settings will not do it. ",
            ),
            _ => None,
        }
    }
}
