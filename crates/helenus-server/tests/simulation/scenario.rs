//! Scenarios: nodes under load, the faults that they suffer, and what must hold.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::bucket::Health;
use crate::clients::Clients;
use crate::register::{Operation, explains};
use crate::world::World;

const NODES: usize = 3;
const CLIENTS: usize = 6;
/// Time under load.
const LOAD: Duration = Duration::from_secs(60);
/// Maximum time until all registers are answered again when all faults have ended.
const RECOVERY_MAX: Duration = Duration::from_secs(60);

/// A scenario: what happens to the nodes under load.
pub type Scenario = fn(&mut World);

/// All scenarios, by name.
pub const ALL: [(&str, Scenario); 3] = [
    ("random_faults", fault),
    ("pauses_past_the_lease", pause),
    ("late_requests", late_requests),
];

/// The figures of a run.
pub struct Report {
    pub operations: usize,
    pub errors: u64,
    pub faults: usize,
    pub simulated: Duration,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operations, errors, faults) = (self.operations, self.errors, self.faults);
        let s = self.simulated.as_secs();
        write!(
            f,
            "{operations} operations, {errors} without effect, {faults} faults in {s} s"
        )
    }
}

/// Runs three nodes under load, does what the scenario does again and again, and checks what clients saw.
pub fn run(scenario: Scenario, seed: u64) -> Result<Report, String> {
    let mut world = World::new(seed, NODES);
    (0..NODES).for_each(|node| world.start(node));
    let clients = Clients::new(&world);
    create(&mut world, &clients)?;
    let until = world.now() + LOAD;
    for _ in 0..CLIENTS {
        world.spawn(clients.clone().run_client(until));
    }
    let mut faults = 0;
    while world.now() < until {
        let calm = world.dice.millis(200..3000);
        world.run_for(calm);
        scenario(&mut world);
        faults += 1;
    }
    finish(&mut world, &clients)?;
    let operations = clients.operations();
    check(&operations)?;
    Ok(Report {
        operations: operations.len(),
        errors: clients.errors(),
        faults,
        simulated: world.now(),
    })
}

/// Creates the table, as soon as a node can.
fn create(world: &mut World, clients: &Clients) -> Result<(), String> {
    for statement in [
        "CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE IF NOT EXISTS ks.r (k bigint PRIMARY KEY, v bigint)",
    ] {
        let clients = clients.clone();
        let task = world.spawn(async move {
            while clients.run(0, statement).await.is_err() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        let created = world.run_until(task, RECOVERY_MAX);
        created.ok_or_else(|| format!("not done within {RECOVERY_MAX:?}: {statement}"))?;
    }
    Ok(())
}

/// Does something bad, and ends some of it after a while.
pub fn fault(world: &mut World) {
    let node = world.dice.range(0..world.node_count() as u64) as usize;
    let other = (node + 1) % world.node_count();
    match world.dice.range(0..11) {
        0 | 1 => {
            world.kill(node);
            let away = world.dice.millis(1..5000);
            world.run_for(away);
            world.start(node);
        }
        2 => {
            world.kill(node);
            world.kill(other);
            let away = world.dice.millis(1..2000);
            world.run_for(away);
            world.start(node);
            world.start(other);
        }
        3 | 4 => {
            let duration = world.dice.millis(100..6000);
            world.pause(node, duration);
            world.run_for(duration);
        }
        5 => {
            tracing::info!(node, "cut off from the store");
            world.bucket.cut_off(node);
            let duration = world.dice.millis(500..5000);
            world.run_for(duration);
            world.bucket.heal();
        }
        6 => {
            tracing::info!(node, other, "divided");
            world.network.divide(node, other);
            let duration = world.dice.millis(100..5000);
            world.run_for(duration);
            world.network.heal();
        }
        7 => {
            tracing::info!(node, other, "connections cut");
            world.network.cut(node, other);
        }
        8 => {
            let health = world.dice.pick(&[Health::Slow, Health::Flaky, Health::Failing]);
            tracing::info!(?health, "the store");
            world.bucket.set_health(health);
            let duration = world.dice.millis(500..4000);
            world.run_for(duration);
            world.bucket.heal();
        }
        9 => {
            let by_ms = world.dice.range(0..4000) as i64 - 2000;
            world.jump_wall_clock(node, by_ms);
        }
        _ => {
            world.stop(node);
            let away = world.dice.millis(500..5000);
            world.run_for(away);
        }
    }
    // A node that has stopped by itself, or could not start, starts again.
    (0..world.node_count()).for_each(|node| world.start(node));
}

/// Pauses one or two nodes for about as long as the lease.
fn pause(world: &mut World) {
    let node = world.dice.range(0..world.node_count() as u64) as usize;
    let duration = world.dice.millis(1500..4000);
    world.pause(node, duration);
    if world.dice.chance(30) {
        let between = world.dice.millis(1..1000);
        world.run_for(between);
        world.pause((node + 1) % world.node_count(), duration);
    }
    world.run_for(duration);
}

/// Kills a node whose requests reach the store late, and starts it again while they are still under way.
pub fn late_requests(world: &mut World) {
    let node = world.dice.range(0..world.node_count() as u64) as usize;
    world.bucket.set_health(Health::Slow);
    world.run_for(Duration::from_secs(1));
    world.kill(node);
    world.run_for(world.dice.millis(1..500));
    world.bucket.heal();
    world.start(node);
}

/// Ends all faults, and waits until all registers are answered through each node.
fn finish(world: &mut World, clients: &Clients) -> Result<(), String> {
    world.bucket.heal();
    world.network.heal();
    (0..world.node_count()).for_each(|node| world.start(node));
    let nodes = world.node_count();
    for key in clients.keys() {
        let node = key as usize % nodes;
        let task = world.spawn(clients.clone().read_at_last(key, node));
        let read = world.run_until(task, RECOVERY_MAX);
        read.ok_or_else(|| format!("key {key} has no answer at node {node} within {RECOVERY_MAX:?}"))?;
    }
    Ok(())
}

/// Checks the history of each register.
fn check(operations: &[Operation]) -> Result<(), String> {
    let mut keys: BTreeMap<u64, Vec<Operation>> = BTreeMap::new();
    for operation in operations {
        keys.entry(operation.key).or_default().push(*operation);
    }
    for (key, mut operations) in keys {
        operations.sort_by_key(|operation| operation.begin);
        if !explains(&operations) {
            let lines: Vec<String> = operations
                .iter()
                .map(|operation| format!("{operation:?}"))
                .collect();
            return Err(format!("no register explains key {key}:\n{}", lines.join("\n")));
        }
    }
    Ok(())
}
