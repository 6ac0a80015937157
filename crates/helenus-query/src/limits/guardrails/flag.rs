//! Guardrails that allow something or not (Cassandra's `EnableFlag`).

/// What can be disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    AllowFiltering,
    AlterTable,
    CompactTables,
    DropKeyspace,
    DropTruncateTable,
    GroupBy,
    SecondaryIndexes,
    SimpleStrategy,
    UncompressedTables,
    UserTimestamps,
}

impl Flag {
    pub const ALL: [Flag; 10] = [
        Flag::AllowFiltering,
        Flag::AlterTable,
        Flag::CompactTables,
        Flag::DropKeyspace,
        Flag::DropTruncateTable,
        Flag::GroupBy,
        Flag::SecondaryIndexes,
        Flag::SimpleStrategy,
        Flag::UncompressedTables,
        Flag::UserTimestamps,
    ];

    /// The guardrail's name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Flag::AllowFiltering => "allow_filtering",
            Flag::AlterTable => "alter_table",
            Flag::CompactTables => "compact_tables",
            Flag::DropKeyspace => "drop_keyspace_enabled",
            Flag::DropTruncateTable => "drop_truncate_table_enabled",
            Flag::GroupBy => "group_by",
            Flag::SecondaryIndexes => "secondary_indexes",
            Flag::SimpleStrategy => "simplestrategy",
            Flag::UncompressedTables => "uncompressed_tables_enabled",
            Flag::UserTimestamps => "user_timestamps",
        }
    }

    /// The setting, as in `cassandra.yaml`.
    pub fn setting(self) -> String {
        let name = self.name();
        format!("{}_enabled", name.strip_suffix("_enabled").unwrap_or(name))
    }

    pub(super) fn message(self) -> String {
        let feature = match self {
            Flag::AllowFiltering => "Querying with ALLOW FILTERING",
            Flag::AlterTable => "User access to ALTER TABLE statement for column mutation",
            Flag::CompactTables => "Creation of new COMPACT STORAGE tables",
            Flag::DropKeyspace => "DROP KEYSPACE functionality",
            Flag::DropTruncateTable => "DROP and TRUNCATE TABLE functionality",
            Flag::GroupBy => "GROUP BY functionality",
            Flag::SecondaryIndexes => "User creation of secondary indexes",
            Flag::SimpleStrategy => "SimpleStrategy",
            Flag::UncompressedTables => "Uncompressed table",
            Flag::UserTimestamps => "User provided timestamps (USING TIMESTAMP)",
        };
        format!("{feature} is not allowed")
    }

    pub(super) fn reason(self) -> Option<&'static str> {
        match self {
            Flag::AllowFiltering => Some(
                "ALLOW FILTERING can potentially visit all the data in the table and have unpredictable performance.",
            ),
            _ => None,
        }
    }
}
