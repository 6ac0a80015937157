use super::*;
use crate::document::tests::{cluster, host, record};
use crate::environment::TabletSpec;
use crate::ids::Incarnation;
use crate::view::NodeState;

/// The knowledge of one node, to be borrowed as [`DecisionInput`].
#[derive(Clone)]
struct Known {
    me: NodeRecord,
    joined: bool,
    draining: bool,
    dead: BTreeSet<Member>,
    suspected: BTreeSet<HostId>,
    closed: BTreeMap<TabletId, Epoch>,
    reshaped: BTreeMap<TabletId, bool>,
    removed: BTreeSet<TabletId>,
    loads: BTreeMap<TabletId, TabletLoad>,
    mergeable: BTreeSet<TabletId>,
    rebalance_due: bool,
}

fn node(number: u128) -> Known {
    Known {
        me: record(number),
        joined: true,
        draining: false,
        dead: BTreeSet::new(),
        suspected: BTreeSet::new(),
        closed: BTreeMap::new(),
        reshaped: BTreeMap::new(),
        removed: BTreeSet::new(),
        loads: BTreeMap::new(),
        mergeable: BTreeSet::new(),
        rebalance_due: false,
    }
}

impl Known {
    fn decide(&self, document: Option<&ClusterDocument>) -> Decision {
        let input = DecisionInput {
            cluster_name: "test",
            store: None,
            initial_tablets: &TabletSpec::ring(8),
            limits: &ReshapeLimits::default(),
            me: &self.me,
            joined: self.joined,
            draining: self.draining,
            dead: &self.dead,
            suspected: &self.suspected,
            closed: &self.closed,
            reshaped: &self.reshaped,
            removed: &self.removed,
            loads: &self.loads,
            mergeable: &self.mergeable,
            rebalance_due: self.rebalance_due,
            now_ms: NOW_MS,
        };
        decide(document, &input).unwrap()
    }

    fn next(&self, document: &ClusterDocument) -> ClusterDocument {
        match self.decide(Some(document)) {
            Decision::Write(next) => *next,
            other => panic!("nothing was written: {other:?}"),
        }
    }
}

/// The time at which nodes decide, in milliseconds since 1970.
const NOW_MS: i64 = 1_700_000_500_000;

fn owners(document: &ClusterDocument, number: u128) -> usize {
    document.tablets_of(host(number)).count()
}

#[test]
fn the_first_node_makes_the_cluster_and_owns_all_of_it() {
    let mut first = node(1);
    first.joined = false;
    let Decision::Write(document) = first.decide(None) else {
        panic!("it does not begin");
    };
    assert_eq!(owners(&document, 1), 8);
    assert_eq!(node(1).decide(Some(&document)), Decision::Keep);
}

#[test]
fn a_joining_node_is_given_its_share_by_the_others() {
    let mut third = node(3);
    third.joined = false;
    let document = third.next(&cluster(2, 12));
    let moves: Vec<_> = document
        .tablets
        .iter()
        .filter_map(|tablet| tablet.moving_to)
        .collect();
    assert_eq!(moves, [host(3); 4]);
    assert_eq!(
        (owners(&document, 1), owners(&document, 2)),
        (6, 6),
        "who has them serves until then"
    );
}

#[test]
fn another_clusters_store_is_refused() {
    let mut document = cluster(1, 1);
    document.cluster_name = "other".into();
    let known = node(1);
    let input = DecisionInput {
        cluster_name: "test",
        store: None,
        initial_tablets: &TabletSpec::ring(1),
        limits: &ReshapeLimits::default(),
        me: &known.me,
        joined: true,
        draining: false,
        dead: &known.dead,
        suspected: &known.suspected,
        closed: &known.closed,
        reshaped: &known.reshaped,
        removed: &known.removed,
        loads: &known.loads,
        mergeable: &known.mergeable,
        rebalance_due: false,
        now_ms: NOW_MS,
    };
    let error = decide(Some(&document), &input).unwrap_err();
    assert!(matches!(error, ClusterError::WrongCluster { .. }), "{error}");
}

#[test]
fn incompatible_node_gets_no_tablets() {
    let credentials = |secret: &str| {
        Some(crate::Credentials {
            secret: secret.into(),
            authorities: Vec::new(),
        })
    };
    let mut document = cluster(2, 4);
    document
        .nodes
        .iter_mut()
        .for_each(|node| node.credentials = credentials("ours"));
    let mut comes = node(3);
    comes.joined = false;
    comes.me.credentials = credentials("ours");
    assert!(matches!(comes.decide(Some(&document)), Decision::Write(_)));
    comes.me.credentials = credentials("guessed");
    let Decision::IncompatibleMember(member, error) = comes.decide(Some(&document)) else {
        panic!("it joins");
    };
    assert_eq!(member, record(1).member());
    assert!(error.to_string().contains("node1 at 10.0.0.1:7000"), "{error}");
    // After all nodes have ended, the cluster may get another secret.
    comes.dead.extend([record(1).member(), record(2).member()]);
    assert!(matches!(comes.decide(Some(&document)), Decision::Write(_)));
}

#[test]
fn dead_nodes_are_expelled_and_replaced_in_one_write() {
    let mut survivor = node(1);
    survivor.dead.extend([record(2).member(), record(3).member()]);
    let document = survivor.next(&cluster(3, 9));
    assert_eq!(document.nodes.len(), 1);
    assert_eq!(owners(&document, 1), 9, "one survivor serves everything");
    assert_eq!(survivor.decide(Some(&document)), Decision::Keep);
}

#[test]
fn nothing_is_given_to_a_suspect() {
    let mut survivor = node(1);
    survivor.dead.insert(record(2).member());
    survivor.suspected.insert(host(3));
    let document = survivor.next(&cluster(3, 9));
    assert_eq!((owners(&document, 1), owners(&document, 3)), (6, 3));
}

#[test]
fn a_node_waits_for_its_former_self_and_then_replaces_it() {
    let mut again = node(2);
    again.me.incarnation = Incarnation(uuid::Uuid::from_u128(7));
    again.joined = false;
    let before = cluster(3, 9);
    assert!(matches!(again.decide(Some(&before)), Decision::Wait(_)));
    again.dead.insert(record(2).member());
    let document = again.next(&before);
    assert!(document.has(again.me.member()));
    assert_eq!(owners(&document, 2), 3, "it keeps its tablets");
    assert_eq!(
        node(2).decide(Some(&document)),
        Decision::Expelled,
        "its former self is out"
    );
}

#[test]
fn a_draining_node_hands_over_step_by_step_and_leaves() {
    let mut leaver = node(1);
    leaver.draining = true;
    let document = leaver.next(&cluster(3, 6));
    assert_eq!(document.node(host(1)).unwrap().state, NodeState::Leaving);
    assert_eq!(owners(&document, 1), 2);
    assert!(
        document
            .tablets_of(host(1))
            .all(|tablet| tablet.moving_to.is_some())
    );
    assert_eq!(
        leaver.decide(Some(&document)),
        Decision::Keep,
        "it has not closed them yet"
    );
    leaver.closed.extend([(TabletId(1), 1), (TabletId(4), 1)]);
    let document = leaver.next(&document);
    assert!(document.node(host(1)).is_none());
    assert_eq!((owners(&document, 2), owners(&document, 3)), (3, 3));
    assert_eq!(leaver.decide(Some(&document)), Decision::Left);
}

#[test]
fn the_last_node_leaves_tablets_that_the_next_one_takes() {
    let mut last = node(1);
    last.draining = true;
    let document = last.next(&cluster(1, 2));
    assert!(must_release_tablets(&document, host(1)));
    last.closed.extend([(TabletId(1), 1), (TabletId(2), 1)]);
    let document = last.next(&document);
    assert!(document.nodes.is_empty());
    let mut next = node(2);
    next.joined = false;
    assert_eq!(owners(&next.next(&document), 2), 2);
}

#[test]
fn a_move_to_a_node_that_leaves_goes_elsewhere() {
    let mut document = cluster(3, 6);
    document.begin_move(TabletId(1), host(2)).unwrap();
    let mut leaver = node(2);
    leaver.draining = true;
    let document = leaver.next(&document);
    assert_eq!(document.tablet(TabletId(1)).unwrap().moving_to, None);
    let mut giver = node(1);
    giver.closed.insert(TabletId(1), 1);
    assert_eq!(
        giver.decide(Some(&document)),
        Decision::Keep,
        "it keeps what it had closed for nobody"
    );
}

#[test]
fn what_was_closed_at_another_epoch_is_not_handed_over() {
    let mut document = cluster(2, 2);
    document.begin_move(TabletId(1), host(2)).unwrap();
    let mut owner = node(1);
    owner.closed.insert(TabletId(1), 0);
    assert_eq!(owner.decide(Some(&document)), Decision::Keep);
}

#[test]
fn splits_are_finished_or_undone_as_they_went() {
    let mut document = cluster(1, 8);
    document
        .begin_split(TabletId(3), -4_000_000_000_000_000_000)
        .unwrap();
    let mut owner = node(1);
    assert_eq!(owner.decide(Some(&document)), Decision::Keep);
    owner.reshaped.insert(TabletId(9), true);
    let done = owner.next(&document);
    assert_eq!((done.tablets.len(), done.retired.clone()), (9, vec![TabletId(3)]));
    owner.reshaped.insert(TabletId(9), false);
    let undone = owner.next(&document);
    assert_eq!(
        (undone.tablets.len(), undone.retired.clone()),
        (8, vec![TabletId(9), TabletId(10)])
    );
    owner.removed.insert(TabletId(9));
    assert_eq!(owner.next(&undone).retired, [TabletId(10)]);
}

#[test]
fn only_the_eldest_balances_and_only_when_all_is_calm() {
    let mut document = cluster(2, 16);
    for id in [2, 4, 6, 8, 10, 12] {
        document.begin_move(TabletId(id), host(1)).unwrap();
        document.finish_move(TabletId(id), 1).unwrap();
    }
    let mut eldest = node(1);
    assert_eq!(eldest.decide(Some(&document)), Decision::Keep, "it is not time");
    eldest.rebalance_due = true;
    let mut younger = node(2);
    younger.rebalance_due = true;
    assert_eq!(younger.decide(Some(&document)), Decision::Keep);
    let balanced = eldest.next(&document);
    let moves = balanced
        .tablets
        .iter()
        .filter(|tablet| tablet.moving_to == Some(host(2)));
    assert_eq!(moves.count(), BALANCE_MOVES_MAX);
    let mut merging = eldest.clone();
    merging.loads = document
        .tablets
        .iter()
        .map(|tablet| (tablet.id, TabletLoad::default()))
        .collect();
    merging.mergeable.insert(TabletId(1));
    let merged = merging.next(&document);
    assert_eq!(merged.reshapes.len(), 1);
    assert!(
        merged.tablets.iter().all(|tablet| tablet.moving_to.is_none()),
        "what is brought together to be merged would be parted"
    );
    assert_eq!(
        eldest.decide(Some(&balanced)),
        Decision::Keep,
        "one round at a time"
    );
    eldest.suspected.insert(host(2));
    assert_eq!(eldest.decide(Some(&document)), Decision::Keep);
}

#[test]
fn dead_node_is_remembered_until_return_or_for_a_day() {
    let mut survivor = node(1);
    survivor.dead = [record(2).member()].into();
    let document = survivor.next(&cluster(2, 4));
    let lost = |document: &ClusterDocument| -> Vec<_> {
        document
            .lost
            .iter()
            .map(|lost| (lost.host_id, lost.lost_at_ms))
            .collect()
    };
    assert_eq!(lost(&document), [(host(2), NOW_MS)]);
    assert_eq!((document.nodes.len(), owners(&document, 1)), (1, 4));
    assert_eq!(node(1).decide(Some(&document)), Decision::Keep);

    let mut again = node(2);
    again.joined = false;
    assert_eq!(lost(&again.next(&document)), []);

    let mut old = document;
    old.lost[0].lost_at_ms = NOW_MS - LOST_SHOWN_MS - 1;
    assert_eq!(lost(&node(1).next(&old)), []);
}
