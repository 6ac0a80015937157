//! Stale index entries are removed, and no others.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use helenus_query::clock::Clock;
use helenus_query::engine::{self, Engine, EngineConfig, Limits};
use helenus_query::request::QueryParameters;
use helenus_tablet::StoreConfig;
use tokio::time::Instant;

use crate::crashes::own_keys;
use crate::nodes::{NODES, Nodes, shown};

/// Returns the numbers of stale entries that reads have found and that were removed, on all nodes.
fn counts(engines: &[Arc<Engine>]) -> (u64, u64) {
    let sum = |counter: fn(&Engine) -> u64| engines.iter().map(|engine| counter(engine)).sum();
    (
        sum(|engine| engine.stale().found.load(Ordering::Relaxed)),
        sum(|engine| engine.stale().removed.load(Ordering::Relaxed)),
    )
}

/// Reads by the index until no stale entry is found any more, and at least `removed` were removed.
async fn entries_go(nodes: &Nodes, read: &str, expected: &str, removed: u64) {
    let until = Instant::now() + Duration::from_secs(20);
    let (_, before) = counts(&nodes.engines);
    for node in 0.. {
        let (found, _) = counts(&nodes.engines);
        assert_eq!(nodes.run(node, read).await, expected);
        let (found_now, removed_now) = counts(&nodes.engines);
        if found_now == found && removed_now >= before + removed {
            return;
        }
        let counts = counts(&nodes.engines);
        assert!(
            Instant::now() < until,
            "{counts:?}, not {removed} more than {before}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_over_rows_that_expire_shrinks_on_several_nodes() {
    let nodes = Nodes::start().await;
    for statement in [
        "CREATE TABLE t (k int, c int, v int, w set<int>, s int static, PRIMARY KEY (k, c))",
        "CREATE INDEX by_v ON t (v)",
        "CREATE INDEX by_w ON t (w)",
        "CREATE INDEX by_s ON t (s)",
        "CREATE INDEX by_c ON t (c)",
    ] {
        assert_eq!(nodes.run(0, statement).await, "", "{statement}");
    }
    for k in 0..40 {
        let insert = format!("INSERT INTO t (k, c, v, w) VALUES ({k}, 1, 7, {{8}}) USING TTL 1");
        assert_eq!(nodes.run(k, &insert).await, "");
        let insert = format!("INSERT INTO t (k, s) VALUES ({k}, 9) USING TTL 1");
        assert_eq!(nodes.run(k, &insert).await, "");
    }
    nodes
        .run(0, "INSERT INTO t (k, c, v, w, s) VALUES (3, 1, 7, {8}, 9)")
        .await;
    let until = Instant::now() + Duration::from_secs(20);
    while nodes.run(0, "SELECT count(*) FROM t").await != "1" {
        assert!(Instant::now() < until);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    entries_go(&nodes, "SELECT k FROM t WHERE v = 7", "3", 39).await;
    entries_go(&nodes, "SELECT k FROM t WHERE w CONTAINS 8", "3", 39).await;
    entries_go(&nodes, "SELECT k FROM t WHERE s = 9", "3", 39).await;
    entries_go(&nodes, "SELECT k FROM t WHERE c = 1", "3", 39).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stale_entries_are_removed_only_for_deleted_ranges() {
    let nodes = Nodes::start().await;
    for statement in [
        "CREATE TABLE t (k int, c int, v int, w int, PRIMARY KEY (k, c))",
        "CREATE INDEX ON t (v)",
    ] {
        assert_eq!(nodes.run(0, statement).await, "", "{statement}");
    }
    for k in 0..10 {
        for c in 0..4 {
            let insert = format!("INSERT INTO t (k, c, v, w) VALUES ({k}, {c}, 7, {c})");
            nodes.run(k, &insert).await;
        }
        nodes
            .run(k, &format!("DELETE FROM t WHERE k = {k} AND c > 1"))
            .await;
    }
    nodes.run(1, "DELETE FROM t WHERE k = 5").await;
    entries_go(&nodes, "SELECT count(*) FROM t WHERE v = 7", "18", 22).await;
    let filtered = "SELECT count(*) FROM t WHERE v = 7 AND w = 0 ALLOW FILTERING";
    // Only found entries are compared, because entries found earlier may still be being removed for the second time.
    let (found, _) = counts(&nodes.engines);
    assert_eq!(nodes.run(1, filtered).await, "9");
    assert_eq!(counts(&nodes.engines).0, found);
    assert_eq!(nodes.run(2, "SELECT count(*) FROM t WHERE v = 7").await, "18");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_whose_row_is_being_written_stays() {
    let (nodes, cut) = Nodes::start_cut().await;
    let nodes = Arc::new(nodes);
    for statement in [
        "CREATE TABLE t (k int PRIMARY KEY, v int, w int)",
        "CREATE INDEX ON t (v)",
    ] {
        assert_eq!(nodes.run(0, statement).await, "", "{statement}");
    }
    for k in 0..60 {
        nodes.run(k, &format!("INSERT INTO t (k) VALUES ({k})")).await;
    }
    for k in own_keys(&nodes, &cut).await.into_iter().take(6) {
        // The entry is written, and the row is not yet.
        cut.after(0, true);
        let mut insert = {
            let nodes = nodes.clone();
            tokio::spawn(async move {
                nodes
                    .run(0, &format!("UPDATE t SET v = {k}00 WHERE k = {k}"))
                    .await
            })
        };
        let inserted = tokio::select! {
            () = cut.reached.notified() => None,
            inserted = &mut insert => Some(inserted.unwrap()),
        };
        if let Some(inserted) = inserted {
            // This node owns the entry, and writes it together with the row.
            cut.after(usize::MAX, false);
            assert_eq!(inserted, "");
            continue;
        }
        cut.after(usize::MAX, false);
        let (found, removed) = counts(&nodes.engines);
        let read = format!("SELECT k FROM t WHERE v = {k}00");
        assert_eq!(nodes.run(1, &read).await, "");
        assert_eq!(counts(&nodes.engines), (found + 1, removed));
        // By then the owner has received the request to remove the entry, and waits for the writer.
        tokio::time::sleep(Duration::from_millis(100)).await;
        cut.goes_on.notify_one();
        assert_eq!(insert.await.unwrap(), "");
        for node in 0..NODES {
            assert_eq!(nodes.run(node, &read).await, k.to_string());
        }
        assert_eq!(counts(&nodes.engines).1, removed);
    }
    assert!(counts(&nodes.engines).0 > 0, "no entry was another node's");
}

/// A clock that the test sets.
struct Set(AtomicI64);

impl Clock for Set {
    fn now_us(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_comes_back_with_a_write_by_a_clock_that_is_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = StoreConfig::small(folder.path());
    store.fsync = false;
    let start_us = 1_800_000_000_000_000;
    let clock = Arc::new(Set(AtomicI64::new(start_us)));
    let config = EngineConfig {
        store,
        node: engine::LocalNode {
            cluster_name: "test".to_owned(),
            data_center: "dc1".to_owned(),
            rack: "r1".to_owned(),
            host_id: uuid::Uuid::from_u128(1),
            native_address: ([127, 0, 0, 1], 9042).into(),
            release_version: "5.0.5".to_owned(),
        },
        limits: Limits::default(),
        control: helenus_query::engine::AccessControl::default(),
        clock: clock.clone(),
    };
    let engine = Engine::open(config).await.unwrap();
    let client = Nodes::client();
    let run = async |text: &str| {
        let outcome = engine.query(&client, text, &QueryParameters::default()).await;
        shown(&outcome.unwrap())
    };
    run("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}").await;
    run("CREATE TABLE t (k int PRIMARY KEY, v int)").await;
    run("CREATE INDEX ON t (v)").await;
    run("INSERT INTO t (k, v) VALUES (1, 7) USING TTL 10").await;
    clock.0.store(start_us + 20_000_000, Ordering::Relaxed);
    let read = "SELECT k FROM t WHERE v = 7";
    let until = Instant::now() + Duration::from_secs(20);
    while counts(std::slice::from_ref(&engine)).1 == 0 {
        assert_eq!(run(read).await, "");
        assert!(Instant::now() < until, "the entry stays");
    }
    // By this earlier time the value has not expired, and its entry must exist.
    clock.0.store(start_us + 5_000_000, Ordering::Relaxed);
    run("INSERT INTO t (k, v) VALUES (1, 7)").await;
    assert_eq!(run(read).await, "1");
    clock.0.store(start_us + 60_000_000, Ordering::Relaxed);
    assert_eq!(run(read).await, "1");
    // A write that replaces an expired value also removes the value's entry.
    run("INSERT INTO t (k, v) VALUES (2, 8) USING TTL 10").await;
    clock.0.store(start_us + 80_000_000, Ordering::Relaxed);
    run("INSERT INTO t (k, v) VALUES (2, 9)").await;
    let before = counts(std::slice::from_ref(&engine));
    assert_eq!(run("SELECT k FROM t WHERE v = 8").await, "");
    assert_eq!(counts(std::slice::from_ref(&engine)), before);
}
