//! A batch of which some is done already, and all will be: its client must not be told that nothing was, or its driver sends it again.
//! Lists would have their elements twice.

use std::time::Duration;

use helenus_cql::error::{Consistency, CqlError};
use helenus_query::request::QueryOptions;
use tokio::time::Instant;

use crate::crashes::own_keys;
use crate::nodes::Nodes;

fn failures() -> [CqlError; 4] {
    let message = "not now".to_owned();
    let (consistency, received, block_for) = (Consistency::One, 0, 1);
    [
        CqlError::Overloaded(message.clone()),
        CqlError::Server(message.clone()),
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

#[tokio::test(flavor = "multi_thread")]
async fn a_logged_batch_that_was_begun_is_not_said_to_be_undone() {
    let (nodes, cut) = Nodes::start_cut().await;
    nodes
        .run(0, "CREATE TABLE t (k int PRIMARY KEY, l list<int>)")
        .await;
    let own = own_keys(&nodes, &cut).await;
    let far: Vec<i32> = (0..60).filter(|k| !own.contains(k)).collect();
    for (failure, (own, far)) in failures().into_iter().zip(own.into_iter().zip(far)) {
        let what = format!("{failure:?}");
        // The batch is written down and its first part done here; what fails is the other's.
        cut.fail_next(failure);
        let text = format!(
            "BEGIN BATCH USING TIMESTAMP 1000 INSERT INTO t (k, l) VALUES ({own}, [1, 2]); \
             INSERT INTO t (k, l) VALUES ({far}, [3, 4]) APPLY BATCH"
        );
        let told = nodes.engines[0].query(&Nodes::client(), &text, &QueryOptions::default());
        let told = told.await.err();
        assert!(
            matches!(told, Some(CqlError::WriteTimeout { .. })),
            "{what}: told {told:?}"
        );
        let until = Instant::now() + Duration::from_secs(5);
        while nodes.run(1, &format!("SELECT l FROM t WHERE k = {far}")).await != "[3, 4]" {
            assert!(Instant::now() < until, "{what}: the batch was not finished");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let first = nodes.run(1, &format!("SELECT l FROM t WHERE k = {own}")).await;
        assert_eq!(first, "[1, 2]", "{what}");
    }
}
