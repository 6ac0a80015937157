//! Tests of SELECT over a store in a temporary folder.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::value::to_cql_literal;

use crate::engine::{Engine, EngineConfig};
use crate::limits::Limits;
use crate::request::{ClientState, QueryParameters};
use crate::response::{Outcome, Response, Rows};

pub(super) struct Node {
    engine: Arc<Engine>,
    client: ClientState,
    path: PathBuf,
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

impl Node {
    pub(super) async fn open(name: &str) -> Node {
        Node::with_limits(name, Limits::default()).await
    }

    pub(super) async fn with_limits(name: &str, limits: Limits) -> Node {
        let path = std::env::temp_dir().join(format!("helenus-select-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder for the store");
        let config = EngineConfig {
            limits,
            ..EngineConfig::small(&path)
        };
        let engine = Engine::open(config).await.expect("the store opens");
        let mut node = Node {
            engine,
            client: ClientState::default(),
            path,
        };
        node.run(
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        )
        .await;
        node.client.keyspace = Some("ks".to_owned());
        node
    }

    pub(super) async fn page(
        &self,
        text: &str,
        size: Option<i32>,
        state: Option<Bytes>,
    ) -> Result<Option<Rows>, CqlError> {
        let options = QueryParameters {
            page_size: size,
            paging_state: state,
            ..QueryParameters::default()
        };
        Ok(match self.query(text, &options).await?.response {
            Response::Rows(rows) => Some(rows),
            _ => None,
        })
    }

    pub(super) async fn query(&self, text: &str, options: &QueryParameters) -> Result<Outcome, CqlError> {
        self.engine.query(&self.client, text, options).await
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(super) async fn run(&self, text: &str) {
        self.page(text, None, None)
            .await
            .unwrap_or_else(|error| panic!("{text}: {error}"));
    }

    /// Returns the rows of all pages as text. `size` is the size of a page.
    pub(super) async fn select(&self, text: &str, size: Option<i32>) -> Vec<String> {
        let mut lines = Vec::new();
        let mut state = None;
        loop {
            let page = self.page(text, size, state).await;
            let page = page
                .unwrap_or_else(|error| panic!("{text}: {error}"))
                .expect("rows");
            lines.extend(page.content.iter().map(|row| show(&page, &row)));
            if size.is_some_and(|size| page.content.row_count() > size as usize) {
                panic!("{text}: a page of {} rows", page.content.row_count());
            }
            state = page.paging_state;
            if state.is_none() {
                return lines;
            }
        }
    }

    pub(super) async fn error(&self, text: &str) -> String {
        match self.page(text, None, None).await {
            Err(error) => error.to_string(),
            Ok(_) => "no error".to_owned(),
        }
    }
}

pub(super) fn show(page: &Rows, row: &[Option<Bytes>]) -> String {
    let cells = row
        .iter()
        .zip(&page.metadata.columns)
        .map(|(cell, column)| match cell {
            Some(bytes) => to_cql_literal(&column.ty, bytes).unwrap_or_else(|error| error),
            None => "null".to_owned(),
        });
    cells.collect::<Vec<_>>().join(" ")
}

/// Returns a node with partitions of all kinds: with rows, with static content alone, with deleted rows, and with deleted ranges. Some
/// partitions are deleted as a whole.
async fn filled(name: &str) -> Node {
    let node = Node::open(name).await;
    node.run("CREATE TABLE t (p int, c int, d text, v int, s int static, PRIMARY KEY (p, c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC)").await;
    for p in 0..9 {
        for c in 0..4 {
            for d in ["a", "b"] {
                node.run(&format!(
                    "INSERT INTO t (p, c, d, v) VALUES ({p}, {c}, '{d}', {})",
                    (p + c) % 3
                ))
                .await;
            }
        }
        if p % 2 == 0 {
            node.run(&format!("UPDATE t SET s = {p} WHERE p = {p}")).await;
        }
    }
    node.run("DELETE FROM t WHERE p = 1 AND c > 1").await;
    node.run("DELETE FROM t WHERE p = 3").await;
    node.run("DELETE FROM t WHERE p = 2 AND c = 1 AND d = 'a'").await;
    node.run("INSERT INTO t (p, s) VALUES (20, 1)").await;
    node.run("INSERT INTO t (p, s) VALUES (21, 1)").await;
    node
}

const QUERIES: [&str; 18] = [
    "SELECT * FROM t",
    "SELECT p, c, d FROM t WHERE token(p) > -5000000000000000000",
    "SELECT DISTINCT p, s FROM t",
    "SELECT p, c FROM t PER PARTITION LIMIT 3",
    "SELECT p, c, d FROM t PER PARTITION LIMIT 2 LIMIT 7",
    "SELECT * FROM t LIMIT 11",
    "SELECT * FROM t WHERE p = 4",
    "SELECT * FROM t WHERE p = 4 ORDER BY c ASC, d DESC",
    "SELECT * FROM t WHERE p IN (6, 20, 1, 4)",
    "SELECT * FROM t WHERE p = 5 AND c IN (0, 2, 3)",
    "SELECT * FROM t WHERE p = 5 AND (c, d) > (1, 'a')",
    "SELECT * FROM t WHERE p = 5 AND (c, d) IN ((1, 'b'), (3, 'a'), (9, 'a'))",
    "SELECT * FROM t WHERE v = 1 ALLOW FILTERING",
    "SELECT * FROM t WHERE s = 4 ALLOW FILTERING",
    "SELECT p, c, count(*), max(v) FROM t GROUP BY p, c",
    "SELECT p, sum(v) FROM t GROUP BY p LIMIT 4",
    "SELECT p, c, min(d) FROM t GROUP BY p, c PER PARTITION LIMIT 2",
    "SELECT p, c, v FROM t WHERE p = 7 AND c >= 1 AND v = 2 ALLOW FILTERING",
];

#[tokio::test(flavor = "multi_thread")]
async fn any_page_size_gives_the_same_rows() {
    let node = filled("pages").await;
    for query in QUERIES {
        let whole = node.select(query, None).await;
        for size in 1..=9 {
            assert_eq!(
                node.select(query, Some(size)).await,
                whole,
                "{query} in pages of {size}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_gives_what_filtering_gives() {
    let node = filled("index").await;
    let by_scan = [
        node.select("SELECT * FROM t WHERE v = 2 ALLOW FILTERING", None)
            .await,
        node.select("SELECT * FROM t WHERE v = 2 AND c = 1 ALLOW FILTERING", None)
            .await,
        node.select("SELECT * FROM t WHERE v = 2 AND p = 4 ALLOW FILTERING", None)
            .await,
    ];
    node.run("CREATE INDEX ON t (v)").await;
    let by_index = [
        "SELECT * FROM t WHERE v = 2",
        "SELECT * FROM t WHERE v = 2 AND c = 1 ALLOW FILTERING",
        "SELECT * FROM t WHERE v = 2 AND p = 4",
    ];
    for (query, expected) in by_index.iter().zip(&by_scan) {
        assert_eq!(node.select(query, None).await, *expected, "{query}");
        for size in [1, 2, 5] {
            assert_eq!(
                node.select(query, Some(size)).await,
                *expected,
                "{query} in pages of {size}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_range_of_an_index_gives_what_filtering_gives() {
    let node = filled("index-range").await;
    let queries = [
        "SELECT * FROM t WHERE v > 1",
        "SELECT * FROM t WHERE v >= 1 AND v < 3",
        "SELECT * FROM t WHERE v > 3 AND v < 2",
        "SELECT * FROM t WHERE v <= 2 LIMIT 7",
        "SELECT * FROM t WHERE v < 3 AND c = 1",
        "SELECT * FROM t WHERE v < 3 AND p = 4",
        "SELECT * FROM t WHERE v > 0 AND token(p) > 0",
        "SELECT * FROM t WHERE v > 0 PER PARTITION LIMIT 1",
        "SELECT p, count(*) FROM t WHERE v > 0 GROUP BY p",
    ];
    let mut by_scan = Vec::new();
    for query in queries {
        by_scan.push(node.select(&format!("{query} ALLOW FILTERING"), None).await);
    }
    node.run("CREATE CUSTOM INDEX by_v ON t (v) USING 'sai'").await;
    while node
        .select("SELECT index_name FROM system.\"IndexInfo\"", None)
        .await
        .is_empty()
    {
        tokio::task::yield_now().await;
    }
    for (query, expected) in queries.iter().zip(&by_scan) {
        for size in [None, Some(1), Some(2), Some(5)] {
            let found = node.select(&format!("{query} ALLOW FILTERING"), size).await;
            assert_eq!(found, *expected, "{query} in pages of {size:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn static_content_alone_is_a_row_of_its_own() {
    let node = filled("static").await;
    assert_eq!(
        node.select("SELECT p, c, s FROM t WHERE p = 20", None).await,
        ["20 null 1"]
    );
    assert_eq!(
        node.select("SELECT p FROM t WHERE p = 20 AND c = 1", None).await,
        [""; 0]
    );
    assert_eq!(
        node.select("SELECT count(*) FROM t WHERE p = 20", None).await,
        ["1"]
    );
    assert_eq!(node.select("SELECT p FROM t WHERE p = 3", None).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletions_hide_what_they_cover() {
    let node = filled("deletions").await;
    assert_eq!(
        node.select("SELECT c, d FROM t WHERE p = 1", None).await,
        ["1 'a'", "1 'b'", "0 'a'", "0 'b'"]
    );
    assert_eq!(
        node.select("SELECT d FROM t WHERE p = 2 AND c = 1", None).await,
        ["'b'"]
    );
    assert_eq!(
        node.select("SELECT d FROM t WHERE p = 1 AND c = 3 AND d = 'a'", None)
            .await,
        [""; 0]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_cassandras() {
    let node = Node::open("refusals").await;
    node.run(
        "CREATE TABLE t (p int, q int, c int, d int, v int, m map<text, int>, PRIMARY KEY ((p, q), c, d))",
    )
    .await;
    let cases = [
        (
            "SELECT * FROM t WHERE nosuch = 1",
            "Undefined column name nosuch in table ks.t",
        ),
        (
            "SELECT * FROM t WHERE p = 1",
            crate::analysis::restrictions::REQUIRES_ALLOW_FILTERING,
        ),
        (
            "SELECT * FROM t WHERE p = 1 AND q = 1 AND d = 1",
            "PRIMARY KEY column \"d\" cannot be restricted as preceding column \"c\" is not restricted",
        ),
        (
            "SELECT * FROM t WHERE p = 1 AND q = 1 AND c > 1 AND d = 1",
            "Clustering column \"d\" cannot be restricted (preceding column \"c\" is restricted by a non-EQ relation)",
        ),
        (
            "SELECT * FROM t WHERE p = 1 AND q = 1 AND c = 1 AND c = 2",
            "c cannot be restricted by more than one relation if it includes an Equal",
        ),
        (
            "SELECT * FROM t WHERE p = 1 AND q = 1 AND c > 1 AND c > 2",
            "More than one restriction was found for the start bound on c",
        ),
        (
            "SELECT * FROM t WHERE p = 1 AND q = 1 AND c != 1",
            "Unsupported \"!=\" relation: c != 1",
        ),
        (
            "SELECT * FROM t WHERE p = 1 AND q = 1 AND c LIKE 'a'",
            "Invalid STRING constant (a) for \"c\" of type int",
        ),
        (
            "SELECT * FROM t WHERE p = 1 AND q = 1 AND m = {'a': 1}",
            "Collection column 'm' (map<text, int>) cannot be restricted by a '=' relation",
        ),
        (
            "SELECT * FROM t WHERE p = 1 AND q = 1 AND (d, c) = (1, 1)",
            "Clustering columns must appear in the PRIMARY KEY order in multi-column relations: (d, c) = (1, 1)",
        ),
        (
            "SELECT * FROM t WHERE token(p) = 1",
            "The token() function must be applied to all partition key components or none of them",
        ),
        (
            "SELECT * FROM t WHERE p = 1 AND q = null",
            "Invalid null value in condition for column q",
        ),
        (
            "SELECT * FROM t WHERE p = 1 AND q = 1 LIMIT 0",
            "LIMIT must be strictly positive",
        ),
        (
            "SELECT * FROM t ORDER BY c",
            "ORDER BY is only supported when the partition key is restricted by an EQ or an IN.",
        ),
        (
            "SELECT * FROM t WHERE p = 1 AND q = 1 ORDER BY d",
            "Order by currently only supports the ordering of columns following their declared order in the PRIMARY KEY",
        ),
        (
            "SELECT * FROM t WHERE p = 1 AND q = 1 ORDER BY c, d DESC",
            "Unsupported order by relation",
        ),
        (
            "SELECT DISTINCT v FROM t",
            "SELECT DISTINCT queries must only request partition key columns and/or static columns (not v)",
        ),
        (
            "SELECT * FROM t GROUP BY p",
            "Group by is not supported on only a part of the partition key",
        ),
        (
            "UPDATE t SET v = 1 WHERE p = 1",
            "Some partition key parts are missing: q",
        ),
        (
            "UPDATE t SET v = 1 WHERE p = 1 AND q = 1 AND c = 1",
            "Some clustering keys are missing: d",
        ),
        (
            "DELETE FROM t WHERE p = 1 AND q > 1",
            "Only EQ and IN relation are supported on the partition key (unless you use the token() function) for DELETE statements",
        ),
        (
            "DELETE FROM t WHERE p = 1 AND q = 1 AND c > null",
            "Invalid null value in condition for column c",
        ),
    ];
    for (query, message) in cases {
        assert_eq!(node.error(query).await, message, "{query}");
    }
}
