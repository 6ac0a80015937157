//! Tests of rows of compact tables. Cassandra's answers are in `tests/conformance/cases/compact`.

use super::dml_tests::Session;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_is_there_as_long_as_one_of_its_columns_is() {
    let db = Session::new().await;
    db.all(&[
        "CREATE TABLE t (k int PRIMARY KEY, v int, w text) WITH COMPACT STORAGE",
        "INSERT INTO t (k, v, w) VALUES (1, 1, 'a')",
        "INSERT INTO t (k, v) VALUES (2, null)",
    ])
    .await;
    db.expect("SELECT * FROM t", "1, 1, 'a'").await;
    db.all(&["DELETE v FROM t WHERE k = 1"]).await;
    db.expect("SELECT k FROM t WHERE k = 1", "1").await;
    db.all(&["UPDATE t SET w = null WHERE k = 1"]).await;
    db.expect("SELECT k FROM t WHERE k = 1", "").await;
    db.expect(
        "SELECT value FROM t",
        "error: Undefined column name value in table ks.t",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_clustering_columns_may_have_no_value() {
    let db = Session::new().await;
    db.all(&[
        "CREATE TABLE t (k int, c int, d text, v int, PRIMARY KEY (k, c, d)) WITH COMPACT STORAGE",
        "INSERT INTO t (k, c, d, v) VALUES (1, 1, '', 11)",
        "INSERT INTO t (k, c, v) VALUES (1, 1, 10)",
        "INSERT INTO t (k, c, v) VALUES (1, 2, 20)",
    ])
    .await;
    db.expect("SELECT c, d, v FROM t", "1, null, 10; 1, '', 11; 2, null, 20")
        .await;
    db.expect(
        "SELECT d FROM t WHERE k = 1 AND c = 1 ORDER BY c DESC",
        "''; null",
    )
    .await;
    // Rows whose clustering lacks the last values belong to different groups.
    db.expect("SELECT c, count(v) FROM t GROUP BY k, c, d", "1, 1; 1, 1; 2, 1")
        .await;
    db.all(&["DELETE FROM t WHERE k = 1 AND c = 1 AND d >= ''"]).await;
    db.expect("SELECT c, d, v FROM t", "1, null, 10; 2, null, 20")
        .await;
    db.all(&["DELETE FROM t WHERE k = 1 AND c = 1"]).await;
    db.expect("SELECT c, d, v FROM t", "2, null, 20").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_alone_is_a_row_where_no_value_is_declared() {
    let db = Session::new().await;
    db.all(&[
        "CREATE TABLE n (k int, c int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE",
        "CREATE TABLE v (k int, c text, v int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE",
        "INSERT INTO n (k, c) VALUES (1, 1)",
    ])
    .await;
    db.expect("SELECT * FROM n", "1, 1").await;
    db.expect(
        "INSERT INTO v (k, c) VALUES (1, 'a')",
        "error: Column v is mandatory for this COMPACT STORAGE table",
    )
    .await;
    db.expect(
        "INSERT INTO v (k, c, v) VALUES (1, '', 1)",
        "error: Invalid empty or null value for column c",
    )
    .await;
    db.expect("SELECT * FROM v", "").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_hidden_is_seen_when_the_table_is_compact_no_more() {
    let db = Session::new().await;
    db.all(&[
        "CREATE TABLE t (k int PRIMARY KEY, v int) WITH COMPACT STORAGE",
        "CREATE INDEX ON t (v)",
        "INSERT INTO t (k, v) VALUES (1, 5)",
    ])
    .await;
    db.expect("SELECT * FROM t WHERE v = 5", "1, 5").await;
    db.expect(
        "ALTER TABLE t DROP value",
        "error: Cannot drop column value, which is the value of a COMPACT STORAGE table",
    )
    .await;
    db.all(&["ALTER TABLE t DROP COMPACT STORAGE"]).await;
    db.expect("SELECT * FROM t WHERE v = 5", "1, null, 5, null").await;
    db.all(&["INSERT INTO t (k, column1) VALUES (1, 'a')"]).await;
    db.expect("SELECT * FROM t", "1, 'a', 5, null").await;
}
