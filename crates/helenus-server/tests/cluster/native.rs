//! Clients of the native protocol get the same bytes from every node, whichever node owns the rows.

use std::net::SocketAddr;

use bytes::Bytes;
use helenus_cql::frame::request::{Batch, BatchKind, BatchStatement, StatementRef};
use helenus_cql::frame::response::QueryResult;
use helenus_cql::frame::{
    BoundValue, BoundValues, Envelope, Flags, Opcode, ProtocolVersion, QueryParameters, Request,
    RequestMessage, Response, ResponseMessage,
};
use helenus_server::{Server, ServerConfig};

use crate::native_client::{Client, execute, ints, query, with};
use crate::nodes::Nodes;

const VERSIONS: [ProtocolVersion; 3] = [ProtocolVersion::V3, ProtocolVersion::V4, ProtocolVersion::V5];

/// Three nodes with ports for clients.
struct NativeNodes {
    nodes: Nodes,
    servers: Vec<Server>,
}

impl NativeNodes {
    async fn start() -> NativeNodes {
        let nodes = Nodes::start().await;
        let mut servers = Vec::new();
        for engine in &nodes.engines {
            let config = ServerConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)), 1 << 30);
            servers.push(Server::start(config, engine.clone()).await.unwrap());
        }
        let table = "CREATE TABLE t (k int, c int, v int, PRIMARY KEY (k, c)) WITH gc_grace_seconds = 0";
        assert_eq!(nodes.run(0, table).await, "");
        NativeNodes { nodes, servers }
    }

    async fn clients(&self, version: ProtocolVersion) -> Vec<Client> {
        let mut clients = Vec::new();
        for server in &self.servers {
            clients.push(Client::connect(server.address(), version).await);
        }
        clients
    }
}

/// Returns the response of all nodes, which must be the same.
async fn same(clients: &mut [Client], what: &str, request: &Request) -> Envelope {
    let mut first: Option<Envelope> = None;
    for (node, client) in clients.iter_mut().enumerate() {
        let envelope = client.ask(request.clone()).await;
        match &first {
            Some(first) => assert_eq!(*first, envelope, "{what} by node {node}, {:?}", client.version),
            None => first = Some(envelope),
        }
    }
    first.unwrap()
}

fn rows_of(envelope: Envelope) -> helenus_cql::frame::Rows {
    match ResponseMessage::decode(envelope).unwrap().response {
        Response::Result(QueryResult::Rows(rows)) => rows,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_nodes_answer_with_the_same_bytes() {
    let native = NativeNodes::start().await;
    for version in VERSIONS {
        let mut clients = native.clients(version).await;
        let mut known = Vec::new();
        for text in [
            "INSERT INTO ks.t (k, c, v) VALUES (?, ?, ?)",
            "SELECT * FROM ks.t WHERE k = ?",
            "SELECT v FROM ks.t WHERE k = ? AND c = ?",
            "UPDATE ks.t SET v = 1 WHERE k = ? AND c = 0 IF v = -1",
        ] {
            let mut prepared = None;
            for client in &mut clients {
                prepared = Some(client.prepare(text).await);
            }
            known.extend(prepared);
        }
        let [insert, slice, point, condition] = known.as_slice() else {
            panic!("four statements");
        };
        for k in 0..9 {
            for c in 0..4 {
                same(
                    &mut clients,
                    "INSERT",
                    &execute(insert, with(&[k, c, k * c], true)),
                )
                .await;
            }
            for skip in [true, false] {
                same(&mut clients, "slice", &execute(slice, with(&[k], skip))).await;
                same(&mut clients, "point", &execute(point, with(&[k, 3], skip))).await;
                same(&mut clients, "nothing", &execute(point, with(&[k, 9], skip))).await;
                same(&mut clients, "condition", &execute(condition, with(&[k], skip))).await;
            }
            let unknown = (point.0.clone(), Bytes::from_static(b"an older id"));
            same(
                &mut clients,
                "new metadata",
                &execute(&unknown, with(&[k, 3], true)),
            )
            .await;
            let text = format!("SELECT c, v FROM ks.t WHERE k = {k} AND c > 1");
            let rows = same(&mut clients, "text", &query(&text, QueryParameters::default())).await;
            assert_eq!(rows_of(rows).content.row_count(), 2);
            let invalid = QueryParameters {
                values: vec![BoundValue::Set(Bytes::from_static(b"abc"))].into(),
                ..QueryParameters::default()
            };
            same(&mut clients, "error", &execute(slice, invalid)).await;
            same(&mut clients, "null", &execute(slice, null())).await;
        }
    }
}

fn null() -> QueryParameters {
    QueryParameters {
        values: BoundValues::Positional(vec![BoundValue::Null]),
        ..QueryParameters::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_and_warnings_are_the_same_too() {
    let native = NativeNodes::start().await;
    for version in VERSIONS {
        let mut clients = native.clients(version).await;
        let insert = clients[0]
            .prepare("INSERT INTO ks.t (k, c, v) VALUES (?, ?, ?)")
            .await;
        for k in 0..9 {
            let statement = |c| BatchStatement {
                statement: StatementRef::Prepared(insert.0.clone()),
                values: ints(&[k, c, c]),
            };
            let batch = Request::Batch(Box::new(Batch {
                kind: BatchKind::Logged,
                statements: (0..5).map(statement).collect(),
                parameters: QueryParameters::default(),
            }));
            let warned = clients[0].ask(batch).await;
            assert_eq!(warned.header.opcode, Opcode::Result);
            let has_warnings = warned.header.flags.contains(Flags::WARNING);
            assert_eq!(has_warnings, version >= ProtocolVersion::V4);
            let mut page = QueryParameters {
                page_size: Some(2),
                ..QueryParameters::default()
            };
            let mut count = 0;
            loop {
                let text = format!("SELECT c FROM ks.t WHERE k = {k}");
                let rows = rows_of(same(&mut clients, "page", &query(&text, page.clone())).await);
                count += rows.content.row_count();
                page.paging_state = rows.page.paging_state;
                if page.paging_state.is_none() {
                    break;
                }
            }
            assert_eq!(count, 5);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_learn_statements_that_they_do_not_know() {
    let native = NativeNodes::start().await;
    let mut clients = native.clients(ProtocolVersion::V4).await;
    let insert = clients[1]
        .prepare("INSERT INTO ks.t (k, c, v) VALUES (?, 0, ?)")
        .await;
    let select = clients[2].prepare("SELECT v FROM ks.t WHERE k = ?").await;
    for k in 0..9 {
        let written = clients[1].ask(execute(&insert, with(&[k, k], true))).await;
        assert_eq!(written.header.opcode, Opcode::Result);
        let rows = rows_of(clients[2].ask(execute(&select, with(&[k], false))).await);
        assert_eq!(rows.content.row_count(), 1);
    }
    // The plans of all nodes are outdated by a change of the table.
    assert_eq!(native.nodes.run(0, "ALTER TABLE t ADD w int").await, "");
    for k in 0..9 {
        let written = clients[1].ask(execute(&insert, with(&[k, k], true))).await;
        assert_eq!(written.header.opcode, Opcode::Result);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_has_the_steps_of_the_owner() {
    let native = NativeNodes::start().await;
    let mut clients = native.clients(ProtocolVersion::V4).await;
    let mut remote = 0;
    for k in 0..9 {
        let text = format!("INSERT INTO ks.t (k, c, v) VALUES ({k}, 0, 0)");
        let mut message = RequestMessage::new(query(&text, QueryParameters::default()));
        message.tracing = true;
        let traced = ResponseMessage::decode(clients[0].send(message).await).unwrap();
        let id = traced.tracing_id.expect("a trace");
        let steps = format!("SELECT activity FROM system_traces.events WHERE session_id = {id}");
        let rows = rows_of(clients[0].query(&steps).await);
        let mut activities = rows.content.iter().flatten().flatten();
        let is_remote = |activity: Bytes| String::from_utf8_lossy(&activity).contains("(on 127.");
        remote += usize::from(activities.any(is_remote));
    }
    assert!(
        (1..9).contains(&remote),
        "{remote} of nine keys are another node's"
    );
}
