//! The keyspace `system_views`: what operators look at. Tables about what does not exist here stay empty.

use std::sync::Arc;

use super::Row;
use super::local::{PARTITIONER, storage_port};
use super::row::{bigint, boolean, double, int, row, text};
use crate::engine::Engine;
use crate::schema::{IndexKind, Table, TableKind};

pub(super) fn rows(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    match table.name.as_str() {
        "settings" => settings(engine, table),
        "cql_metrics" => cql_metrics(engine, table),
        "sai_column_indexes" => sai_column_indexes(engine, table),
        "gossip_info" => vec![gossip_info(engine, table)],
        "caches" => caches(table),
        "disk_usage" | "max_partition_size" => sizes(engine, table),
        _ => Vec::new(),
    }
}

/// The settings that mean here what they mean in `cassandra.yaml`.
fn settings(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let node = &engine.node;
    let limits = &engine.limits;
    let kib = |bytes: usize| format!("{}KiB", bytes / 1024);
    let settings = [
        ("batch_size_fail_threshold", kib(limits.batch_size_fail_bytes)),
        ("batch_size_warn_threshold", kib(limits.batch_size_warn_bytes)),
        ("cluster_name", node.cluster_name.clone()),
        ("listen_address", node.native_address.ip().to_string()),
        ("materialized_views_enabled", "true".to_owned()),
        ("native_transport_port", node.native_address.port().to_string()),
        ("partitioner", PARTITIONER.to_owned()),
        ("rpc_address", node.native_address.ip().to_string()),
        ("storage_port", storage_port(engine).to_string()),
        (
            "tombstone_failure_threshold",
            limits.tombstone_failure_threshold.to_string(),
        ),
        (
            "tombstone_warn_threshold",
            limits.tombstone_warn_threshold.to_string(),
        ),
        ("user_defined_functions_enabled", "false".to_owned()),
    ];
    settings
        .into_iter()
        .map(|(name, value)| row(table, [("name", text(name)), ("value", text(value))]))
        .collect()
}

fn cql_metrics(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let count = engine.prepared_statements().len() as f64;
    vec![row(
        table,
        [
            ("name", text("prepared_statements_count")),
            ("value", double(count)),
        ],
    )]
}

fn sai_column_indexes(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let schema = engine.schema();
    let mut rows = Vec::new();
    for of in schema.stored_tables() {
        for index in of.indexes.iter().filter(|index| index.kind == IndexKind::Custom) {
            let is_string = of
                .column(&index.target.column)
                .is_some_and(|(_, column)| matches!(column.ty.to_string().as_str(), "text" | "ascii"));
            rows.push(row(
                table,
                [
                    ("keyspace_name", text(&of.keyspace)),
                    ("index_name", text(&index.name)),
                    ("analyzer", text("NoOpAnalyzer")),
                    ("column_name", text(&index.target.column)),
                    ("is_building", boolean(!index.is_complete)),
                    ("is_queryable", boolean(index.is_complete)),
                    ("is_string", boolean(is_string)),
                    ("table_name", text(&of.name)),
                ],
            ));
        }
    }
    rows
}

fn gossip_info(engine: &Arc<Engine>, table: &Table) -> Row {
    let node = &engine.node;
    row(
        table,
        [
            ("address", super::row::inet(node.native_address.ip())),
            ("port", int(storage_port(engine))),
            ("dc", text(&node.data_center)),
            ("host_id", text(node.host_id.to_string())),
            ("hostname", text(node.native_address.ip().to_string())),
            ("native_address_and_port", text(node.native_address.to_string())),
            ("rack", text(&node.rack)),
            ("release_version", text(&node.release_version)),
            ("rpc_address", text(node.native_address.ip().to_string())),
            ("schema", text(engine.schema().version.to_string())),
        ],
    )
}

/// Cassandra's caches, none of which exists here under its name.
fn caches(table: &Table) -> Vec<Row> {
    ["counters", "keys", "rows"]
        .into_iter()
        .map(|name| {
            row(
                table,
                [
                    ("name", text(name)),
                    ("capacity_bytes", bigint(0)),
                    ("entry_count", int(0)),
                    ("hit_count", bigint(0)),
                    ("recent_hit_rate_per_second", bigint(0)),
                    ("recent_request_rate_per_second", bigint(0)),
                    ("request_count", bigint(0)),
                    ("size_bytes", bigint(0)),
                ],
            )
        })
        .collect()
}

/// All tables share the tablets' files, so that a table has no size of its own.
fn sizes(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let schema = engine.schema();
    schema
        .stored_tables()
        .filter(|of| of.kind == TableKind::Stored)
        .map(|of| {
            row(
                table,
                [
                    ("keyspace_name", text(&of.keyspace)),
                    ("table_name", text(&of.name)),
                    ("mebibytes", bigint(0)),
                ],
            )
        })
        .collect()
}
