//! Tests of ORDER BY … ANN OF over a store in a temporary folder: the share of the nearest rows that posting lists find.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::engine::{Engine, EngineConfig};
use crate::index::nearest::directories;
use crate::index::posting_lists::gaussian::gaussian;
use crate::index::posting_lists::{self, VectorChange};
use crate::index::similarity::SimilarityFunction;
use crate::index::splitting;
use crate::request::{BoundValue, BoundValues, ClientState, QueryParameters};
use crate::response::{Response, Rows};
use crate::rows::PartitionKey;
use crate::schema::Index;

const DIMENSION: usize = 32;
const GROUPS: usize = 40;
const K: usize = 10;

/// Random vectors around the centres of groups.
struct Mixture {
    random: SmallRng,
    centres: Vec<Vec<f32>>,
}

impl Mixture {
    fn new(seed: u64) -> Mixture {
        let mut random = SmallRng::seed_from_u64(seed);
        let centres = (0..GROUPS).map(|_| vector(&mut random, 3.0)).collect();
        Mixture { random, centres }
    }

    fn vector(&mut self) -> Vec<f32> {
        let centre = self.random.random_range(0..GROUPS);
        let noise = vector(&mut self.random, 1.0);
        self.centres[centre]
            .iter()
            .zip(noise)
            .map(|(x, y)| x + y)
            .collect()
    }
}

fn vector(random: &mut SmallRng, deviation: f32) -> Vec<f32> {
    (0..DIMENSION).map(|_| gaussian(random) * deviation).collect()
}

struct Node {
    /// The engine. `None` while it is being reopened.
    engine: Option<Arc<Engine>>,
    client: ClientState,
    path: PathBuf,
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

async fn engine(path: &std::path::Path) -> Arc<Engine> {
    Engine::open(EngineConfig::small(path))
        .await
        .expect("the store opens")
}

impl Node {
    async fn open(name: &str) -> Node {
        let path = std::env::temp_dir().join(format!("helenus-nearest-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder for the store");
        let mut node = Node {
            engine: Some(engine(&path).await),
            client: ClientState::default(),
            path,
        };
        let keyspace =
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
        node.run(keyspace, Vec::new()).await;
        node.client.keyspace = Some("ks".to_owned());
        let table = "CREATE TABLE t (p int, c int, g int, w int, v vector<float, 32>, PRIMARY KEY (p, c))";
        node.run(table, Vec::new()).await;
        node
    }

    async fn reopen(&mut self) {
        if let Some(engine) = self.engine.take() {
            engine.close().await.expect("the store closes");
            // Stale entries may still be being removed.
            while Arc::strong_count(&engine.context) > 1 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        self.engine = Some(engine(&self.path).await);
    }

    fn engine(&self) -> &Arc<Engine> {
        self.engine.as_ref().expect("an engine")
    }

    async fn run(&self, text: &str, values: Vec<Bytes>) -> Option<Rows> {
        let options = QueryParameters {
            values: BoundValues::Positional(values.into_iter().map(BoundValue::Set).collect()),
            ..QueryParameters::default()
        };
        let outcome = self.engine().query(&self.client, text, &options).await;
        match outcome.unwrap_or_else(|error| panic!("{text}: {error}")).response {
            Response::Rows(rows) => Some(rows),
            _ => None,
        }
    }

    fn index(&self) -> Arc<Index> {
        let schema = self.engine().context.schema();
        schema.table("ks", "t").unwrap().indexes[0].clone()
    }

    /// Splits lists until none is too long. Returns the number of new lists.
    async fn split_all(&self) -> usize {
        let mut made = 0;
        for _ in 0..20 {
            let index = self.index();
            let round = splitting::round(&self.engine().context, &index, Duration::ZERO).await;
            match round.expect("a round") {
                0 => break,
                more => made += more,
            }
        }
        made
    }

    /// Begins to split lists, and stops before entries are moved.
    async fn break_off_a_round(&self) {
        let (context, index) = (self.engine().context.clone(), self.index());
        let is_begun = async || {
            let directory = directories::current(&context, &index).await.expect("a directory");
            directory.lists().iter().any(|list| list.moving_from.is_some())
        };
        let (in_round, of_round) = (context.clone(), index.clone());
        let round = tokio::spawn(async move {
            let long = Duration::from_secs(3_600);
            splitting::round(&in_round, &of_round, long).await.map(drop)
        });
        while !is_begun().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        round.abort();
    }

    async fn put(&self, id: i32, vector: &[f32]) {
        let values = vec![int(id % 100), int(id), int(id / 100), int(id % 7), bytes(vector)];
        self.run("INSERT INTO t (p, c, g, w, v) VALUES (?, ?, ?, ?, ?)", values)
            .await;
    }

    async fn put_all(&self, vectors: &BTreeMap<i32, Vec<f32>>) {
        let all: Vec<(&i32, &Vec<f32>)> = vectors.iter().collect();
        for some in all.chunks(256) {
            let puts = some.iter().map(|(id, vector)| self.put(**id, vector));
            futures::future::join_all(puts).await;
        }
    }

    async fn nearest(&self, filter: &str, wanted: &[f32]) -> Vec<i32> {
        let text = format!("SELECT c FROM t {filter} ORDER BY v ANN OF ? LIMIT {K}");
        let rows = self.run(&text, vec![bytes(wanted)]).await.expect("rows");
        let id = |row: Vec<Option<Bytes>>| i32::from_be_bytes(row[0].as_deref().unwrap().try_into().unwrap());
        rows.content.iter().map(|row| id(row.to_vec())).collect()
    }
}

fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

fn bytes(vector: &[f32]) -> Bytes {
    let mut bytes = BytesMut::new();
    vector.iter().for_each(|component| bytes.put_f32(*component));
    bytes.freeze()
}

/// Returns the share of the nearest rows that the node finds.
async fn recall(
    node: &Node,
    measure: SimilarityFunction,
    (filter, passes): (&str, fn(i32) -> bool),
    vectors: &BTreeMap<i32, Vec<f32>>,
    mixture: &mut Mixture,
) -> f32 {
    let (mut found, mut all) = (0_u16, 0_u16);
    for _ in 0..30 {
        let wanted = mixture.vector();
        let mut scored: Vec<(f32, i32)> = vectors
            .iter()
            .filter(|(id, _)| passes(**id))
            .map(|(id, vector)| (measure.score(&wanted, vector), *id))
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0));
        let given = node.nearest(filter, &wanted).await;
        assert_eq!(given.len(), K.min(scored.len()), "{filter}");
        assert!(given.iter().all(|id| passes(*id) && vectors.contains_key(id)));
        let nearest: Vec<i32> = scored.iter().take(K).map(|(_, id)| *id).collect();
        found += u16::try_from(nearest.iter().filter(|id| given.contains(id)).count()).unwrap();
        all += u16::try_from(nearest.len()).unwrap();
    }
    f32::from(found) / f32::from(all)
}

const NO_FILTER: (&str, fn(i32) -> bool) = ("", |_| true);

#[tokio::test(flavor = "multi_thread")]
async fn lists_find_nearest_after_writes_and_restarts() {
    let measure = SimilarityFunction::Euclidean;
    let mut node = Node::open("changes").await;
    let mut mixture = Mixture::new(11);
    node.run(
        "CREATE INDEX ON t (v) USING 'sai' WITH OPTIONS = {'similarity_function': 'euclidean'}",
        vec![],
    )
    .await;
    let mut vectors: BTreeMap<i32, Vec<f32>> = (0..4_000).map(|id| (id, mixture.vector())).collect();
    node.put_all(&vectors).await;
    let before = recall(&node, measure, NO_FILTER, &vectors, &mut mixture).await;
    assert!(before >= 0.95, "{before} before lists are split");
    node.break_off_a_round().await;
    let moving = recall(&node, measure, NO_FILTER, &vectors, &mut mixture).await;
    assert!(moving >= 0.95, "{moving} while entries are moved");
    assert!(node.split_all().await > 10);
    let split = recall(&node, measure, NO_FILTER, &vectors, &mut mixture).await;
    assert!(split >= 0.95, "{split} after lists are split");

    let changed: BTreeMap<i32, Vec<f32>> = (0..1_000).map(|id| (id * 3, mixture.vector())).collect();
    node.put_all(&changed).await;
    vectors.extend(changed);
    for id in (0..4_000).step_by(5) {
        node.run(
            "DELETE FROM t WHERE p = ? AND c = ?",
            vec![int(id % 100), int(id)],
        )
        .await;
        vectors.remove(&id);
    }
    node.split_all().await;
    let changed = recall(&node, measure, NO_FILTER, &vectors, &mut mixture).await;
    assert!(changed >= 0.95, "{changed} after changes");
    let of_one_percent = ("WHERE p = 17", (|id| id % 100 == 17) as fn(i32) -> bool);
    let filtered = recall(&node, measure, of_one_percent, &vectors, &mut mixture).await;
    assert!(filtered >= 0.9, "{filtered} with a filter");

    // Written rows are found immediately.
    for id in 10_000..10_020 {
        let vector = mixture.vector();
        node.put(id, &vector).await;
        assert_eq!(node.nearest("", &vector).await[0], id);
        vectors.insert(id, vector);
    }
    node.reopen().await;
    let reopened = recall(&node, measure, NO_FILTER, &vectors, &mut mixture).await;
    assert!(reopened >= 0.95, "{reopened} after a restart");
}

#[tokio::test(flavor = "multi_thread")]
async fn index_is_built_over_rows_and_filters_widen_search() {
    let measure = SimilarityFunction::Cosine;
    let node = Node::open("built").await;
    let mut mixture = Mixture::new(12);
    let vectors: BTreeMap<i32, Vec<f32>> = (0..3_000).map(|id| (id, mixture.vector())).collect();
    node.put_all(&vectors).await;
    node.run("CREATE INDEX ON t (v) USING 'sai'", vec![]).await;
    node.run("CREATE INDEX ON t (g) USING 'sai'", vec![]).await;
    node.run("CREATE INDEX ON t (w) USING 'sai'", vec![]).await;
    assert!(node.index().has_posting_lists);
    assert!(node.split_all().await > 10);
    let whole = recall(&node, measure, NO_FILTER, &vectors, &mut mixture).await;
    assert!(whole >= 0.95, "{whole}");
    let few = ("WHERE g = 4", (|id| id / 100 == 4) as fn(i32) -> bool);
    let of_few = recall(&node, measure, few, &vectors, &mut mixture).await;
    assert!(of_few >= 0.99, "{of_few} of few rows");
    let many = ("WHERE w < 5", (|id| id % 7 < 5) as fn(i32) -> bool);
    let of_many = recall(&node, measure, many, &vectors, &mut mixture).await;
    assert!(of_many >= 0.95, "{of_many} of many rows");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_is_found_while_its_vector_is_replaced() {
    let node = Node::open("replaced").await;
    let mut mixture = Mixture::new(13);
    node.run("CREATE INDEX ON t (v) USING 'sai'", vec![]).await;
    let vectors: BTreeMap<i32, Vec<f32>> = (0..600).map(|id| (id, mixture.vector())).collect();
    node.put_all(&vectors).await;
    let (context, index) = (node.engine().context.clone(), node.index());
    let measure = SimilarityFunction::of(&index);
    let prepared = |vector: &Vec<f32>| Some(posting_lists::prepared(measure, vector.clone()));
    let changed = [3, 250, 421];
    for id in changed {
        let change = VectorChange {
            before: prepared(&vectors[&id]),
            to_stay: prepared(&vectors[&id]),
            after: prepared(&mixture.vector()),
        };
        let partition = PartitionKey::new(int(id % 100));
        let ops = posting_lists::list_ops(
            &context.indexes.posting_lists,
            &index,
            &partition,
            &[int(id)],
            &change,
            &|| context.next_timestamp_us(),
        );
        // The row's write fails: neither the single entry nor the removals are written.
        let ops = ops.expect("entries");
        let pair = ops.replaced.expect("one list has all vectors at first").pair;
        directories::write(&context, vec![pair]).await.expect("a write");
    }
    let are_found = async |state: &str| {
        for id in changed {
            assert_eq!(node.nearest("", &vectors[&id]).await[0], id, "{state}");
        }
    };
    are_found("before lists are split").await;
    node.break_off_a_round().await;
    are_found("while entries are moved").await;
    assert!(node.split_all().await > 2);
    are_found("after lists are split").await;
}
