use super::*;
use crate::document::tests::{cluster, host};

const GIB: u64 = 1 << 30;

fn loads(bytes: &[u64]) -> BTreeMap<TabletId, TabletLoad> {
    let load = |bytes: &u64| TabletLoad {
        bytes: *bytes,
        ops_per_s: 0,
    };
    (1..).map(TabletId).zip(bytes.iter().map(load)).collect()
}

/// Returns the next step with the default limits.
fn next(
    document: &ClusterDocument,
    loads: &BTreeMap<TabletId, TabletLoad>,
    mergeable: &BTreeSet<TabletId>,
    initial_tablets: usize,
) -> Option<ReshapeStep> {
    let reshaping = ReshapeInput {
        document,
        loads,
        mergeable,
        limits: &ReshapeLimits::default(),
        initial_tablets,
    };
    reshaping.next()
}

/// Returns the next step if all neighbours have been small for long, as far as they are small.
fn wish(document: &ClusterDocument, bytes: &[u64], initial_tablets: usize) -> Option<ReshapeStep> {
    let mergeable = document.tablets.iter().map(|tablet| tablet.id).collect();
    next(document, &loads(bytes), &mergeable, initial_tablets)
}

#[test]
fn the_biggest_of_the_big_is_split_in_the_middle() {
    let document = cluster(1, 4);
    assert_eq!(
        wish(&document, &[GIB, 33 * GIB, 40 * GIB, 32 * GIB], 4),
        split(&document.tablets[2])
    );
    assert_eq!(wish(&document, &[32 * GIB; 4], 4), None);
}

#[test]
fn a_busy_tablet_is_split_however_small() {
    let document = cluster(1, 4);
    let mut loads = loads(&[40 * GIB, 0, 0, 0]);
    loads.get_mut(&TabletId(4)).unwrap().ops_per_s = 60_000;
    let wish = next(&document, &loads, &BTreeSet::new(), 4);
    assert_eq!(wish, split(&document.tablets[3]));
}

#[test]
fn there_are_enough_tablets_for_all_nodes_and_not_too_many() {
    let few = cluster(3, 8);
    assert_eq!(wish(&few, &[0; 8], 8), split(&few.tablets[7]));
    let many = cluster(1, 64);
    assert_eq!(wish(&many, &[33 * GIB; 64], 4), None);
}

#[test]
fn small_neighbours_are_merged_down_to_where_the_cluster_began() {
    let document = cluster(1, 10);
    let mut bytes = [2 * GIB; 10];
    bytes[3..6].copy_from_slice(&[2 * GIB, GIB / 2, 4 * GIB]);
    assert_eq!(
        wish(&document, &bytes, 4),
        Some(ReshapeStep::Merge { left: TabletId(4) })
    );
    assert_eq!(wish(&document, &bytes, 10), None);
    assert_eq!(wish(&document, &[], 4), None, "nothing is known of their sizes");
}

#[test]
fn small_neighbours_of_two_nodes_are_brought_together_first() {
    let document = cluster(2, 13);
    let expected = ReshapeStep::Colocate {
        tablet: TabletId(2),
        to: host(1),
    };
    assert_eq!(wish(&document, &[0; 13], 4), Some(expected));
}

#[test]
fn nothing_is_merged_that_one_more_node_would_have_split_again() {
    let document = cluster(2, 12);
    assert_eq!(wish(&document, &[0; 12], 4), None);
    let mut joined = document.clone();
    joined.join(crate::document::tests::record(3));
    assert_eq!(wish(&joined, &[0; 12], 4), None);
}

#[test]
fn only_what_has_been_small_for_long_is_merged() {
    let document = cluster(1, 12);
    let of = |mergeable: &[u32]| {
        let mergeable = mergeable.iter().map(|id| TabletId(*id)).collect();
        next(&document, &loads(&[0; 12]), &mergeable, 4)
    };
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[7]), Some(ReshapeStep::Merge { left: TabletId(7) }));
}

#[test]
fn nothing_is_begun_while_something_is_under_way() {
    let mut document = cluster(2, 8);
    document.begin_move(TabletId(1), host(2)).unwrap();
    assert_eq!(wish(&document, &[40 * GIB; 8], 4), None);
    let mut document = cluster(2, 8);
    document.begin_merge(TabletId(1)).unwrap_err();
    document
        .begin_split(TabletId(1), -9_000_000_000_000_000_000)
        .unwrap();
    assert_eq!(wish(&document, &[40 * GIB; 8], 4), None);
}
