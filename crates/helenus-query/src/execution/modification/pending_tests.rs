//! Tests of concurrent read-before-write writes to one partition while the log is held. They share one sync of the log, and they fail
//! together.

use std::future::Future;
use std::time::Duration;

use futures::future::join_all;
use futures::poll;

use super::dml_tests::Session;

/// A time that is longer than any test.
const HELD: Duration = Duration::from_secs(60);
const WRITES: usize = 40;

/// Runs statements while the log is held, and `check` before it is released. Then `queued` writes wait in the log. Returns the answers.
async fn run_held<F: Future<Output = ()>>(
    db: &Session,
    statements: Vec<String>,
    queued: usize,
    check: impl FnOnce() -> F,
) -> Vec<String> {
    let store = db.engine.store();
    let held = store.hold_cut(HELD, HELD).await.unwrap();
    let mut running = Box::pin(join_all(statements.iter().map(|text| db.run(text))));
    while store.stats().log.queued < queued as u64 {
        assert!(poll!(&mut running).is_pending());
        tokio::task::yield_now().await;
    }
    check().await;
    let groups = || store.stats().log.groups;
    let before = groups();
    assert!(held.release(), "the log went on before");
    let answers = running.await;
    assert!(groups() - before <= 2, "{} groups", groups() - before);
    answers
}

async fn all_written(db: &Session, statements: Vec<String>) {
    let queued = statements.len();
    let answers = run_held(db, statements, queued, async || ()).await;
    assert!(answers.iter().all(String::is_empty), "{answers:?}");
}

fn each(statement: impl Fn(usize) -> String) -> Vec<String> {
    (0..WRITES).map(statement).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_of_each_kind_share_a_group_of_the_log() {
    let db = Session::new().await;
    db.all(&[
        "CREATE TABLE ks.c (k int PRIMARY KEY, n counter)",
        "CREATE TABLE ks.t (k int, c int, s int static, v int, l list<int>, PRIMARY KEY (k, c))",
        "CREATE INDEX ON ks.t (v)",
        "CREATE MATERIALIZED VIEW ks.w AS SELECT k, c, v FROM ks.t WHERE k IS NOT NULL AND c IS NOT NULL AND v IS NOT NULL \
         PRIMARY KEY (v, k, c)",
        "CREATE TABLE ks.l (k int, c int, s int static, v int, l list<int>, PRIMARY KEY (k, c))",
        "INSERT INTO ks.l (k, c, s, l) VALUES (1, 0, 0, [7, 8])",
    ])
    .await;
    all_written(&db, each(|n| format!("UPDATE ks.c SET n = n + {n} WHERE k = 1"))).await;
    db.expect("SELECT n FROM ks.c", "780").await;
    // Each write moves the row to another index entry, and to another row of the view.
    all_written(
        &db,
        each(|n| format!("UPDATE ks.t SET v = {n} WHERE k = 1 AND c = 1")),
    )
    .await;
    let last = db.run("SELECT v FROM ks.t").await;
    db.expect("SELECT v FROM ks.w", &last).await;
    db.expect(&format!("SELECT c FROM ks.t WHERE v = {last}"), "1")
        .await;
    all_written(
        &db,
        vec![
            "DELETE FROM ks.t WHERE k = 1".to_owned(),
            "INSERT INTO ks.t (k, c, v) VALUES (1, 2, 3)".to_owned(),
        ],
    )
    .await;
    db.expect("SELECT v, c FROM ks.w", "3, 2").await;
    all_written(
        &db,
        each(|n| format!("UPDATE ks.l SET l[0] = {n} WHERE k = 1 AND c = 0")),
    )
    .await;
    db.expect("SELECT s FROM ks.l", "0").await;
    let swaps = each(|n| format!("UPDATE ks.l SET s = {} WHERE k = 1 IF s = {n}", n + 1));
    let answers = run_held(&db, swaps, WRITES, async || ()).await;
    assert_eq!(answers.iter().filter(|answer| *answer == "true").count(), WRITES);
    db.expect("SELECT s FROM ks.l", &WRITES.to_string()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_told_of_what_is_not_durable() {
    let db = Session::new().await;
    db.all(&[
        "CREATE TABLE ks.t (k int PRIMARY KEY, v int, l list<int>)",
        "INSERT INTO ks.t (k, v, l) VALUES (2, 0, [5])",
    ])
    .await;
    let statements = [
        "INSERT INTO ks.t (k, v) VALUES (1, 1) IF NOT EXISTS",
        "INSERT INTO ks.t (k, v) VALUES (1, 2) IF NOT EXISTS",
        "DELETE l[0] FROM ks.t WHERE k = 2",
        "DELETE l[0] FROM ks.t WHERE k = 2",
    ];
    // The second statement of each kind finds the effect of the first, and writes nothing.
    let answers = run_held(&db, statements.map(str::to_owned).into(), 2, async || {
        db.expect("SELECT v FROM ks.t WHERE k = 1", "").await;
        db.expect("SELECT l FROM ks.t WHERE k = 2", "[5]").await;
    })
    .await;
    assert_eq!(answers[0], "true");
    assert_eq!(answers[1], "false, 1, null, 1");
    assert_eq!(answers[2], "");
    assert!(answers[3].contains("which is null"), "{}", answers[3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_follows_from_a_failed_record_fails_with_it() {
    let db = Session::new().await;
    db.all(&[
        "CREATE TABLE ks.c (k int PRIMARY KEY, n counter)",
        "CREATE TABLE ks.t (k int PRIMARY KEY, v int)",
        "UPDATE ks.c SET n = n + 5 WHERE k = 1",
    ])
    .await;
    let store = db.engine.store().clone();
    let mut statements = each(|_| "UPDATE ks.c SET n = n + 1 WHERE k = 1".to_owned());
    statements.extend(each(|n| {
        format!("INSERT INTO ks.t (k, v) VALUES (1, {n}) IF NOT EXISTS")
    }));
    // One of the INSERT statements writes.
    let full = async || store.simulate_free_disk_bytes(Some(0));
    let answers = run_held(&db, statements, WRITES + 1, full).await;
    assert!(
        answers.iter().all(|answer| answer.contains("is full")),
        "{answers:?}"
    );
    store.simulate_free_disk_bytes(None);
    // The store checks the disk again only after a while.
    while !db.run("INSERT INTO ks.t (k, v) VALUES (2, 2)").await.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    db.expect("SELECT n FROM ks.c", "5").await;
    db.expect("SELECT v FROM ks.t WHERE k = 1", "").await;
    db.all(&["UPDATE ks.c SET n = n + 1 WHERE k = 1"]).await;
    db.expect("INSERT INTO ks.t (k, v) VALUES (1, 1) IF NOT EXISTS", "true")
        .await;
    db.expect("SELECT n FROM ks.c", "6").await;
}
