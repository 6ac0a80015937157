//! Names of keyspaces and tables: those of the server, and which ones may be given.

use std::sync::Arc;

use super::{Schema, Table};

/// Keyspaces that belong to the server.
pub(crate) fn is_system_name(keyspace: &str) -> bool {
    const SYSTEM: [&str; 7] = [
        "system",
        "system_schema",
        "system_auth",
        "system_distributed",
        "system_traces",
        "system_views",
        "system_virtual_schema",
    ];
    SYSTEM.contains(&keyspace)
}

/// Returns the keyspaces of the server that Cassandra replicates: their replication is an operator's choice.
pub(crate) fn is_replicated_system_name(keyspace: &str) -> bool {
    ["system_auth", "system_distributed", "system_traces"].contains(&keyspace)
}

/// Returns true for the keyspaces that are virtual in Cassandra too: they stand in `system_virtual_schema`, not in `system_schema`.
pub(crate) fn is_virtual_keyspace(keyspace: &str) -> bool {
    ["system_views", "system_virtual_schema"].contains(&keyspace)
}

/// Returns true for a name of 1 to `len_max` characters that are letters, digits or underscores.
pub(crate) fn is_valid_name(name: &str, len_max: usize) -> bool {
    (1..=len_max).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Longest name of a keyspace, a table or an index.
pub(crate) const NAME_LEN_MAX: usize = 48;

/// Longest name of a table (what a file name leaves of 255 bytes).
pub(crate) const TABLE_NAME_LEN_MAX: usize = 222;

/// Returns the views on a table.
pub(crate) fn views_of<'a>(schema: &'a Schema, base: &'a Table) -> impl Iterator<Item = &'a Arc<Table>> {
    base.views
        .iter()
        .filter_map(|name| schema.table(&base.keyspace, name))
}
