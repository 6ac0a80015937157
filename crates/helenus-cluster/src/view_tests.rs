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

#[test]
fn the_ring_is_cut_without_gap_or_overlap() {
    for count in [1, 2, 3, 7, 16, 1000] {
        let ranges = TokenRange::split_ring(count);
        assert_eq!(ranges.len(), count as usize);
        assert_eq!(
            (ranges[0].first, ranges[ranges.len() - 1].last),
            (i64::MIN, i64::MAX)
        );
        assert!(ranges.windows(2).all(|pair| pair[0].last + 1 == pair[1].first));
    }
}

#[test]
fn a_range_is_cut_in_the_middle_until_one_token_is_left() {
    let [left, right] = TokenRange::RING
        .split_at(TokenRange::RING.middle().unwrap())
        .unwrap();
    assert_eq!((left.last, right.first), (-1, 0));
    let two = TokenRange { first: 4, last: 5 };
    let [left, right] = two.split_at(two.middle().unwrap()).unwrap();
    assert_eq!((left.width(), right.width()), (1, 1));
    assert_eq!(left.middle(), None);
    assert_eq!(two.split_at(4), None);
    assert_eq!(two.split_at(6), None);
}
