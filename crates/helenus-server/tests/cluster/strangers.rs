//! Connections to the port for other nodes that are not from a node of the cluster, and frames that no node would send. The node refuses
//! them and goes on.

use std::net::SocketAddr;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::by_hand::{ANSWER, Caller, Claim, EXECUTE, FAILURE, LOAD, PING, PONG, frame};
use crate::nodes::Nodes;

const STRANGER: u8 = 1;
const NOT_MEMBER: u8 = 2;
const INCOMPATIBLE: u8 = 3;

/// Returns the verdict of a node on a claim.
async fn judged(address: SocketAddr, claim: Claim) -> (u8, String) {
    let mut caller = Caller::connect(address).await;
    let hello = claim.hello(&caller.greeting);
    caller.send(&hello).await;
    let (code, text) = caller.verdict().await.expect("no verdict");
    // The node sends no more than the verdict.
    assert_eq!(caller.frame().await, None);
    (code, String::from_utf8(text).unwrap())
}

async fn still_serves(nodes: &Nodes) {
    Caller::authenticated(nodes.addresses[0]).await.greet().await;
    assert_eq!(nodes.run(1, "SELECT count(*) FROM system.local").await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_are_accepted_only_by_their_true_claim() {
    let nodes = Nodes::start().await;
    let address = nodes.addresses[0];
    still_serves(&nodes).await;
    let guess = Claim {
        secret: "guess",
        ..Claim::true_one()
    };
    let (code, text) = judged(address, guess).await;
    assert_eq!(
        (code, text.as_str()),
        (STRANGER, "this port is for the nodes of a cluster")
    );
    let other_store = Claim {
        store: Uuid::from_u128(43),
        ..Claim::true_one()
    };
    let (code, text) = judged(address, other_store).await;
    assert_eq!(code, NOT_MEMBER);
    assert!(text.contains("of store") && text.contains("by hand"), "{text}");
    for (id, words) in [
        (0, "not in the cluster document"),
        (1, "not in the cluster document"),
        (2, "the called node"),
        (3, "the called node"),
    ] {
        let mut claim = Claim::true_one();
        claim.ids[id] = Uuid::from_u128(77);
        let (code, text) = judged(address, claim).await;
        assert_eq!(code, NOT_MEMBER, "{id}");
        assert!(text.contains(words), "{id}: {text}");
    }
    for protocol in [0, 6, 9] {
        let claim = Claim {
            protocol,
            ..Claim::true_one()
        };
        assert_eq!(judged(address, claim).await.0, INCOMPATIBLE, "{protocol}");
    }
    still_serves(&nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replayed_handshake_is_refused() {
    let nodes = Nodes::start().await;
    let address = nodes.addresses[0];
    let recorded = Claim::true_one().hello(&Caller::connect(address).await.greeting);
    let mut caller = Caller::connect(address).await;
    caller.send(&recorded).await;
    assert_eq!(caller.verdict().await.map(|(code, _)| code), Some(STRANGER));
    assert_eq!(caller.frame().await, None);
    still_serves(&nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_hello_get_no_answer() {
    let nodes = Nodes::start().await;
    let address = nodes.addresses[0];
    let hello = Claim::true_one().hello(&Caller::connect(address).await.greeting);
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        &[0; 5000],
        b"HLNODE\xff\xff",
        b"HLNODE\0\0",
        b"HLN",
        &hello[..50],
        &hello[..hello.len() - 1],
    ] {
        let mut caller = Caller::connect(address).await;
        caller.send(bytes).await;
        caller.finish().await;
        assert_eq!(caller.verdict().await, None, "{bytes:?}");
    }
    still_serves(&nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_are_closed_and_keep_no_node_out() {
    let nodes = Nodes::start().await;
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(TcpStream::connect(nodes.addresses[0]).await.unwrap());
    }
    still_serves(&nodes).await;
    for mut socket in silent {
        let mut received = Vec::new();
        let _ = socket.read_to_end(&mut received).await;
        assert!(received.len() <= 32, "{received:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_against_the_protocol_close_the_connection() {
    let nodes = Nodes::start().await;
    let mut too_long = frame(LOAD, 1, b"");
    too_long[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    for bytes in [
        too_long,
        frame(99, 1, b"a kind that nobody knows"),
        frame(ANSWER, 1, b"an answer to no request"),
        frame(LOAD, 1, b"\xff\xff no message"),
        vec![0xee; 1000],
    ] {
        let mut caller = Caller::authenticated(nodes.addresses[0]).await;
        caller.greet().await;
        caller.send(&bytes).await;
        assert_eq!(caller.frame().await, None, "{bytes:?}");
    }
    still_serves(&nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn torn_frames_do_no_harm() {
    let nodes = Nodes::start().await;
    let load = frame(LOAD, 7, b"\x08\x00");
    for len in 0..load.len() {
        let mut caller = Caller::authenticated(nodes.addresses[0]).await;
        caller.send(&load[..len]).await;
        caller.finish().await;
        assert_eq!(caller.frame().await, None, "{len}");
    }
    let mut caller = Caller::authenticated(nodes.addresses[0]).await;
    for byte in &load {
        caller.send(&[*byte]).await;
    }
    assert_eq!(caller.frame().await.map(|(kind, ..)| kind), Some(ANSWER));
    still_serves(&nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_survives_a_bad_statement_and_unknown_hints() {
    let nodes = Nodes::start().await;
    let mut caller = Caller::authenticated(nodes.addresses[0]).await;
    // Kinds with the highest bit may be skipped.
    caller.send(&frame(0xf0, 1, b"a hint of a newer version")).await;
    caller.send(&frame(PING, 0, b"")).await;
    assert_eq!(caller.frame().await, Some((PONG, 0, Vec::new())));
    caller.send(&frame(EXECUTE, 2, b"\xff\xff no statement")).await;
    let (kind, ..) = caller.frame().await.unwrap();
    assert_eq!(kind, ANSWER, "an error for the client");
    caller.greet().await;
    // A greeting from a cluster of another name.
    caller
        .send(&frame(crate::by_hand::GREET, 3, b"\x0a\x05other"))
        .await;
    let (kind, flags, text) = caller.frame().await.unwrap();
    assert_eq!((kind, flags), (FAILURE, 2));
    assert!(String::from_utf8(text).unwrap().contains("of the cluster"));
    caller.greet().await;
}
