//! The tables of `system_views` about the nodes of a shared store and their tablets.

use std::sync::Arc;

use super::Row;
use super::row::{bigint, bigint_saturating, boolean, double, inet, int, row, text, uuid};
use crate::cluster::{Cluster, Node, Tablet};
use crate::engine::Engine;
use crate::schema::Table;

/// Returns true for the tables of this module.
pub(crate) fn is_mine(table: &Table) -> bool {
    matches!(table.name.as_str(), "cluster_nodes" | "tablets")
}

pub(crate) fn rows(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let Some(cluster) = engine.cluster() else {
        return Vec::new();
    };
    match table.name.as_str() {
        "cluster_nodes" => nodes(cluster.as_ref(), table),
        _ => cluster
            .tablets()
            .iter()
            .map(|tablet| of_tablet(table, tablet))
            .collect(),
    }
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn nodes(cluster: &dyn Cluster, table: &Table) -> Vec<Row> {
    let tablets = cluster.tablets();
    let of_node = |node: &Node| {
        let own = tablets.iter().filter(|tablet| tablet.owner == Some(node.host_id));
        let owns: f64 = own.clone().map(Tablet::share).sum();
        row(
            table,
            [
                ("host_id", uuid(node.host_id)),
                ("address", inet(node.native_address.ip())),
                ("alive", boolean(node.is_alive)),
                ("data_center", text(&node.data_center)),
                ("name", text(&node.name)),
                ("owns", double(owns)),
                ("port", int(i32::from(node.native_address.port()))),
                ("rack", text(&node.rack)),
                ("rpc_address", text(&node.rpc_address)),
                ("software_version", text(&node.software_version)),
                ("state", text(if node.is_leaving { "leaving" } else { "normal" })),
                ("tablets", int(count(own.count()))),
            ],
        )
    };
    cluster.nodes().iter().map(of_node).collect()
}

fn of_tablet(table: &Table, tablet: &Tablet) -> Row {
    row(
        table,
        [
            ("id", int(i32::try_from(tablet.id).unwrap_or(i32::MAX))),
            ("epoch", bigint_saturating(tablet.epoch)),
            ("first_token", bigint(tablet.tokens.first)),
            ("last_token", bigint(tablet.tokens.last)),
            ("owner", tablet.owner.and_then(uuid)),
            ("state", text(&tablet.state)),
        ],
    )
}
