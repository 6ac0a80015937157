//! Any node coordinates any request: statements are run through each of three nodes, which use their real ports for each other.

mod begun;
mod by_hand;
mod crashes;
mod held_scans;
mod imported;
mod joined;
mod lost_answers;
mod native;
mod native_client;
mod nodes;
mod proxy;
mod relayed;
mod routing;
mod stale;
mod strangers;

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use helenus_cluster::NodeInfo;
use helenus_query::request::QueryParameters;
use helenus_query::response::Response;
use helenus_server::network::Tcp;
use helenus_server::rpc::Peers;
use helenus_server::rpc::secret::Secret;
use nodes::{NODES, Nodes, shown};

#[tokio::test(flavor = "multi_thread")]
async fn what_one_node_has_written_all_read() {
    let nodes = Nodes::start().await;
    nodes
        .run(1, "CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c))")
        .await;
    for k in 0..30 {
        nodes
            .execute(
                k,
                "INSERT INTO t (k, c, v) VALUES (?, ?, ?)",
                &[k as i32, 1, 2 * k as i32],
            )
            .await;
    }
    for node in 0..NODES {
        for k in 0..30 {
            let text = "SELECT v FROM t WHERE k = ? AND c = ?";
            assert_eq!(nodes.execute(node, text, &[k, 1]).await, (2 * k).to_string());
            let text = format!("SELECT v FROM t WHERE k = {k}");
            assert_eq!(nodes.run(node, &text).await, (2 * k).to_string());
        }
        assert_eq!(nodes.run(node, "SELECT count(*) FROM t").await, "30");
        let some = nodes.run(node, "SELECT k FROM t WHERE k IN (29, 3, 17)").await;
        assert_eq!(some, "3; 17; 29");
        let filtered = nodes
            .run(node, "SELECT k FROM t WHERE v = 20 ALLOW FILTERING")
            .await;
        assert_eq!(filtered, "10");
    }
    let error = nodes.run(2, "SELECT nothing FROM t WHERE k = 1").await;
    assert!(error.contains("Undefined column name nothing"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_go_on_at_any_node() {
    let nodes = Nodes::start().await;
    nodes
        .run(0, "CREATE TABLE t (k int, c int, PRIMARY KEY (k, c))")
        .await;
    for k in 0..20 {
        for c in 0..5 {
            let text = format!("INSERT INTO t (k, c) VALUES ({k}, {c})");
            nodes.run(k + c, &text).await;
        }
    }
    let whole = nodes.run(0, "SELECT k, c FROM t").await;
    assert_eq!(whole.split("; ").count(), 100);
    let mut options = QueryParameters {
        page_size: Some(7),
        ..QueryParameters::default()
    };
    let mut pages = Vec::new();
    for node in 0.. {
        let outcome = nodes.outcome(node, "SELECT k, c FROM t", &options).await.unwrap();
        pages.push(shown(&outcome));
        let Response::Rows(rows) = outcome.response else {
            panic!()
        };
        options.paging_state = rows.paging_state;
        if options.paging_state.is_none() {
            break;
        }
    }
    assert!(pages.len() > 14);
    assert_eq!(pages.join("; ").trim_end_matches("; "), whole);
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_and_counters_are_exact_on_any_coordinator() {
    let nodes = Nodes::start().await;
    nodes.run(0, "CREATE TABLE t (k int PRIMARY KEY, v int)").await;
    nodes
        .run(0, "CREATE TABLE n (k int PRIMARY KEY, n counter)")
        .await;
    for k in 0..6 {
        let text = format!("INSERT INTO t (k, v) VALUES ({k}, 0) IF NOT EXISTS");
        let won = join_all((0..NODES).map(|node| nodes.run(node, &text))).await;
        let is_won = |answer: &&String| answer.as_str() == "true";
        assert_eq!(won.iter().filter(is_won).count(), 1, "{won:?}");
    }
    let add = |at: usize| {
        let nodes = &nodes;
        async move {
            let k = at % 6;
            nodes
                .run(at, &format!("UPDATE n SET n = n + 1 WHERE k = {k}"))
                .await;
            loop {
                let now = nodes.run(at, &format!("SELECT v FROM t WHERE k = {k}")).await;
                let next = now.parse::<i32>().unwrap() + 1;
                let text = format!("UPDATE t SET v = {next} WHERE k = {k} IF v = {now}");
                if nodes.run(at / 2, &text).await == "true" {
                    break;
                }
            }
        }
    };
    join_all((0..60).map(add)).await;
    for node in 0..NODES {
        assert_eq!(nodes.run(node, "SELECT sum(v), count(*) FROM t").await, "60, 6");
        assert_eq!(nodes.run(node, "SELECT sum(n), count(*) FROM n").await, "60, 6");
    }
    let answer = nodes
        .run(1, "UPDATE n SET n = n + 5 WHERE k IN (0, 1, 2, 3, 4, 5)")
        .await;
    assert_eq!(answer, "");
    let text = "BEGIN COUNTER BATCH UPDATE n SET n = n - 1 WHERE k = 0; UPDATE n SET n = n - 1 WHERE k = 1; \
                UPDATE n SET n = n - 2 WHERE k IN (1, 2, 3) APPLY BATCH";
    assert_eq!(nodes.run(2, text).await, "");
    assert_eq!(nodes.run(0, "SELECT sum(n) FROM n").await, "82");
    assert_eq!(nodes.run(0, "SELECT n FROM n WHERE k = 1").await, "12");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_and_batches_are_counted() {
    let nodes = Nodes::start().await;
    nodes.run(0, "CREATE TABLE t (k int PRIMARY KEY, v int)").await;
    let inserts: String = (0..20)
        .map(|k| format!("INSERT INTO t (k, v) VALUES ({k}, 1); "))
        .collect();
    nodes
        .run(0, &format!("BEGIN UNLOGGED BATCH {inserts} APPLY BATCH"))
        .await;
    for k in 0..20 {
        nodes.run(0, &format!("SELECT v FROM t WHERE k = {k}")).await;
    }
    let batches = "SELECT max FROM system_views.batch_metrics WHERE name = 'partitions_per_unlogged_batch'";
    // The value is the upper bound of a bucket of the histogram.
    assert_eq!(nodes.run(0, batches).await, "20");
    for other in 1..nodes::NODES {
        assert_eq!(nodes.run(other, batches).await, "0");
    }
    let count = async |node: usize, table: &str, column: &str| -> u64 {
        let text = format!("SELECT {column} FROM system_views.{table}");
        let rows = nodes.run(node, &text).await;
        let numbers = rows
            .split("; ")
            .map(|number| number.parse::<u64>().unwrap_or_default());
        numbers.sum()
    };
    assert!(count(0, "internode_outbound", "sent_count").await >= 10);
    assert!(count(0, "internode_outbound", "sent_bytes").await >= 100);
    assert_eq!(count(0, "internode_outbound", "pending_count").await, 0);
    let mut received = 0;
    for node in 1..nodes::NODES {
        received += count(node, "internode_inbound", "processed_count").await;
        assert_eq!(count(node, "internode_inbound", "error_count").await, 0);
    }
    assert!(received >= 10, "{received}");
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_span_nodes() {
    let nodes = Nodes::start().await;
    nodes
        .run(0, "CREATE TABLE t (k int PRIMARY KEY, v int, l list<int>)")
        .await;
    for (node, kind) in ["", "UNLOGGED"].into_iter().enumerate() {
        let insert = |k: i32| format!("INSERT INTO t (k, v, l) VALUES ({k}, {node}, [{k}]);");
        let inserts: String = (0..12).map(insert).collect();
        let text = format!("BEGIN {kind} BATCH {inserts} UPDATE t SET l = l + [9] WHERE k = 0 APPLY BATCH");
        assert_eq!(nodes.run(node + 1, &text).await, "");
        for node_asked in 0..NODES {
            let text = "SELECT count(*), sum(v) FROM t";
            let expected = format!("12, {}", 12 * node);
            assert_eq!(nodes.run(node_asked, text).await, expected);
        }
    }
    assert_eq!(nodes.run(0, "SELECT l FROM t WHERE k = 5").await, "[5]");
    let text =
        "BEGIN BATCH UPDATE t SET v = 7 WHERE k = 3 IF v = 1; UPDATE t SET l = [] WHERE k = 3 APPLY BATCH";
    assert_eq!(nodes.run(1, text).await, "true");
    let text =
        "BEGIN BATCH UPDATE t SET v = 7 WHERE k = 3 IF v = 1; UPDATE t SET v = 1 WHERE k = 4 APPLY BATCH";
    assert_eq!(
        nodes.run(1, text).await,
        "error: Batch with conditions cannot span multiple partitions"
    );
    nodes
        .run(2, "UPDATE t SET v = 100 WHERE k IN (0, 1, 2, 3, 4, 5)")
        .await;
    nodes.run(0, "DELETE FROM t WHERE k IN (6, 7, 8)").await;
    for node in 0..NODES {
        let answer = nodes.run(node, "SELECT count(*), sum(v) FROM t").await;
        assert_eq!(answer, "9, 603");
    }
}

/// Inserts rows with three values of `v`, through all nodes in turn.
async fn insert(nodes: &Nodes, keys: std::ops::Range<usize>) {
    for k in keys {
        let text = format!("INSERT INTO t (k, c, v) VALUES ({k}, 0, {})", k % 3);
        nodes.run(k, &text).await;
    }
}

/// Changes values of `v` and deletes rows, by single statements and by a batch.
async fn change(nodes: &Nodes) {
    nodes.run(1, "UPDATE t SET v = 5 WHERE k = 0 AND c = 0").await;
    nodes.run(2, "DELETE FROM t WHERE k = 3").await;
    nodes.run(0, "DELETE v FROM t WHERE k = 6 AND c = 0").await;
    let batch = "BEGIN BATCH UPDATE t SET v = 5 WHERE k = 1 AND c = 0; UPDATE t SET v = 5 WHERE k = 2 AND c = 0; \
                 UPDATE t SET v = 5 WHERE k = 4 AND c = 0 APPLY BATCH";
    nodes.run(0, batch).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn indexes_lead_to_rows_of_all_nodes() {
    let nodes = Nodes::start().await;
    nodes
        .run(
            0,
            "CREATE TABLE t (k int, c int, v int, s int static, PRIMARY KEY (k, c))",
        )
        .await;
    insert(&nodes, 0..12).await;
    // The index must have both the rows that exist and those that follow.
    assert_eq!(nodes.run(1, "CREATE INDEX ON t (v)").await, "");
    insert(&nodes, 12..24).await;
    for node in 0..NODES {
        for v in 0..3 {
            let text = format!("SELECT count(*) FROM t WHERE v = {v}");
            assert_eq!(nodes.run(node, &text).await, "8");
        }
    }
    change(&nodes).await;
    for node in 0..NODES {
        assert_eq!(nodes.run(node, "SELECT count(*) FROM t WHERE v = 0").await, "5");
        assert_eq!(nodes.run(node, "SELECT count(*) FROM t WHERE v = 5").await, "4");
        let one = nodes.run(node, "SELECT k FROM t WHERE v = 5 AND k = 4").await;
        assert_eq!(one, "4");
    }
    assert_eq!(nodes.run(2, "TRUNCATE t").await, "");
    for node in 0..NODES {
        assert_eq!(nodes.run(node, "SELECT count(*) FROM t").await, "0");
        assert_eq!(nodes.run(node, "SELECT count(*) FROM t WHERE v = 5").await, "0");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn views_are_kept_and_built_across_nodes() {
    let nodes = Nodes::start().await;
    nodes
        .run(0, "CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c))")
        .await;
    insert(&nodes, 0..12).await;
    // The view must have both the rows that exist and those that follow.
    let view = "CREATE MATERIALIZED VIEW by_v AS SELECT * FROM t \
                WHERE v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (v, k, c)";
    assert_eq!(nodes.run(1, view).await, "");
    insert(&nodes, 12..24).await;
    for node in 0..NODES {
        for v in 0..3 {
            let text = format!("SELECT count(*) FROM by_v WHERE v = {v}");
            assert_eq!(nodes.run(node, &text).await, "8");
        }
    }
    change(&nodes).await;
    for node in 0..NODES {
        assert_eq!(
            nodes.run(node, "SELECT k FROM by_v WHERE v = 0").await,
            "9; 12; 15; 18; 21"
        );
        assert_eq!(
            nodes.run(node, "SELECT k FROM by_v WHERE v = 5").await,
            "0; 1; 2; 4"
        );
    }
    assert_eq!(nodes.run(2, "TRUNCATE t").await, "");
    for node in 0..NODES {
        assert_eq!(nodes.run(node, "SELECT count(*) FROM by_v").await, "0");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_the_statement_computes_finds_its_owner() {
    let nodes = Nodes::start().await;
    nodes.run(0, "CREATE TABLE t (k uuid PRIMARY KEY, v int)").await;
    nodes.run(0, "CREATE INDEX ON t (v)").await;
    for node in 0..30 {
        let condition = if node % 3 == 0 { " IF NOT EXISTS" } else { "" };
        let text = format!("INSERT INTO t (k, v) VALUES (uuid(), 1){condition}");
        let answer = nodes.run(node, &text).await;
        assert!(["", "true"].contains(&answer.as_str()), "{answer}");
    }
    for node in 0..NODES {
        assert_eq!(nodes.run(node, "SELECT count(*) FROM t").await, "30");
        assert_eq!(nodes.run(node, "SELECT count(*) FROM t WHERE v = 1").await, "30");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deletions_of_ranges_are_seen_by_every_node() {
    let nodes = Nodes::start().await;
    nodes
        .run(0, "CREATE TABLE t (k int, c int, PRIMARY KEY (k, c))")
        .await;
    for k in 0..9 {
        for c in 0..3 {
            nodes
                .run(k, &format!("INSERT INTO t (k, c) VALUES ({k}, {c})"))
                .await;
        }
    }
    nodes.run(0, "DELETE FROM t WHERE k = 4 AND c > 0").await;
    nodes.run(1, "DELETE FROM t WHERE k = 5").await;
    for node in 0..NODES {
        assert_eq!(nodes.run(node, "SELECT count(*) FROM t").await, "22");
        assert_eq!(nodes.run(node, "SELECT c FROM t WHERE k IN (4, 5)").await, "0");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn drivers_are_told_of_all_nodes() {
    let nodes = Nodes::start().await;
    for node in 0..NODES {
        let peers = nodes
            .run(node, "SELECT native_address, native_port FROM system.peers_v2")
            .await;
        assert_eq!(peers.split("; ").count(), NODES - 1, "{peers}");
        let peers = nodes.run(node, "SELECT peer, tokens FROM system.peers").await;
        assert_eq!(peers.split("; ").count(), NODES - 1, "{peers}");
    }
    let versions = nodes.run(0, "SELECT schema_version FROM system.peers").await;
    let own = nodes.run(0, "SELECT schema_version FROM system.local").await;
    assert_eq!(versions, format!("{own}; {own}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_gets_nothing() {
    let nodes = Nodes::start().await;
    let own = nodes::own(1, &nodes.addresses);
    let stranger = Peers::new(Secret::new("guess"), own.clone(), None, Arc::new(Tcp));
    let deadline = tokio::time::Instant::now() + Duration::from_secs(5);
    let view = own.agent.view();
    let node = view
        .nodes()
        .iter()
        .find(|node| node.host_id == nodes::host(0))
        .unwrap();
    let error = stranger
        .load(node, helenus_query::cluster::Versions::default(), false, deadline)
        .await
        .unwrap_err();
    let text = format!("{error:?}");
    assert!(text.contains("this port is for the nodes of a cluster"), "{text}");
    let nobody = Peers::new(Secret::new("secret"), own, None, Arc::new(Tcp));
    let mut nowhere = NodeInfo::clone(node);
    nowhere.description.rpc_address = "127.0.0.1:1".to_owned();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(5);
    let error = nobody
        .load(
            &nowhere,
            helenus_query::cluster::Versions::default(),
            false,
            deadline,
        )
        .await
        .unwrap_err();
    assert!(
        matches!(error, helenus_query::cluster::RemoteError::Unreachable(_)),
        "{error:?}"
    );
}
