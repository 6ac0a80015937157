//! What clients are told of nodes that come, go and change: the protocol's topology and status events, from one view to the next.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use helenus_cluster::{AgentHandle, ClusterView, HostId};
use helenus_cql::frame::response::{Event, StatusChange, TopologyChange};

use crate::listener::Announcer;

/// Announces changes until the agent is gone.
pub(super) async fn announce(agent: AgentHandle, here: HostId, announcer: Announcer) {
    let mut views = agent.views();
    let mut before = views.borrow_and_update().clone();
    while views.changed().await.is_ok() {
        let now = views.borrow_and_update().clone();
        for event in events(&before, &now, here) {
            announcer.send(&event);
        }
        before = now;
    }
}

struct Seen {
    address: SocketAddr,
    alive: bool,
    tokens: Vec<i64>,
}

fn seen(view: &ClusterView, here: HostId) -> BTreeMap<HostId, Seen> {
    let others = view.nodes().iter().filter(|node| node.host_id != here);
    let seen = |node: &Arc<helenus_cluster::NodeInfo>| {
        let tokens = view.tablets_of(node.host_id).map(|tablet| tablet.tokens.last);
        let seen = Seen {
            address: node.cql_address,
            alive: node.alive,
            tokens: tokens.collect(),
        };
        (node.host_id, seen)
    };
    others.map(seen).collect()
}

/// The events that lead from one view to the other. A node without tablets is not yet spoken of: drivers could not place it.
fn events(before: &ClusterView, now: &ClusterView, here: HostId) -> Vec<Event> {
    let (before, now) = (seen(before, here), seen(now, here));
    let mut events = Vec::new();
    for (host_id, node) in &now {
        let old = before.get(host_id);
        let status = if node.alive {
            StatusChange::Up
        } else {
            StatusChange::Down
        };
        let had_tokens = old.is_some_and(|old| !old.tokens.is_empty());
        let was_alive = old.is_some_and(|old| old.alive);
        if !had_tokens && !node.tokens.is_empty() {
            events.push(Event::TopologyChange(TopologyChange::NewNode, node.address));
            events.push(Event::StatusChange(status, node.address));
            continue;
        }
        if old.is_some_and(|old| old.tokens != node.tokens) {
            events.push(Event::TopologyChange(TopologyChange::MovedNode, node.address));
        }
        if old.is_some() && was_alive != node.alive {
            events.push(Event::StatusChange(status, node.address));
        }
    }
    for (host_id, node) in &before {
        if !now.contains_key(host_id) {
            events.push(Event::StatusChange(StatusChange::Down, node.address));
            events.push(Event::TopologyChange(TopologyChange::RemovedNode, node.address));
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use helenus_cluster::{Incarnation, NodeInfo, NodeState, TabletId, TabletInfo, TabletState, TokenRange};
    use uuid::Uuid;

    use super::*;

    fn host(number: u8) -> HostId {
        HostId(Uuid::from_u128(u128::from(number)))
    }

    fn address(number: u8) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, number], 9042))
    }

    /// Nodes by number and whether they are alive, and who owns each half of the ring.
    fn view(nodes: &[(u8, bool)], owners: [u8; 2]) -> ClusterView {
        let node = |(number, alive): &(u8, bool)| NodeInfo {
            host_id: host(*number),
            incarnation: Incarnation(Uuid::nil()),
            name: number.to_string(),
            cql_address: address(*number),
            rpc_address: String::new(),
            data_center: String::new(),
            rack: String::new(),
            software_version: String::new(),
            state: NodeState::Normal,
            alive: *alive,
        };
        let tablets = TokenRange::split_ring(2).into_iter().zip(owners).zip(1..);
        let tablet = |((tokens, owner), id)| TabletInfo {
            id: TabletId(id),
            tokens,
            owner: Some(host(owner)),
            epoch: 1,
            state: TabletState::Stable,
        };
        ClusterView::new(
            1,
            "c",
            nodes.iter().map(node).collect(),
            tablets.map(tablet).collect(),
        )
    }

    #[test]
    fn nodes_come_move_and_go() {
        let alone = view(&[(1, true)], [1, 1]);
        let joined = view(&[(1, true), (2, true)], [1, 1]);
        let serving = view(&[(1, true), (2, true)], [1, 2]);
        let silent = view(&[(1, true), (2, false)], [1, 2]);
        let two = address(2);
        assert_eq!(events(&alone, &joined, host(1)), [], "no tablets yet");
        let up = Event::StatusChange(StatusChange::Up, two);
        let down = Event::StatusChange(StatusChange::Down, two);
        let new = Event::TopologyChange(TopologyChange::NewNode, two);
        assert_eq!(events(&joined, &serving, host(1)), [new, up.clone()]);
        assert_eq!(events(&serving, &silent, host(1)), std::slice::from_ref(&down));
        assert_eq!(events(&silent, &serving, host(1)), [up]);
        let more = view(&[(1, true), (2, true)], [2, 2]);
        let moved = Event::TopologyChange(TopologyChange::MovedNode, two);
        assert_eq!(events(&serving, &more, host(1)), [moved]);
        let removed = Event::TopologyChange(TopologyChange::RemovedNode, two);
        assert_eq!(events(&silent, &alone, host(1)), [down, removed]);
        assert_eq!(events(&serving, &serving, host(1)), []);
    }
}
