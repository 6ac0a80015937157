//! The durations of single events, the number of moves, and the refusals.

use std::time::Duration;

use helenus_cluster::{AgentState, Documents, Expect, TabletId};

use crate::bucket::{Broken, StoreHealth};
use crate::executor::WORLD;
use crate::world::{World, host_id};

const SEEDS: u64 = 100;

/// Returns a settled cluster with this number of nodes, and one more node that has not started.
fn settled(seed: u64, nodes: usize, tablets: u32) -> World {
    let world = World::new(seed, nodes + 1, tablets, Broken::default());
    (0..nodes).for_each(|node| world.start(node));
    settle(&world, 30);
    world
}

fn settle(world: &World, limit_s: u64) {
    let settled = world.settles_within(Duration::from_secs(limit_s));
    assert!(settled, "the cluster did not settle");
}

/// Returns each tablet's owner, as node 0 sees it.
fn owners(world: &World) -> Vec<(u32, usize)> {
    let view = world.process(0).unwrap().handle.view();
    let node_of = |owner| {
        (0..world.node_count())
            .find(|node| host_id(*node) == owner)
            .unwrap()
    };
    let tablets = view.tablets().iter();
    tablets
        .map(|tablet| (tablet.id.0, node_of(tablet.owner.unwrap())))
        .collect()
}

#[test]
fn after_a_kill_every_partition_answers_within_five_seconds() {
    let mut slowest = Duration::ZERO;
    for seed in 0..SEEDS {
        let world = settled(seed, 3, 12);
        world.sim.run_for(world.sim.millis(0..1000));
        let begin = world.sim.now();
        world.crash(world.sim.range(0..3) as usize);
        assert!(world.all_answer_within(Duration::from_secs(5)), "seed {seed}");
        slowest = slowest.max(world.sim.now() - begin);
    }
    println!("slowest: {slowest:?}");
}

#[test]
fn lease_of_later_incarnation_validates_no_earlier_read() {
    let world = settled(1, 3, 12);
    let process = world.process(0).unwrap();
    let before = process.handle.lease_term();
    assert!(process.handle.may_serve_since(before));
    world.sim.pause(process.group);
    world.sim.run_for(Duration::from_secs(10));
    assert!(!process.handle.may_serve_since(before), "its lease has run out");
    world.sim.resume(process.group);
    assert!(world.settles_within(Duration::from_secs(30)));
    assert!(process.handle.may_serve(), "it has joined again");
    assert!(!process.handle.may_serve_since(before));
    assert!(process.handle.may_serve_since(process.handle.lease_term()));
}

#[test]
fn one_survivor_serves_everything() {
    for seed in 0..SEEDS {
        let world = settled(seed, 5, 12);
        (1..5).for_each(|node| world.crash(node));
        assert!(world.all_answer_within(Duration::from_secs(5)), "seed {seed}");
    }
}

#[test]
fn a_newcomer_takes_its_share_and_nothing_else_moves() {
    for seed in 0..SEEDS {
        let nodes = 1 + (seed % 6) as usize;
        let tablets = 4 * nodes as u32 + 8;
        let world = settled(seed, nodes, tablets);
        // Nodes that joined at the same time are balanced in the next round of the leading node.
        world.sim.run_for(Duration::from_secs(10));
        settle(&world, 30);
        let before = owners(&world);
        world.start(nodes);
        settle(&world, 30);
        let after = owners(&world);
        let moved: Vec<_> = before
            .iter()
            .zip(&after)
            .filter(|(old, new)| old != new)
            .collect();
        assert!(
            moved.iter().all(|(_, (_, owner))| *owner == nodes),
            "seed {seed}: {moved:?}"
        );
        let share = f64::from(tablets) / (nodes + 1) as f64;
        assert!(
            (moved.len() as f64 - share).abs() <= 1.0,
            "seed {seed}: {} moves of {share}",
            moved.len()
        );
    }
}

#[test]
fn a_planned_hand_over_fails_nothing_and_adds_less_than_200_ms() {
    let (mut slowest_before, mut slowest) = (Duration::ZERO, Duration::ZERO);
    for seed in 0..SEEDS {
        let world = settled(seed, 3, 12);
        let drain = world.sim.now() + Duration::from_secs(5);
        world.start_clients(3, drain + Duration::from_secs(5));
        world.sim.run_for(Duration::from_secs(5));
        world.drain(2);
        world.sim.run_for(Duration::from_secs(10));
        assert!(world.process(2).is_none(), "seed {seed}: it did not leave");
        for operation in world.recorder.operations() {
            let end = operation
                .end
                .unwrap_or_else(|| panic!("seed {seed}: {operation:?} failed"));
            let slowest = if end < drain {
                &mut slowest_before
            } else {
                &mut slowest
            };
            *slowest = (*slowest).max(end - operation.begin);
        }
    }
    println!("slowest: {slowest_before:?}, with a hand-over {slowest:?}");
    assert!(slowest < slowest_before + Duration::from_millis(200));
}

#[test]
fn only_leftovers_of_removed_tablets_are_deleted() {
    for seed in 0..20 {
        let world = settled(seed, 3, 4);
        // One split in ten fails, and is requested again.
        let is_gone = || !world.bucket.databases().contains(&TabletId(1));
        let is_split = (0..10).any(|_| {
            let handle = world.process(0).unwrap().handle;
            world.sim.spawn(WORLD, async move {
                handle.split_tablet(TabletId(1)).await.unwrap();
            });
            let deadline = world.sim.now() + Duration::from_secs(60);
            world.sim.run_while(deadline, || !is_gone())
        });
        assert!(is_split, "seed {seed}");
        settle(&world, 30);
        // The parent's former owner recreates its database later. Number 1000 was never assigned, so its database must stay.
        world.bucket.make_database(TabletId(1));
        world.bucket.make_database(TabletId(1000));
        world.sim.run_for(Duration::from_secs(700));
        settle(&world, 30);
        let mut wanted: Vec<_> = owners(&world).into_iter().map(|(id, _)| TabletId(id)).collect();
        wanted.push(TabletId(1000));
        wanted.sort();
        assert_eq!(world.bucket.databases(), wanted, "seed {seed}");
        assert!(world.all_answer_within(Duration::from_secs(5)), "seed {seed}");
    }
}

#[test]
fn a_store_that_is_away_for_a_minute_moves_nothing() {
    for seed in 0..SEEDS {
        let world = settled(seed, 3, 12);
        // Nodes that joined at the same time have unequal shares, which are balanced a little later.
        world.sim.run_for(Duration::from_secs(10));
        settle(&world, 10);
        let before = world.process(0).unwrap().handle.view();
        world.bucket.set_mood(StoreHealth::Away);
        world.sim.run_for(Duration::from_secs(60));
        let may_serve = |node| world.process(node).unwrap().handle.may_serve();
        assert!(
            !(0..3).any(may_serve),
            "seed {seed}: a node serves without a lease"
        );
        world.bucket.set_mood(StoreHealth::Healthy);
        assert!(world.all_answer_within(Duration::from_secs(5)), "seed {seed}");
        settle(&world, 10);
        let after = world.process(0).unwrap().handle.view();
        assert_eq!(before.tablets(), after.tablets(), "seed {seed}");
    }
}

#[test]
fn node_refuses_unknown_documents_and_other_clusters() {
    for (content, expected) in [
        (&br#"{"format":3}"#[..], "has format 3"),
        (b"\xff", "can't be read"),
        (
            br#"{"format":1,"cluster_name":"other","next_tablet":2,"nodes":[],"tablets":[{"id":1,"tokens":{"first":-9223372036854775808,"last":9223372036854775807},"owner":null,"epoch":0}],"reshapes":[],"retired":[]}"#,
            "belongs to cluster \"other\"",
        ),
    ] {
        let world = World::new(1, 1, 4, Broken::default());
        let bucket = world.bucket.clone();
        let put = async move {
            bucket.put("cluster", content, Expect::Absent).await.unwrap();
        };
        world.sim.spawn(WORLD, put);
        world.sim.run_for(Duration::from_secs(1));
        world.start(0);
        let handle = world.process(0).unwrap().handle;
        world.sim.run_for(Duration::from_secs(5));
        match handle.state() {
            AgentState::Failed(error) => assert!(error.to_string().contains(expected), "{error}"),
            state => panic!("{state:?}"),
        }
        assert!(world.bucket.document_names().iter().eq(["cluster"]), "it left something behind");
    }
}

#[test]
fn a_node_that_is_killed_and_started_again_has_its_share() {
    for seed in 0..SEEDS / 2 {
        let world = settled(seed, 3, 12);
        world.crash(1);
        world.sim.run_for(world.sim.millis(10..500));
        world.start(1);
        settle(&world, 30);
        // Nodes that joined at the same time have unequal shares, which are balanced a little later.
        world.sim.run_for(Duration::from_secs(10));
        settle(&world, 10);
        let status = world.process(0).unwrap().handle.status();
        assert_eq!(status.len(), 3, "seed {seed}");
        assert!(
            status
                .iter()
                .all(|status| status.node.alive && status.tablet_count == 4),
            "seed {seed}"
        );
    }
}
