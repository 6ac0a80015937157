//! Tests of statements against an engine with its own store. Cassandra's answers to thousands of other statements are in
//! `tests/conformance`.

use std::sync::Arc;

use helenus_cql::value::to_cql_literal;

use crate::engine::{Engine, EngineConfig};
use crate::request::{BoundValues, ClientState, QueryParameters};
use crate::response::Response;

pub(crate) struct Session {
    pub(crate) engine: Arc<Engine>,
    pub(crate) client: ClientState,
    _folder: tempfile::TempDir,
}

impl Session {
    pub(crate) async fn new() -> Session {
        let folder = tempfile::tempdir().unwrap();
        let mut config = EngineConfig::small(folder.path());
        config.store.fsync = false;
        let engine = Engine::open(config).await.unwrap();
        let session = Session {
            engine,
            client: ClientState {
                keyspace: Some("ks".to_owned()),
                ..ClientState::default()
            },
            _folder: folder,
        };
        session
            .run("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
            .await;
        session
    }

    /// Returns the answer as text: rows separated by `; ` and values by `, `, or the error.
    pub(crate) async fn run(&self, text: &str) -> String {
        self.run_with(text, BoundValues::None).await
    }

    /// Runs a statement with values for its markers, and returns the answer like [`Session::run`].
    pub(crate) async fn run_with(&self, text: &str, values: BoundValues) -> String {
        let parameters = QueryParameters {
            values,
            ..QueryParameters::default()
        };
        match self.engine.query(&self.client, text, &parameters).await {
            Err(error) => format!("error: {error}"),
            Ok(outcome) => match outcome.response {
                Response::Rows(rows) => {
                    let line = |row: Vec<Option<bytes::Bytes>>| {
                        let cells = row
                            .iter()
                            .zip(&rows.metadata.columns)
                            .map(|(cell, spec)| match cell {
                                Some(cell) => to_cql_literal(&spec.ty, cell).unwrap(),
                                None => "null".to_owned(),
                            });
                        cells.collect::<Vec<_>>().join(", ")
                    };
                    rows.content.iter().map(line).collect::<Vec<_>>().join("; ")
                }
                _ => String::new(),
            },
        }
    }

    /// Runs statements whose answers must be empty.
    pub(crate) async fn all(&self, statements: &[&str]) {
        for statement in statements {
            assert_eq!(self.run(statement).await, "", "{statement}");
        }
    }

    pub(crate) async fn expect(&self, statement: &str, answer: &str) {
        assert_eq!(self.run(statement).await, answer, "{statement}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_written_deleted_and_live_as_they_were_written() {
    let db = Session::new().await;
    db.all(&[
        "CREATE TABLE t (p int, c int, s int static, v int, w text, PRIMARY KEY (p, c))",
        "INSERT INTO t (p, c, v, w) VALUES (1, 1, 10, 'a')",
        "INSERT INTO t (p, c) VALUES (1, 2)",
        "UPDATE t SET v = 3 WHERE p = 1 AND c = 3",
        "UPDATE t SET s = 7 WHERE p = 1",
    ])
    .await;
    db.expect(
        "SELECT p, c, s, v, w FROM t",
        "1, 1, 7, 10, 'a'; 1, 2, 7, null, null; 1, 3, 7, 3, null",
    )
    .await;
    db.all(&["UPDATE t SET v = null WHERE p = 1 AND c IN (1, 2, 3)"])
        .await;
    db.expect("SELECT c, v FROM t", "1, null; 2, null").await;
    db.all(&[
        "DELETE FROM t WHERE p = 1 AND c > 1",
        "DELETE w FROM t WHERE p = 1 AND c = 1",
    ])
    .await;
    db.expect("SELECT c, s, w FROM t", "1, 7, null").await;
    db.all(&["DELETE FROM t WHERE p = 1 AND c = 1"]).await;
    db.expect("SELECT c, s FROM t", "null, 7").await;
    db.all(&["DELETE FROM t WHERE p = 1"]).await;
    db.expect("SELECT * FROM t", "").await;
    db.all(&["INSERT INTO t (p, c, v) VALUES (1, 1, 5)"]).await;
    db.expect("SELECT p, c, s, v FROM t", "1, 1, null, 5").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timestamps_decide_and_deletions_win_ties() {
    let db = Session::new().await;
    db.all(&[
        "CREATE TABLE t (p int PRIMARY KEY, v int)",
        "INSERT INTO t (p, v) VALUES (1, 1) USING TIMESTAMP 10",
        "INSERT INTO t (p, v) VALUES (1, 2) USING TIMESTAMP 9",
    ])
    .await;
    db.expect("SELECT v, writetime(v) FROM t", "1, 10").await;
    db.all(&["INSERT INTO t (p, v) VALUES (1, 3) USING TIMESTAMP 10"])
        .await;
    db.expect("SELECT v FROM t", "3").await;
    db.all(&["DELETE FROM t USING TIMESTAMP 10 WHERE p = 1"]).await;
    db.expect("SELECT v FROM t", "").await;
    db.all(&["INSERT INTO t (p, v) VALUES (1, 4) USING TIMESTAMP 11 AND TTL 1000"])
        .await;
    db.expect("SELECT v FROM t WHERE p = 1", "4").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readded_column_has_only_values_written_after_drop() {
    let db = Session::new().await;
    db.all(&[
        "CREATE TABLE t (p int, c int, v int, l set<int>, PRIMARY KEY (p, c))",
        "UPDATE t USING TIMESTAMP 1000 SET v = 1, l = l + {1} WHERE p = 1 AND c = 1",
        "UPDATE t USING TIMESTAMP 2000 SET v = 2, l = l + {2} WHERE p = 1 AND c = 2",
        "UPDATE t USING TIMESTAMP 2000 SET l = l + {2} WHERE p = 1 AND c = 1",
        "ALTER TABLE t DROP (v, l) USING TIMESTAMP 1000",
    ])
    .await;
    // The rows have no other columns, so they are gone.
    db.expect("SELECT * FROM t", "").await;
    db.all(&["ALTER TABLE t ADD (v int, l set<int>)"]).await;
    db.expect("SELECT c, v, l FROM t", "1, null, {2}; 2, 2, {2}")
        .await;
    db.all(&["UPDATE t USING TIMESTAMP 900 SET v = 9 WHERE p = 1 AND c = 1"])
        .await;
    db.expect("SELECT c, v FROM t", "1, null; 2, 2").await;
    db.all(&["ALTER TABLE t DROP v", "ALTER TABLE t ADD v int"]).await;
    db.expect("SELECT c, v, l FROM t", "1, null, {2}; 2, null, {2}")
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn collections_change_element_by_element() {
    let db = Session::new().await;
    db.all(&[
        "CREATE TYPE u (a int, b text)",
        "CREATE TABLE t (k int PRIMARY KEY, l list<int>, s set<int>, m map<text, int>, u u)",
        "INSERT INTO t (k, l, s, m, u) VALUES (1, [2, 3], {-1, 5}, {'b': 1}, {a: 1})",
        "UPDATE t SET l = l + [4, 5] WHERE k = 1",
        "UPDATE t SET l = [0, 1] + l WHERE k = 1",
        "UPDATE t SET l[0] = 9, s = s + {-7}, m['a'] = 3, u.b = 'x' WHERE k = 1",
    ])
    .await;
    db.expect(
        "SELECT l, s, m, u FROM t",
        "[9, 1, 2, 3, 4, 5], {-7, -1, 5}, {'a': 3, 'b': 1}, {a: 1, b: 'x'}",
    )
    .await;
    db.all(&[
        "UPDATE t SET l = l - [1, 4], s = s - {5}, m = m - {'b'} WHERE k = 1",
        "DELETE l[0], m['nothing'], u.a FROM t WHERE k = 1",
    ])
    .await;
    db.expect(
        "SELECT l, s, m, u FROM t",
        "[2, 3, 5], {-7, -1}, {'a': 3}, {a: null, b: 'x'}",
    )
    .await;
    db.expect(
        "UPDATE t SET l[3] = 1 WHERE k = 1",
        "error: List index 3 out of bound, list has size 3",
    )
    .await;
    db.all(&["UPDATE t SET l = [], s = null, m = {'z': 1} WHERE k = 1"])
        .await;
    db.expect("SELECT l, s, m FROM t", "null, null, {'z': 1}").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counters_add_up() {
    let db = Session::new().await;
    db.all(&[
        "CREATE TABLE c (k int, i int, n counter, m counter, PRIMARY KEY (k, i))",
        "UPDATE c SET n = n + 5 WHERE k = 1 AND i = 1",
        "UPDATE c SET n = n - 2, m = m + 1 WHERE k = 1 AND i = 1",
        "BEGIN COUNTER BATCH UPDATE c SET n += 1 WHERE k = 1 AND i = 1; UPDATE c SET n += 1 WHERE k = 1 AND i = 1; \
         APPLY BATCH",
    ])
    .await;
    db.expect("SELECT n, m FROM c", "5, 1").await;
    db.all(&[
        "DELETE FROM c WHERE k = 1 AND i = 1",
        "UPDATE c SET n = n + 1 WHERE k = 1 AND i = 1",
    ])
    .await;
    db.expect("SELECT n, m FROM c", "1, null").await;
    db.all(&[
        "DELETE n FROM c WHERE k = 1 AND i = 1",
        "UPDATE c SET n = n + 1 WHERE k = 1 AND i = 1",
    ])
    .await;
    db.expect("SELECT n, m FROM c", "").await;
    let adds = (0..8).map(|_| async {
        for _ in 0..50 {
            db.all(&["UPDATE c SET n = n + 1 WHERE k = 2 AND i = 1"]).await;
        }
    });
    futures_of(adds).await;
    db.expect("SELECT n FROM c WHERE k = 2", "400").await;
}

/// Runs futures concurrently, in a simple way that suffices for a test.
async fn futures_of<F: Future<Output = ()>>(futures: impl Iterator<Item = F>) {
    let mut pending: Vec<_> = futures.map(Box::pin).collect();
    std::future::poll_fn(|cx| {
        pending.retain_mut(|future| future.as_mut().poll(cx).is_pending());
        if pending.is_empty() {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_decide() {
    let db = Session::new().await;
    db.all(&["CREATE TABLE t (p int, c int, s int static, v int, PRIMARY KEY (p, c))"])
        .await;
    db.expect("INSERT INTO t (p, c, v) VALUES (1, 1, 1) IF NOT EXISTS", "true")
        .await;
    db.expect(
        "INSERT INTO t (p, c, v) VALUES (1, 1, 2) IF NOT EXISTS",
        "false, 1, 1, null, 1",
    )
    .await;
    db.expect("UPDATE t SET v = 2 WHERE p = 1 AND c = 1 IF v = 1", "true")
        .await;
    db.expect("UPDATE t SET v = 3 WHERE p = 1 AND c = 1 IF v = 1", "false, 2")
        .await;
    db.expect("UPDATE t SET s = 1 WHERE p = 1 IF s = null", "true")
        .await;
    db.expect("UPDATE t SET v = 3 WHERE p = 9 AND c = 1 IF EXISTS", "false")
        .await;
    db.expect(
        "BEGIN BATCH UPDATE t SET v = 5 WHERE p = 1 AND c = 1 IF v = 2; INSERT INTO t (p, c, v) VALUES (1, 2, 2); APPLY BATCH",
        "true",
    )
    .await;
    db.expect("SELECT c, s, v FROM t", "1, 1, 5; 2, 1, 2").await;
    let wins = std::sync::atomic::AtomicUsize::new(0);
    let racers = (0..16).map(|racer| {
        let (db, wins) = (&db, &wins);
        async move {
            let text = format!("INSERT INTO t (p, c, v) VALUES (7, 1, {racer}) IF NOT EXISTS");
            if db.run(&text).await == "true" {
                wins.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        }
    });
    futures_of(racers).await;
    assert_eq!(wins.into_inner(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_maps_compare_as_keys_do() {
    let db = Session::new().await;
    db.all(&[
        "CREATE TABLE t (k int PRIMARY KEY, v int, ti map<text, int>, ui map<uuid, int>, di map<double, int>)",
        "INSERT INTO t (k, ti, ui, di) VALUES (1, {'a': -5}, {467c4b82-ef22-4173-bced-0eba570d969e: 5}, {1: -5})",
    ])
    .await;
    let with = async |condition: &str| {
        let answer = db
            .run(&format!("UPDATE t SET v = 1 WHERE k = 1 IF {condition}"))
            .await;
        answer.starts_with("true")
    };
    assert!(with("ti['a'] > 3").await, "as texts, by their bytes");
    assert!(
        !with("ui[467c4b82-ef22-4173-bced-0eba570d969e] = 7").await,
        "no UUIDs, but integers"
    );
    assert!(with("di[1] < 3").await, "no doubles, but integers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_behind_an_empty_in_is_looked_at() {
    let db = Session::new().await;
    db.all(&["CREATE TABLE t (p int, q int, c int, d int, PRIMARY KEY ((p, q), c, d))"])
        .await;
    db.expect("DELETE FROM t WHERE p IN () AND q = null", "").await;
    db.expect(
        "SELECT * FROM t WHERE p = 1 AND q = 1 AND c IN () AND d = null",
        "",
    )
    .await;
    db.expect(
        "DELETE FROM t WHERE p = null AND q IN ()",
        "error: Invalid null value in condition for column p",
    )
    .await;
    db.expect(
        "DELETE FROM t WHERE p = 1 AND q = 1 AND expr(i, 'x')",
        "error: Custom index expressions cannot be used in WHERE clauses for UPDATE or DELETE statements",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_and_json() {
    let db = Session::new().await;
    db.all(&[
        "CREATE TABLE t (p int, c decimal, v int, w set<text>, PRIMARY KEY (p, c))",
        "BEGIN BATCH USING TIMESTAMP 5 INSERT INTO t (p, c, v) VALUES (1, 1, 1); DELETE FROM t WHERE p = 1 AND c = 1; APPLY BATCH",
    ])
    .await;
    db.expect("SELECT * FROM t", "").await;
    db.all(&["INSERT INTO t JSON '{\"p\": 1, \"c\": 2.5, \"v\": 3, \"w\": [\"b\", \"a\"]}'"])
        .await;
    db.expect("SELECT * FROM t", "1, 2.5, 3, {'a', 'b'}").await;
    db.all(&["INSERT INTO t JSON '{\"p\": 1, \"c\": 2.5}' DEFAULT UNSET"])
        .await;
    db.expect("SELECT v FROM t", "3").await;
    db.all(&["INSERT INTO t JSON '{\"p\": 1, \"c\": 2.5}'"]).await;
    db.expect("SELECT v, w FROM t", "null, null").await;
    db.expect(
        "INSERT INTO t JSON '{\"p\": 1, \"c\": null}'",
        "error: Invalid null value in condition for column c",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn indexes_follow_the_rows() {
    let db = Session::new().await;
    db.all(&[
        "CREATE TABLE t (p int, c int, s int static, v int, m map<text, int>, PRIMARY KEY (p, c))",
        "INSERT INTO t (p, c, v) VALUES (0, 0, 1)",
        "CREATE INDEX ON t (v)",
        "CREATE INDEX ON t (s)",
        "CREATE INDEX ON t (c)",
        "CREATE INDEX ON t (keys(m))",
        "INSERT INTO t (p, c, v, m) VALUES (1, 1, 1, {'a': 1})",
        "INSERT INTO t (p, c, v) VALUES (1, 2, 2)",
        "UPDATE t SET s = 5 WHERE p = 1",
    ])
    .await;
    db.expect("SELECT p, c FROM t WHERE v = 1", "1, 1; 0, 0").await;
    db.expect("SELECT p, c FROM t WHERE c = 2", "1, 2").await;
    db.expect("SELECT p, c FROM t WHERE s = 5", "1, 1; 1, 2").await;
    db.expect("SELECT p, c FROM t WHERE m CONTAINS KEY 'a'", "1, 1")
        .await;
    db.all(&[
        "UPDATE t SET v = 2, m = {'b': 1} WHERE p = 1 AND c = 1",
        "DELETE FROM t WHERE p = 0",
    ])
    .await;
    db.expect("SELECT p, c FROM t WHERE v = 1", "").await;
    db.expect("SELECT p, c FROM t WHERE v = 2", "1, 1; 1, 2").await;
    db.expect("SELECT p, c FROM t WHERE m CONTAINS KEY 'a'", "").await;
}
