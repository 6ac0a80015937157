//! Tests of a load on a server that answers every request after a fixed time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use helenus_cql::error::CqlError;
use helenus_cql::frame::response::{Prepared, QueryResult};
use helenus_cql::frame::{
    Decoder, Direction, MAX_BODY_LEN, OutputEncoder, ProtocolVersion, Request, RequestMessage, Response,
    ResponseMessage,
};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::raw::{Answer, Execution, Pace, RawLoad, RequestSource};

const DELAY: Duration = Duration::from_millis(20);

/// A server that answers executions with VOID after a delay, and the first one with UNPREPARED. It counts PREPAREs.
#[derive(Clone, Default)]
struct FakeServer {
    prepares: Arc<AtomicUsize>,
}

impl FakeServer {
    async fn start(self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(self.clone().serve(stream));
            }
        });
        address
    }

    async fn serve(self, mut stream: TcpStream) {
        let mut decoder = Decoder::new(Direction::Request, MAX_BODY_LEN);
        let (mut input, mut is_first) = (BytesMut::new(), true);
        while stream.read_buf(&mut input).await.is_ok_and(|read| read > 0) {
            let mut output = BytesMut::new();
            let mut executions = false;
            while let Some(envelope) = decoder.decode(&mut input).unwrap() {
                let stream_id = envelope.header.stream;
                let response = match RequestMessage::decode(envelope).unwrap().request {
                    Request::Startup(_) => Response::Ready(helenus_cql::frame::response::Ready),
                    Request::Prepare(_) => {
                        self.prepares.fetch_add(1, Ordering::Relaxed);
                        Response::Result(QueryResult::Prepared(Prepared {
                            id: Bytes::from_static(b"id"),
                            result_metadata_id: Bytes::new(),
                            metadata: Arc::default(),
                            result_metadata: Arc::default(),
                        }))
                    }
                    _ if std::mem::take(&mut is_first) => {
                        Response::Error(CqlError::Unprepared(b"id".to_vec()))
                    }
                    _ => {
                        executions = true;
                        Response::Result(QueryResult::Void)
                    }
                };
                let message = ResponseMessage::from(response);
                OutputEncoder::unstarted().response(ProtocolVersion::V4, stream_id, &message, &mut output);
            }
            if executions {
                tokio::time::sleep(DELAY).await;
            }
            stream.write_all(&output).await.unwrap();
        }
    }
}

/// A fixed number of requests.
struct Requests(usize);

impl RequestSource for Requests {
    fn statement(&self) -> &str {
        "INSERT"
    }

    fn next(&mut self, _: &mut SmallRng) -> Option<Execution> {
        self.0 = self.0.checked_sub(1)?;
        Some(Execution::of_row(vec![Bytes::from_static(b"v")]))
    }

    fn check(&self, response: Response) -> Result<Answer> {
        match response {
            Response::Result(QueryResult::Void) => Ok(Answer::last(2)),
            other => anyhow::bail!("{other:?}"),
        }
    }
}

async fn run(in_flight: usize, pace: Pace, requests: usize, connections: usize) -> (Outcome, usize) {
    let server = FakeServer::default();
    let address = server.clone().start().await.to_string();
    let load = RawLoad {
        in_flight,
        pace,
        slowest_kept: 10,
    };
    let targets = (0..connections as u64).map(|at| Target {
        address: address.clone(),
        source: Requests(requests),
        random: SmallRng::seed_from_u64(at),
    });
    let outcome = load.run(targets).await.unwrap();
    (outcome, server.prepares.load(Ordering::Relaxed))
}

#[tokio::test]
async fn closed_loop_answers_each_request_and_prepares_again() {
    let (outcome, prepares) = run(4, Pace::Closed, 40, 2).await;
    assert_eq!((outcome.requests, outcome.operations), (80, 160));
    assert_eq!(outcome.latency_us.len(), 80);
    assert_eq!(prepares, 4, "each connection at its beginning and once more");
    assert!(outcome.quantile_ms(0.5) >= DELAY.as_secs_f64() * 1e3);
    assert!(
        outcome
            .slowest
            .undisturbed_by(&[], 80)
            .slower_than_all_but(0.0)
            .is_some()
    );
}

#[tokio::test]
async fn open_loop_latency_includes_wait_before_send() {
    // One slot completes 50 requests per second, and a thousand per second become due.
    let interval = Duration::from_millis(1);
    let (outcome, _) = run(1, Pace::Open { interval }, 20, 1).await;
    let last_ms = outcome.quantile_ms(1.0);
    assert!(
        last_ms >= 19.0 * (DELAY.as_secs_f64() * 1e3 - 1.0),
        "{last_ms} ms"
    );
}

#[tokio::test]
async fn spaced_requests_keep_their_distance() {
    let started = Instant::now();
    let interval = 2 * DELAY;
    let (outcome, _) = run(1, Pace::Spaced { interval }, 4, 1).await;
    assert!(started.elapsed() >= 3 * interval);
    assert_eq!(outcome.requests, 4);
}
