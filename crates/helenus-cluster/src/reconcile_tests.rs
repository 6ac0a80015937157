use super::*;
use crate::document::tests::{cluster, host, record};

const NOW: Duration = Duration::from_secs(100);
const ONE: TabletId = TabletId(1);

/// Returns the actions of node 1, which has tablet 1 of `document` in this state.
fn actions(document: &ClusterDocument, state: Option<LocalTabletState>) -> Vec<Action> {
    let hosted = state.map(|state| (ONE, state)).into_iter().collect();
    reconcile(document, host(1), &hosted, &BTreeMap::new(), NOW)
}

fn open() -> Action {
    Action::Open {
        tablet: ONE,
        tokens: TokenRange::RING,
        epoch: 1,
    }
}

#[test]
fn what_is_owned_is_opened_once() {
    let document = cluster(1, 1);
    let later = NOW + Duration::from_millis(1);
    assert_eq!(actions(&document, None), [open()]);
    assert_eq!(
        actions(&document, Some(LocalTabletState::Waiting { until: NOW })),
        [open()]
    );
    assert_eq!(
        actions(&document, Some(LocalTabletState::Waiting { until: later })),
        []
    );
    assert_eq!(
        actions(&document, Some(LocalTabletState::Opening { epoch: 1 })),
        []
    );
    assert_eq!(actions(&document, Some(LocalTabletState::Open { epoch: 1 })), []);
}

#[test]
fn what_was_open_at_an_older_epoch_is_given_up() {
    let stale = actions(&cluster(1, 1), Some(LocalTabletState::Open { epoch: 0 }));
    assert_eq!(stale, [Action::Abandon { tablet: ONE }]);
}

#[test]
fn what_moves_is_closed_and_stays_closed() {
    let mut document = cluster(2, 1);
    document.begin_move(ONE, host(2)).unwrap();
    let close = Action::Close {
        tablet: ONE,
        epoch: 1,
    };
    let mark = Action::MarkClosed {
        tablet: ONE,
        epoch: 1,
    };
    assert_eq!(
        actions(&document, Some(LocalTabletState::Open { epoch: 1 })),
        [close]
    );
    assert_eq!(actions(&document, None), [mark], "it was never opened");
    assert_eq!(
        actions(&document, Some(LocalTabletState::Opening { epoch: 1 })),
        []
    );
    assert_eq!(
        actions(&document, Some(LocalTabletState::Closed { epoch: 1 })),
        []
    );
}

#[test]
fn few_are_handed_over_at_a_time() {
    let count = HAND_OVERS_MAX as u32 + 1;
    let mut document = cluster(2, 2 * count);
    let mine: Vec<_> = document.tablets_of(host(1)).map(|tablet| tablet.id).collect();
    for id in &mine {
        document.begin_move(*id, host(2)).unwrap();
    }
    let mut hosted: BTreeMap<_, _> = mine
        .iter()
        .map(|id| (*id, LocalTabletState::Open { epoch: 1 }))
        .collect();
    let closes = |document: &ClusterDocument, hosted: &BTreeMap<_, _>| -> Vec<TabletId> {
        let actions = reconcile(document, host(1), hosted, &BTreeMap::new(), NOW);
        let closed = actions.iter().filter_map(|action| match action {
            Action::Close { tablet, .. } => Some(*tablet),
            _ => None,
        });
        closed.collect()
    };
    let (last, others) = mine.split_last().unwrap();
    assert_eq!(
        closes(&document, &hosted),
        mine[1..],
        "the last of the ring first"
    );
    hosted.insert(*last, LocalTabletState::Closing { epoch: 1 });
    assert_eq!(closes(&document, &hosted), others[1..]);
    hosted.insert(*last, LocalTabletState::Closed { epoch: 1 });
    assert_eq!(
        closes(&document, &hosted),
        others[1..],
        "it is not the next owner's yet"
    );
    document.finish_move(*last, 1).unwrap();
    hosted.remove(last);
    assert_eq!(closes(&document, &hosted), others);
}

#[test]
fn what_was_closed_is_opened_again_when_it_stays_after_all() {
    let document = cluster(2, 1);
    let forget = Action::Forget { tablet: ONE };
    assert_eq!(
        actions(&document, Some(LocalTabletState::Closed { epoch: 1 })),
        [forget]
    );
}

#[test]
fn what_belongs_to_others_is_given_up() {
    let mut document = cluster(2, 1);
    document.begin_move(ONE, host(2)).unwrap();
    document.finish_move(ONE, 1).unwrap();
    let forget = Action::Forget { tablet: ONE };
    assert_eq!(
        actions(&document, Some(LocalTabletState::Closed { epoch: 1 })),
        [forget]
    );
    let abandon = Action::Abandon { tablet: ONE };
    assert_eq!(
        actions(&document, Some(LocalTabletState::Open { epoch: 1 })),
        [abandon]
    );
    assert_eq!(
        actions(&document, Some(LocalTabletState::Opening { epoch: 1 })),
        []
    );
    assert_eq!(actions(&document, None), []);
}

#[test]
fn the_last_node_closes_all_to_leave() {
    let mut document = cluster(1, 1);
    document.begin_leaving(record(1).member()).unwrap();
    let close = Action::Close {
        tablet: ONE,
        epoch: 1,
    };
    assert_eq!(
        actions(&document, Some(LocalTabletState::Open { epoch: 1 })),
        [close]
    );
}

#[test]
fn a_merge_begins_when_both_parents_are_open_and_is_tried_once() {
    let mut document = cluster(1, 2);
    document.begin_merge(ONE).unwrap();
    let open = LocalTabletState::Open { epoch: 1 };
    let run = |second: LocalTabletState, reshaped: &BTreeMap<TabletId, bool>| {
        let hosted = BTreeMap::from([(ONE, open), (TabletId(2), second)]);
        reconcile(&document, host(1), &hosted, reshaped, NOW)
    };
    assert_eq!(run(LocalTabletState::Opening { epoch: 1 }, &BTreeMap::new()), []);
    let children = vec![TabletSpec {
        id: TabletId(3),
        tokens: TokenRange::RING,
    }];
    let parents = vec![(ONE, 1), (TabletId(2), 1)];
    assert_eq!(
        run(open, &BTreeMap::new()),
        [Action::Reshape { parents, children }]
    );
    assert_eq!(run(open, &BTreeMap::from([(TabletId(3), false)])), []);
}

#[test]
fn parents_stay_closed_until_the_document_shows_the_children() {
    let mut document = cluster(1, 1);
    document.begin_split(ONE, 0).unwrap();
    let reshaped = Some(LocalTabletState::Reshaped { child: TabletId(2) });
    assert_eq!(actions(&document, reshaped), []);
    let mut undone = document.clone();
    undone.undo_reshape(ONE).unwrap();
    assert_eq!(actions(&undone, reshaped), [Action::Forget { tablet: ONE }]);
    document.finish_reshape(ONE).unwrap();
    let after = actions(&document, reshaped);
    assert_eq!(
        after.len(),
        3,
        "the children are opened, the parent is forgotten: {after:?}"
    );
    assert_eq!(after[2], Action::Forget { tablet: ONE });
}
