//! Requests that the first node relays to the owners of their rows. Whatever happens to them, clients see what they see of any request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::frame::response::QueryResult;
use helenus_cql::frame::{
    Envelope, ProtocolVersion, QueryParameters, RequestMessage, Response, ResponseMessage,
};
use helenus_query::engine::Limits;
use helenus_server::{Server, ServerConfig};
use tokio::time::Instant;

use crate::crashes::{Cut, own_keys};
use crate::native_client::{Client, execute, query, with};
use crate::nodes::Nodes;
use crate::proxy::Proxy;

const INSERT: &str = "INSERT INTO ks.t (k, v) VALUES (?, ?)";
const SELECT: &str = "SELECT v FROM ks.t WHERE k = ?";
const APPEND: &str = "UPDATE ks.t SET l = l + [7] WHERE k = ?";
/// Number of keys in the table. Some belong to each node.
const KEYS: i32 = 60;

/// Three nodes. The first one serves clients.
struct Relaying {
    nodes: Nodes,
    cut: Arc<Cut>,
    proxies: Vec<Proxy>,
    server: Server,
    /// Keys of rows that other nodes own.
    far: Vec<i32>,
}

impl Relaying {
    async fn start() -> Relaying {
        let (nodes, cut, proxies) = Nodes::start_cut_with_proxies().await;
        let config = ServerConfig::new(SocketAddr::from(([127, 0, 0, 1], 0)), 1 << 30);
        let server = Server::start(config, nodes.engines[0].clone()).await.unwrap();
        let table = "CREATE TABLE t (k int PRIMARY KEY, v int, l list<int>)";
        assert_eq!(nodes.run(0, table).await, "");
        for k in 0..KEYS {
            let insert = format!("INSERT INTO t (k, v) VALUES ({k}, {k})");
            assert_eq!(nodes.run(1, &insert).await, "");
        }
        let own = own_keys(&nodes, &cut).await;
        let far = (0..KEYS).filter(|k| !own.contains(k)).collect();
        Relaying {
            nodes,
            cut,
            proxies,
            server,
            far,
        }
    }

    async fn client(&self) -> Client {
        Client::connect(self.server.address(), ProtocolVersion::V4).await
    }

    /// Returns the list of a row, as its owner has it.
    async fn list(&self, k: i32) -> String {
        self.nodes.run(1, &format!("SELECT l FROM t WHERE k = {k}")).await
    }

    fn hold_answers(&self, holds: bool) {
        self.proxies.iter().for_each(|proxy| proxy.hold_answers(holds));
    }

    /// Waits until that number of EXECUTE requests run on the first node.
    async fn running(&self, count: usize) {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let running = self.nodes.run(0, "SELECT task FROM system_views.queries").await;
            if running.matches("EXECUTE").count() == count {
                return;
            }
            assert!(Instant::now() < until, "{count} expected: {running}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until the list of a row is complete.
    async fn appended(&self, k: i32) {
        let until = Instant::now() + Duration::from_secs(20);
        while self.list(k).await != "[7]" {
            assert!(Instant::now() < until, "{}", self.list(k).await);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn dated(values: &[i32]) -> QueryParameters {
    QueryParameters {
        timestamp_us: Some(1 << 60),
        ..with(values, false)
    }
}

fn response(envelope: Envelope) -> Response {
    ResponseMessage::decode(envelope).unwrap().response
}

/// Returns the int in a response with one row, or another response as text.
fn shown(envelope: Envelope) -> String {
    match response(envelope) {
        Response::Result(QueryResult::Rows(rows)) => {
            let cells: Vec<Option<Bytes>> = rows.content.iter().flatten().collect();
            let [Some(cell)] = cells.as_slice() else {
                panic!("{cells:?}");
            };
            i32::from_be_bytes(cell.as_ref().try_into().unwrap()).to_string()
        }
        other => format!("{other:?}"),
    }
}

fn is_void(envelope: Envelope) -> bool {
    response(envelope) == Response::Result(QueryResult::Void)
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_of_other_nodes_are_relayed() {
    let relaying = Relaying::start().await;
    let mut client = relaying.client().await;
    // The owners know none of the statements: they are prepared on the first node only.
    let (insert, select) = (client.prepare(INSERT).await, client.prepare(SELECT).await);
    let append = client.prepare(APPEND).await;
    for k in 0..KEYS {
        assert!(is_void(
            client.ask(execute(&insert, with(&[k, 2 * k], true))).await
        ));
        assert!(is_void(client.ask(execute(&append, with(&[k], true))).await));
        let read = client.ask(execute(&select, with(&[k], false))).await;
        assert_eq!(shown(read), (2 * k).to_string());
        assert_eq!(relaying.list(k).await, "[7]");
    }
    assert_eq!(relaying.cut.relayed(), 3 * relaying.far.len());
    let invalid = client.ask(execute(&select, with(&[1, 2], false))).await;
    assert!(matches!(response(invalid), Response::Error(CqlError::Invalid(_))));
    relaying.running(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relayed_request_follows_a_moved_tablet() {
    let relaying = Relaying::start().await;
    let mut client = relaying.client().await;
    let (append, select) = (client.prepare(APPEND).await, client.prepare(SELECT).await);
    for k in relaying.far.iter().copied().take(10) {
        relaying.cut.mislead();
        assert!(is_void(client.ask(execute(&append, with(&[k], true))).await));
        assert!(relaying.cut.has_misled());
        assert_eq!(relaying.list(k).await, "[7]");
        relaying.cut.mislead();
        let read = client.ask(execute(&select, with(&[k], false))).await;
        assert!(relaying.cut.has_misled());
        assert_eq!(shown(read), k.to_string());
    }
    assert_eq!(relaying.cut.relayed(), 20);
    relaying.running(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_of_relayed_requests_are_not_guessed() {
    let relaying = Relaying::start().await;
    let mut client = relaying.client().await;
    let (append, select) = (client.prepare(APPEND).await, client.prepare(SELECT).await);
    let insert = client.prepare(INSERT).await;
    // The owners learn the statements. Otherwise the lost answers would be that they do not know them.
    for k in relaying.far.iter().copied().skip(10) {
        shown(client.ask(execute(&select, with(&[k], false))).await);
        assert!(is_void(client.ask(execute(&insert, with(&[k, k], false))).await));
        assert!(is_void(client.ask(execute(&append, with(&[k], false))).await));
    }
    for k in relaying.far.iter().copied().take(10) {
        let lose = || relaying.proxies.iter().for_each(Proxy::lose_answer);
        lose();
        let read = client.ask(execute(&select, with(&[k], false))).await;
        assert_eq!(shown(read), k.to_string());
        lose();
        // A write with a timestamp is repeated.
        assert!(is_void(client.ask(execute(&insert, dated(&[k, -k]))).await));
        lose();
        let unknown = response(client.ask(execute(&append, with(&[k], false))).await);
        let is_unknown = matches!(unknown, Response::Error(CqlError::WriteTimeout { .. }));
        assert!(is_unknown, "{unknown:?}");
        assert_eq!(relaying.list(k).await, "[7]");
        relaying.proxies.iter().for_each(|proxy| {
            proxy.has_lost_none();
        });
    }
    relaying.running(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_may_leave_while_its_answer_is_due() {
    let relaying = Relaying::start().await;
    let [first, second, ..] = relaying.far[..] else {
        panic!("other nodes own rows");
    };
    relaying.hold_answers(true);
    let mut client = relaying.client().await;
    let append = client.prepare(APPEND).await;
    let send = |k| RequestMessage::new(execute(&append, with(&[k], true)));
    client.begin(send(first)).await;
    relaying.running(1).await;
    // The request of another client is misled, so that it is not done yet when the client leaves.
    let mut other = relaying.client().await;
    relaying.cut.mislead();
    other.begin(send(second)).await;
    relaying.running(2).await;
    drop((client, other));
    relaying.hold_answers(false);
    relaying.appended(first).await;
    relaying.appended(second).await;
    relaying.running(0).await;
    let mut next = relaying.client().await;
    assert!(is_void(
        next.ask(execute(&append, with(&[relaying.far[2]], true))).await
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn relayed_requests_end_at_their_deadline() {
    let relaying = Relaying::start().await;
    let mut limits = Limits::clone(&relaying.nodes.engines[0].limits());
    limits.request_timeout = Duration::from_secs(1);
    relaying.nodes.engines[0].set_limits(limits);
    let k = relaying.far[0];
    let mut client = relaying.client().await;
    let (append, select) = (client.prepare(APPEND).await, client.prepare(SELECT).await);
    let insert = client.prepare(INSERT).await;
    let relayed = relaying.cut.relayed();
    let pairs = [
        (
            execute(&select, with(&[k], false)),
            format!("SELECT v FROM ks.t WHERE k = {k}"),
        ),
        (
            execute(&append, with(&[k], false)),
            format!("UPDATE ks.t SET l = l + [7] WHERE k = {k}"),
        ),
        (
            execute(&insert, dated(&[k, 1])),
            format!("INSERT INTO ks.t (k, v) VALUES ({k}, 1) USING TIMESTAMP 1152921504606846976"),
        ),
    ];
    for (execute, text) in pairs {
        let mut responses = Vec::new();
        for request in [query(&text, QueryParameters::default()), execute] {
            relaying.hold_answers(true);
            responses.push(response(client.ask(request).await));
            relaying.hold_answers(false);
            // The connection to the owner goes on.
            let read = query(
                &format!("SELECT k FROM ks.t WHERE k = {k}"),
                QueryParameters::default(),
            );
            assert_eq!(shown(client.ask(read).await), k.to_string());
        }
        assert!(
            matches!(responses[0], Response::Error(_)),
            "{text}: {responses:?}"
        );
        assert_eq!(responses[0], responses[1], "{text}");
    }
    assert_eq!(relaying.cut.relayed(), relayed + 3);
    relaying.running(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_with_relayed_requests_is_survived() {
    let mut relaying = Relaying::start().await;
    let mut client = relaying.client().await;
    let (insert, select) = (client.prepare(INSERT).await, client.prepare(SELECT).await);
    for round in 0..3 {
        for k in 0..KEYS {
            assert!(is_void(
                client.ask(execute(&insert, with(&[k, round], true))).await
            ));
        }
        relaying.nodes.restart_server(1).await;
        for k in 0..KEYS {
            let read = client.ask(execute(&select, with(&[k], false))).await;
            assert_eq!(shown(read), round.to_string());
        }
    }
    assert_eq!(relaying.cut.relayed(), 6 * relaying.far.len());
}
