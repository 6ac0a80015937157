//! Names of keyspaces and tables: those of the server, and those that clients may choose.

use std::sync::Arc;

use super::{Schema, Table};

/// Returns true if the keyspace belongs to the server.
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

/// Returns true for the server's keyspaces that Cassandra replicates. Operators may choose their replication.
pub(crate) fn is_replicated_system_name(keyspace: &str) -> bool {
    ["system_auth", "system_distributed", "system_traces"].contains(&keyspace)
}

/// Returns true for keyspaces that are virtual in Cassandra too. They are listed in `system_virtual_schema`, not in `system_schema`.
pub(crate) fn is_virtual_keyspace(keyspace: &str) -> bool {
    ["system_views", "system_virtual_schema"].contains(&keyspace)
}

/// Returns true if a name has 1 to `len_max` characters, all of them letters, digits or underscores.
pub(crate) fn is_valid_name(name: &str, len_max: usize) -> bool {
    (1..=len_max).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Maximum length of the name of a keyspace, and of a column with a storage-attached index.
pub(crate) const NAME_LEN_MAX: usize = 48;

/// Maximum length of a table's name, which Cassandra derives from the 255 bytes of a file name.
pub(crate) const TABLE_NAME_LEN_MAX: usize = 222;

/// Returns the views of a table.
pub(crate) fn views_of<'a>(schema: &'a Schema, base: &'a Table) -> impl Iterator<Item = &'a Arc<Table>> {
    base.views
        .iter()
        .filter_map(|name| schema.table(&base.keyspace, name))
}
