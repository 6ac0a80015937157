use std::collections::BTreeSet;

use proptest::prelude::*;
use uuid::Uuid;

use super::*;

fn host(number: usize) -> HostId {
    HostId(Uuid::from_u128(number as u128))
}

fn nodes(count: usize) -> Vec<PlacementNode> {
    (1..=count)
        .map(|number| PlacementNode {
            host_id: host(number),
            rack: format!("rack{}", number % 3),
        })
        .collect()
}

fn tablets(weights: &[u64]) -> Vec<PlacementTablet> {
    weights
        .iter()
        .zip(1..)
        .map(|(weight, id)| PlacementTablet {
            id: TabletId(id),
            owner: None,
            weight: *weight,
            pinned: false,
        })
        .collect()
}

fn apply(tablets: &mut [PlacementTablet], changes: &[Assignment]) {
    for change in changes {
        let tablet = tablets.iter_mut().find(|tablet| tablet.id == change.tablet);
        tablet.unwrap().owner = Some(change.owner);
    }
}

/// Returns nodes, and tablets that are distributed over them.
fn settled(node_count: usize, weights: &[u64]) -> (Vec<PlacementNode>, Vec<PlacementTablet>) {
    let (nodes, mut tablets) = (nodes(node_count), tablets(weights));
    let changes = place(&nodes, &tablets, MovePolicy::Settle);
    apply(&mut tablets, &changes);
    (nodes, tablets)
}

fn weight_of(tablets: &[PlacementTablet], owner: HostId) -> u64 {
    let own = tablets.iter().filter(|tablet| tablet.owner == Some(owner));
    own.map(|tablet| tablet.weight).sum()
}

fn weights_of(nodes: &[PlacementNode], tablets: &[PlacementTablet]) -> Vec<u64> {
    nodes
        .iter()
        .map(|node| weight_of(tablets, node.host_id))
        .collect()
}

proptest! {
    #[test]
    fn every_tablet_gets_an_owner_and_none_is_overloaded(
        node_count in 1usize..12,
        weights in prop::collection::vec(1u64..1000, 0..80),
    ) {
        let (nodes, tablets) = settled(node_count, &weights);
        prop_assert!(tablets.iter().all(|tablet| tablet.owner.is_some()));
        let held = weights_of(&nodes, &tablets);
        let (least, most) = (held.iter().min().unwrap(), held.iter().max().unwrap());
        prop_assert!(most - least <= weights.iter().copied().max().unwrap_or(0));
    }

    #[test]
    fn a_newcomer_takes_its_share_and_the_others_keep_the_rest(
        node_count in 1usize..12,
        weights in prop::collection::vec(1u64..1000, 1..80),
    ) {
        let (_, mut tablets) = settled(node_count, &weights);
        let nodes = nodes(node_count + 1);
        let newcomer = host(node_count + 1);
        let changes = place(&nodes, &tablets, MovePolicy::Fill(newcomer));
        prop_assert!(changes.iter().all(|change| change.owner == newcomer), "a move between old nodes");
        apply(&mut tablets, &changes);
        let mean = weights.iter().sum::<u64>() / nodes.len() as u64;
        let heaviest = *weights.iter().max().unwrap();
        let held = weight_of(&tablets, newcomer);
        prop_assert!(held <= mean + heaviest, "{held} of a mean of {mean}");
        prop_assert!(held + 2 * heaviest >= mean, "{held} of a mean of {mean}");
    }

    #[test]
    fn with_equal_tablets_a_newcomer_takes_one_in_n_plus_one(node_count in 1usize..20, per_node in 1usize..20) {
        let count = node_count * per_node;
        let (_, tablets) = settled(node_count, &vec![100; count]);
        let moved = place(&nodes(node_count + 1), &tablets, MovePolicy::Fill(host(node_count + 1))).len();
        let share = count as f64 / (node_count + 1) as f64;
        prop_assert!((moved as f64 - share).abs() <= 1.0, "{moved} moves, where the share is {share}");
    }

    #[test]
    fn a_node_that_leaves_spreads_only_its_own(
        node_count in 2usize..12,
        weights in prop::collection::vec(1u64..1000, 1..80),
    ) {
        let (mut nodes, tablets) = settled(node_count, &weights);
        let gone = nodes.remove(node_count / 2).host_id;
        let changes = place(&nodes, &tablets, MovePolicy::Settle);
        let own: BTreeSet<_> = tablets.iter().filter(|tablet| tablet.owner == Some(gone)).map(|tablet| tablet.id).collect();
        let moved: BTreeSet<_> = changes.iter().map(|change| change.tablet).collect();
        prop_assert_eq!(own, moved);
    }

    #[test]
    fn balancing_ends_and_leaves_nothing_to_do(
        node_count in 1usize..12,
        placed in prop::collection::vec((1u64..1000, 0usize..12), 1..80),
        tolerance_percent in 0u64..50,
    ) {
        let nodes = nodes(node_count);
        let weights: Vec<_> = placed.iter().map(|(weight, _)| *weight).collect();
        let mut tablets = tablets(&weights);
        for (tablet, (_, owner)) in tablets.iter_mut().zip(&placed) {
            tablet.owner = Some(host(owner % node_count + 1));
        }
        let before = weights_of(&nodes, &tablets);
        let intent = MovePolicy::Balance { tolerance_percent };
        let changes = place(&nodes, &tablets, intent);
        apply(&mut tablets, &changes);
        prop_assert!(place(&nodes, &tablets, intent).is_empty(), "a second round moves more");
        let after = weights_of(&nodes, &tablets);
        prop_assert!(after.iter().max() <= before.iter().max());
        prop_assert!(after.iter().min() >= before.iter().min());
    }

    #[test]
    fn pinned_tablets_stay(
        node_count in 1usize..6,
        placed in prop::collection::vec((1u64..1000, 0usize..6, any::<bool>()), 1..40),
    ) {
        let weights: Vec<_> = placed.iter().map(|(weight, ..)| *weight).collect();
        let mut tablets = tablets(&weights);
        for (tablet, (_, owner, pinned)) in tablets.iter_mut().zip(&placed) {
            tablet.owner = Some(host(owner % node_count + 1));
            tablet.pinned = *pinned;
        }
        for intent in [MovePolicy::Fill(host(node_count)), MovePolicy::Balance { tolerance_percent: 0 }] {
            for change in place(&nodes(node_count), &tablets, intent) {
                prop_assert!(!tablets.iter().any(|tablet| tablet.id == change.tablet && tablet.pinned));
            }
        }
    }
}

#[test]
fn loads_that_waver_move_nothing_to_and_fro() {
    let (nodes, mut tablets) = settled(3, &[100, 100, 100, 100]);
    let intent = MovePolicy::Balance {
        tolerance_percent: 25,
    };
    for weights in [[90, 110, 100, 100], [110, 90, 105, 95], [95, 105, 110, 90]] {
        for (tablet, weight) in tablets.iter_mut().zip(weights) {
            tablet.weight = weight;
        }
        assert_eq!(place(&nodes, &tablets, intent), []);
    }
}

#[test]
fn nobody_gets_anything_without_nodes() {
    assert_eq!(place(&[], &tablets(&[1, 2]), MovePolicy::Settle), []);
}

#[test]
fn equal_nodes_are_filled_rack_by_rack() {
    let mut nodes = nodes(4);
    for (node, rack) in nodes.iter_mut().zip(["a", "a", "b", "c"]) {
        node.rack = rack.into();
    }
    let placed = place(&nodes, &tablets(&[5, 5, 5]), MovePolicy::Settle);
    let racks: BTreeSet<_> = placed
        .iter()
        .map(|change| {
            &nodes
                .iter()
                .find(|node| node.host_id == change.owner)
                .unwrap()
                .rack
        })
        .collect();
    assert_eq!(
        racks.len(),
        3,
        "three tablets on four equal nodes go to three racks"
    );
}

#[test]
fn a_hot_tablet_weighs_as_much_as_many_cold_ones() {
    let ids: Vec<_> = (1..=10).map(TabletId).collect();
    let hot = TabletLoad {
        bytes: 0,
        ops_per_s: 10_000,
    };
    let weights = weights(&ids, &BTreeMap::from([(TabletId(3), hot)]));
    assert!(weights[&TabletId(3)] > 10 * weights[&TabletId(1)]);
    assert_eq!(weights[&TabletId(1)], WEIGHT_SUM / 10);
}

#[test]
fn a_few_requests_move_nothing() {
    let (nodes, mut tablets) = settled(3, &[1; 12]);
    let ids: Vec<_> = tablets.iter().map(|tablet| tablet.id).collect();
    let touched = TabletLoad {
        bytes: 1 << 20,
        ops_per_s: 40,
    };
    let weights = weights(
        &ids,
        &BTreeMap::from([(TabletId(1), touched), (TabletId(5), touched)]),
    );
    for tablet in &mut tablets {
        tablet.weight = weights[&tablet.id];
    }
    let intent = MovePolicy::Balance {
        tolerance_percent: 25,
    };
    assert_eq!(place(&nodes, &tablets, intent), []);
}
