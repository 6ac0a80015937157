//! Metrics of the cluster. Their number does not depend on the number of nodes or tablets.

use helenus_cluster::{AgentHandle, AgentState, HostId, NodeState, TabletState};
use metrics::{counter, gauge};

/// Sets the metrics. Called just before they are read.
pub(super) fn record(agent: &AgentHandle, here: HostId) {
    let view = agent.view();
    let (nodes, tablets) = (view.nodes(), view.tablets());
    let moving = |state: &TabletState| matches!(state, TabletState::Moving { .. });
    let is_serving = agent.state() == AgentState::Serving;
    let gauges = [
        ("helenus_cluster_nodes", nodes.len()),
        (
            "helenus_cluster_nodes_alive",
            nodes.iter().filter(|node| node.alive).count(),
        ),
        (
            "helenus_cluster_nodes_leaving",
            nodes
                .iter()
                .filter(|node| node.state == NodeState::Leaving)
                .count(),
        ),
        ("helenus_cluster_tablets", tablets.len()),
        ("helenus_cluster_tablets_owned", view.tablets_of(here).count()),
        (
            "helenus_cluster_tablets_without_owner",
            tablets.iter().filter(|tablet| tablet.owner.is_none()).count(),
        ),
        (
            "helenus_cluster_tablets_moving",
            tablets.iter().filter(|tablet| moving(&tablet.state)).count(),
        ),
        ("helenus_cluster_lease_valid", usize::from(agent.may_serve())),
        ("helenus_cluster_serving", usize::from(is_serving)),
    ];
    for (name, value) in gauges {
        gauge!(name).set(value as f64);
    }
    gauge!("helenus_cluster_document_version").set(view.version() as f64);
    let counts = agent.counts();
    let counters = [
        ("helenus_cluster_tablets_opened_total", counts.opened),
        ("helenus_cluster_tablets_closed_total", counts.closed),
        ("helenus_cluster_tablets_reshaped_total", counts.reshaped),
        ("helenus_cluster_expulsions_total", counts.expulsions),
        ("helenus_cluster_leases_lost_total", counts.leases_lost),
        ("helenus_cluster_lease_renewals_total", counts.renewals),
    ];
    for (name, value) in counters {
        counter!(name).absolute(value);
    }
}
