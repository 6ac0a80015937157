//! Random faults for a while, after which the cluster must recover.

use std::ops::Range;
use std::time::Duration;

use helenus_cluster::TabletState;

use crate::bucket::{Broken, StoreHealth};
use crate::executor::WORLD;
use crate::history;
use crate::world::{World, host_id};

const CHAOS: Duration = Duration::from_secs(30);
const RECOVERY: Duration = Duration::from_secs(40);
const SEEDS_DEFAULT: u64 = if cfg!(debug_assertions) { 500 } else { 5000 };

/// Runs one seed. Returns a description of what went wrong.
fn run(seed: u64, broken: Broken) -> Result<World, String> {
    let nodes = 3 + (seed % 3) as usize;
    let world = World::new(seed, nodes, 6, broken);
    (0..nodes - 1).for_each(|node| world.start(node));
    let until = world.sim.now() + CHAOS;
    world.start_clients(3, until);
    let nemesis = world.clone();
    world.sim.spawn(WORLD, async move {
        while nemesis.sim.now() < until {
            nemesis.sim.sleep(nemesis.sim.millis(100..3000)).await;
            inject_fault(&nemesis);
        }
    });
    world.sim.run_for(CHAOS);
    heal(&world);
    check_safety(&world)?;
    if !world.settles_within(RECOVERY) {
        return Err(format!("the cluster did not settle: {}", describe(&world)));
    }
    if !world.all_answer_within(Duration::from_secs(10)) {
        return Err(format!("not every key answers: {}", describe(&world)));
    }
    check_safety(&world)?;
    Ok(world)
}

fn check_safety(world: &World) -> Result<(), String> {
    match world.recorder.violations().first() {
        Some(violation) => Err(violation.clone()),
        None => history::check(&world.recorder.operations()),
    }
}

/// Injects one random fault, or does one random action of an operator.
fn inject_fault(world: &World) {
    let sim = &world.sim;
    let node = sim.range(0..world.node_count() as u64) as usize;
    match sim.range(0..20) {
        0..=2 => world.crash(node),
        3..=7 => world.start(node),
        8..=10 => pause(world, node),
        11 | 12 => cut_off(world, node),
        13 | 14 => mood(world),
        15 => world.drain(node),
        16 | 17 => reshape(world, node),
        _ => move_tablet(world, node),
    }
}

fn pause(world: &World, node: usize) {
    let Some(process) = world.process(node) else {
        return;
    };
    world.sim.pause(process.group);
    later(world, 50..7000, move |world| world.sim.resume(process.group));
}

fn cut_off(world: &World, node: usize) {
    world.bucket.cut_off(node, true);
    later(world, 100..6000, move |world| world.bucket.cut_off(node, false));
}

fn mood(world: &World) {
    let mood = *world
        .sim
        .pick(&[StoreHealth::Slow, StoreHealth::Flaky, StoreHealth::Failing])
        .unwrap();
    world.bucket.set_mood(mood);
    later(world, 200..5000, |world| {
        world.bucket.set_mood(StoreHealth::Healthy)
    });
}

fn later(world: &World, after_ms: Range<u64>, undo: impl FnOnce(&World) + Send + 'static) {
    let (world, pause) = (world.clone(), world.sim.millis(after_ms));
    world.sim.clone().spawn(WORLD, async move {
        world.sim.sleep(pause).await;
        undo(&world);
    });
}

fn reshape(world: &World, node: usize) {
    let Some(process) = world.process(node) else {
        return;
    };
    let view = process.handle.view();
    let Some(tablet) = world.sim.pick(view.tablets()).map(|tablet| tablet.id) else {
        return;
    };
    let split = world.sim.chance(50) && view.tablets().len() < 12;
    world.sim.spawn(process.group, async move {
        // Many reshapes are refused, because the tablet moves or its neighbour has another owner.
        let _ = match split {
            true => process.handle.split_tablet(tablet).await,
            false => process.handle.merge_tablet(tablet).await,
        };
    });
}

/// Moves a tablet. Half the time, it is then moved to another target while the first one may be opening it, and finally to the first one.
fn move_tablet(world: &World, node: usize) {
    let Some(process) = world.process(node) else {
        return;
    };
    let view = process.handle.view();
    let Some(tablet) = world.sim.pick(view.tablets()).map(|tablet| tablet.id) else {
        return;
    };
    let (sim, nodes) = (world.sim.clone(), world.node_count() as u64);
    let to = host_id(sim.range(0..nodes) as usize);
    world.sim.spawn(process.group, async move {
        // The move may be refused, because the tablet is there already or the target does not exist.
        let _ = process.handle.move_tablet(tablet, to).await;
        if sim.chance(50) {
            sim.sleep(sim.millis(0..40)).await;
            let elsewhere = host_id(sim.range(0..nodes) as usize);
            let _ = process.handle.move_tablet(tablet, elsewhere).await;
            sim.sleep(sim.millis(200..2000)).await;
            let _ = process.handle.move_tablet(tablet, to).await;
        }
    });
}

/// Makes the store answer and all processes run, and starts at least one.
fn heal(world: &World) {
    world.bucket.set_mood(StoreHealth::Healthy);
    for node in 0..world.node_count() {
        world.bucket.cut_off(node, false);
        if let Some(process) = world.process(node) {
            world.sim.resume(process.group);
        }
    }
    // A node that was leaving is started again after it has left.
    let world = world.clone();
    world.sim.clone().spawn(WORLD, async move {
        loop {
            world.start(0);
            world.sim.sleep(Duration::from_millis(500)).await;
        }
    });
}

fn describe(world: &World) -> String {
    let mut lines = Vec::new();
    for node in world.alive() {
        let process = world.process(node).unwrap();
        let view = process.handle.view();
        lines.push(format!(
            "node {node}: {:?}, may serve: {}, view {}",
            process.handle.state(),
            process.handle.may_serve(),
            view.version()
        ));
        for tablet in view.tablets() {
            if tablet.state != TabletState::Stable || tablet.owner.is_none() {
                lines.push(format!("  {tablet:?}"));
            }
        }
    }
    lines.join("\n")
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn nothing_goes_wrong_for_good() {
    let seeds = match number("HELENUS_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("HELENUS_SIM_SEEDS").unwrap_or(SEEDS_DEFAULT),
    };
    let operations: usize = run_all(seeds.clone()).iter().sum();
    println!("{} seeds, {operations} operations", seeds.end - seeds.start);
}

/// Runs the seeds on all cores. Returns the number of operations of each thread's clients.
fn run_all(seeds: Range<u64>) -> Vec<usize> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let run_some = |first: usize| {
        let own = seeds.clone().skip(first).step_by(threads);
        own.map(|seed| match run(seed, Broken::default()) {
            Ok(world) => world.recorder.operations().len(),
            Err(error) => panic!("HELENUS_SIM_SEED={seed} fails: {error}"),
        })
        .sum()
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|first| {
                scope.spawn({
                    let run_some = &run_some;
                    move || run_some(first)
                })
            })
            .collect();
        let joined = workers.into_iter().map(|worker| worker.join());
        joined
            .map(|result| result.expect("a seed fails, see above"))
            .collect()
    })
}

/// Returns the first seed of a few hundred that finds what is broken.
fn first_to_find(broken: Broken) -> Option<(u64, String)> {
    (0..300).find_map(|seed| Some((seed, run(seed, broken).err()?)))
}

#[test]
fn a_broken_fencing_check_is_found() {
    let broken = Broken {
        fencing: true,
        ..Broken::default()
    };
    let (seed, error) = first_to_find(broken).expect("no seed finds it");
    println!("seed {seed}: {error}");
}

#[test]
fn a_broken_lease_check_is_found() {
    let broken = Broken {
        lease: true,
        ..Broken::default()
    };
    let (seed, error) = first_to_find(broken).expect("no seed finds it");
    println!("seed {seed}: {error}");
}

/// Opens a tablet as a standby, lets its owner continue, and moves the tablet to the standby in the end. Returns a description of what
/// clients saw wrong.
fn late_move(seed: u64, broken: Broken) -> Result<(), String> {
    let world = World::new(seed, 2, 4, broken);
    (0..2).for_each(|node| world.start(node));
    assert!(world.settles_within(RECOVERY));
    let until = world.sim.now() + Duration::from_secs(10);
    world.start_clients(3, until);
    let (owner, next) = (world.process(0).unwrap(), world.process(1).unwrap());
    let tablet = owner.handle.view().tablets_of(host_id(0)).next().unwrap().id;
    world.sim.spawn(next.group, async move {
        next.host.fence_ahead(tablet).await.unwrap();
    });
    world.sim.run_for(Duration::from_secs(4));
    world.sim.spawn(owner.group, async move {
        owner.handle.move_tablet(tablet, host_id(1)).await.unwrap();
    });
    world.sim.run_for(Duration::from_secs(6));
    check_safety(&world)
}

#[test]
fn preopened_tablet_is_dropped_if_opened_elsewhere() {
    let unrequested = Broken {
        ahead: true,
        ..Broken::default()
    };
    let found = (0..60)
        .filter(|seed| late_move(*seed, unrequested).is_err())
        .count();
    assert!(found > 0, "no seed finds a node that does not ask");
    println!("{found} of 60 seeds find a node that does not ask");
    for seed in 0..60 {
        late_move(seed, Broken::default()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

#[test]
fn a_seed_always_runs_the_same() {
    let figures = |seed| {
        let world = run(seed, Broken::default()).unwrap();
        (
            world.sim.steps(),
            world.recorder.operations().len(),
            world.sim.now(),
        )
    };
    assert_eq!(figures(3), figures(3));
}
