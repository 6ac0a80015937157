//! Connections between nodes that end while a request is being answered.

use std::time::Duration;

use helenus_cql::error::CqlError;
use helenus_query::request::QueryParameters;

use crate::nodes::Nodes;
use crate::proxy::Proxy;

async fn start() -> (Nodes, Vec<Proxy>) {
    let (nodes, proxies) = Nodes::start_with_proxies().await;
    let table = "CREATE TABLE t (k int PRIMARY KEY, v int, l list<int>)";
    assert_eq!(nodes.run(0, table).await, "");
    for k in 0..40 {
        let insert = format!("INSERT INTO t (k, v) VALUES ({k}, {k})");
        assert_eq!(nodes.run(1, &insert).await, "");
    }
    (nodes, proxies)
}

/// Returns true if an answer of another node was lost.
fn was_lost(proxies: &[Proxy]) -> bool {
    // The request has gone to one node, and the other proxies still wait for one.
    proxies.iter().filter(|proxy| !proxy.has_lost_none()).count() == 1
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_is_repeated_when_its_answer_is_lost() {
    let (nodes, proxies) = start().await;
    let mut lost = 0;
    for k in 0..40 {
        proxies.iter().for_each(Proxy::lose_answer);
        let read = format!("SELECT v FROM t WHERE k = {k}");
        assert_eq!(nodes.run(0, &read).await, k.to_string());
        lost += usize::from(was_lost(&proxies));
    }
    assert!(lost > 0, "no key belongs to another node");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_whose_answer_is_lost_is_reported_as_unknown() {
    let (nodes, proxies) = start().await;
    let mut lost = 0;
    for k in 0..40 {
        proxies.iter().for_each(Proxy::lose_answer);
        let append = format!("UPDATE t SET l = l + [{k}] WHERE k = {k}");
        let (client, options) = (Nodes::client(), QueryParameters::default());
        let outcome = nodes.engines[0].query(&client, &append, &options).await;
        match was_lost(&proxies) {
            true => {
                lost += 1;
                assert!(
                    matches!(outcome, Err(CqlError::WriteTimeout { .. })),
                    "{outcome:?}"
                );
            }
            false => drop(outcome.unwrap()),
        }
        // The write was executed once, because lists are not appended to again.
        let list = nodes.run(1, &format!("SELECT l FROM t WHERE k = {k}")).await;
        assert_eq!(list, format!("[{k}]"));
    }
    assert!(lost > 0, "no key belongs to another node");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_and_starts_again_is_called_again() {
    let mut nodes = Nodes::start().await;
    let table = "CREATE TABLE t (k int PRIMARY KEY, v int)";
    assert_eq!(nodes.run(0, table).await, "");
    for round in 0..3 {
        for k in 0..20 {
            let update = format!("UPDATE t SET v = {round} WHERE k = {k}");
            assert_eq!(nodes.run(0, &update).await, "");
        }
        nodes.restart_server(1).await;
        tokio::time::timeout(Duration::from_secs(60), async {
            for k in 0..20 {
                let read = format!("SELECT v FROM t WHERE k = {k}");
                assert_eq!(nodes.run(0, &read).await, round.to_string());
            }
        })
        .await
        .unwrap();
    }
}
