//! The tables of `system_views` about the nodes of a shared store and their tablets.

use std::sync::Arc;

use super::Row;
use super::row::{bigint, bigint_saturating, boolean, double, inet, int, row, text, uuid};
use crate::cluster::{ReportedNode, ReportedTablet};
use crate::engine::Engine;
use crate::schema::Table;

pub(crate) const CLUSTER_NODES: &str = "CREATE TABLE system_views.cluster_nodes (
    host_id uuid PRIMARY KEY,
    address inet,
    alive boolean,
    data_center text,
    name text,
    owns double,
    port int,
    rack text,
    rpc_address text,
    software_version text,
    state text,
    tablets int
) WITH ID = 061732e6-0794-397b-a6c2-864c97257b45
    AND comment = 'the nodes of the cluster';";

pub(crate) const TABLETS: &str = "CREATE TABLE system_views.tablets (
    id int PRIMARY KEY,
    epoch bigint,
    first_token bigint,
    last_token bigint,
    owner uuid,
    state text
) WITH ID = a176504a-7be9-3964-916d-2fc750db90b8
    AND comment = 'ranges of tokens and the nodes that serve them';";

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

pub(crate) fn cluster_nodes(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let Some(cluster) = engine.cluster() else {
        return Vec::new();
    };
    let tablets = cluster.tablets();
    let of_node = |node: &ReportedNode| {
        let own = tablets.iter().filter(|tablet| tablet.owner == Some(node.host_id));
        let owns: f64 = own.clone().map(ReportedTablet::share).sum();
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

pub(crate) fn tablets(engine: &Arc<Engine>, table: &Table) -> Vec<Row> {
    let Some(cluster) = engine.cluster() else {
        return Vec::new();
    };
    let tablets = cluster.tablets();
    tablets.iter().map(|tablet| of_tablet(table, tablet)).collect()
}

fn of_tablet(table: &Table, tablet: &ReportedTablet) -> Row {
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
