//! The tables of `system_views` about requests between nodes: `internode_inbound` and `internode_outbound`. They count messages, and the
//! bytes of statements, keys and rows in them. Columns that are not counted are null.

use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;

use super::Row;
use super::local::rpc_port;
use super::row::{bigint_saturating, inet, int, row, text};
use crate::cluster::ReportedNode;
use crate::engine::Engine;
use crate::metrics::internode::MessageCounter;
use crate::schema::Table;

/// Returns the columns that identify the node of a row.
fn node_columns(node: &ReportedNode) -> [(&'static str, Option<Bytes>); 4] {
    [
        ("address", inet(node.native_address.ip())),
        ("port", int(rpc_port(node))),
        ("dc", text(&node.data_center)),
        ("rack", text(&node.rack)),
    ]
}

/// Returns the rows of the nodes that are in the cluster.
fn rows<T>(
    engine: &Engine,
    table: &Table,
    traffic: Vec<(Uuid, T)>,
    columns: impl Fn(T) -> Vec<(&'static str, Option<Bytes>)>,
) -> Vec<Row> {
    let nodes = engine.cluster().map_or_else(Vec::new, |cluster| cluster.nodes());
    let of_node = |(id, traffic): (Uuid, T)| {
        let node = nodes.iter().find(|node| node.host_id == id)?;
        let columns = columns(traffic);
        Some(row(table, node_columns(node).into_iter().chain(columns)))
    };
    traffic.into_iter().filter_map(of_node).collect()
}

/// Returns the messages and bytes that remain of all after the others are subtracted.
fn left(all: &MessageCounter, gone: [&MessageCounter; 2]) -> (u64, u64) {
    let messages = gone.iter().map(|counter| counter.messages()).sum();
    let bytes = gone.iter().map(|counter| counter.bytes()).sum();
    (
        all.messages().saturating_sub(messages),
        all.bytes().saturating_sub(bytes),
    )
}

/// Returns the requests of other nodes to this one (Cassandra's `InternodeInboundTable`).
pub(crate) fn inbound(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    rows(engine, table, engine.metrics().inbound.list(), |traffic| {
        let (running, running_bytes) = left(&traffic.received, [&traffic.processed, &traffic.failed]);
        vec![
            ("error_bytes", bigint_saturating(traffic.failed.bytes())),
            ("error_count", bigint_saturating(traffic.failed.messages())),
            ("processed_bytes", bigint_saturating(traffic.processed.bytes())),
            ("processed_count", bigint_saturating(traffic.processed.messages())),
            ("received_bytes", bigint_saturating(traffic.received.bytes())),
            ("received_count", bigint_saturating(traffic.received.messages())),
            ("scheduled_bytes", bigint_saturating(running_bytes)),
            ("scheduled_count", bigint_saturating(running)),
            ("using_bytes", bigint_saturating(running_bytes)),
        ]
    })
}

/// Returns the requests of this node to other nodes (Cassandra's `InternodeOutboundTable`).
pub(crate) fn outbound(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let traffic = engine
        .cluster()
        .map_or_else(Vec::new, |cluster| cluster.outbound());
    let traffic = traffic.into_iter();
    let traffic = traffic.map(|(node, traffic, queue)| (node, (traffic, queue)));
    rows(engine, table, traffic.collect(), |(traffic, queue)| {
        vec![
            ("error_bytes", bigint_saturating(traffic.failed.bytes())),
            ("error_count", bigint_saturating(traffic.failed.messages())),
            ("expired_bytes", bigint_saturating(traffic.expired.bytes())),
            ("expired_count", bigint_saturating(traffic.expired.messages())),
            ("pending_bytes", bigint_saturating(queue.bytes)),
            ("pending_count", bigint_saturating(queue.messages)),
            ("sent_bytes", bigint_saturating(traffic.sent.bytes())),
            ("sent_count", bigint_saturating(traffic.sent.messages())),
            ("using_bytes", bigint_saturating(queue.bytes)),
        ]
    })
}
