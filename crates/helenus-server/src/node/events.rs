//! Topology and status events for clients, computed from two successive views of the cluster.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use helenus_cluster::{AgentHandle, ClusterView, HostId, TabletInfo, TabletState};
use helenus_cql::frame::response::{Event, StatusChange, TopologyChange};

use crate::transport::EventSender;

/// Sends events to clients until the agent has stopped.
pub(super) async fn announce(agent: AgentHandle, here: HostId, announcer: EventSender) {
    let mut views = agent.views();
    let mut announced = AnnouncedNodes::new(&views.borrow_and_update().clone(), here);
    while views.changed().await.is_ok() {
        let now = views.borrow_and_update().clone();
        for event in announced.update(&now) {
            announcer.send(&event);
        }
    }
}

struct AnnouncedNode {
    address: SocketAddr,
    alive: bool,
    tokens: Vec<i64>,
}

fn status(alive: bool) -> StatusChange {
    match alive {
        true => StatusChange::Up,
        false => StatusChange::Down,
    }
}

/// The other nodes, as they were last announced to drivers.
struct AnnouncedNodes {
    here: HostId,
    nodes: BTreeMap<HostId, AnnouncedNode>,
}

impl AnnouncedNodes {
    /// Returns the state in which all nodes with tablets are announced, because drivers that connect now read them.
    fn new(view: &ClusterView, here: HostId) -> AnnouncedNodes {
        let mut announced = AnnouncedNodes {
            here,
            nodes: BTreeMap::new(),
        };
        announced.update(view);
        announced
    }

    /// Returns the events that lead to this view. A joining node is not announced before it has all tablets that move to it. Drivers read a
    /// node's tokens when they first learn of it, and some never read them again.
    fn update(&mut self, view: &ClusterView) -> Vec<Event> {
        let mut events = Vec::new();
        for node in view.nodes().iter().filter(|node| node.host_id != self.here) {
            let now = AnnouncedNode {
                address: node.description.cql_address,
                alive: node.alive,
                tokens: view
                    .tablets_of(node.host_id)
                    .map(|tablet| tablet.tokens.last)
                    .collect(),
            };
            let (address, status) = (now.address, status(now.alive));
            match self.nodes.get(&node.host_id) {
                None if now.tokens.is_empty() || has_more_to_come(view, node.host_id) => continue,
                None => {
                    events.push(Event::TopologyChange(TopologyChange::NewNode, address));
                    events.push(Event::StatusChange(status, address));
                }
                Some(before) => {
                    if before.tokens != now.tokens {
                        events.push(Event::TopologyChange(TopologyChange::MovedNode, address));
                    }
                    if before.alive != now.alive {
                        events.push(Event::StatusChange(status, address));
                    }
                }
            }
            self.nodes.insert(node.host_id, now);
        }
        self.nodes.retain(|host_id, node| {
            let stays = view.node(*host_id).is_some();
            if !stays {
                events.push(Event::StatusChange(StatusChange::Down, node.address));
                events.push(Event::TopologyChange(TopologyChange::RemovedNode, node.address));
            }
            stays
        });
        events
    }
}

fn has_more_to_come(view: &ClusterView, host_id: HostId) -> bool {
    let is_coming = |tablet: &TabletInfo| tablet.state == TabletState::Moving { to: host_id };
    view.tablets().iter().any(is_coming)
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

    /// Returns a view of two tablets, one for each half of the ring. `nodes` are numbers of nodes and whether they are alive. The second
    /// tablet moves to `heir`, if given.
    fn view(nodes: &[(u8, bool)], owners: [u8; 2], heir: Option<u8>) -> ClusterView {
        let node = |(number, alive): &(u8, bool)| NodeInfo {
            host_id: host(*number),
            incarnation: Incarnation(Uuid::nil()),
            description: helenus_cluster::NodeDescription {
                name: number.to_string(),
                cql_address: address(*number),
                rpc_address: String::new(),
                data_center: String::new(),
                rack: String::new(),
                software_version: String::new(),
            },
            state: NodeState::Normal,
            alive: *alive,
        };
        let states = [None, heir].map(|heir| match heir {
            Some(heir) => TabletState::Moving { to: host(heir) },
            None => TabletState::Stable,
        });
        let tablets = TokenRange::split_ring(2)
            .into_iter()
            .zip(owners)
            .zip(states)
            .zip(1..);
        let tablet = |(((tokens, owner), state), id)| TabletInfo {
            id: TabletId(id),
            tokens,
            owner: Some(host(owner)),
            epoch: 1,
            state,
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
        let both = [(1, true), (2, true)];
        let alone = view(&[(1, true)], [1, 1], None);
        let serving = view(&both, [1, 2], None);
        let mut announced = AnnouncedNodes::new(&alone, host(1));
        let two = address(2);
        assert_eq!(announced.update(&view(&both, [1, 1], None)), [], "no tablets yet");
        assert_eq!(
            announced.update(&view(&both, [2, 1], Some(2))),
            [],
            "not all of its tablets yet"
        );
        let up = Event::StatusChange(StatusChange::Up, two);
        let down = Event::StatusChange(StatusChange::Down, two);
        let new = Event::TopologyChange(TopologyChange::NewNode, two);
        let moved = Event::TopologyChange(TopologyChange::MovedNode, two);
        let removed = Event::TopologyChange(TopologyChange::RemovedNode, two);
        assert_eq!(announced.update(&serving), [new, up.clone()]);
        assert_eq!(announced.update(&serving), []);
        let silent = view(&[(1, true), (2, false)], [1, 2], None);
        assert_eq!(announced.update(&silent), std::slice::from_ref(&down));
        assert_eq!(announced.update(&serving), [up]);
        let more = view(&both, [2, 1], Some(2));
        assert_eq!(
            announced.update(&more),
            [moved],
            "the move of a known node is announced at once"
        );
        assert_eq!(announced.update(&alone), [down, removed]);
    }
}
