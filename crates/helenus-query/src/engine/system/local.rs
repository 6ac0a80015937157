//! The keyspace `system`, about the node itself (Cassandra's `SystemKeyspace`).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;

use super::Row;
use super::row::{blob, inet, int, row, text, text_set, uuid};
use crate::cluster::ReportedNode;
use crate::engine::Engine;
use crate::schema::Table;
use crate::trace;

pub(crate) const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";
/// The version of CQL that is reported to drivers.
const CQL_VERSION: &str = "3.4.7";
const NATIVE_PROTOCOL_VERSION: &str = "5";
/// Port of the internode protocol in Cassandra. Reported for a single node, because tools expect a port.
const STORAGE_PORT: i32 = 7000;

/// Returns the last token of each range, with the owner's address and port for other nodes.
pub(crate) fn ring(engine: &Engine) -> Vec<(i64, IpAddr, i32)> {
    let here = engine.node.native_address.ip();
    let Some(cluster) = engine.cluster() else {
        return tokens(engine)
            .into_iter()
            .map(|token| (token, here, STORAGE_PORT))
            .collect();
    };
    let of_node = |node: &ReportedNode| {
        let (address, port) = (node.native_address.ip(), rpc_port(node));
        let ranges = node.tokens.iter().map(|token| (*token, address, port));
        ranges.collect::<Vec<_>>()
    };
    cluster.nodes().iter().flat_map(of_node).collect()
}

/// Returns the last tokens of the node's ranges, by which drivers place it on the ring.
pub(crate) fn tokens(engine: &Engine) -> Vec<i64> {
    if let Some(cluster) = engine.cluster() {
        let here = cluster.here();
        let node = cluster.nodes().into_iter().find(|node| node.host_id == here);
        return node.map(|node| node.tokens).unwrap_or_default();
    }
    let tablets = engine.context.store.tablets();
    tablets.iter().map(|tablet| tablet.token_range().last).collect()
}

/// Returns this node's port for other nodes.
pub(crate) fn storage_port(engine: &Engine) -> i32 {
    let port = engine.cluster().and_then(|cluster| {
        let here = cluster.here();
        let nodes = cluster.nodes();
        nodes.iter().find(|node| node.host_id == here).map(rpc_port)
    });
    port.unwrap_or(STORAGE_PORT)
}

/// Returns a node's port for other nodes.
pub(crate) fn rpc_port(node: &ReportedNode) -> i32 {
    let port = node
        .rpc_address
        .rsplit_once(':')
        .and_then(|(_, port)| port.parse().ok());
    port.unwrap_or(STORAGE_PORT)
}

/// Returns the only row of `system.local`.
pub(crate) fn local(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let node = &engine.node;
    let address = inet(node.native_address.ip());
    let mut tokens: Vec<String> = tokens(engine).iter().map(i64::to_string).collect();
    tokens.sort_unstable();
    let local = row(
        table,
        [
            ("key", text("local")),
            ("bootstrapped", text("COMPLETED")),
            ("broadcast_address", address.clone()),
            ("broadcast_port", int(storage_port(engine))),
            ("cluster_name", text(&node.cluster_name)),
            ("cql_version", text(CQL_VERSION)),
            ("data_center", text(&node.data_center)),
            ("gossip_generation", int(engine.generation_s)),
            ("host_id", uuid(node.host_id)),
            ("listen_address", address.clone()),
            ("listen_port", int(storage_port(engine))),
            ("native_protocol_version", text(NATIVE_PROTOCOL_VERSION)),
            ("partitioner", text(PARTITIONER)),
            ("rack", text(&node.rack)),
            ("release_version", text(&node.release_version)),
            ("rpc_address", address),
            ("rpc_port", int(i32::from(node.native_address.port()))),
            ("schema_version", uuid(engine.schema().version)),
            ("tokens", text_set(tokens)),
        ],
    );
    vec![local]
}

/// Returns the other nodes of the cluster that have tokens.
fn others(engine: &Engine) -> Vec<ReportedNode> {
    let Some(cluster) = engine.cluster() else {
        return Vec::new();
    };
    let here = cluster.here();
    let mut nodes = cluster.nodes();
    // Drivers can't place a node without tokens.
    nodes.retain(|node| node.host_id != here && !node.tokens.is_empty());
    nodes
}

fn token_set(node: &ReportedNode) -> Option<Bytes> {
    let mut tokens: Vec<String> = node.tokens.iter().map(i64::to_string).collect();
    tokens.sort_unstable();
    text_set(tokens)
}

/// Returns the other nodes by address. Nodes that share an address are shown as one, as in Cassandra; `peers_v2` shows each of them.
pub(crate) fn peers(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let version = engine.schema().version;
    let one = |node: &ReportedNode| {
        let address = inet(node.native_address.ip());
        row(
            table,
            [
                ("peer", address.clone()),
                ("data_center", text(&node.data_center)),
                ("host_id", uuid(node.host_id)),
                ("rack", text(&node.rack)),
                ("release_version", text(&engine.node.release_version)),
                ("rpc_address", address),
                ("schema_version", uuid(version)),
                ("tokens", token_set(node)),
            ],
        )
    };
    let mut rows: Vec<Row> = others(engine).iter().map(one).collect();
    rows.sort();
    rows.dedup_by(|a, b| a.first() == b.first());
    rows
}

pub(crate) fn peers_v2(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let version = engine.schema().version;
    let one = |node: &ReportedNode| {
        let address = inet(node.native_address.ip());
        let port = i32::from(node.native_address.port());
        row(
            table,
            [
                ("peer", address.clone()),
                ("peer_port", int(rpc_port(node))),
                ("data_center", text(&node.data_center)),
                ("host_id", uuid(node.host_id)),
                ("native_address", address),
                ("native_port", int(port)),
                ("rack", text(&node.rack)),
                ("release_version", text(&engine.node.release_version)),
                ("schema_version", uuid(version)),
                ("tokens", token_set(node)),
            ],
        )
    };
    others(engine).iter().map(one).collect()
}

/// Returns the complete indexes, for `system."IndexInfo"`. As in Cassandra, the column `table_name` contains the keyspace.
pub(crate) fn built_indexes(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
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

pub(crate) fn built_views(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let schema = engine.schema();
    schema
        .stored_tables()
        .filter(|of| of.view.as_ref().is_some_and(|view| view.is_built))
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

/// Returns the rows of `system_distributed.view_build_status`, by which tools wait for a view. All nodes have the same status, because a
/// view is built once for all of them.
pub(crate) fn view_build_status(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let schema = engine.schema();
    let hosts = match engine.cluster() {
        Some(cluster) => cluster.nodes().iter().map(|node| node.host_id).collect(),
        None => vec![engine.node.host_id],
    };
    let mut rows = Vec::new();
    for of in schema.stored_tables() {
        let Some(view) = &of.view else { continue };
        let status = if view.is_built { "SUCCESS" } else { "STARTED" };
        rows.extend(hosts.iter().map(|host| {
            row(
                table,
                [
                    ("keyspace_name", text(&of.keyspace)),
                    ("view_name", text(&of.name)),
                    ("host_id", uuid(*host)),
                    ("status", text(status)),
                ],
            )
        }));
    }
    rows
}

pub(crate) fn prepared_statements(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
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
                    ("query_string", text(trace::without_password(&prepared.query))),
                ],
            )
        })
        .collect()
}
