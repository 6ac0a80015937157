//! The keyspace `system`: the node itself (Cassandra's `SystemKeyspace`).

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::Row;
use super::row::{blob, inet, int, row, text, text_set, uuid};
use crate::engine::Engine;
use crate::schema::Table;

pub(super) const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";
/// The language that drivers are told.
const CQL_VERSION: &str = "3.4.7";
const NATIVE_PROTOCOL_VERSION: &str = "5";
/// Where Cassandra's nodes talk to each other; told for tools that expect a port.
pub(crate) const STORAGE_PORT: i32 = 7000;

pub(super) fn rows(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    match table.name.as_str() {
        "local" => vec![local(engine, table)],
        "IndexInfo" => built_indexes(engine, table),
        "built_views" => built_views(engine, table),
        "prepared_statements" => prepared_statements(engine, table),
        _ => Vec::new(),
    }
}

/// The tokens at which the node's ranges end, as drivers place it on the ring.
pub(crate) fn tokens(engine: &Engine) -> Vec<i64> {
    let tablets = engine.store.tablets();
    tablets.iter().map(|tablet| tablet.token_range().last).collect()
}

fn local(engine: &Arc<Engine>, table: &Table) -> Row {
    static STARTED_S: OnceLock<i32> = OnceLock::new();
    let now_s = || i32::try_from(engine.clock.now_us().div_euclid(1_000_000)).unwrap_or(i32::MAX);
    let generation = *STARTED_S.get_or_init(now_s);
    let node = &engine.node;
    let address = inet(node.native_address.ip());
    let mut tokens: Vec<String> = tokens(engine).iter().map(i64::to_string).collect();
    tokens.sort_unstable();
    row(
        table,
        [
            ("key", text("local")),
            ("bootstrapped", text("COMPLETED")),
            ("broadcast_address", address.clone()),
            ("broadcast_port", int(STORAGE_PORT)),
            ("cluster_name", text(&node.cluster_name)),
            ("cql_version", text(CQL_VERSION)),
            ("data_center", text(&node.data_center)),
            ("gossip_generation", int(generation)),
            ("host_id", uuid(node.host_id)),
            ("listen_address", address.clone()),
            ("listen_port", int(STORAGE_PORT)),
            ("native_protocol_version", text(NATIVE_PROTOCOL_VERSION)),
            ("partitioner", text(PARTITIONER)),
            ("rack", text(&node.rack)),
            ("release_version", text(&node.release_version)),
            ("rpc_address", address),
            ("rpc_port", int(i32::from(node.native_address.port()))),
            ("schema_version", uuid(engine.schema().version)),
            ("tokens", text_set(tokens)),
        ],
    )
}

/// The indexes that are complete. What the column calls a table is the keyspace, as in Cassandra.
fn built_indexes(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let schema = engine.schema();
    let mut rows = Vec::new();
    for of in schema.stored_tables() {
        for index in of.indexes.iter().filter(|index| index.is_complete) {
            rows.push(row(
                table,
                [
                    ("table_name", text(&of.keyspace)),
                    ("index_name", text(&index.name)),
                ],
            ));
        }
    }
    rows
}

fn built_views(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let schema = engine.schema();
    schema
        .stored_tables()
        .filter(|of| of.is_view())
        .map(|of| {
            row(
                table,
                [
                    ("keyspace_name", text(&of.keyspace)),
                    ("view_name", text(&of.name)),
                    ("status_replicated", super::row::boolean(true)),
                ],
            )
        })
        .collect()
}

fn prepared_statements(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let statements: BTreeMap<_, _> = engine
        .prepared_statements()
        .into_iter()
        .map(|prepared| (prepared.id, prepared))
        .collect();
    statements
        .values()
        .map(|prepared| {
            row(
                table,
                [
                    ("prepared_id", blob(prepared.id)),
                    ("logged_keyspace", prepared.keyspace.as_ref().and_then(text)),
                    ("query_string", text(&prepared.query)),
                ],
            )
        })
        .collect()
}
