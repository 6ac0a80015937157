//! Nodes with agents of their own that find each other through a store in memory. They join, agree, hand over tablets and leave.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use helenus_cluster::{AgentConfig, HostId};
use helenus_query::clock::SystemClock;
use helenus_query::engine::{Engine, EngineConfig, Limits, LocalNode};
use helenus_query::request::{ClientState, QueryParameters};
use helenus_server::node::{ClusterNode, NodeConfig, NodeEnvironment};
use helenus_tablet::{StoreConfig, StoreUrl};
use uuid::Uuid;

use crate::nodes::shown;

struct Joined {
    engine: Arc<Engine>,
    node: ClusterNode,
}

/// Returns a node of the store in memory with this name.
async fn join(store: &str, number: u8) -> Joined {
    let host_id = Uuid::from_u128(u128::from(number));
    let native_address = SocketAddr::from(([127, 0, 0, number], 9042));
    let mut store = StoreConfig::new(StoreUrl::parse(&format!("memory://{store}/")).unwrap());
    store.open_all_tablets = false;
    store.tablet_count = 6;
    store.memtable_bytes = 16 << 20;
    store.block_cache_bytes = 16 << 20;
    store.row_cache_bytes = 4 << 20;
    let config = EngineConfig {
        store,
        node: LocalNode {
            cluster_name: "test".to_owned(),
            data_center: "dc1".to_owned(),
            rack: "r1".to_owned(),
            host_id,
            native_address,
            release_version: "5.0.5".to_owned(),
        },
        limits: Limits::default(),
        control: helenus_query::engine::AccessControl::default(),
        clock: Arc::new(SystemClock),
    };
    let engine = Engine::open(config).await.unwrap();
    // The port is chosen here, because the agent's settings contain it.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let rpc = free.local_addr().unwrap();
    drop(free);
    let mut agent = AgentConfig::new(
        HostId(host_id),
        format!("node{number}"),
        native_address,
        rpc.to_string(),
    );
    agent.cluster_name = "test".to_owned();
    let config = NodeConfig {
        agent,
        rpc,
        secret: None,
        tls: None,
        environment: NodeEnvironment::default(),
    };
    let node = ClusterNode::start(&engine, config).await.unwrap();
    node.joined().await.unwrap();
    Joined { engine, node }
}

impl Joined {
    async fn run(&self, text: &str) -> String {
        let client = ClientState {
            keyspace: Some("ks".to_owned()),
            ..ClientState::default()
        };
        match self
            .engine
            .query(&client, text, &QueryParameters::default())
            .await
        {
            Ok(outcome) => shown(&outcome),
            Err(error) => format!("error: {error}"),
        }
    }

    /// Returns the minimum time of three tries for all of these reads.
    async fn least_time_of(&self, reads: &[(&str, &str)]) -> Duration {
        let mut least = Duration::MAX;
        for _ in 0..3 {
            let began = Instant::now();
            for (text, answer) in reads {
                assert_eq!(self.run(text).await, *answer, "{text}");
            }
            least = least.min(began.elapsed());
        }
        least
    }

    fn tablets(&self) -> usize {
        self.node.agent().view().tablets_of(self.node.host_id()).count()
    }

    /// Waits until this node's view has `nodes` nodes, each of which owns a tablet.
    async fn sees(&self, nodes: usize) {
        let mut views = self.node.agent().views();
        let is_shared = |view: &Arc<helenus_cluster::ClusterView>| {
            let owns = |node: &Arc<helenus_cluster::NodeInfo>| view.tablets_of(node.host_id).next().is_some();
            view.nodes().len() == nodes && view.nodes().iter().all(owns)
        };
        let shared = views.wait_for(is_shared);
        tokio::time::timeout(Duration::from_secs(30), shared)
            .await
            .expect("the nodes do not share the tablets")
            .unwrap();
    }
}

async fn create(node: &Joined) {
    let keyspace =
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    assert_eq!(node.run(keyspace).await, "");
    assert_eq!(node.run("CREATE TABLE t (k int PRIMARY KEY, v int)").await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn second_node_takes_share_and_drained_node_returns_it() {
    let first = join("share", 1).await;
    create(&first).await;
    for k in 0..50 {
        assert_eq!(
            first
                .run(&format!("INSERT INTO t (k, v) VALUES ({k}, {k})"))
                .await,
            ""
        );
    }
    let second = join("share", 2).await;
    first.sees(2).await;
    second.sees(2).await;
    assert!(second.tablets() > 0);
    for node in [&first, &second] {
        assert_eq!(node.run("SELECT count(*), sum(v) FROM t").await, "50, 1225");
    }
    for k in 50..100 {
        let node = if k % 2 == 0 { &first } else { &second };
        assert_eq!(
            node.run(&format!("INSERT INTO t (k, v) VALUES ({k}, {k})")).await,
            ""
        );
    }
    // Writes continue while the tablets move. None of them may fail.
    let writing = async {
        for k in 100..200 {
            let text = format!("INSERT INTO t (k, v) VALUES ({k}, {k})");
            assert_eq!(second.run(&text).await, "", "{k}");
        }
    };
    let (drained, ()) = tokio::join!(first.node.drain(), writing);
    drained.unwrap();
    assert_eq!(second.run("SELECT count(*), sum(v) FROM t").await, "200, 19900");
    assert_eq!(first.tablets(), 0);
    first.node.stop(Duration::from_secs(5)).await;
    first.engine.close().await.unwrap();
    assert_eq!(second.run("SELECT count(*), sum(v) FROM t").await, "200, 19900");
    second.node.drain().await.unwrap();
    second.node.stop(Duration::from_secs(5)).await;
    second.engine.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn departed_node_forwards_requests_of_its_clients() {
    let first = join("left", 1).await;
    create(&first).await;
    assert_eq!(first.run("CREATE INDEX ON t (v)").await, "");
    for k in 0..40 {
        let text = format!("INSERT INTO t (k, v) VALUES ({k}, {k})");
        assert_eq!(first.run(&text).await, "");
    }
    let second = join("left", 2).await;
    first.sees(2).await;
    let reads = [
        ("SELECT count(*), sum(v) FROM t", "40, 780"),
        ("SELECT v FROM t WHERE k = 7", "7"),
        ("SELECT sum(v) FROM t WHERE k IN (1, 2, 30)", "33"),
        ("SELECT k FROM t WHERE v = 9", "9"),
    ];
    let as_member = first.least_time_of(&reads).await;
    first.node.drain().await.unwrap();
    assert_eq!(first.tablets(), 0);
    assert!(!first.node.agent().may_serve(), "it has no lease any more");
    let having_left = first.least_time_of(&reads).await;
    assert!(
        having_left < 20 * as_member,
        "it tries again and again: {having_left:?}, and {as_member:?} before it left"
    );
    for (text, answer) in [
        ("INSERT INTO t (k, v) VALUES (40, 40)", ""),
        (
            "INSERT INTO t (k, v) VALUES (40, 41) IF NOT EXISTS",
            "false, 40, 40",
        ),
        ("SELECT count(*), sum(v) FROM t", "41, 820"),
    ] {
        assert_eq!(first.run(text).await, answer, "{text}");
    }
    first.node.stop(Duration::from_secs(5)).await;
    second.node.drain().await.unwrap();
    second.node.stop(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_made_by_all_nodes_at_once_are_all_there() {
    let nodes = [join("ddl", 1).await, join("ddl", 2).await, join("ddl", 3).await];
    create(&nodes[0]).await;
    let make = |at: usize| {
        let nodes = &nodes;
        async move {
            let text = format!("CREATE TABLE t{at} (k int PRIMARY KEY)");
            assert_eq!(nodes[at % 3].run(&text).await, "", "{text}");
        }
    };
    join_all((0..90).map(make)).await;
    let versions = join_all(
        nodes
            .iter()
            .map(|node| node.run("SELECT schema_version FROM system.local")),
    )
    .await;
    assert_eq!(versions[0], versions[1]);
    assert_eq!(versions[0], versions[2]);
    for node in &nodes {
        let text = "SELECT count(*) FROM system_schema.tables WHERE keyspace_name = 'ks'";
        assert_eq!(node.run(text).await, "91");
        assert_eq!(node.run("SELECT count(*) FROM t89").await, "0");
    }
    for node in nodes {
        node.node.drain().await.unwrap();
        node.node.stop(Duration::from_secs(5)).await;
    }
}
