//! Tests of views against their base tables: whatever is written, in whatever order of timestamps, a view has the rows that the base table
//! implies.

use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::dml_tests::Session;

pub(super) const TABLE: &str =
    "CREATE TABLE t (p int, c int, s int static, v int, w int, m map<int, int>, PRIMARY KEY (p, c))";
pub(super) const BY_VALUE: &str = "CREATE MATERIALIZED VIEW by_value AS SELECT p, c, v, w, m FROM t \
                        WHERE v IS NOT NULL AND p IS NOT NULL AND c IS NOT NULL PRIMARY KEY (v, c, p)";
pub(super) const BY_ROW: &str = "CREATE MATERIALIZED VIEW by_row AS SELECT p, c, w FROM t \
                      WHERE p IS NOT NULL AND c > 1 PRIMARY KEY (c, p)";

/// Returns a random statement on a few rows, with a random timestamp.
fn any_write(random: &mut SmallRng) -> String {
    let (p, c) = (random.random_range(0..3), random.random_range(0..4));
    let (v, w) = (random.random_range(0..3), random.random_range(0..9));
    let using = match random.random_range(0..3) {
        0 => String::new(),
        _ => format!("USING TIMESTAMP {}", random.random_range(1..50)),
    };
    match random.random_range(0..12) {
        0..3 => format!("INSERT INTO t (p, c, v, w) VALUES ({p}, {c}, {v}, {w}) {using}"),
        3 => format!("INSERT INTO t (p, c) VALUES ({p}, {c}) {using}"),
        4 => format!("UPDATE t {using} SET v = {v} WHERE p = {p} AND c = {c}"),
        5 => format!("UPDATE t {using} SET w = {w}, m[{v}] = {w} WHERE p = {p} AND c IN ({c}, 1)"),
        6 => format!("UPDATE t {using} SET v = null WHERE p = {p} AND c = {c}"),
        7 => format!("DELETE w, m[{v}] FROM t {using} WHERE p = {p} AND c = {c}"),
        8 => format!("DELETE FROM t {using} WHERE p = {p} AND c = {c}"),
        9 => format!("DELETE FROM t {using} WHERE p = {p} AND c >= {c}"),
        10 => format!("DELETE FROM t {using} WHERE p = {p}"),
        _ => format!(
            "BEGIN BATCH {using} UPDATE t SET v = {v} WHERE p = {p} AND c = {c}; \
             DELETE FROM t WHERE p = {p} AND c > {c}; UPDATE t SET s = 1, w = 5 WHERE p = {p} AND c = 3; APPLY BATCH"
        ),
    }
}

async fn rows(db: &Session, query: &str) -> Vec<String> {
    let answer = db.run(query).await;
    let mut rows: Vec<String> = answer.split("; ").map(str::to_owned).collect();
    rows.sort();
    rows
}

pub(super) async fn assert_views_are_right(db: &Session, what: &str) {
    let base = rows(db, "SELECT v, c, p, w, m FROM t WHERE v >= 0 ALLOW FILTERING").await;
    assert_eq!(
        rows(db, "SELECT v, c, p, w, m FROM by_value").await,
        base,
        "{what}"
    );
    let base = rows(db, "SELECT c, p, w FROM t WHERE c > 1 ALLOW FILTERING").await;
    assert_eq!(rows(db, "SELECT c, p, w FROM by_row").await, base, "{what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_shows_what_its_base_table_shows() {
    let mut random = SmallRng::seed_from_u64(7);
    let db = Session::new().await;
    db.all(&[TABLE, BY_VALUE, BY_ROW]).await;
    let mut done = String::new();
    for _ in 0..400 {
        let statement = any_write(&mut random);
        assert_eq!(db.run(&statement).await, "", "{statement}");
        done.push_str(&statement);
        done.push('\n');
        assert_views_are_right(&db, &done).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_of_a_table_that_is_being_written_gets_every_row() {
    let db = Arc::new(Session::new().await);
    db.all(&[TABLE]).await;
    for p in 100..400 {
        let statement = format!("INSERT INTO t (p, c, v, w) VALUES ({p}, 2, {}, 0)", p % 7);
        assert_eq!(db.run(&statement).await, "");
    }
    let writing = db.clone();
    let writer = tokio::spawn(async move {
        let mut random = SmallRng::seed_from_u64(8);
        for _ in 0..300 {
            let p = random.random_range(100..400);
            let statement = match random.random_range(0..3) {
                0 => format!("DELETE FROM t WHERE p = {p}"),
                _ => format!(
                    "UPDATE t SET v = {} WHERE p = {p} AND c = 2",
                    random.random_range(0..9)
                ),
            };
            assert_eq!(writing.run(&statement).await, "", "{statement}");
        }
    });
    db.all(&[BY_VALUE, BY_ROW]).await;
    writer.await.unwrap();
    assert_views_are_right(&db, "after a build among writes").await;
    db.expect("SELECT view_name FROM system.built_views", "'by_row'; 'by_value'")
        .await;
    let status = "SELECT status FROM system_distributed.view_build_status WHERE keyspace_name = 'ks' AND view_name = 'by_row'";
    db.expect(status, "'SUCCESS'").await;
}
