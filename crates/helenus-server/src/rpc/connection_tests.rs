use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::super::frame::{Frame, FrameDecoder, flags};
use super::super::introduction::admit;
use super::super::peer_auth::tests::{STORE, credentials, credentials_of, guard, own};
use super::super::secret::Secret;
use super::*;

/// The behaviour of the other node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PeerBehaviour {
    /// Answers requests with their ids, the last one first.
    Answers,
    /// Reads requests and answers none.
    Hangs,
    /// Reads one request and ends the connection.
    HangsUp,
    /// Answers each request as a node that does not execute it any more.
    Declines,
    /// Sends a frame that is no answer.
    Confuses,
    /// Sends bytes that are no frames.
    SendsGarbage,
}

impl PeerBehaviour {
    /// Returns the bytes that answer requests. `None` ends the connection.
    fn answer(self, frames: &[Frame]) -> Option<BytesMut> {
        let mut out = BytesMut::new();
        let requests = || frames.iter().rev().filter(|frame| frame.header.kind == Kind::Get);
        match self {
            PeerBehaviour::HangsUp => return None,
            PeerBehaviour::Hangs => {}
            PeerBehaviour::SendsGarbage => out.extend_from_slice(&[0xff; 100]),
            PeerBehaviour::Confuses => Header::new(Kind::Get, 0).encode(0, &mut out),
            PeerBehaviour::Answers => requests().for_each(|request| {
                let id = request.header.id.to_le_bytes();
                Header::new(Kind::Answer, request.header.id).encode(id.len(), &mut out);
                out.extend_from_slice(&id);
            }),
            PeerBehaviour::Declines => requests().for_each(|request| {
                let header = Header {
                    flags: flags::UNDONE,
                    ..Header::new(Kind::Failure, request.header.id)
                };
                header.encode(0, &mut out);
            }),
        }
        Some(out)
    }
}

/// Serves connections one after the other.
async fn serve(listener: TcpListener, behaviour: PeerBehaviour) {
    while let Ok((mut socket, _)) = listener.accept().await {
        if !matches!(admit(&mut socket, &guard()).await, Ok(Some(_))) {
            continue;
        }
        let mut decoder = FrameDecoder::default();
        while socket
            .read_buf(&mut decoder.room(10_000))
            .await
            .is_ok_and(|len| len > 0)
        {
            let mut frames = Vec::new();
            while let Some(frame) = decoder.decode().unwrap() {
                frames.push(frame);
            }
            if frames.is_empty() {
                continue;
            }
            match behaviour.answer(&frames) {
                Some(answer) => socket.write_all(&answer).await.unwrap(),
                None => break,
            }
        }
    }
}

fn connection_to(address: &str, credentials: PeerCredentials) -> PeerConnection {
    let target = Target {
        address: address.to_owned(),
        tls: None,
        network: Arc::new(crate::network::Tcp),
        credentials: Arc::new(credentials),
        traffic: Traffic::Requests,
    };
    PeerConnection::new(target, Handle::current(), Arc::default())
}

async fn connection(behaviour: PeerBehaviour) -> PeerConnection {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, behaviour));
    connection_to(&address.to_string(), credentials())
}

fn within(milliseconds: u64) -> Instant {
    Instant::now() + Duration::from_millis(milliseconds)
}

async fn get(connection: &PeerConnection, deadline: Instant) -> Outcome {
    connection.request(Kind::Get, BytesMut::new(), deadline).await
}

fn is_empty(connection: &PeerConnection) -> bool {
    connection.shared.pending.look(|pending| pending.is_empty())
}

#[tokio::test]
async fn each_request_gets_its_answer() {
    let connection = connection(PeerBehaviour::Answers).await;
    let requests = (0..500).map(|_| get(&connection, within(10_000)));
    let answers = futures::future::join_all(requests).await;
    let ids: Vec<u32> = answers
        .into_iter()
        .map(|answer| u32::from_le_bytes(answer.unwrap().as_ref().try_into().unwrap()))
        .collect();
    assert_eq!(ids, (0..500).collect::<Vec<u32>>());
    assert!(is_empty(&connection));
    assert_eq!(connection.unsent(), OutboundQueue::default());
}

#[tokio::test]
async fn a_request_sent_without_an_answer_may_have_been_executed() {
    let silent = connection(PeerBehaviour::Hangs).await;
    let outcome = get(&silent, within(200)).await;
    assert!(matches!(outcome, Err(CallError::NoAnswer(_))), "{outcome:?}");
    assert!(is_empty(&silent), "the request is still pending");
    let broken = connection(PeerBehaviour::HangsUp).await;
    for _ in 0..3 {
        let outcome = get(&broken, within(10_000)).await;
        assert!(matches!(outcome, Err(CallError::NoAnswer(_))), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_request_that_the_node_declines_was_not_executed() {
    let connection = connection(PeerBehaviour::Declines).await;
    let outcome = get(&connection, within(10_000)).await;
    assert!(matches!(outcome, Err(CallError::Unreachable(_))), "{outcome:?}");
}

#[tokio::test]
async fn a_connection_with_invalid_answers_is_closed_and_made_again() {
    for behaviour in [PeerBehaviour::Confuses, PeerBehaviour::SendsGarbage] {
        let connection = connection(behaviour).await;
        for _ in 0..3 {
            let outcome = get(&connection, within(10_000)).await;
            assert!(matches!(outcome, Err(CallError::NoAnswer(_))), "{outcome:?}");
        }
    }
}

#[tokio::test]
async fn a_node_that_is_not_there_was_not_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let connection = connection_to(&address.to_string(), credentials());
    for _ in 0..3 {
        let outcome = get(&connection, within(10_000)).await;
        assert!(matches!(outcome, Err(CallError::Unreachable(_))), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_process_that_does_not_speak_the_protocol_gets_no_request() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let _ = socket.write_all(&[b'x'; 100]).await;
        }
    });
    let connection = connection_to(&address.to_string(), credentials());
    let outcome = get(&connection, within(10_000)).await;
    assert!(matches!(outcome, Err(CallError::Refused(_))), "{outcome:?}");
}

#[tokio::test]
async fn requests_to_a_node_that_refuses_this_one_fail_with_its_reason() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(serve(listener, PeerBehaviour::Answers));
    let member = || own(2, STORE, &[(1, 10), (2, 20)]);
    let stranger = connection_to(&address, credentials_of("guess", member(), (1, 10)));
    let outcome = get(&stranger, within(10_000)).await.unwrap_err();
    assert_eq!(outcome.text(), "this port is for the nodes of a cluster");
    let misled = connection_to(&address, credentials_of("secret", member(), (1, 11)));
    let outcome = get(&misled, within(10_000)).await.unwrap_err();
    assert!(outcome.text().contains("the called node"), "{outcome:?}");
    let member = PeerCredentials::new(
        Secret::new("secret"),
        member(),
        &super::super::peer_auth::tests::node(1, 10),
    );
    get(&connection_to(&address, member), within(10_000))
        .await
        .unwrap();
}

#[tokio::test]
async fn requests_beyond_the_limit_wait_and_are_not_sent() {
    let connection = connection(PeerBehaviour::Hangs).await;
    let filling = (0..OPEN_MAX).map(|_| get(&connection, within(2_000)));
    let filling = futures::future::join_all(filling);
    let one_more = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        get(&connection, within(100)).await
    };
    let (filled, outcome) = tokio::join!(filling, one_more);
    assert!(matches!(outcome, Err(CallError::Unreachable(_))), "{outcome:?}");
    assert!(
        filled
            .iter()
            .all(|outcome| matches!(outcome, Err(CallError::NoAnswer(_))))
    );
}

#[tokio::test]
async fn the_task_of_a_dropped_connection_ends() {
    let connection = connection(PeerBehaviour::Answers).await;
    get(&connection, within(10_000)).await.unwrap();
    let shared = Arc::downgrade(&connection.shared);
    drop(connection);
    let ended = async {
        while shared.strong_count() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), ended)
        .await
        .unwrap();
}
