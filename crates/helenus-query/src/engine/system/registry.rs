//! The list of the virtual tables that have rows. A table that is defined and not listed here is empty.
//!
//! To add a table, write a module with a function that computes its rows, and add a line here. The definition of a table of Cassandra is
//! already in the folder `definitions`; that of another table is a constant of its module ([`VirtualTable::defined_by`]).

use super::virtual_table::{VirtualTable, table};
use super::{
    auth, cdc, compactions, estimates, internode, latencies, local, nodes, running, schema_tables, settings,
    sizes, slow_queries, snapshots, traces, views,
};

/// The virtual tables with rows, by keyspace.
#[rustfmt::skip]
pub(super) static TABLES: &[VirtualTable] = &[
    table("system", "IndexInfo", local::built_indexes),
    table("system", "built_views", local::built_views),
    table("system", "cdc_local", cdc::local).defined_by(cdc::LOCAL).of_cdc().public(),
    table("system", "cdc_streams", cdc::streams).defined_by(cdc::STREAMS).refreshed_by(cdc::refresh).of_cdc().public(),
    table("system", "cdc_timestamps", cdc::timestamps).defined_by(cdc::TIMESTAMPS).refreshed_by(cdc::refresh).of_cdc().public(),
    table("system", "compaction_history", compactions::history),
    table("system", "local", local::local).public(),
    table("system", "peers", local::peers).public(),
    table("system", "peers_v2", local::peers_v2).public(),
    table("system", "prepared_statements", local::prepared_statements),
    table("system", "size_estimates", estimates::size_estimates).completed_by(estimates::complete).public(),
    table("system", "table_estimates", estimates::table_estimates).completed_by(estimates::complete).public(),

    table("system_schema", "aggregates", schema_tables::aggregates),
    table("system_schema", "column_masks", schema_tables::column_masks),
    table("system_schema", "columns", schema_tables::columns),
    table("system_schema", "dropped_columns", schema_tables::dropped_columns),
    table("system_schema", "functions", schema_tables::functions),
    table("system_schema", "indexes", schema_tables::indexes),
    table("system_schema", "keyspaces", schema_tables::keyspaces),
    table("system_schema", "scylla_keyspaces", schema_tables::scylla_keyspaces).defined_by(schema_tables::SCYLLA_KEYSPACES).of_cdc(),
    table("system_schema", "tables", schema_tables::tables),
    table("system_schema", "types", schema_tables::types),
    table("system_schema", "views", schema_tables::views),

    table("system_auth", "identity_to_role", auth::identity_to_role),
    table("system_auth", "resource_role_permissons_index", auth::roles_by_resource),
    table("system_auth", "role_members", auth::role_members),
    table("system_auth", "role_permissions", auth::role_permissions),
    table("system_auth", "roles", auth::roles),

    table("system_distributed", "cdc_generation_timestamps", cdc::generation_timestamps).defined_by(cdc::GENERATION_TIMESTAMPS).refreshed_by(cdc::refresh).of_cdc().public(),
    table("system_distributed", "cdc_streams_descriptions_v2", cdc::streams_descriptions).defined_by(cdc::STREAMS_DESCRIPTIONS).refreshed_by(cdc::refresh).of_cdc().public(),
    table("system_distributed", "view_build_status", local::view_build_status),

    table("system_traces", "events", traces::events),
    table("system_traces", "sessions", traces::sessions),

    table("system_views", "batch_metrics", views::batch_metrics),
    table("system_views", "caches", views::caches),
    table("system_views", "clients", views::clients),
    table("system_views", "cluster_nodes", nodes::cluster_nodes).defined_by(nodes::CLUSTER_NODES).of_shared_store(),
    table("system_views", "coordinator_read_latency", latencies::coordinator_reads),
    table("system_views", "coordinator_scan_latency", latencies::coordinator_scans),
    table("system_views", "coordinator_write_latency", latencies::coordinator_writes),
    table("system_views", "cql_metrics", views::cql_metrics),
    table("system_views", "disk_usage", sizes::rows).completed_by(sizes::disk_usage),
    table("system_views", "gossip_info", views::gossip_info),
    table("system_views", "internode_inbound", internode::inbound),
    table("system_views", "internode_outbound", internode::outbound),
    table("system_views", "local_read_latency", latencies::local_reads),
    table("system_views", "local_scan_latency", latencies::local_scans),
    table("system_views", "local_write_latency", latencies::local_writes),
    table("system_views", "max_partition_size", sizes::rows).completed_by(sizes::largest_partitions),
    table("system_views", "max_sstable_size", sizes::rows).completed_by(sizes::largest_files),
    table("system_views", "queries", running::queries),
    table("system_views", "rows_per_read", latencies::rows_per_read),
    table("system_views", "sai_column_indexes", views::sai_column_indexes),
    table("system_views", "settings", settings::rows),
    table("system_views", "slow_queries", slow_queries::rows).defined_by(slow_queries::SLOW_QUERIES).of_cassandra_6(),
    table("system_views", "snapshots", snapshots::rows).completed_by(snapshots::complete),
    table("system_views", "sstable_tasks", compactions::running),
    table("system_views", "system_logs", running::system_logs),
    table("system_views", "tablets", nodes::tablets).defined_by(nodes::TABLETS).of_shared_store(),
    table("system_views", "thread_pools", running::thread_pools),
    table("system_views", "tombstones_per_read", latencies::tombstones_per_read),

    table("system_virtual_schema", "columns", schema_tables::columns),
    table("system_virtual_schema", "keyspaces", schema_tables::virtual_keyspaces),
    table("system_virtual_schema", "tables", schema_tables::virtual_tables),
];

/// Returns the entry of a table. `None` if the table has no rows.
pub(super) fn find(keyspace: &str, name: &str) -> Option<&'static VirtualTable> {
    TABLES
        .iter()
        .find(|table| table.name == name && table.keyspace == keyspace)
}
