//! More requests than can be run.

use std::time::{Duration, Instant};

use helenus_cql::error::CqlError;
use helenus_cql::frame::Response;
use helenus_server::{OverloadConfig, Server, ServerConfig};

use crate::client::{Client, query};
use crate::mock::Mock;
use crate::{V4, config, void};

/// A server that runs 32 requests at a time for each connection.
async fn small_server() -> Server {
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
    Server::start(config, Mock::default()).await.unwrap()
}

async fn receive(client: &mut Client) -> (i16, Response) {
    let (stream, message) = client.receive().await.expect("closed");
    (stream, message.response)
}

#[tokio::test]
async fn what_has_waited_for_too_long_is_refused_until_the_queue_is_short() {
    let server = small_server().await;
    let mut client = Client::connect(server.address(), V4, None, &[]).await;
    let began = Instant::now();
    // Two and a half seconds' worth, at 32 in 20 ms.
    for stream in 0..4000 {
        client.send(stream, query("sleep 20")).await;
    }
    let (mut done, mut refused) = (0, 0);
    for _ in 0..4000 {
        match receive(&mut client).await.1 {
            Response::Error(CqlError::Overloaded(_)) => refused += 1,
            response => {
                assert_eq!(response, void());
                done += 1;
            }
        }
    }
    assert!(refused > 2000 && done > 100, "{done} done, {refused} refused");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    let began = Instant::now();
    assert_eq!(client.ask(query("sleep 20")).await, void());
    assert!(
        began.elapsed() < Duration::from_millis(500),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn a_closed_loop_is_never_refused() {
    let server = small_server().await;
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
    let server = small_server().await;
    let mut busy = Client::connect(server.address(), V4, None, &[]).await;
    let mut other = Client::connect(server.address(), V4, None, &[]).await;
    for stream in 0..1000 {
        busy.send(stream, query("sleep 20")).await;
    }
    let began = Instant::now();
    assert_eq!(other.ask(query("void")).await, void());
    assert!(
        began.elapsed() < Duration::from_millis(200),
        "{:?}",
        began.elapsed()
    );
    for _ in 0..1000 {
        receive(&mut busy).await;
    }
}
