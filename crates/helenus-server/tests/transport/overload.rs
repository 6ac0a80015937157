//! More requests than the server can run.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use helenus_cql::error::CqlError;
use helenus_cql::frame::Response;
use helenus_server::{OverloadConfig, Server, ServerConfig};

use crate::client::{Client, query};
use crate::mock::Mock;
use crate::{V4, config, void};

/// Returns a server that runs 32 requests at a time for each connection.
async fn small_server() -> (Server, Mock) {
    let overload = OverloadConfig {
        wait_target: Some(Duration::from_millis(50)),
        interval: Duration::from_millis(100),
        waiting_min: 100,
    };
    let config = ServerConfig {
        requests_running_max: 1,
        overload,
        ..config()
    };
    let mock = Mock::default();
    (Server::start(config, mock.clone()).await.unwrap(), mock)
}

async fn receive(client: &mut Client) -> (i16, Response) {
    let (stream, message) = client.receive().await.expect("closed");
    (stream, message.response)
}

#[tokio::test]
async fn overdue_requests_are_refused_until_queue_is_short() {
    let (server, mock) = small_server().await;
    let mut client = Client::connect(server.address(), V4, None, &[]).await;
    for stream in 0..4000 {
        client.send(stream, query("held 1")).await;
    }
    mock.begins(32).await;
    // All requests that have been read wait for too long.
    tokio::time::sleep(Duration::from_millis(200)).await;
    mock.gate.send_replace(1);
    let (mut done, mut refused) = (0usize, 0);
    for _ in 0..4000 {
        match receive(&mut client).await.1 {
            Response::Error(CqlError::Overloaded(_)) => refused += 1,
            response => {
                assert_eq!(response, void());
                done += 1;
            }
        }
    }
    // At least the requests that began before the queue was too old have run.
    assert!(refused > 2000 && done >= 32, "{done} done, {refused} refused");
    assert_eq!(
        mock.begun.load(Ordering::Relaxed),
        done,
        "what is refused is not run"
    );
    assert_eq!(client.request(query("void")).await, void());
}

#[tokio::test]
async fn a_closed_loop_is_never_refused() {
    let (server, _) = small_server().await;
    let mut client = Client::connect(server.address(), V4, None, &[]).await;
    for stream in 0..130 {
        client.send(stream, query("sleep 20")).await;
    }
    let end = Instant::now() + Duration::from_millis(800);
    let mut left = 130;
    while left > 0 {
        let (stream, response) = receive(&mut client).await;
        assert_eq!(response, void());
        if Instant::now() < end {
            client.send(stream, query("sleep 20")).await;
        } else {
            left -= 1;
        }
    }
}

#[tokio::test]
async fn one_clients_queue_does_not_hold_up_another() {
    let (server, mock) = small_server().await;
    let mut busy = Client::connect(server.address(), V4, None, &[]).await;
    let mut other = Client::connect(server.address(), V4, None, &[]).await;
    for stream in 0..1000 {
        busy.send(stream, query("held 1")).await;
    }
    mock.begins(32).await;
    assert_eq!(other.request(query("void")).await, void());
    assert_eq!(
        mock.ended.load(Ordering::Relaxed),
        1,
        "no request of the busy client has ended"
    );
    mock.gate.send_replace(1);
    for _ in 0..1000 {
        receive(&mut busy).await;
    }
}
