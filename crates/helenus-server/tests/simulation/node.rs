//! One simulated node: an engine, an agent and the port for other nodes, on a runtime of its own.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use helenus_cluster::{AgentConfig, HostId};
use helenus_query::engine::{AccessControl, Engine, EngineConfig, Limits, LocalNode};
use helenus_server::network::Network;
use helenus_server::node::{ClusterNode, NodeConfig, NodeEnvironment};
use helenus_server::{Server, ServerConfig};
use helenus_tablet::{StoreConfig, StoreUrl};
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::defect::{self, Defect};
use crate::machine;
use crate::network::SimulatedNetwork;

/// Name of the store in memory.
pub const STORE: &str = "simulated";
/// Time that running requests get when a node stops.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// Memory of each node, from which the limits of its requests follow.
const MEMORY_BYTES: u64 = 1 << 30;
/// Time for which clients are served after a node has handed its tablets over.
const CLIENTS_PATIENCE: Duration = Duration::from_secs(1);

/// The clocks of the node whose code runs.
#[derive(Debug)]
struct NodeClock;

#[async_trait]
impl helenus_cluster::Clock for NodeClock {
    fn monotonic(&self) -> Duration {
        match defect::is_active(Defect::LeaseClockStops) {
            true => machine::elapsed_unpaused(),
            false => machine::elapsed(),
        }
    }

    fn wall_ms(&self) -> i64 {
        machine::wall_us() / 1000
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

impl helenus_query::clock::Clock for NodeClock {
    fn now_us(&self) -> i64 {
        machine::wall_us()
    }
}

/// The parts of a node that has started.
struct Started {
    engine: Arc<Engine>,
    node: ClusterNode,
    server: Server,
}

/// Returns the address on which a node serves clients.
pub fn native_address(number: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, number as u8 + 1], 9042))
}

/// A running process.
pub struct Process {
    pub runtime: Runtime,
    /// `None` while the process starts, and when it stops.
    started: Arc<Mutex<Option<Started>>>,
    /// True once the process has ended by itself.
    has_ended: Arc<Mutex<bool>>,
}

impl Process {
    /// Starts a node.
    pub fn start(number: usize, tablets: usize, network: SimulatedNetwork, seed: u64) -> Process {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let process = Process {
            started: Arc::default(),
            has_ended: Arc::default(),
            runtime,
        };
        let (started, has_ended) = (process.started.clone(), process.has_ended.clone());
        process.runtime.spawn(async move {
            match start(number, tablets, network, seed).await {
                Ok(parts) => *started.lock().unwrap() = Some(parts),
                Err(error) => {
                    tracing::info!(error, "the node does not start");
                    *has_ended.lock().unwrap() = true;
                }
            }
        });
        process
    }

    /// Returns true if the node has started and was not requested to stop.
    pub fn is_serving(&self) -> bool {
        self.started.lock().unwrap().is_some()
    }

    pub fn has_ended(&self) -> bool {
        *self.has_ended.lock().unwrap()
    }

    /// Hands all tablets over and ends the process, as SIGTERM does.
    pub fn stop(&self) {
        let Some(started) = self.started.lock().unwrap().take() else {
            return;
        };
        let has_ended = self.has_ended.clone();
        self.runtime.spawn(async move {
            let Started { engine, node, server } = started;
            let draining = async {
                let drained = tokio::time::timeout(Duration::from_secs(30), node.drain()).await;
                tracing::info!(?drained, "drained");
            };
            server.stop_after(draining, CLIENTS_PATIENCE).await;
            node.stop(STOP_PATIENCE).await;
            let closed = engine.close().await;
            tracing::info!(?closed, "stopped");
            *has_ended.lock().unwrap() = true;
        });
    }
}

async fn start(
    number: usize,
    tablets: usize,
    network: SimulatedNetwork,
    seed: u64,
) -> Result<Started, String> {
    let host_id = Uuid::from_u128(number as u128 + 1);
    let native_address = native_address(number);
    let mut store = StoreConfig::new(StoreUrl::parse(&format!("memory://{STORE}/")).unwrap());
    store.open_all_tablets = false;
    store.tablet_count = tablets;
    store.memtable_bytes = 4 << 20;
    store.block_cache_bytes = 4 << 20;
    store.row_cache_bytes = 1 << 20;
    store.flush_interval = Some(Duration::from_secs(5));
    store.cache_dir = None;
    store.seed = Some(seed);
    let config = EngineConfig {
        store,
        node: LocalNode {
            cluster_name: "simulated".to_owned(),
            data_center: "dc1".to_owned(),
            rack: "r1".to_owned(),
            host_id,
            native_address,
            release_version: "5.0.5".to_owned(),
        },
        limits: Limits::default(),
        control: AccessControl::default(),
        clock: Arc::new(NodeClock),
    };
    let engine = Engine::open(config).await.map_err(|error| error.to_string())?;
    let rpc = SocketAddr::from((native_address.ip(), 7000));
    let network: Arc<dyn Network> = Arc::new(network);
    let name = format!("node{number}");
    let mut agent = AgentConfig::new(HostId(host_id), name, native_address, rpc.to_string());
    agent.cluster_name = "simulated".to_owned();
    let config = NodeConfig {
        agent,
        rpc,
        secret: None,
        tls: None,
        environment: NodeEnvironment {
            clock: Arc::new(NodeClock),
            network: network.clone(),
            seed,
        },
    };
    let node = ClusterNode::start(&engine, config).await;
    let node = node.map_err(|error| error.to_string())?;
    let config = ServerConfig::new(native_address, MEMORY_BYTES);
    let server = Server::start_on(network, config, engine.clone()).await;
    let server = server.map_err(|error| error.to_string())?;
    Ok(Started { engine, node, server })
}
