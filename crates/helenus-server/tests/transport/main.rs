//! The native transport over real sockets, with a mock backend whose statements are instructions.

mod client;
mod mock;
mod overload;

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use helenus_cql::error::CqlError;
use helenus_cql::frame::request::{Batch, BatchStatement, Options, Prepare, Query, Register, StatementRef};
use helenus_cql::frame::response::{Event, EventType, QueryResult};
use helenus_cql::frame::{
    BoundValue, BoundValues, Compression, ProtocolVersion, QueryParameters, Request, RequestMessage, Response,
};
use helenus_server::{Server, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::{Client, execute, query, startup};
use crate::mock::Mock;

const V3: ProtocolVersion = ProtocolVersion::V3;
const V4: ProtocolVersion = ProtocolVersion::V4;
const V5: ProtocolVersion = ProtocolVersion::V5;

/// Maximum time of operations that must end.
const LIMIT: Duration = Duration::from_secs(30);

fn config() -> ServerConfig {
    ServerConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)), 1 << 30)
}

async fn server() -> (Server, Mock) {
    let mock = Mock::default();
    (Server::start(config(), mock.clone()).await.unwrap(), mock)
}

fn text_of(response: Response) -> String {
    let Response::Result(QueryResult::Rows(rows)) = response else {
        panic!("{response:?}")
    };
    let cell = rows.content.iter().next().unwrap().remove(0).unwrap();
    String::from_utf8(cell.to_vec()).unwrap()
}

fn void() -> Response {
    Response::Result(QueryResult::Void)
}

fn protocol_error(response: Response) -> String {
    let Response::Error(CqlError::Protocol(message)) = response else {
        panic!("{response:?}")
    };
    message
}

#[tokio::test]
async fn every_version_and_compression() {
    let (server, _) = server().await;
    for version in ProtocolVersion::ALL {
        for compression in [None, Some(Compression::Lz4), Some(Compression::Snappy)] {
            if version >= V5 && compression == Some(Compression::Snappy) {
                continue;
            }
            let mut client = Client::connect(server.address(), version, compression, &[]).await;
            assert_eq!(client.request(query("void")).await, void());
            let Response::Result(QueryResult::Rows(rows)) = client.request(query("rows 1000")).await else {
                panic!()
            };
            assert_eq!(rows.content.iter().count(), 1000);
            assert!(matches!(
                client.request(Request::Options(Options)).await,
                Response::Supported(_)
            ));
            let error = client.request(query("nonsense")).await;
            assert_eq!(error, Response::Error(CqlError::Syntax("no nonsense".to_owned())));
        }
    }
}

#[tokio::test]
async fn handshake_refusals() {
    let (server, _) = server().await;
    let mut client = Client::open(server.address(), V4).await;
    client.send(1, query("void")).await;
    let (stream, message) = client.receive().await.unwrap();
    let refusal = protocol_error(message.response);
    assert_eq!(
        (stream, refusal.as_str()),
        (0, "Unexpected message QUERY, expecting STARTUP or OPTIONS")
    );
    let refusal = protocol_error(client.request(startup(&[("CQL_VERSION", "2.0.0")])).await);
    assert_eq!(
        refusal,
        "CQL version 2.0.0 is not supported by the binary protocol (supported version are >= 3.0.0)"
    );
    let refusal = protocol_error(client.request(startup(&[("COMPRESSION", "zip")])).await);
    assert_eq!(refusal, "Unknown compression algorithm: zip");
    client.send(1, query("void")).await;
    let (stream, message) = client.receive().await.unwrap();
    let refusal = protocol_error(message.response);
    assert_eq!(
        (stream, refusal.as_str()),
        (1, "Unexpected message QUERY, expecting STARTUP or OPTIONS")
    );
    assert_eq!(
        client.request(startup(&[("CQL_VERSION", "4.0.0")])).await,
        Response::Ready(helenus_cql::frame::response::Ready)
    );
    let refusal = protocol_error(client.request(startup(&[])).await);
    assert_eq!(
        refusal,
        "Unexpected message STARTUP, the connection is already initialized"
    );
    client.version = V3;
    let bytes = client.encode(1, query("void"));
    client.version = V4;
    client.socket.write_all(&bytes).await.unwrap();
    let (_, message) = client.receive().await.unwrap();
    assert_eq!(
        protocol_error(message.response),
        "Invalid message version. Got 3/v3 but previous messages on this connection had version 4/v4"
    );
    let mut client = Client::open(server.address(), V5).await;
    let refusal = protocol_error(client.request(startup(&[("COMPRESSION", "snappy")])).await);
    assert_eq!(refusal, "Snappy compression is not supported in protocol V5");
}

#[tokio::test]
async fn unknown_version_is_refused_in_words_and_closed() {
    let (server, _) = server().await;
    for number in [1u8, 7, 65, 66] {
        let mut client = Client::open(server.address(), V5).await;
        client
            .socket
            .write_all(&[number, 0, 0, 0, 5, 0, 0, 0, 0])
            .await
            .unwrap();
        let (stream, message) = client.receive().await.unwrap();
        assert_eq!(stream, 0);
        assert_eq!(protocol_error(message.response), ProtocolVersion::refusal(number));
        assert!(client.receive().await.is_none());
    }
}

#[tokio::test]
async fn garbage_closes_its_connection_only() {
    let (server, _) = server().await;
    let mut bystander = Client::connect(server.address(), V5, None, &[]).await;
    for version in [V4, V5] {
        let mut client = Client::connect(server.address(), version, None, &[]).await;
        // The bytes have an unknown version, and are no valid segment.
        client
            .socket
            .write_all(&[9, 4, 4, 4, 7, 4, 4, 4, 4].repeat(30))
            .await
            .unwrap();
        let (_, message) = client.receive().await.unwrap();
        assert!(
            matches!(message.response, Response::Error(CqlError::Protocol(_))),
            "{message:?}"
        );
        assert!(client.receive().await.is_none());
    }
    // The connection ends in the middle of a frame.
    let mut client = Client::connect(server.address(), V5, Some(Compression::Lz4), &[]).await;
    let bytes = client.encode(1, query("void"));
    client.socket.write_all(&bytes[..bytes.len() - 3]).await.unwrap();
    client.socket.shutdown().await.unwrap();
    assert!(client.receive().await.is_none());
    assert_eq!(bystander.request(query("void")).await, void());
}

#[tokio::test]
async fn requests_run_side_by_side() {
    for version in [V4, V5] {
        let (server, mock) = server().await;
        let mut client = Client::connect(server.address(), version, None, &[]).await;
        for stream in 0..100 {
            client
                .send(stream, query(&format!("held {}", 100 - stream)))
                .await;
        }
        client.send(1000, query("void")).await;
        let (first, _) = client.receive().await.unwrap();
        assert_eq!(first, 1000);
        mock.begins(101).await;
        assert_eq!(mock.ended.load(Ordering::Relaxed), 1, "all others still run");
        // Requests are answered in the order in which they end.
        for stream in (0..100).rev() {
            mock.gate.send_replace(100 - stream as u64);
            assert_eq!(client.receive().await.unwrap().0, stream);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_busy_request_does_not_hold_up_the_others() {
    let (server, mock) = server().await;
    let mut client = Client::connect(server.address(), V4, None, &[]).await;
    client.send(1, query("spin 1")).await;
    mock.begins(1).await;
    client.send(2, query("void")).await;
    assert_eq!(client.receive().await.unwrap().0, 2);
    mock.gate.send_replace(1);
    assert_eq!(client.receive().await.unwrap().0, 1);
}

#[tokio::test]
async fn a_panic_is_an_answer() {
    let (server, _) = server().await;
    let mut client = Client::connect(server.address(), V4, None, &[]).await;
    assert!(matches!(
        client.request(query("panic")).await,
        Response::Error(CqlError::Server(_))
    ));
    assert_eq!(client.request(query("void")).await, void());
}

#[tokio::test]
async fn keyspaces() {
    let (server, _) = server().await;
    let mut client = Client::connect(server.address(), V5, None, &[]).await;
    assert_eq!(
        client.request(query("use a")).await,
        Response::Result(QueryResult::SetKeyspace("a".to_owned()))
    );
    assert_eq!(text_of(client.request(query("keyspace")).await), "a");
    let parameters = QueryParameters {
        keyspace: Some("b".to_owned()),
        ..QueryParameters::default()
    };
    let request = Request::Query(Box::new(Query {
        query: "keyspace".to_owned(),
        parameters,
    }));
    assert_eq!(text_of(client.request(request).await), "b");
    assert_eq!(text_of(client.request(query("keyspace")).await), "a");
}

#[tokio::test]
async fn values_warnings_and_traces() {
    let (server, _) = server().await;
    let mut client = Client::connect(server.address(), V4, None, &[]).await;
    let parameters = QueryParameters {
        values: BoundValues::Positional(vec![
            BoundValue::Set(vec![1].into()),
            BoundValue::Null,
            BoundValue::Unset,
        ]),
        ..QueryParameters::default()
    };
    let request = Request::Query(Box::new(Query {
        query: "values".to_owned(),
        parameters,
    }));
    let mut message = RequestMessage::new(request);
    message.tracing = true;
    let mut out = bytes::BytesMut::new();
    client.encoder.request(V4, 7, &message, &mut out);
    client.socket.write_all(&out).await.unwrap();
    let (stream, message) = client.receive().await.unwrap();
    assert_eq!(stream, 7);
    assert_eq!(message.warnings, ["mind"]);
    assert_eq!(message.tracing_id.unwrap().get_version_num(), 1);
    assert_eq!(
        text_of(message.response),
        "Positional([Set(b\"\\x01\"), Null, Unset])"
    );
}

#[tokio::test]
async fn trace_shows_executed_steps() {
    let (server, mock) = server().await;
    let mut client = Client::connect(server.address(), V5, None, &[]).await;
    let mut message = RequestMessage::new(query("void"));
    message.tracing = true;
    let mut envelope = bytes::BytesMut::new();
    client.encoder.request(V5, 7, &message, &mut envelope);
    let mut out = bytes::BytesMut::new();
    client.encoder.wrap(&envelope, &mut out);
    // The request is sent in two pieces. The time between them counts as receiving.
    let tail = out.split_off(out.len() - 1);
    client.socket.write_all(&out).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    client.socket.write_all(&tail).await.unwrap();
    let (_, answer) = client.receive().await.unwrap();
    // The last event is added after the response has been sent.
    for _ in 0..200 {
        if mock.traces.lock().iter().any(|trace| trace.events.len() == 3) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let traces = mock.traces.lock();
    let [trace] = traces.as_slice() else {
        panic!("{traces:?}")
    };
    assert_eq!(Some(trace.id), answer.tracing_id);
    assert_eq!(trace.request, "Execute CQL3 query");
    assert_eq!(trace.parameters["query"], "void");
    let activities: Vec<&str> = trace.events.iter().map(|event| event.activity.as_str()).collect();
    let [received, done, sent] = activities.as_slice() else {
        panic!("{activities:?}")
    };
    assert!(received.starts_with("Received a request of "), "{received}");
    assert_eq!(*done, "Doing nothing");
    assert!(sent.starts_with("Sent an answer of "), "{sent}");
    assert!(trace.events[0].elapsed >= Duration::from_millis(50), "{trace:?}");
    assert!(trace.duration >= trace.events[1].elapsed, "{trace:?}");
    let ids: Vec<_> = trace.events.iter().map(|event| event.id).collect();
    assert!(
        ids.is_sorted_by_key(|id| id.get_timestamp().unwrap().to_gregorian().0),
        "{ids:?}"
    );
}

#[tokio::test]
async fn prepared_statements() {
    let (server, mock) = server().await;
    let mut client = Client::connect(server.address(), V5, None, &[]).await;
    let prepare = Request::Prepare(Prepare {
        query: "rows 2".to_owned(),
        keyspace: None,
    });
    let Response::Result(QueryResult::Prepared(prepared)) = client.request(prepare).await else {
        panic!()
    };
    let known = prepared.result_metadata_id.to_vec();
    let rows = |response| match response {
        Response::Result(QueryResult::Rows(rows)) => rows,
        other => panic!("{other:?}"),
    };
    let same = rows(client.request(execute("rows 2", Some(known.clone()), true)).await);
    assert!(same.page.skip && same.page.new_metadata_id.is_none());
    mock.columns.store(2, Ordering::Relaxed);
    let changed = rows(client.request(execute("rows 2", Some(known.clone()), true)).await);
    assert_eq!(changed.metadata.columns.len(), 2);
    assert_eq!(
        changed.page.new_metadata_id.as_deref(),
        Some(&changed.metadata.id()[..])
    );
    let again = rows(
        client
            .request(execute("rows 2", Some(changed.metadata.id().to_vec()), true))
            .await,
    );
    assert!(again.page.skip);
    // Rows of a statement other than SELECT always carry their metadata.
    let outcome = rows(client.request(execute("keyspace", Some(known), true)).await);
    assert!(!outcome.page.skip && outcome.page.new_metadata_id.is_none());

    let mut older = Client::connect(server.address(), V4, None, &[]).await;
    assert!(!rows(older.request(execute("rows 2", None, true)).await).page.skip);
    mock.columns.store(1, Ordering::Relaxed);
    assert!(rows(older.request(execute("rows 2", None, true)).await).page.skip);
    let id = "0123456789abcdef";
    let Response::Error(CqlError::Unprepared(unknown)) = older.request(execute(id, None, true)).await else {
        panic!()
    };
    assert_eq!(unknown, id.as_bytes());

    let statement = BatchStatement {
        statement: StatementRef::Query("void".to_owned()),
        values: Vec::new(),
    };
    let batch = Batch {
        statements: vec![statement; 3],
        ..Batch::default()
    };
    assert_eq!(
        text_of(client.request(Request::Batch(Box::new(batch))).await),
        "3 statements"
    );
}

#[tokio::test]
async fn schema_events_go_to_those_who_registered() {
    let (server, mock) = server().await;
    let mut listener = Client::connect(server.address(), V5, None, &[]).await;
    let mut deaf = Client::connect(server.address(), V4, None, &[]).await;
    let mut wrong = Client::connect(server.address(), V4, None, &[]).await;
    listener
        .request(Request::Register(Register {
            events: vec![EventType::SchemaChange],
        }))
        .await;
    wrong
        .request(Request::Register(Register {
            events: vec![EventType::StatusChange],
        }))
        .await;
    let Response::Result(QueryResult::SchemaChange(change)) = deaf.request(query("create a")).await else {
        panic!()
    };
    let (stream, message) = listener.receive().await.unwrap();
    assert_eq!(stream, -1);
    assert_eq!(message.response, Response::Event(Event::SchemaChange(change)));
    assert_eq!(wrong.request(query("void")).await, void());
    drop(mock);
}

#[tokio::test]
async fn too_much_in_flight() {
    let mock = Mock::default();
    let config = ServerConfig {
        connection_in_flight_bytes: 2000,
        ..config()
    };
    let server = Server::start(config, mock.clone()).await.unwrap();
    // A client that has requested THROW_ON_OVERLOAD receives OVERLOADED.
    let mut client = Client::connect(server.address(), V4, None, &[("THROW_ON_OVERLOAD", "1")]).await;
    for stream in 0..20 {
        client.send(stream, query("held 1")).await;
    }
    // The response to this request follows all refusals.
    client.send(20, Request::Options(Options)).await;
    let mut refused = 0;
    loop {
        let (stream, message) = client.receive().await.unwrap();
        if stream == 20 {
            break;
        }
        let overloaded = matches!(message.response, Response::Error(CqlError::Overloaded(_)));
        assert!(overloaded, "{stream}: {message:?}");
        refused += 1;
    }
    assert!((10..20).contains(&refused), "{refused} of 20 were refused");
    mock.gate.send_replace(1);
    for _ in refused..20 {
        assert_eq!(client.receive().await.unwrap().1.response, void());
    }
    // Requests of another client wait instead, and all are answered.
    let mut client = Client::connect(server.address(), V4, None, &[]).await;
    for stream in 0..20 {
        client.send(stream, query("sleep 20")).await;
    }
    for _ in 0..20 {
        assert_eq!(client.receive().await.unwrap().1.response, void());
    }
    assert_eq!(client.request(query("void")).await, void());
}

#[tokio::test]
async fn the_nodes_bytes_are_shared() {
    let config = ServerConfig {
        node_in_flight_bytes: 500,
        ..config()
    };
    let mock = Mock::default();
    let server = Server::start(config, mock.clone()).await.unwrap();
    let mut first = Client::connect(server.address(), V4, None, &[]).await;
    let mut second = Client::connect(server.address(), V4, None, &[]).await;
    first.send(1, query("held 1")).await;
    first.send(2, query("void")).await;
    mock.begins(1).await;
    // One request of each connection may always run.
    assert_eq!(second.request(query("void")).await, void());
    assert_eq!(
        mock.begun.load(Ordering::Relaxed),
        2,
        "the first still runs alone"
    );
    second.send(1, query("held 1")).await;
    second.send(2, query("void")).await;
    mock.begins(3).await;
    mock.gate.send_replace(1);
    assert_eq!(
        second.receive().await.unwrap().0,
        1,
        "a second one waits for room"
    );
    second.receive().await.unwrap();
    for _ in 0..2 {
        first.receive().await.unwrap();
    }
}

#[tokio::test]
async fn connections_are_limited() {
    let config = ServerConfig {
        connections_max: 2,
        ..config()
    };
    let server = Server::start(config, Mock::default()).await.unwrap();
    let mut first = Client::connect(server.address(), V4, None, &[]).await;
    let second = Client::connect(server.address(), V4, None, &[]).await;
    let mut third = Client::open(server.address(), V4).await;
    assert_eq!(third.socket.read(&mut [0; 10]).await.unwrap_or(0), 0);
    drop(second);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut fourth = Client::connect(server.address(), V4, None, &[]).await;
    assert_eq!(first.request(query("void")).await, void());
    assert_eq!(fourth.request(query("void")).await, void());
}

#[tokio::test]
async fn silent_connections_are_closed() {
    let start = async |config| Server::start(config, Mock::default()).await.unwrap();
    let server = start(ServerConfig {
        startup_timeout: Duration::from_millis(100),
        ..config()
    })
    .await;
    let mut unstarted = Client::open(server.address(), V4).await;
    assert!(unstarted.receive().await.is_none());
    let server = start(ServerConfig {
        idle_timeout: Some(Duration::from_millis(400)),
        ..config()
    })
    .await;
    let mut idle = Client::connect(server.address(), V4, None, &[]).await;
    // A connection that waits for a response is not idle.
    assert_eq!(idle.request(query("sleep 1000")).await, void());
    assert!(idle.receive().await.is_none());
}

#[tokio::test]
async fn a_lost_clients_requests_run_to_their_end() {
    let (server, mock) = server().await;
    let mut client = Client::connect(server.address(), V4, None, &[]).await;
    client.send(1, query("held 1")).await;
    client.send(2, query("void")).await;
    client.receive().await.unwrap();
    drop(client);
    tokio::time::sleep(Duration::from_millis(50)).await;
    mock.gate.send_replace(1);
    mock.ends(2).await;
}

/// Returns a server and two clients. Request 1 of the first client runs until the gate is at 1. The second client has no requests.
async fn with_a_busy_and_an_idle_client() -> (Server, Mock, Client, Client) {
    let (server, mock) = server().await;
    let mut busy = Client::connect(server.address(), V5, None, &[]).await;
    let idle = Client::connect(server.address(), V4, None, &[]).await;
    busy.send(1, query("held 1")).await;
    mock.begins(1).await;
    (server, mock, busy, idle)
}

/// Waits until a server has stopped.
async fn stops(stopping: tokio::task::JoinHandle<()>) {
    tokio::time::timeout(LIMIT, stopping)
        .await
        .expect("the server does not stop")
        .unwrap();
}

#[tokio::test]
async fn stopping_answers_what_runs_and_turns_away_what_comes() {
    let (server, mock, mut client, mut idle) = with_a_busy_and_an_idle_client().await;
    let address = server.address();
    let stopping = tokio::spawn(server.stop());
    assert!(idle.receive().await.is_none());
    client.send(2, query("void")).await;
    let (stream, answer) = client.receive().await.unwrap();
    let turned_away = matches!(answer.response, Response::Error(CqlError::IsBootstrapping(_)));
    assert!(stream == 2 && turned_away, "{stream}: {answer:?}");
    mock.gate.send_replace(1);
    assert_eq!(client.receive().await.unwrap().1.response, void());
    assert!(client.receive().await.is_none());
    drop((client, idle));
    stops(stopping).await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn server_with_work_to_hand_over_serves_until_clients_idle() {
    let (server, mock, mut busy, mut idle) = with_a_busy_and_an_idle_client().await;
    let (done, is_done) = tokio::sync::oneshot::channel::<()>();
    let handed_over = async {
        let _ = is_done.await;
    };
    let stopping = tokio::spawn(server.stop_after(handed_over, Duration::from_secs(60)));
    assert!(idle.receive().await.is_none(), "nothing runs of it");
    busy.send(2, query("void")).await;
    let (stream, answer) = busy.receive().await.unwrap();
    assert_eq!(
        (stream, answer.response),
        (2, void()),
        "it is served, not turned away"
    );
    mock.gate.send_replace(1);
    assert_eq!(busy.receive().await.unwrap().1.response, void());
    assert!(busy.receive().await.is_none());
    drop((busy, idle));
    assert!(!stopping.is_finished());
    done.send(()).unwrap();
    stops(stopping).await;
}

#[tokio::test]
async fn busy_client_is_served_until_its_connection_ends() {
    let (server, _) = server().await;
    let mut client = Client::connect(server.address(), V5, None, &[]).await;
    let stopping = tokio::spawn(server.stop_after(std::future::ready(()), Duration::from_millis(300)));
    let mut served = 0;
    loop {
        client.send(1, query("void")).await;
        let Some((_, answer)) = client.receive().await else {
            break;
        };
        // The client continues even when its requests are refused.
        served += u32::from(answer.response == void());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    // On a busy machine the client may seem idle early, so nothing is said of the time.
    assert!(served > 0);
    drop(client);
    stops(stopping).await;
}

#[tokio::test]
async fn clients_that_stay_too_long_are_turned_away() {
    let (server, mock, mut client, _) = with_a_busy_and_an_idle_client().await;
    let stopping = tokio::spawn(server.stop_after(std::future::ready(()), Duration::from_millis(100)));
    let turning_away = async {
        loop {
            client.send(2, query("void")).await;
            let (stream, answer) = client.receive().await.unwrap();
            match (stream, answer.response) {
                (2, Response::Error(CqlError::IsBootstrapping(_))) => break,
                served => assert_eq!(served, (2, void())),
            }
        }
    };
    tokio::time::timeout(LIMIT, turning_away)
        .await
        .expect("the client is served all the time");
    mock.gate.send_replace(1);
    assert_eq!(client.receive().await.unwrap().1.response, void());
    assert!(client.receive().await.is_none());
    drop(client);
    stops(stopping).await;
}

#[tokio::test]
async fn a_client_that_does_not_read_is_not_read() {
    let (server, mock) = server().await;
    let mut client = Client::connect(server.address(), V4, None, &[]).await;
    // The responses would take 400 MB if all requests began.
    for stream in 0..400 {
        let bytes = client.encode(stream, query("rows 1000"));
        client.socket.write_all(&bytes).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let begun = mock.ended.load(Ordering::Relaxed);
    assert!(
        begun < 40,
        "{begun} answers were made for a client that takes none"
    );
    for _ in 0..400 {
        client.receive().await.unwrap();
    }
}
