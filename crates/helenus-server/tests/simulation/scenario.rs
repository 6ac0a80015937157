//! Scenarios: nodes under load, the faults that they suffer, and what must hold.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::bucket::Health;
use crate::clients::Clients;
use crate::size::Size;
use crate::workload::{self, Workload};
use crate::world::World;

const NODES: usize = 3;
/// Maximum time until all registers are answered again when all faults have ended.
const RECOVERY_MAX: Duration = Duration::from_secs(60);

/// A scenario: what happens to the nodes under load.
pub type Scenario = fn(&mut World);

/// All scenarios, by name.
pub const ALL: [(&str, Scenario); 6] = [
    ("random_faults", fault),
    ("long_outages", outage),
    ("pauses_past_the_lease", pause),
    ("late_requests", late_requests),
    ("kills", kill),
    ("divided", divide),
];

/// The figures of a run.
pub struct Report {
    pub operations: usize,
    pub faults: usize,
    pub simulated: Duration,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operations, faults) = (self.operations, self.faults);
        let s = self.simulated.as_secs();
        write!(f, "{operations} operations, {faults} faults in {s} s")
    }
}

/// Runs three nodes under load, does what the scenario does again and again, and checks what clients saw.
pub fn run(scenario: Scenario, seed: u64, size: &Size) -> Result<Report, String> {
    let mut world = World::new(seed, NODES);
    world.start_all();
    let clients = Clients::new(&world);
    let workloads = workload::named(&size.workloads);
    create(&mut world, &clients, &workloads)?;
    let until = world.now() + size.load();
    let running: Vec<_> = workloads
        .iter()
        .flat_map(|workload| std::iter::repeat_n(workload, workload.clients()))
        .map(|workload| world.spawn(workload::run_client(workload.clone(), clients.clone(), until)))
        .collect();
    let mut faults = 0;
    while world.now() < until {
        let calm = world.dice.millis(200..3000);
        world.run_for(calm);
        scenario(&mut world);
        faults += 1;
    }
    heal(&mut world)?;
    for client in running {
        world
            .run_until(client, RECOVERY_MAX)
            .ok_or("a client has not ended")?;
    }
    read_at_last(&mut world, &clients, &workloads)?;
    workloads.iter().try_for_each(|workload| workload.check())?;
    Ok(Report {
        operations: workloads.iter().map(|workload| workload.operation_count()).sum(),
        faults,
        simulated: world.now(),
    })
}

/// Creates the tables, as soon as a node can.
fn create(world: &mut World, clients: &Clients, workloads: &[Arc<dyn Workload>]) -> Result<(), String> {
    let keyspace = "CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    let tables = workloads.iter().flat_map(|workload| workload.schema());
    for statement in std::iter::once(keyspace.to_owned()).chain(tables) {
        let (clients, text) = (clients.clone(), statement.clone());
        let task = world.spawn(async move { clients.run_at_last(0, &text).await });
        let created = world.run_until(task, RECOVERY_MAX);
        created.ok_or_else(|| format!("not done within {RECOVERY_MAX:?}: {statement}"))?;
    }
    Ok(())
}

/// Does something bad, and ends some of it after a while.
fn fault(world: &mut World) {
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
    world.start_all();
}

/// Kills a node in the middle of its transactions. It soon starts again.
fn kill(world: &mut World) {
    let node = world.dice.range(0..world.node_count() as u64) as usize;
    world.kill(node);
    let away = world.dice.millis(1..4000);
    world.run_for(away);
    world.start(node);
}

/// Cuts two nodes off from each other, or stops one. Messages arrive late: often after an owner has begun to decide without the coordinator,
/// and before lock sessions have ended.
fn divide(world: &mut World) {
    let node = world.dice.range(0..world.node_count() as u64) as usize;
    let duration = match world.dice.chance(75) {
        true => world.dice.millis(1050..2800),
        false => world.dice.millis(50..1000),
    };
    if world.dice.chance(25) {
        world.pause(node, duration);
    } else {
        world.network.divide(node, (node + 1) % world.node_count());
    }
    world.run_for(duration);
    world.network.heal();
}

/// Takes the store away from one node or from all, for longer than requests to it wait. Splits and merges fail then, and so do the attempts to
/// open their tablets again.
fn outage(world: &mut World) {
    let node = world.dice.range(0..world.node_count() as u64) as usize;
    match world.dice.chance(50) {
        true => world.bucket.set_health(Health::Failing),
        false => world.bucket.cut_off(node),
    }
    let duration = world.dice.millis(5_000..25_000);
    tracing::info!(node, ?duration, "outage");
    world.run_for(duration);
    world.bucket.heal();
    world.start_all();
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
fn late_requests(world: &mut World) {
    let node = world.dice.range(0..world.node_count() as u64) as usize;
    world.bucket.set_health(Health::Slow);
    world.run_for(Duration::from_secs(1));
    world.kill(node);
    world.run_for(world.dice.millis(1..500));
    world.bucket.heal();
    world.start(node);
}

/// Ends all faults, and starts all nodes. A node that is stopping starts once it has stopped.
fn heal(world: &mut World) -> Result<(), String> {
    world.bucket.heal();
    world.network.heal();
    let end = world.now() + RECOVERY_MAX;
    while world.now() < end {
        world.start_all();
        if (0..world.node_count()).all(|node| world.is_serving(node)) {
            return Ok(());
        }
        world.run_for(Duration::from_millis(100));
    }
    Err(format!("not all nodes have started within {RECOVERY_MAX:?}"))
}

/// Reads everything that was written.
fn read_at_last(world: &mut World, clients: &Clients, workloads: &[Arc<dyn Workload>]) -> Result<(), String> {
    for workload in workloads {
        let (workload, clients) = (workload.clone(), clients.clone());
        let task = world.spawn(async move { workload.read_at_last(&clients).await });
        let read = world.run_until(task, RECOVERY_MAX);
        read.ok_or_else(|| format!("not all reads are answered within {RECOVERY_MAX:?}"))?;
    }
    Ok(())
}
