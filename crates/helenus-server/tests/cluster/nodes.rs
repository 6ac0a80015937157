//! Three nodes in one process. Each has its own engine, and they are connected through real ports. The owners of tablets never change. Each
//! node has its own store, but they share the documents.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use helenus_cluster::{
    AgentHandle, ClusterView, HostId, Incarnation, NodeInfo, NodeState, SystemClock, TabletId, TabletInfo,
    TabletState, TokenRange,
};
use helenus_query::cluster::Cluster;
use helenus_query::engine::{self, Engine, EngineConfig, Limits};
use helenus_query::request::{BoundValue, BoundValues, ClientState, QueryParameters};
use helenus_query::response::{Outcome, Response};
use helenus_server::network::Tcp;
use helenus_server::rpc::secret::Secret;
use helenus_server::rpc::{ClusterClient, LocalIdentity, Peers, RpcServer};
use helenus_tablet::StoreConfig;
use uuid::Uuid;

use crate::crashes::Cut;
use crate::proxy::Proxy;

pub const NODES: usize = 3;
/// Identity of the nodes' store.
pub const STORE: Uuid = Uuid::from_u128(42);
/// Number of tablets. A power of two gives all stores the same token ranges.
pub const TABLETS: u32 = 8;

pub struct Nodes {
    pub engines: Vec<Arc<Engine>>,
    pub addresses: Vec<SocketAddr>,
    servers: Vec<RpcServer>,
    _folder: tempfile::TempDir,
}

pub fn host(number: usize) -> HostId {
    HostId(Uuid::from_u128(number as u128 + 1))
}

pub fn incarnation(number: usize) -> Incarnation {
    Incarnation(Uuid::from_u128(number as u128 + 100))
}

async fn open(folder: &Path, number: usize) -> Arc<Engine> {
    let own = folder.join(number.to_string());
    std::fs::create_dir_all(&own).unwrap();
    let shared = folder.join("meta");
    std::fs::create_dir_all(&shared).unwrap();
    std::os::unix::fs::symlink(&shared, own.join("meta")).unwrap();
    let mut store = StoreConfig::small(&own);
    store.fsync = false;
    store.tablet_count = TABLETS as usize;
    let config = EngineConfig {
        store,
        node: engine::LocalNode {
            cluster_name: "test".to_owned(),
            data_center: "dc1".to_owned(),
            rack: "r1".to_owned(),
            host_id: host(number).0,
            native_address: SocketAddr::from(([127, 0, 0, number as u8 + 1], 9042)),
            release_version: "5.0.5".to_owned(),
        },
        limits: Limits {
            request_timeout: Duration::from_secs(5),
            ..Limits::default()
        },
        control: helenus_query::engine::AccessControl::default(),
        clock: Arc::new(helenus_query::clock::SystemClock),
    };
    Engine::open(config).await.unwrap()
}

fn view(addresses: &[SocketAddr]) -> ClusterView {
    let node = |(number, address): (usize, &SocketAddr)| NodeInfo {
        host_id: host(number),
        incarnation: incarnation(number),
        description: helenus_cluster::NodeDescription {
            name: format!("node{number}"),
            cql_address: SocketAddr::from(([127, 0, 0, number as u8 + 1], 9042)),
            rpc_address: address.to_string(),
            data_center: "dc1".to_owned(),
            rack: "r1".to_owned(),
            software_version: "test".to_owned(),
        },
        state: NodeState::Normal,
        alive: true,
    };
    let tablet = |(number, tokens): (usize, TokenRange)| TabletInfo {
        id: TabletId(number as u32 + 1),
        tokens,
        owner: Some(host(number % NODES)),
        epoch: 1,
        state: TabletState::Stable,
    };
    ClusterView::new(
        1,
        "test",
        addresses.iter().enumerate().map(node).collect(),
        TokenRange::split_ring(TABLETS as usize)
            .into_iter()
            .enumerate()
            .map(tablet)
            .collect(),
    )
}

/// Returns addresses on which no server listens. Each call has a loopback address of its own, because a free port of 127.0.0.1 may be taken by
/// another process before the node listens.
fn free_addresses() -> Vec<SocketAddr> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let number = (std::process::id() << 8) | (CALLS.fetch_add(1, Ordering::Relaxed) & 0xFF);
    let [_, b, c, d] = number.to_be_bytes();
    let host = Ipv4Addr::new(127, b, c, d);
    let listen = |_| std::net::TcpListener::bind((host, 0)).unwrap();
    let listeners: Vec<_> = (0..NODES).map(listen).collect();
    listeners
        .iter()
        .map(|listener| listener.local_addr().unwrap())
        .collect()
}

/// Returns the identity of a node.
pub fn own(number: usize, addresses: &[SocketAddr]) -> LocalIdentity {
    LocalIdentity {
        store: STORE,
        host_id: host(number),
        name: format!("node{number}"),
        agent: AgentHandle::detached(view(addresses), host(number), Arc::new(SystemClock)),
    }
}

/// Starts the server of a node for the other nodes.
async fn serve(number: usize, addresses: &[SocketAddr], engine: &Arc<Engine>) -> RpcServer {
    let (secret, name) = (Secret::new("secret"), "test".to_owned());
    let own = own(number, addresses);
    let server = RpcServer::start(&Tcp, addresses[number], engine.clone(), name, own, secret, None);
    server.await.unwrap()
}

/// Returns the members of each node's cluster. Those of the first one can be cut, and are also put into `made`.
fn cut_first(made: &Mutex<Option<Arc<Cut>>>) -> impl Fn(usize, Arc<ClusterClient>) -> Arc<dyn Cluster> + '_ {
    |number, members| match number {
        0 => {
            let cut = Cut::new(members);
            *made.lock().unwrap() = Some(cut.clone());
            cut
        }
        _ => members,
    }
}

impl Nodes {
    pub async fn start() -> Nodes {
        Nodes::start_with(|_, members| members).await
    }

    /// Starts three nodes. The connections of the first one to the others lead through the proxies.
    pub async fn start_with_proxies() -> (Nodes, Vec<Proxy>) {
        let (nodes, _, proxies) = Nodes::start_cut_with_proxies().await;
        (nodes, proxies)
    }

    /// Starts three nodes. The connections of the first one to the others lead through the proxies, and can be cut.
    pub async fn start_cut_with_proxies() -> (Nodes, Arc<Cut>, Vec<Proxy>) {
        let addresses = free_addresses();
        let mut proxies = Vec::new();
        for address in &addresses {
            proxies.push(Proxy::start(*address).await);
        }
        let seen: Vec<SocketAddr> = proxies.iter().map(|proxy| proxy.address).collect();
        let made = Mutex::new(None);
        let way = cut_first(&made);
        let nodes = Nodes::start_at(addresses, &seen, way).await;
        let cut = made.lock().unwrap().take().unwrap();
        (nodes, cut, proxies)
    }

    /// Stops the server of a node for the other nodes, and starts it again.
    pub async fn restart_server(&mut self, number: usize) {
        self.servers.remove(number).stop(Duration::from_secs(5)).await;
        let server = serve(number, &self.addresses, &self.engines[number]).await;
        self.servers.insert(number, server);
    }

    /// Starts three nodes. The connection of the first one to the others can be cut.
    pub async fn start_cut() -> (Nodes, Arc<Cut>) {
        let made = Mutex::new(None);
        let nodes = Nodes::start_with(cut_first(&made)).await;
        let cut = made.lock().unwrap().take().unwrap();
        (nodes, cut)
    }

    async fn start_with(way: impl Fn(usize, Arc<ClusterClient>) -> Arc<dyn Cluster>) -> Nodes {
        let addresses = free_addresses();
        Nodes::start_at(addresses.clone(), &addresses, way).await
    }

    /// Starts three nodes at these addresses. The first one sees the addresses `seen`.
    async fn start_at(
        addresses: Vec<SocketAddr>,
        seen: &[SocketAddr],
        way: impl Fn(usize, Arc<ClusterClient>) -> Arc<dyn Cluster>,
    ) -> Nodes {
        let folder = tempfile::tempdir().unwrap();
        let mut engines = Vec::new();
        let mut servers = Vec::new();
        for number in 0..NODES {
            let engine = open(folder.path(), number).await;
            servers.push(serve(number, &addresses, &engine).await);
            engines.push(engine);
        }
        for (number, engine) in engines.iter().enumerate() {
            let own = own(number, if number == 0 { seen } else { &addresses });
            let peers = Peers::new(Secret::new("secret"), own.clone(), None, Arc::new(Tcp));
            let members = ClusterClient::new(own, peers);
            members.ping_loop(engine.clone());
            engine.join(way(number, members));
        }
        let nodes = Nodes {
            engines,
            addresses,
            servers,
            _folder: folder,
        };
        let keyspace =
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
        nodes.run(0, keyspace).await;
        nodes
    }

    pub fn client() -> ClientState {
        ClientState {
            keyspace: Some("ks".to_owned()),
            ..ClientState::default()
        }
    }

    pub async fn outcome(
        &self,
        node: usize,
        text: &str,
        options: &QueryParameters,
    ) -> Result<Outcome, String> {
        let engine = &self.engines[node % NODES];
        let outcome = engine.query(&Nodes::client(), text, options).await;
        outcome.map_err(|error| format!("error: {error}"))
    }

    /// Runs a statement and returns its result as text: rows separated by `; `, values by `, `, or the error.
    pub async fn run(&self, node: usize, text: &str) -> String {
        match self.outcome(node, text, &QueryParameters::default()).await {
            Ok(outcome) => shown(&outcome),
            Err(error) => error,
        }
    }

    /// Prepares a statement on the node, runs it with int values, and returns its result as text.
    pub async fn execute(&self, node: usize, text: &str, values: &[i32]) -> String {
        let engine = &self.engines[node % NODES];
        let prepared = engine.prepare(&ClientState::default(), Some("ks"), text).await;
        let (prepared, _) = prepared.unwrap();
        let set = |value: &i32| BoundValue::Set(Bytes::copy_from_slice(&value.to_be_bytes()));
        let options = QueryParameters {
            values: BoundValues::Positional(values.iter().map(set).collect()),
            ..QueryParameters::default()
        };
        match engine.execute(&Nodes::client(), &prepared, &options).await {
            Ok(outcome) => shown(&outcome),
            Err(error) => format!("error: {error}"),
        }
    }
}

pub fn shown(outcome: &Outcome) -> String {
    let Response::Rows(rows) = &outcome.response else {
        return String::new();
    };
    let line = |row: Vec<Option<Bytes>>| -> String {
        let shown = |(value, column): (&Option<Bytes>, &helenus_query::response::ColumnSpec)| match value {
            Some(value) => helenus_cql::value::to_cql_literal(&column.ty, value).unwrap(),
            None => "null".to_owned(),
        };
        let values: Vec<String> = row.iter().zip(&rows.metadata.columns).map(shown).collect();
        values.join(", ")
    };
    rows.content.iter().map(line).collect::<Vec<_>>().join("; ")
}
