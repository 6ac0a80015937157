use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use super::*;
use crate::engine::EngineConfig;

/// An allocator that counts the bytes of each thread.
struct Counting;

thread_local! {
    static ALLOCATED: Cell<i64> = const { Cell::new(0) };
}

fn count(bytes: i64) {
    // The access fails in a thread that is ending.
    let _ = ALLOCATED.try_with(|allocated| allocated.set(allocated.get() + bytes));
}

#[expect(unsafe_code, reason = "an allocator is unsafe to write")]
// SAFETY: all calls are passed on unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocated() -> i64 {
    ALLOCATED.with(Cell::get)
}

const TABLE: &str = "CREATE TABLE ks.t (p int, c int, d int, v text, PRIMARY KEY (p, c, d))";

async fn engine(prepared_cache_bytes: usize) -> (tempfile::TempDir, Arc<Engine>) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = EngineConfig::small(folder.path());
    config.limits.prepared_cache_bytes = prepared_cache_bytes;
    let engine = Engine::open(config).await.unwrap();
    engine.measure_plans(allocated);
    for text in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        TABLE,
    ] {
        let done = engine
            .query(&ClientState::default(), text, &Default::default())
            .await;
        done.unwrap();
    }
    (folder, engine)
}

async fn prepare(engine: &Engine, text: &str) -> Result<Arc<Prepared>, CqlError> {
    let prepared = engine.prepare(&ClientState::default(), None, text).await;
    prepared.map(|(prepared, _)| prepared)
}

fn markers(marker: &str, count: usize) -> String {
    vec![marker; count].join(", ")
}

/// Weighs statements of every shape. The weight is at least the allocated memory.
#[tokio::test]
async fn statements_weigh_what_they_take() {
    let (_folder, engine) = engine(64 << 20).await;
    let statements = [
        "SELECT v FROM ks.t WHERE p = ? AND c = ? AND d = ?".to_owned(),
        format!("SELECT v FROM ks.t WHERE p IN ({})", markers("?", 9_000)),
        format!(
            "SELECT v FROM ks.t WHERE p = 0 AND (c, d) IN ({})",
            markers("(?, ?)", 4_000)
        ),
        format!(
            "SELECT v FROM ks.t WHERE p = 0 AND (c, d) IN ({})",
            markers("?", 4_000)
        ),
        format!("SELECT v FROM ks.t WHERE p IN ({})", markers("12345", 9_000)),
        format!("SELECT {} FROM ks.t", markers("v", 1_000)),
        format!(
            "UPDATE ks.t SET v = ? WHERE p = 0 AND c = 0 AND d = 0 IF v IN ({})",
            markers("?", 5_000)
        ),
        format!(
            "BEGIN BATCH {} APPLY BATCH",
            "INSERT INTO ks.t (p, c, d, v) VALUES (?, ?, ?, ?); ".repeat(500)
        ),
        "CREATE TABLE ks.other (p int PRIMARY KEY)".to_owned(),
    ];
    for text in &statements {
        let (allocated_before, weight_before) = (allocated(), engine.prepared_metrics().bytes);
        prepare(&engine, text).await.unwrap();
        let taken = u64::try_from(allocated() - allocated_before).unwrap();
        let weight = engine.prepared_metrics().bytes - weight_before;
        assert!(
            weight + 512 >= taken,
            "{weight} for {taken}: {}",
            crate::trace::shorten(text)
        );
    }
}

/// Shows that a marker in a list needs little more memory than its text.
#[tokio::test]
async fn like_markers_take_few_bytes() {
    let (_folder, engine) = engine(64 << 20).await;
    for list in ["p IN ", "p = 0 AND c = 0 AND d IN ", "p = 0 AND (c, d) IN "] {
        let marker = if list.contains('(') { "(?, ?)" } else { "?" };
        let mut weights = Vec::new();
        for count in [1_000, 9_000] {
            let before = engine.prepared_metrics().bytes;
            let text = format!("SELECT v FROM ks.t WHERE {list}({})", markers(marker, count));
            prepare(&engine, &text).await.unwrap();
            weights.push(engine.prepared_metrics().bytes - before);
        }
        let per_value = (weights[1] - weights[0]) / 8_000;
        assert!(
            per_value <= 3 * marker.len() as u64 + 4,
            "{per_value} bytes for {marker} in {list}"
        );
    }
}

#[tokio::test]
async fn the_cache_stays_within_its_bytes() {
    let bytes = 1 << 20;
    let (_folder, engine) = engine(bytes).await;
    let before = allocated();
    for number in 0..200 {
        let text = format!(
            "SELECT v FROM ks.t WHERE p IN ({}) LIMIT {}",
            markers("?", 2_000),
            number + 1
        );
        prepare(&engine, &text).await.unwrap();
    }
    let metrics = engine.prepared_metrics();
    assert!(
        metrics.statements < 200 && metrics.bytes <= bytes as u64,
        "{metrics:?}"
    );
    // The hash tables of the cache itself are not part of its weight.
    assert!(
        allocated() - before < 2 * bytes as i64,
        "{}",
        allocated() - before
    );
    assert_eq!(engine.prepared_evicted(), 200 - metrics.statements as u64);
}

#[tokio::test]
async fn statements_larger_than_the_cache_are_refused() {
    let (_folder, engine) = engine(1 << 20).await;
    let text = format!("SELECT v FROM ks.t WHERE p IN ({})", markers("?", 60_000));
    let error = prepare(&engine, &text).await.unwrap_err().to_string();
    assert!(error.starts_with("Prepared statement of size "), "{error}");
    assert!(error.contains("is larger than allowed maximum of"), "{error}");
    assert_eq!(engine.prepared_metrics().statements, 0);
}

/// Shows that a statement gets a new weight when it is planned again, and that its removal subtracts the weight that was added.
#[tokio::test]
async fn statements_are_weighed_again_when_planned_again() {
    let (_folder, engine) = engine(16 << 20).await;
    let text = format!("INSERT INTO ks.t (p, c, d) VALUES ({})", markers("?", 3));
    let prepared = prepare(&engine, &text).await.unwrap();
    let metrics = engine.prepared_metrics();
    let alter = "ALTER TABLE ks.t ADD w text";
    engine
        .query(&ClientState::default(), alter, &Default::default())
        .await
        .unwrap();
    assert_ne!(prepared.planned.load().generation, engine.schema().generation);
    engine.current_plan(&prepared).unwrap();
    assert_eq!(prepared.planned.load().generation, engine.schema().generation);
    assert_eq!(engine.prepared_metrics().statements, metrics.statements);
    engine.prepared.forget(&prepared.id);
    assert_eq!(
        engine.prepared_metrics(),
        PreparedMetrics {
            statements: 0,
            bytes: 0
        }
    );
}

/// Shows that a known statement is found by its text. The text need not even be CQL.
#[tokio::test]
async fn known_statements_are_not_parsed() {
    let (_folder, engine) = engine(16 << 20).await;
    let prepared = prepare(&engine, "SELECT v FROM ks.t").await.unwrap();
    let no_cql = "SELECT OF NO KIND";
    let alias = Arc::new(Prepared {
        id: prepared_id(None, no_cql),
        planned: ArcSwap::new(prepared.planned.load_full()),
        is_write: false,
        first_result: prepared.first_result.clone(),
        keyspace: None,
        query: no_cql.into(),
        names: prepared.names,
    });
    engine.prepared.insert(alias.clone(), 0).unwrap();
    assert!(Arc::ptr_eq(&prepare(&engine, no_cql).await.unwrap(), &alias));
}

/// Shows that the length is checked before a text is parsed: the syntax error is not found.
#[tokio::test]
async fn too_long_statements_are_not_parsed() {
    let (_folder, engine) = engine(16 << 20).await;
    let limits = crate::limits::Limits {
        statement_len_max: 10,
        ..(*engine.limits()).clone()
    };
    engine.set_limits(limits);
    let error = prepare(&engine, "NO CQL AT ALL").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Statement of 13 bytes is longer than the limit of 10 bytes"
    );
}
