use std::net::SocketAddr;

use super::*;
use uuid::Uuid;

fn node(number: u128) -> NodeInfo {
    NodeInfo {
        host_id: HostId(Uuid::from_u128(number)),
        incarnation: Incarnation(Uuid::from_u128(number + 100)),
        description: NodeDescription {
            name: format!("node{number}"),
            cql_address: SocketAddr::from(([127, 0, 0, number as u8], 9042)),
            rpc_address: format!("127.0.0.{number}:7000"),
            data_center: "datacenter1".into(),
            rack: "rack1".into(),
            software_version: "0.1.0".into(),
        },
        state: NodeState::Normal,
        alive: true,
    }
}

fn view() -> ClusterView {
    let owners = [Some(1), Some(2), None, Some(1)];
    let tablets = TokenRange::split_ring(4)
        .into_iter()
        .zip(owners)
        .enumerate()
        .map(|(index, (tokens, owner))| TabletInfo {
            id: TabletId(index as u32 + 1),
            tokens,
            owner: owner.map(|number| HostId(Uuid::from_u128(number))),
            epoch: 1,
            state: TabletState::Stable,
        })
        .rev()
        .collect();
    ClusterView::new(7, "test", vec![node(1), node(2)], tablets)
}

#[test]
fn each_token_has_the_tablet_whose_range_holds_it() {
    let view = view();
    for tablet in view.tablets() {
        for token in [tablet.tokens.first, tablet.tokens.last] {
            assert_eq!(view.tablet_of(token), Some(tablet), "token {token}");
        }
    }
    assert_eq!(view.owner_of(i64::MIN).unwrap().description.name, "node1");
    assert_eq!(view.owner_of(-1).unwrap().description.name, "node2");
    assert!(view.owner_of(0).is_none(), "nobody has the third tablet");
    assert_eq!(view.owner_of(i64::MAX).unwrap().description.name, "node1");
    assert!(ClusterView::default().tablet_of(0).is_none());
}

#[test]
fn status_adds_up_what_each_node_owns() {
    let status = view().status();
    let figures: Vec<_> = status
        .iter()
        .map(|status| {
            (
                status.node.description.name.as_str(),
                status.tablet_count,
                status.owned_share,
            )
        })
        .collect();
    assert_eq!(figures, [("node1", 2, 0.5), ("node2", 1, 0.25)]);
}
