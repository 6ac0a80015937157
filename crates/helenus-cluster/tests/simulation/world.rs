//! The simulated world: nodes, the store, and clients.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use helenus_cluster::{Agent, AgentConfig, AgentHandle, AgentState, Clock, ClusterView, HostId, TabletSpec};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::bucket::{Broken, Bucket, Key};
use crate::executor::{Group, Sim, WORLD};
use crate::history::{Kind, Operation};
use crate::history_recorder::Recorder;
use crate::host::{Host, KEYS, Released, Reply, token_of};

/// Time before a merge. Faults last for seconds, and merges should happen between them.
const MERGE_AFTER: Duration = Duration::from_secs(3);

/// One node's clock. It starts at a random time and runs a little fast or slow.
#[derive(Clone)]
struct NodeClock {
    sim: Sim,
    origin: Duration,
    rate_permille: u32,
}

#[async_trait]
impl Clock for NodeClock {
    fn monotonic(&self) -> Duration {
        self.origin + self.sim.now() * self.rate_permille / 1000
    }

    fn wall_ms(&self) -> i64 {
        self.monotonic().as_millis() as i64
    }

    async fn sleep(&self, duration: Duration) {
        // The duration is rounded up, because a sleeper must not wake before its time.
        let duration = duration * 1000 / self.rate_permille + Duration::from_micros(1);
        self.sim.sleep(duration).await;
    }
}

/// A running `helenus serve`.
#[derive(Clone)]
pub struct Process {
    pub group: Group,
    pub handle: AgentHandle,
    pub host: Host,
    /// True if the process has left and takes no more requests.
    refuses: Arc<AtomicBool>,
}

#[derive(Clone)]
pub struct World {
    pub sim: Sim,
    pub bucket: Bucket,
    pub recorder: Recorder,
    broken: Broken,
    initial_tablets: u32,
    clocks: Vec<NodeClock>,
    processes: Arc<Mutex<Vec<Option<Process>>>>,
    values: Arc<Mutex<u64>>,
}

pub fn host_id(node: usize) -> HostId {
    HostId(Uuid::from_u128(node as u128 + 1))
}

impl World {
    pub fn new(seed: u64, node_count: usize, initial_tablets: u32, broken: Broken) -> Self {
        let sim = Sim::new(seed);
        let clocks = (0..node_count)
            .map(|_| NodeClock {
                sim: sim.clone(),
                origin: sim.millis(0..1_000_000),
                rate_permille: sim.range(980..1020) as u32,
            })
            .collect();
        World {
            bucket: Bucket::new(sim.clone(), broken),
            recorder: Recorder::default(),
            broken,
            initial_tablets,
            clocks,
            processes: Arc::new(Mutex::new(vec![None; node_count])),
            values: Arc::default(),
            sim,
        }
    }

    pub fn node_count(&self) -> usize {
        self.clocks.len()
    }

    /// Returns the node's process, which may be paused. `None` if it is not alive.
    pub fn process(&self, node: usize) -> Option<Process> {
        let process = self.processes.lock().unwrap()[node].clone()?;
        self.sim.is_alive(process.group).then_some(process)
    }

    pub fn alive(&self) -> Vec<usize> {
        (0..self.node_count())
            .filter(|node| self.process(*node).is_some())
            .collect()
    }

    pub fn start(&self, node: usize) {
        if self.process(node).is_some() {
            return;
        }
        let group = self.sim.new_group();
        let bucket = self.bucket.of_node(node);
        let (host, releases) = Host::new(
            self.sim.clone(),
            bucket.clone(),
            self.broken,
            self.recorder.clone(),
            host_id(node),
        );
        let (handle, mailbox) = AgentHandle::channel(Arc::new(self.clocks[node].clone()));
        host.set_handle(handle.clone());
        let address = ([127, 0, 0, node as u8 + 1], 9042).into();
        let mut config = AgentConfig::new(host_id(node), format!("node{node}"), address, "node:7000");
        config.initial_tablets = TabletSpec::ring(self.initial_tablets);
        config.limits.tablets_per_node_min = 1;
        config.limits.merge_after = MERGE_AFTER;
        let mut agent = Agent::new(
            mailbox,
            config,
            Arc::new(bucket),
            Arc::new(host.clone()),
            self.sim.random(),
        );
        let (sim, refuses) = (self.sim.clone(), Arc::new(AtomicBool::new(false)));
        let process = Process {
            group,
            handle,
            host,
            refuses: refuses.clone(),
        };
        self.announce_writes(node, process.clone());
        self.announce_releases(group, releases);
        self.sim.spawn(group, async move {
            let result = agent.run().await;
            // A failed process is kept for the test to examine.
            if result.is_err() {
                return;
            }
            // Requests in progress are still answered.
            refuses.store(true, Ordering::Relaxed);
            sim.sleep(Duration::from_millis(100)).await;
            sim.kill(group);
        });
        self.processes.lock().unwrap()[node] = Some(process);
    }

    /// Announces the cluster documents that this node writes to other nodes. Some announcements are lost, and the rest arrive late and in
    /// any order.
    fn announce_writes(&self, node: usize, process: Process) {
        let world = self.clone();
        self.sim.spawn(process.group, async move {
            let mut written = process.handle.written();
            while written.changed().await.is_ok() {
                let document = written.borrow_and_update().clone();
                let others = world.alive().into_iter().filter(|other| *other != node);
                for other in others.filter_map(|other| world.process(other)) {
                    if world.sim.chance(30) {
                        continue;
                    }
                    let (sim, document) = (world.sim.clone(), document.clone());
                    world.sim.spawn(other.group, async move {
                        sim.sleep(sim.millis(0..50)).await;
                        other.handle.document_announced(document);
                    });
                }
            }
        });
    }

    /// Notifies the next owners of a node's tablets that these are closed. Some notices are lost, and some arrive late.
    fn announce_releases(&self, group: Group, mut releases: mpsc::UnboundedReceiver<Released>) {
        let world = self.clone();
        self.sim.spawn(group, async move {
            while let Some(released) = releases.recv().await {
                let next = (0..world.node_count()).find(|node| host_id(*node) == released.to);
                let Some(next) = next.and_then(|node| world.process(node)) else {
                    continue;
                };
                let sim = world.sim.clone();
                let delay = match sim.chance(20) {
                    true => sim.millis(50..4000),
                    false => sim.millis(0..10),
                };
                if sim.chance(20) {
                    continue;
                }
                world.sim.spawn(next.group, async move {
                    sim.sleep(delay).await;
                    next.host.open_ahead(released).await;
                });
            }
        });
    }

    pub fn crash(&self, node: usize) {
        if let Some(process) = self.process(node) {
            self.sim.kill(process.group);
        }
    }

    pub fn drain(&self, node: usize) {
        if let Some(process) = self.process(node) {
            let handle = process.handle;
            self.sim.spawn(process.group, async move {
                // The process may end before the drain does.
                let _ = handle.drain().await;
            });
        }
    }

    pub fn start_clients(&self, count: usize, until: Duration) {
        for _ in 0..count {
            let world = self.clone();
            self.sim.spawn(WORLD, async move {
                while world.sim.now() < until {
                    world.sim.sleep(world.sim.millis(5..100)).await;
                    let key = world.sim.range(0..KEYS);
                    let kind = if world.sim.chance(50) {
                        Kind::Read
                    } else {
                        Kind::Write
                    };
                    world.operation(key, kind, Duration::from_secs(4)).await;
                }
            });
        }
    }

    /// Runs one operation of a client, which retries as long as that is safe. Returns true if it was answered.
    pub async fn operation(&self, key: Key, kind: Kind, patience: Duration) -> bool {
        let begin = self.sim.now();
        let value = match kind {
            Kind::Read => 0,
            Kind::Write => self.new_value(),
        };
        let operation = Operation {
            key,
            kind,
            value,
            begin,
            end: None,
        };
        let number = self.recorder.begins(operation);
        while self.sim.now() < begin + patience {
            match self.attempt(operation).await {
                Reply::Value(value) => {
                    self.recorder.ends(number, value, self.sim.now());
                    return true;
                }
                Reply::Written => {
                    self.recorder.ends(number, value, self.sim.now());
                    return true;
                }
                Reply::Unknown if kind == Kind::Write => return false,
                Reply::Unknown | Reply::NotMine => self.sim.sleep(self.sim.millis(2..20)).await,
            }
        }
        false
    }

    fn new_value(&self) -> u64 {
        let mut values = self.values.lock().unwrap();
        *values += 1;
        *values
    }

    /// Sends a request to the node that a random coordinator considers the owner.
    async fn attempt(&self, operation: Operation) -> Reply {
        let running: Vec<_> = self
            .alive()
            .into_iter()
            .filter_map(|node| self.process(node))
            .filter(|process| self.sim.is_running(process.group))
            .collect();
        let Some(coordinator) = self.sim.pick(&running) else {
            return Reply::NotMine;
        };
        let owner = coordinator
            .handle
            .view()
            .owner_of(token_of(operation.key))
            .map(|node| node.host_id);
        let owner = (0..self.node_count())
            .find(|node| Some(host_id(*node)) == owner)
            .and_then(|node| self.process(node));
        let Some(owner) = owner else {
            coordinator.handle.refresh();
            return Reply::NotMine;
        };
        let reply = self.request(&owner, operation).await;
        if reply == Reply::NotMine {
            coordinator.handle.refresh();
        }
        reply
    }

    async fn request(&self, owner: &Process, operation: Operation) -> Reply {
        if owner.refuses.load(Ordering::Relaxed) {
            return Reply::NotMine;
        }
        let (reply, answer) = tokio::sync::oneshot::channel();
        let (there, back) = (self.sim.millis(0..2), self.sim.millis(0..2));
        let (sim, host) = (self.sim.clone(), owner.host.clone());
        self.sim.spawn(owner.group, async move {
            sim.sleep(there).await;
            let result = match operation.kind {
                Kind::Read => host.read(operation.key).await,
                Kind::Write => host.write(operation.key, operation.value).await,
            };
            sim.sleep(back).await;
            // Sending fails if the client gave up, which is no error.
            let _ = reply.send(result);
        });
        let patience = self.sim.sleep(Duration::from_millis(1500));
        match futures::future::select(answer, patience).await {
            futures::future::Either::Left((Ok(reply), _)) => reply,
            _ => Reply::Unknown,
        }
    }

    /// Returns true if all nodes serve and have the same view, and every tablet has an owner among them and is stable.
    pub fn is_settled(&self) -> bool {
        let processes: Vec<_> = self
            .alive()
            .into_iter()
            .filter_map(|node| self.process(node))
            .collect();
        let Some(first) = processes.first() else {
            return false;
        };
        let view = first.handle.view();
        let same = |process: &Process| {
            process.handle.state() == AgentState::Serving
                && process.handle.may_serve()
                && process.handle.view().version() == view.version()
        };
        view.nodes().len() == processes.len() && processes.iter().all(same) && at_rest(&view)
    }

    /// Runs the world until [`is_settled`](World::is_settled), for at most `limit`. Returns true if it is settled.
    pub fn settles_within(&self, limit: Duration) -> bool {
        let deadline = self.sim.now() + limit;
        self.sim.run_while(deadline, || !self.is_settled())
    }

    /// Reads every key once. Returns true if all reads were answered within `patience`.
    pub fn all_answer_within(&self, patience: Duration) -> bool {
        let left = Arc::new(Mutex::new(KEYS));
        for key in 0..KEYS {
            let (world, left) = (self.clone(), left.clone());
            self.sim.spawn(WORLD, async move {
                if world.operation(key, Kind::Read, patience).await {
                    *left.lock().unwrap() -= 1;
                }
            });
        }
        let until = self.sim.now() + patience;
        self.sim.run_while(until, || *left.lock().unwrap() > 0)
    }
}

fn at_rest(view: &ClusterView) -> bool {
    view.tablets().iter().all(|tablet| {
        let owned = tablet.owner.is_some_and(|owner| view.node(owner).is_some());
        owned && tablet.state == helenus_cluster::TabletState::Stable
    })
}
