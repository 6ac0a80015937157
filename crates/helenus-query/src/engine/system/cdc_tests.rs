//! The tables about streams, while another node changes the generations.

use std::sync::atomic::{AtomicI64, Ordering};

use helenus_tablet::MetaExpect;
use serde_json::{Value, json};

use super::*;
use crate::clock::SetClock;
use crate::engine::EngineConfig;
use crate::request::{ClientState, QueryParameters};
use crate::response::Response;

const DOCUMENT: &str = "cdc-generations";
const SECOND_MS: i64 = 1_000;
const HOUR_MS: i64 = 3600 * SECOND_MS;
const BEGIN_MS: i64 = 1_800_000_000_000;

/// A node with a table `k.t` that captures changes.
struct Node {
    engine: Arc<Engine>,
    clock: Arc<SetClock>,
    _folder: tempfile::TempDir,
}

impl Node {
    async fn start(cdc: &str) -> Node {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = Arc::new(SetClock(AtomicI64::new(BEGIN_MS * 1000)));
        let config = EngineConfig {
            clock: clock.clone(),
            ..EngineConfig::small(folder.path())
        };
        let engine = Engine::open(config).await.expect("the store opens");
        let node = Node {
            engine,
            clock,
            _folder: folder,
        };
        node.run("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
            .await;
        node.run(&format!(
            "CREATE TABLE k.t (p int PRIMARY KEY, v int) WITH cdc = {cdc}"
        ))
        .await;
        node
    }

    /// Runs a statement. Returns the first cells of its rows, which are bigints or timestamps.
    async fn run(&self, text: &str) -> Vec<i64> {
        let outcome = self
            .engine
            .query(&ClientState::default(), text, &QueryParameters::default())
            .await;
        let Response::Rows(rows) = outcome.unwrap_or_else(|error| panic!("{text}: {error}")).response else {
            return Vec::new();
        };
        let cells = rows.content.iter().filter_map(|row| row.first()?.clone());
        cells
            .map(|cell| i64::from_be_bytes(cell.as_ref().try_into().expect("eight bytes")))
            .collect()
    }

    async fn write(&self) {
        self.run("UPDATE k.t SET v = 1 WHERE p = 1").await;
    }

    fn advance(&self, ms: i64) {
        self.clock.0.fetch_add(ms * 1000, Ordering::Relaxed);
    }

    fn now_ms(&self) -> i64 {
        self.clock.0.load(Ordering::Relaxed) / 1000
    }

    /// Records the generation after a split of all tablets, as another node would. Returns its beginning.
    async fn split_elsewhere(&self) -> i64 {
        let store = &self.engine.context.store;
        let document = store.meta_get(DOCUMENT).await.expect("the store is read");
        let document = document.expect("generations");
        let mut generations: Vec<Value> = serde_json::from_slice(&document.content).expect("JSON");
        let closed = generations.last().expect("a generation")["opened"].clone();
        let halves = |range: &Value| {
            let bound = |name: &str| range[name].as_i64().expect("a token");
            let (first, last) = (bound("first"), bound("last"));
            let middle = i64::midpoint(first, last);
            [
                json!({"first": first, "last": middle}),
                json!({"first": middle + 1, "last": last}),
            ]
        };
        let opened: Vec<Value> = closed
            .as_array()
            .expect("ranges")
            .iter()
            .flat_map(halves)
            .collect();
        let since_ms = self.now_ms() + SECOND_MS;
        generations.push(json!({"since_ms": since_ms, "closed": closed, "opened": opened}));
        let content = serde_json::to_vec(&generations).expect("JSON");
        let expect = MetaExpect::Version(document.version);
        store
            .meta_put(DOCUMENT, &content, expect)
            .await
            .expect("the store is written");
        since_ms
    }

    /// Returns the beginnings of the generations of the table, after a check that the tables about all tables have them too.
    async fn listed(&self) -> Vec<i64> {
        let of_table =
            "SELECT timestamp FROM system.cdc_timestamps WHERE keyspace_name = 'k' AND table_name = 't'";
        let of_table = self.run(of_table).await;
        let of_all = "SELECT time FROM system_distributed.cdc_generation_timestamps WHERE key = 'timestamps'";
        assert_eq!(self.run(of_all).await, of_table);
        of_table
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn generation_of_another_node_is_listed_at_once() {
    let node = Node::start("true").await;
    assert_eq!(node.listed().await, [BEGIN_MS]);
    let split_ms = node.split_elsewhere().await;
    assert_eq!(node.listed().await, [split_ms, BEGIN_MS]);
    let streams = format!(
        "SELECT count(*) FROM system.cdc_streams WHERE keyspace_name = 'k' AND table_name = 't' AND timestamp = {split_ms} AND stream_state = 0"
    );
    let before = format!(
        "SELECT count(*) FROM system.cdc_streams WHERE keyspace_name = 'k' AND table_name = 't' AND timestamp = {BEGIN_MS} AND stream_state = 0"
    );
    assert_eq!(node.run(&streams).await[0], 2 * node.run(&before).await[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn generations_are_forgotten_when_their_changes_have_expired() {
    let node = Node::start("{'enabled': true, 'ttl': 3600}").await;
    node.write().await;
    assert_eq!(node.listed().await, [BEGIN_MS]);
    let split_ms = node.split_elsewhere().await;
    assert_eq!(node.listed().await, [split_ms, BEGIN_MS]);
    node.advance(2 * SECOND_MS);
    // This node's tablets are not split, so a write opens their streams again.
    node.write().await;
    let listed = node.listed().await;
    let merged_ms = listed[0];
    assert_eq!(listed[1..], [split_ms, BEGIN_MS]);
    // Time alone forgets nothing.
    node.advance(2 * HOUR_MS);
    let again_ms = node.split_elsewhere().await;
    assert_eq!(node.listed().await, [again_ms, merged_ms, split_ms, BEGIN_MS]);
    node.advance(2 * SECOND_MS);
    node.write().await;
    let listed = node.listed().await;
    // The changes in the streams of `merged_ms` are as young as its end.
    assert_eq!(listed[1..], [again_ms, merged_ms]);
    let closed = format!(
        "SELECT count(*) FROM system.cdc_streams WHERE keyspace_name = 'k' AND table_name = 't' AND timestamp = {merged_ms} AND stream_state = 1"
    );
    assert_eq!(
        node.run(&closed).await,
        [0],
        "no stream of a forgotten generation"
    );
    let changes = node.run("SELECT count(*) FROM k.t_scylla_cdc_log").await;
    assert_eq!(changes, [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn generations_stay_if_a_log_keeps_changes_forever() {
    let node = Node::start("{'enabled': true, 'ttl': 3600}").await;
    node.run("CREATE TABLE k.kept (p int PRIMARY KEY, v int) WITH cdc = {'enabled': true, 'ttl': 0}")
        .await;
    for _ in 0..3 {
        node.split_elsewhere().await;
        node.listed().await;
        node.advance(2 * HOUR_MS);
        node.write().await;
    }
    assert_eq!(node.listed().await.len(), 7);
}
