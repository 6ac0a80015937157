//! A caller that requests chunks of a scan by hand, while the node runs and while it stops.

use std::time::Duration;

use helenus_cluster::TokenRange;

use crate::by_hand::{ANSWER, Caller, FAILURE, GIVE_UP, LOAD, NEXT, PING, PONG, SCAN, frame};
use crate::nodes::{Nodes, TABLETS};

/// Flags of an answer that others follow, and of a failure of a request that was not executed.
const MORE: u8 = 1;
const UNDONE: u8 = 1;
/// Id of the scan.
const ID: u32 = 5;

/// Returns the message that requests all rows of the first tablet, which is the first node's.
fn first_tablet() -> Vec<u8> {
    let TokenRange { first, last } = TokenRange::split_ring(TABLETS as usize)[0];
    let mut message = vec![0x09];
    message.extend(first.to_le_bytes());
    message.push(0x11);
    message.extend(last.to_le_bytes());
    message
}

/// Returns nodes whose first tablet has several chunks of rows.
async fn start() -> Nodes {
    let nodes = Nodes::start().await;
    assert_eq!(
        nodes.run(0, "CREATE TABLE t (k int PRIMARY KEY, v text)").await,
        ""
    );
    let value = "x".repeat(60_000);
    for k in 0..300 {
        let insert = format!("INSERT INTO t (k, v) VALUES ({k}, '{value}')");
        assert_eq!(nodes.run(k, &insert).await, "");
    }
    nodes
}

/// Begins a scan, and receives the two chunks that the node sends before the caller requests more.
async fn begin(nodes: &Nodes) -> Caller {
    let mut caller = Caller::authenticated(nodes.addresses[0]).await;
    caller.send(&frame(SCAN, ID, &first_tablet())).await;
    assert_eq!(
        caller.frame().await,
        Some((ANSWER, MORE, Vec::new())),
        "it has begun"
    );
    for _ in 0..2 {
        let (kind, flags, chunk) = caller.frame().await.unwrap();
        assert_eq!((kind, flags), (ANSWER, MORE));
        assert!(chunk.len() > 100_000, "{}", chunk.len());
    }
    caller
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_sends_the_chunks_that_were_requested() {
    let nodes = start().await;
    let mut caller = begin(&nodes).await;
    caller.send(&frame(PING, 0, b"")).await;
    assert_eq!(
        caller.frame().await,
        Some((PONG, 0, Vec::new())),
        "no third chunk"
    );
    let mut chunks = 2;
    loop {
        caller.send(&frame(NEXT, ID, b"")).await;
        let (kind, flags, _) = caller.frame().await.unwrap();
        assert_eq!(kind, ANSWER);
        chunks += 1;
        if flags == 0 {
            break;
        }
    }
    assert!(chunks > 3, "{chunks}");
    // A scan that has ended is not known any more.
    caller.send(&frame(NEXT, ID, b"")).await;
    caller.send(&frame(GIVE_UP, ID, b"")).await;
    caller.greet().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_node_declines_requests_until_its_scans_have_ended() {
    let mut nodes = start().await;
    let mut caller = begin(&nodes).await;
    let calling = async {
        loop {
            caller.send(&frame(LOAD, 1, b"")).await;
            let (kind, flags, text) = caller.frame().await.unwrap();
            if kind == FAILURE {
                assert_eq!(flags, UNDONE);
                assert_eq!(String::from_utf8(text).unwrap(), "the node is being stopped");
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        caller.send(&frame(GIVE_UP, ID, b"")).await;
        let (kind, ..) = caller.frame().await.unwrap();
        assert_eq!(kind, FAILURE, "the scan was given up");
        assert_eq!(caller.frame().await, None);
    };
    tokio::join!(nodes.restart_server(0), calling);
    Caller::authenticated(nodes.addresses[0]).await.greet().await;
}
