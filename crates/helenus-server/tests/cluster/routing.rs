//! Results of routing between nodes must not be confused with results of statements, such as error codes and columns of rows.

use std::time::Duration;

use helenus_cql::error::CqlError;
use helenus_query::cluster::{Cluster, Owner};
use helenus_query::request::QueryParameters;

use crate::crashes::{Cut, own_keys};
use crate::nodes::{NODES, Nodes, shown};

/// Time to wait for a read that must not be answered.
const UNANSWERED: Duration = Duration::from_millis(300);

/// Returns true if the first node answers the statement at once.
async fn is_answered(nodes: &Nodes, text: &str) -> bool {
    tokio::time::timeout(UNANSWERED, nodes.run(0, text)).await.is_ok()
}

/// Runs a statement on a node. Returns whether its condition was met, and its rows. `None` if the statement has no condition.
async fn reported(nodes: &Nodes, node: usize, text: &str) -> (Option<bool>, String) {
    let outcome = nodes.outcome(node, text, &QueryParameters::default()).await;
    let outcome = outcome.unwrap_or_else(|error| panic!("{text}: {error}"));
    (outcome.is_applied, shown(&outcome))
}

async fn with_applied_column() -> (Nodes, std::sync::Arc<Cut>) {
    let (nodes, cut) = Nodes::start_cut().await;
    let table = "CREATE TABLE t (k int PRIMARY KEY, \"[applied]\" boolean)";
    assert_eq!(nodes.run(0, table).await, "");
    for k in 0..60 {
        let insert = format!("INSERT INTO t (k, \"[applied]\") VALUES ({k}, true)");
        assert_eq!(nodes.run(0, &insert).await, "");
    }
    (nodes, cut)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_named_applied_is_not_read_without_a_lease() {
    let (nodes, cut) = with_applied_column().await;
    let own = own_keys(&nodes, &cut).await;
    let select = format!("SELECT \"[applied]\" FROM t WHERE k = {}", own[0]);
    assert_eq!(nodes.run(0, &select).await, "true");
    cut.lose_lease(true);
    assert!(!is_answered(&nodes, &select).await, "a read that may be old");
    let refused = format!(
        "UPDATE t SET \"[applied]\" = true WHERE k = {} IF \"[applied]\" = false",
        own[0]
    );
    assert!(
        !is_answered(&nodes, &refused).await,
        "a condition read from what may be old"
    );
    // A write succeeds without a lease, because the store would refuse it if another node had taken the tablet.
    let met = format!(
        "UPDATE t SET \"[applied]\" = true WHERE k = {} IF \"[applied]\" = true",
        own[1]
    );
    assert_eq!(nodes.run(0, &met).await, "true");
    cut.lose_lease(false);
    assert_eq!(nodes.run(0, &select).await, "true");
}

#[tokio::test(flavor = "multi_thread")]
async fn result_of_condition_is_returned_by_every_node() {
    let (nodes, cut) = with_applied_column().await;
    let k = own_keys(&nodes, &cut).await[0];
    for node in 0..NODES {
        let update = |expected| {
            format!("UPDATE t SET \"[applied]\" = true WHERE k = {k} IF \"[applied]\" = {expected}")
        };
        let met = reported(&nodes, node, &update(true)).await;
        assert_eq!(met, (Some(true), "true".to_owned()), "node {node}");
        let unmet = reported(&nodes, node, &update(false)).await;
        assert_eq!(unmet, (Some(false), "false, true".to_owned()), "node {node}");
        let select = format!("SELECT \"[applied]\" FROM t WHERE k = {k}");
        let selected = reported(&nodes, node, &select).await;
        assert_eq!(selected, (None, "true".to_owned()), "node {node}");
        let insert = format!("INSERT INTO t (k, \"[applied]\") VALUES ({k}, true)");
        assert_eq!(
            reported(&nodes, node, &insert).await,
            (None, String::new()),
            "node {node}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_error_is_returned_without_further_routing() {
    let (nodes, cut) = with_applied_column().await;
    let mut far = None;
    for k in 0..60 {
        let token = nodes
            .run(0, &format!("SELECT token(k) FROM t WHERE k = {k}"))
            .await;
        if cut.owner(token.parse().unwrap()) != Owner::Here {
            far = Some(k);
            break;
        }
    }
    let text = format!("SELECT * FROM t WHERE k = {}", far.unwrap());
    let stopping = CqlError::IsBootstrapping("This node is being stopped".to_owned());
    cut.fail_next(stopping.clone());
    let outcome = nodes.engines[0]
        .query(&Nodes::client(), &text, &QueryParameters::default())
        .await;
    assert_eq!(outcome.map(|outcome| shown(&outcome)), Err(stopping));
}
