//! Writes that were partly applied. Their clients must not receive an error that claims that nothing was written. Otherwise drivers would
//! send the write again, and lists would have their elements twice.

use std::time::Duration;

use helenus_cql::error::{Consistency, CqlError};
use helenus_query::request::QueryParameters;
use tokio::time::Instant;

use crate::crashes::{Cut, own_keys};
use crate::nodes::Nodes;

fn failures() -> [CqlError; 5] {
    let message = "not now".to_owned();
    let (consistency, received, block_for) = (Consistency::One, 0, 1);
    [
        CqlError::Overloaded(message.clone()),
        CqlError::Server(message.clone()),
        // A node that is being stopped returns this error. It does not mean that another node owns the rows.
        CqlError::IsBootstrapping(message.clone()),
        CqlError::Unavailable {
            message: message.clone(),
            consistency,
            required: 1,
            alive: 0,
        },
        CqlError::ReadTimeout {
            message,
            consistency,
            received,
            block_for,
            data_present: false,
        },
    ]
}

/// Runs a statement at the first node, and returns the client's result. The first request to another node fails with `failure`.
async fn reported(nodes: &Nodes, cut: &Cut, failure: CqlError, text: &str) -> Result<(), CqlError> {
    cut.fail_next(failure);
    let (client, options) = (Nodes::client(), QueryParameters::default());
    let outcome = nodes.engines[0].query(&client, text, &options).await;
    outcome.map(|_| ())
}

/// Returns keys that the first node owns, each with a key of another node.
async fn pairs(nodes: &Nodes, cut: &Cut) -> Vec<(i32, i32)> {
    for k in 0..60 {
        nodes.run(0, &format!("INSERT INTO t (k) VALUES ({k})")).await;
    }
    let own = own_keys(nodes, cut).await;
    let far: Vec<i32> = (0..60).filter(|k| !own.contains(k)).collect();
    own.into_iter().zip(far).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn begun_logged_batch_is_not_reported_as_undone() {
    let (nodes, cut) = Nodes::start_cut().await;
    nodes
        .run(0, "CREATE TABLE t (k int PRIMARY KEY, l list<int>)")
        .await;
    for (failure, (own, far)) in failures().into_iter().zip(pairs(&nodes, &cut).await) {
        let what = format!("{failure:?}");
        // The batch is in the batch log, and its first part is written here. Only the part of the other node fails.
        let text = format!(
            "BEGIN BATCH USING TIMESTAMP 1000 INSERT INTO t (k, l) VALUES ({own}, [1, 2]); \
             INSERT INTO t (k, l) VALUES ({far}, [3, 4]) APPLY BATCH"
        );
        let reported = reported(&nodes, &cut, failure, &text).await;
        assert!(
            matches!(reported, Err(CqlError::WriteTimeout { .. })),
            "{what}: told {reported:?}"
        );
        let until = Instant::now() + Duration::from_secs(30);
        while nodes.run(1, &format!("SELECT l FROM t WHERE k = {far}")).await != "[3, 4]" {
            assert!(Instant::now() < until, "{what}: the batch was not finished");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let first = nodes.run(1, &format!("SELECT l FROM t WHERE k = {own}")).await;
        assert_eq!(first, "[1, 2]", "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn partly_applied_update_is_not_reported_as_undone() {
    let (nodes, cut) = Nodes::start_cut().await;
    nodes
        .run(0, "CREATE TABLE t (k int PRIMARY KEY, l list<int>)")
        .await;
    for (failure, (own, far)) in failures().into_iter().zip(pairs(&nodes, &cut).await) {
        let what = format!("{failure:?}");
        let text = format!("UPDATE t SET l = l + [1] WHERE k IN ({own}, {far})");
        let reported = reported(&nodes, &cut, failure, &text).await;
        assert!(
            matches!(reported, Err(CqlError::WriteTimeout { .. })),
            "{what}: told {reported:?}"
        );
        let done = nodes
            .run(1, &format!("SELECT l FROM t WHERE k IN ({own}, {far})"))
            .await;
        assert_eq!(done.matches("[1]").count(), 1, "{what}: {done}");
    }
}
