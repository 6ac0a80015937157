//! The simulated world: nodes, their clocks, the network, the store, and what is outside of the nodes. The world takes all steps on one
//! thread.

use std::sync::Arc;
use std::time::Duration;

use helenus_tablet::set_memory_store;
use helenus_tablet::threads::{SteppedThread, step_here};
use tokio::runtime::Runtime;

use crate::bucket::Bucket;
use crate::dice::Dice;
use crate::machine::{self, OUTSIDE};
use crate::network::SimulatedNetwork;
use crate::node::{Process, STORE};

/// Time of one step. In each step all nodes run until nothing is left to do.
const STEP: Duration = Duration::from_millis(1);
const TABLETS: usize = 6;

/// A machine with a node, or without one.
struct Host {
    process: Option<Process>,
    /// Time by this machine's clock, and the time up to which the process has run.
    elapsed: Duration,
    lived: Duration,
    paused: Duration,
    /// Steps that the clock takes in 1000 steps of the world.
    rate_permille: u32,
    credit: u32,
    wall_ahead_us: i64,
    /// Time until which the process is stopped (SIGSTOP), by the world's clock.
    paused_until: Duration,
}

pub struct World {
    pub dice: Dice,
    pub network: SimulatedNetwork,
    pub bucket: Bucket,
    hosts: Vec<Host>,
    outside: Option<Runtime>,
    now: Duration,
    /// Ends with the world.
    _stepped: SteppedThread,
}

impl World {
    /// Returns a world with machines whose clocks differ a little. No node runs.
    pub fn new(seed: u64, nodes: usize) -> World {
        let dice = Dice::new(seed);
        let outside = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let bucket = Bucket::new(dice.clone(), outside.handle().clone());
        set_memory_store(STORE, Arc::new(bucket.clone()));
        let host = |_| Host {
            process: None,
            elapsed: Duration::ZERO,
            lived: Duration::ZERO,
            paused: Duration::ZERO,
            rate_permille: dice.range(980..1021) as u32,
            credit: 0,
            wall_ahead_us: dice.range(0..200_000) as i64 - 100_000,
            paused_until: Duration::ZERO,
        };
        World {
            hosts: (0..nodes).map(host).collect(),
            network: SimulatedNetwork::new(dice.clone()),
            bucket,
            outside: Some(outside),
            now: Duration::ZERO,
            dice,
            _stepped: step_here(),
        }
    }

    pub fn now(&self) -> Duration {
        self.now
    }

    pub fn node_count(&self) -> usize {
        self.hosts.len()
    }

    pub fn is_running(&self, node: usize) -> bool {
        self.hosts[node].process.is_some()
    }

    /// Returns true if a node runs and takes requests.
    pub fn is_serving(&self, node: usize) -> bool {
        self.hosts[node].process.as_ref().is_some_and(Process::is_serving)
    }

    /// Starts a task outside of the nodes.
    pub fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        self.outside.as_ref().unwrap().spawn(task)
    }

    pub fn start(&mut self, node: usize) {
        if self.is_running(node) {
            return;
        }
        tracing::info!(node, "start");
        let seed = self.dice.range(0..u64::MAX);
        self.enter(node);
        let process = Process::start(node, TABLETS, self.network.clone(), seed);
        let host = &mut self.hosts[node];
        host.process = Some(process);
        host.lived = host.elapsed;
        host.paused_until = Duration::ZERO;
        self.leave();
    }

    /// Starts all nodes that do not run.
    pub fn start_all(&mut self) {
        (0..self.node_count()).for_each(|node| self.start(node));
    }

    /// Ends a process at whatever it awaits, as SIGKILL does.
    pub fn kill(&mut self, node: usize) {
        tracing::info!(node, "kill");
        self.enter(node);
        drop(self.hosts[node].process.take());
        self.leave();
    }

    /// Requests a process to end, as SIGTERM does.
    pub fn stop(&mut self, node: usize) {
        tracing::info!(node, "stop");
        self.enter(node);
        if let Some(process) = &self.hosts[node].process {
            process.stop();
        }
        self.leave();
    }

    /// Stops a process for a time, as SIGSTOP does. Its clock goes on.
    pub fn pause(&mut self, node: usize, duration: Duration) {
        tracing::info!(node, ?duration, "pause");
        self.hosts[node].paused_until = self.now + duration;
    }

    /// Sets a machine's wall clock forward or back.
    pub fn jump_wall_clock(&mut self, node: usize, by_ms: i64) {
        tracing::info!(node, by_ms, "jump of the wall clock");
        self.hosts[node].wall_ahead_us += by_ms * 1000;
    }

    fn enter(&self, node: usize) {
        let host = &self.hosts[node];
        machine::enter(node, host.elapsed, host.paused, host.wall_ahead_us);
    }

    fn leave(&self) {
        machine::enter(OUTSIDE, self.now, Duration::ZERO, 0);
    }

    /// Runs the world for this time.
    pub fn run_for(&mut self, duration: Duration) {
        let end = self.now + duration;
        while self.now < end {
            self.step();
        }
    }

    /// Runs the world until the task has ended. `None` if that takes longer than `longest`.
    pub fn run_until<T>(&mut self, mut task: tokio::task::JoinHandle<T>, longest: Duration) -> Option<T> {
        let end = self.now + longest;
        while self.now < end {
            self.step();
            if task.is_finished() {
                let outside = self.outside.as_ref().unwrap();
                return Some(outside.block_on(&mut task).expect("the task ended by itself"));
            }
        }
        None
    }

    fn step(&mut self) {
        self.now += STEP;
        self.network.advance(self.now);
        self.leave();
        run_for(self.outside.as_ref().unwrap(), STEP);
        let first = self.dice.range(0..self.hosts.len() as u64) as usize;
        for at in 0..self.hosts.len() {
            self.step_node((first + at) % self.hosts.len());
        }
        self.leave();
    }

    fn step_node(&mut self, node: usize) {
        let host = &mut self.hosts[node];
        host.credit += host.rate_permille;
        let steps = host.credit / 1000;
        host.credit %= 1000;
        host.elapsed += STEP * steps;
        let Some(process) = &host.process else { return };
        if self.now < host.paused_until || steps == 0 {
            return;
        }
        let missed = host.elapsed - host.lived - STEP * steps;
        host.paused += missed;
        machine::enter(node, host.elapsed, host.paused, host.wall_ahead_us);
        // After a pause the process learns of all the time at once.
        if !missed.is_zero() {
            process.runtime.block_on(tokio::time::advance(missed));
        }
        host.lived = host.elapsed;
        run_for(&process.runtime, STEP * steps);
        let has_ended = process.has_ended();
        if has_ended {
            self.kill(node);
        }
    }
}

/// Runs a runtime until nothing is left to do for this time.
fn run_for(runtime: &Runtime, duration: Duration) {
    runtime.block_on(async { tokio::time::sleep(duration).await });
}

impl Drop for World {
    fn drop(&mut self) {
        (0..self.hosts.len()).for_each(|node| self.kill(node));
        drop(self.outside.take());
    }
}
