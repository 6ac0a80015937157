//! The keyspaces that are never imported.

/// Keyspaces of Cassandra itself, which are never imported (`schema.SchemaConstants`, and DataStax Enterprise's).
const SYSTEM_KEYSPACES: [&str; 9] = [
    "system",
    "system_auth",
    "system_cluster_metadata",
    "system_distributed",
    "system_schema",
    "system_traces",
    "system_views",
    "system_virtual_schema",
    "system_metrics",
];

/// Returns true for a keyspace of Cassandra itself.
pub fn is_system_keyspace(name: &str) -> bool {
    SYSTEM_KEYSPACES.contains(&name)
}
