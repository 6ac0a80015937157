use std::net::SocketAddr;

use proptest::prelude::*;
use uuid::Uuid;

use super::*;

pub(crate) fn host(number: u128) -> HostId {
    HostId(Uuid::from_u128(number))
}

pub(crate) fn record(number: u128) -> NodeRecord {
    NodeRecord {
        host_id: host(number),
        incarnation: Incarnation(Uuid::from_u128(number << 64)),
        description: NodeDescription {
            name: format!("node{number}"),
            cql_address: SocketAddr::from(([10, 0, 0, number as u8], 9042)),
            rpc_address: format!("10.0.0.{number}:7000"),
            data_center: "datacenter1".into(),
            rack: "rack1".into(),
            software_version: "0.1.0".into(),
        },
        lease_ms: 2000,
        joined_at_ms: 1_700_000_000_000,
        state: NodeState::Normal,
        credentials: None,
    }
}

/// Returns a cluster of nodes 1 to `node_count`, with tablets assigned in turn.
pub(crate) fn cluster(node_count: u128, tablet_count: u32) -> ClusterDocument {
    let mut document = ClusterDocument::create("test", &TabletSpec::ring(tablet_count));
    (1..=node_count).for_each(|number| document.join(record(number)));
    for id in 1..=tablet_count {
        let owner = host(u128::from(id - 1) % node_count + 1);
        document.assign(TabletId(id), owner).unwrap();
    }
    document
}

/// The bytes of format 2. A change of them needs a new format number, or code that still reads these.
const GOLDEN: &str = r#"{"format":2,"cluster_name":"test","store":"00000000-0000-0000-0000-00000000002a","next_tablet":8,"nodes":[{"host_id":"00000000-0000-0000-0000-000000000001","incarnation":"00000000-0000-0001-0000-000000000000","name":"node1","cql_address":"10.0.0.1:9042","rpc_address":"10.0.0.1:7000","data_center":"datacenter1","rack":"rack1","software_version":"0.1.0","lease_ms":2000,"joined_at_ms":1700000000000,"state":"normal","credentials":{"secret":"5e","authorities":["a0"]}},{"host_id":"00000000-0000-0000-0000-000000000002","incarnation":"00000000-0000-0002-0000-000000000000","name":"node2","cql_address":"10.0.0.2:9042","rpc_address":"10.0.0.2:7000","data_center":"datacenter1","rack":"rack1","software_version":"0.1.0","lease_ms":2000,"joined_at_ms":1700000000000,"state":"leaving"}],"tablets":[{"id":1,"tokens":{"first":-9223372036854775808,"last":-4611686018427387905},"owner":"00000000-0000-0000-0000-000000000001","epoch":1},{"id":5,"tokens":{"first":-4611686018427387904,"last":-2305843009213693953},"owner":"00000000-0000-0000-0000-000000000002","epoch":2},{"id":6,"tokens":{"first":-2305843009213693952,"last":-1},"owner":"00000000-0000-0000-0000-000000000002","epoch":2,"moving_to":"00000000-0000-0000-0000-000000000001"},{"id":3,"tokens":{"first":0,"last":4611686018427387903},"owner":null,"epoch":2},{"id":4,"tokens":{"first":4611686018427387904,"last":9223372036854775807},"owner":"00000000-0000-0000-0000-000000000002","epoch":1}],"reshapes":[],"retired":[2,7]}
"#;

fn golden() -> ClusterDocument {
    let mut document = cluster(2, 4);
    document.begin_split(TabletId(2), -2305843009213693952).unwrap();
    document.finish_reshape(TabletId(2)).unwrap();
    document.begin_leaving(record(2).member()).unwrap();
    document.begin_move(TabletId(6), host(1)).unwrap();
    document.unassign(TabletId(3), 1).unwrap();
    document.retired.push(TabletId(7));
    document.next_tablet = 8;
    document.store = Some(Uuid::from_u128(42));
    document.nodes[0].credentials = Some(Credentials {
        secret: "5e".into(),
        authorities: vec!["a0".into()],
    });
    document
}

#[test]
fn the_bytes_of_format_2_stay() {
    assert_eq!(String::from_utf8(golden().encode()).unwrap(), GOLDEN);
    assert_eq!(ClusterDocument::decode(GOLDEN.as_bytes()).unwrap(), golden());
}

#[test]
fn format_1_knows_no_store_and_no_credentials() {
    let former = GOLDEN
        .replace(r#"{"format":2"#, r#"{"format":1"#)
        .replace(r#""store":"00000000-0000-0000-0000-00000000002a","#, "")
        .replace(r#","credentials":{"secret":"5e","authorities":["a0"]}"#, "");
    let mut expected = golden();
    expected.format = 1;
    expected.store = None;
    expected.nodes[0].credentials = None;
    let read = ClusterDocument::decode(former.as_bytes()).unwrap();
    assert_eq!(read, expected);
    assert_eq!(read.check_store(Some(Uuid::from_u128(1))), Ok(()));
}

#[test]
fn the_document_of_another_store_is_refused() {
    let document = golden();
    assert_eq!(document.check_store(Some(Uuid::from_u128(42))), Ok(()));
    let error = document.check_store(Some(Uuid::from_u128(43))).unwrap_err();
    assert!(error.to_string().contains("helenus adopt"), "{error}");
}

#[test]
fn of_an_adopted_copy_nobody_owns_anything() {
    let mut document = golden();
    document
        .begin_split(TabletId(1), -5_000_000_000_000_000_000)
        .unwrap();
    let store = Uuid::from_u128(7);
    let adopted = ClusterDocument::decode(&adopt(&document.encode(), store).unwrap()).unwrap();
    assert_eq!(
        (adopted.store, adopted.nodes.len(), adopted.reshapes.len()),
        (Some(store), 0, 0)
    );
    let at_rest = |tablet: &TabletRecord| tablet.owner.is_none() && tablet.moving_to.is_none();
    assert!(adopted.tablets.iter().all(at_rest));
    let epochs =
        |document: &ClusterDocument| -> Vec<_> { document.tablets.iter().map(|t| (t.id, t.epoch)).collect() };
    let raised: Vec<_> = epochs(&document)
        .into_iter()
        .map(|(id, epoch)| (id, epoch + 1))
        .collect();
    assert_eq!(epochs(&adopted), raised);
    // The unfinished children of a split are to be deleted.
    assert_eq!(adopted.retired, [2, 7, 8, 9].map(TabletId));
}

#[test]
fn a_newer_format_is_refused_in_words() {
    let newer = br#"{"format":3,"surprise":[]}"#;
    let error = ClusterDocument::decode(newer).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the cluster document has format 3, and this version of Helenus understands formats up to 2: upgrade this node first"
    );
}

#[test]
fn documents_that_make_no_sense_are_refused() {
    type Spoil = fn(&mut ClusterDocument);
    let cases: [(Spoil, &str); 10] = [
        (|d| d.nodes.push(record(1)), "is there twice"),
        (|d| d.tablets.clear(), "do not cover the ring"),
        (
            |d| d.tablets.retain(|tablet| tablet.id.0 != 2),
            "do not cover the ring",
        ),
        (|d| d.tablets.truncate(3), "do not cover the ring"),
        (|d| d.tablets[0].tokens.last += 1, "do not cover the ring"),
        (|d| d.tablets[0].owner = Some(host(9)), "which is not there"),
        (
            |d| d.tablets[0].moving_to = d.tablets[0].owner,
            "to its own owner",
        ),
        (|d| d.tablets[1].id = TabletId(1), "is there twice"),
        (|d| d.next_tablet = 4, "never given out"),
        (|d| d.retired.push(TabletId(1)), "is there twice"),
    ];
    for (spoil, expected) in cases {
        let mut document = cluster(2, 4);
        document.validate().unwrap();
        spoil(&mut document);
        let error = ClusterDocument::decode(&document.encode())
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error:?} does not say {expected:?}");
    }
    for bytes in [&b""[..], b"{}", b"[]", b"{\"format\":1}", b"\xff"] {
        assert!(matches!(
            ClusterDocument::decode(bytes),
            Err(ClusterError::Corrupt { .. })
        ));
    }
}

#[test]
fn reshapes_that_make_no_sense_are_refused() {
    type Spoil = fn(&mut ClusterDocument);
    let cases: [(Spoil, &str); 6] = [
        (|d| d.reshapes[0].parents.clear(), "of nothing"),
        (|d| d.reshapes[0].children.truncate(1), "neither split"),
        (
            |d| d.reshapes[0].children[1].tokens.first += 1,
            "changes the ring",
        ),
        (|d| d.tablets[0].owner = None, "has no owner"),
        (|d| d.tablets[0].moving_to = Some(host(2)), "moves while"),
        (
            |d| {
                let mut again = d.reshapes[0].clone();
                again.children.iter_mut().for_each(|child| child.id.0 += 2);
                d.next_tablet += 2;
                d.reshapes.push(again);
            },
            "reshaped twice",
        ),
    ];
    for (spoil, expected) in cases {
        let mut document = cluster(2, 4);
        document
            .begin_split(TabletId(1), -5_000_000_000_000_000_000)
            .unwrap();
        document.validate().unwrap();
        spoil(&mut document);
        let error = document.validate().unwrap_err().to_string();
        assert!(error.contains(expected), "{error:?} does not say {expected:?}");
    }
}

#[test]
fn a_hand_over_raises_the_epoch_once() {
    let mut document = cluster(2, 4);
    document.begin_move(TabletId(1), host(2)).unwrap();
    assert_eq!(
        document.tablet(TabletId(1)).unwrap().owner,
        Some(host(1)),
        "it serves until it lets go"
    );
    assert!(
        document.finish_move(TabletId(1), 7).is_err(),
        "it was closed at another epoch"
    );
    document.finish_move(TabletId(1), 1).unwrap();
    let tablet = document.tablet(TabletId(1)).unwrap();
    assert_eq!(
        (tablet.owner, tablet.epoch, tablet.moving_to),
        (Some(host(2)), 2, None)
    );
    assert!(
        document.finish_move(TabletId(1), 2).is_err(),
        "it does not move any more"
    );
}

#[test]
fn an_expelled_node_leaves_nothing_half_done() {
    let mut document = cluster(3, 6);
    document.begin_move(TabletId(2), host(1)).unwrap();
    document
        .begin_split(TabletId(1), -9_000_000_000_000_000_000)
        .unwrap();
    document.expel(record(1).member()).unwrap();
    document.validate().unwrap();
    assert!(document.node(host(1)).is_none());
    assert_eq!(document.tablet(TabletId(2)).unwrap().moving_to, None);
    assert_eq!(document.tablet(TabletId(1)).unwrap().owner, None);
    assert_eq!(
        document.retired,
        [TabletId(7), TabletId(8)],
        "half-made children are never used"
    );
}

#[test]
fn lost_node_is_removed_by_command_or_address_reuse() {
    let mut document = cluster(3, 3);
    assert!(
        document
            .forget_lost(host(2))
            .unwrap_err()
            .to_string()
            .contains("is in the cluster")
    );
    document.lose(record(2).member(), 5).unwrap();
    document.lose(record(3).member(), 6).unwrap();
    document.validate().unwrap();
    assert_eq!(ClusterDocument::decode(&document.encode()).unwrap(), document);
    document.forget_lost(host(2)).unwrap();
    assert_eq!(
        document.forget_lost(host(2)),
        Err(ClusterError::UnknownNode(host(2)))
    );
    let mut heir = record(4);
    heir.description.rpc_address = record(3).description.rpc_address;
    document.join(heir);
    assert_eq!(document.lost, []);
}

#[test]
fn a_node_that_comes_back_keeps_its_tablets_at_a_new_epoch() {
    let mut document = cluster(2, 4);
    let mut again = record(1);
    again.incarnation = Incarnation(Uuid::from_u128(99));
    document.join(again.clone());
    document.validate().unwrap();
    assert!(document.has(again.member()) && !document.has(record(1).member()));
    let epochs: Vec<_> = document.tablets.iter().map(|tablet| tablet.epoch).collect();
    assert_eq!(epochs, [2, 1, 2, 1]);
    assert!(
        document.expel(record(1).member()).is_err(),
        "its old self is not there any more"
    );
}

#[test]
fn a_node_leaves_only_with_empty_hands() {
    let mut document = cluster(2, 2);
    document.begin_leaving(record(1).member()).unwrap();
    assert!(document.leave(record(1).member()).is_err());
    assert!(
        document.begin_move(TabletId(2), host(1)).is_err(),
        "it takes nothing any more"
    );
    document.begin_move(TabletId(1), host(2)).unwrap();
    document.finish_move(TabletId(1), 1).unwrap();
    document.leave(record(1).member()).unwrap();
    assert_eq!(document.nodes.len(), 1);
}

#[test]
fn a_merge_undoes_a_split() {
    let mut document = cluster(1, 2);
    document.begin_split(TabletId(2), 77).unwrap();
    document.finish_reshape(TabletId(2)).unwrap();
    let ids: Vec<_> = document.tablets.iter().map(|tablet| tablet.id.0).collect();
    assert_eq!(ids, [1, 3, 4]);
    assert!(
        document.begin_merge(TabletId(4)).is_err(),
        "nothing follows the last"
    );
    document.begin_merge(TabletId(3)).unwrap();
    assert!(
        document.begin_split(TabletId(4), 99).is_err(),
        "it is being merged"
    );
    assert!(document.begin_move(TabletId(4), host(1)).is_err());
    document.finish_reshape(TabletId(4)).unwrap();
    document.validate().unwrap();
    let merged = document.tablet(TabletId(5)).unwrap();
    assert_eq!(
        (merged.tokens.first, merged.tokens.last, merged.epoch),
        (0, i64::MAX, 3)
    );
    assert_eq!(document.retired, [TabletId(2), TabletId(3), TabletId(4)]);
    document.forget_retired(TabletId(3));
    assert_eq!(document.retired, [TabletId(2), TabletId(4)]);
}

#[derive(Debug, Clone)]
enum Step {
    Join(u128, u128),
    Expel(usize),
    BeginLeaving(usize),
    Leave(usize),
    Assign(usize, usize),
    BeginMove(usize, usize),
    FinishMove(usize),
    BeginSplit(usize, i64),
    BeginMerge(usize),
    FinishReshape(usize),
    UndoReshape(usize),
    Unassign(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let index = || 0usize..40;
    prop_oneof![
        (1u128..6, 0u128..3).prop_map(|(host, life)| Step::Join(host, life)),
        index().prop_map(Step::Expel),
        index().prop_map(Step::BeginLeaving),
        index().prop_map(Step::Leave),
        (index(), index()).prop_map(|(tablet, node)| Step::Assign(tablet, node)),
        (index(), index()).prop_map(|(tablet, node)| Step::BeginMove(tablet, node)),
        index().prop_map(Step::FinishMove),
        (index(), any::<i64>()).prop_map(|(tablet, at)| Step::BeginSplit(tablet, at)),
        index().prop_map(Step::BeginMerge),
        index().prop_map(Step::FinishReshape),
        index().prop_map(Step::UndoReshape),
        index().prop_map(Step::Unassign),
    ]
}

fn apply(document: &mut ClusterDocument, step: Step) -> Result<(), ClusterError> {
    let node = |document: &ClusterDocument, index: usize| {
        let nodes = &document.nodes;
        nodes
            .get(index % nodes.len().max(1))
            .unwrap_or(&record(50))
            .member()
    };
    let tablet =
        |document: &ClusterDocument, index: usize| document.tablets[index % document.tablets.len()].clone();
    match step {
        Step::Join(host, life) => {
            let mut node = record(host);
            node.incarnation = Incarnation(Uuid::from_u128(host * 10 + life));
            document.join(node);
            Ok(())
        }
        Step::Expel(index) => document.expel(node(document, index)),
        Step::BeginLeaving(index) => document.begin_leaving(node(document, index)),
        Step::Leave(index) => document.leave(node(document, index)),
        Step::Assign(id, to) => document.assign(tablet(document, id).id, node(document, to).host_id),
        Step::BeginMove(id, to) => document.begin_move(tablet(document, id).id, node(document, to).host_id),
        Step::FinishMove(id) => document.finish_move(tablet(document, id).id, tablet(document, id).epoch),
        Step::BeginSplit(id, at) => document.begin_split(tablet(document, id).id, at),
        Step::BeginMerge(id) => document.begin_merge(tablet(document, id).id),
        Step::FinishReshape(id) => document.finish_reshape(tablet(document, id).id),
        Step::UndoReshape(id) => document.undo_reshape(tablet(document, id).id),
        Step::Unassign(id) => document.unassign(tablet(document, id).id, tablet(document, id).epoch),
    }
}

proptest! {
    /// Shows three things for any transitions in any order. The document stays valid, a refused transition changes nothing, and no owner
    /// changes without a new epoch.
    #[test]
    fn every_transition_keeps_the_document_valid(steps in prop::collection::vec(step(), 1..60)) {
        let mut document = ClusterDocument::create("test", &TabletSpec::ring(3));
        for step in steps {
            let before = document.clone();
            let result = apply(&mut document, step.clone());
            document.validate().map_err(|error| TestCaseError::fail(format!("after {step:?}: {error}")))?;
            if result.is_err() {
                prop_assert_eq!(&document, &before, "{:?} was refused", step);
            }
            for tablet in &document.tablets {
                if let Ok(old) = before.tablet(tablet.id) {
                    prop_assert!(tablet.epoch > old.epoch || tablet.owner == old.owner, "{:?}", step);
                    prop_assert!(tablet.epoch >= old.epoch);
                }
            }
            prop_assert_eq!(&ClusterDocument::decode(&document.encode()).unwrap(), &document);
        }
    }
}
