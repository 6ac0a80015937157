use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use tokio::net::TcpListener;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};
use tonic::{Response, Streaming};

use super::super::peer_auth::tests::{STORE, node, own};
use super::super::proto::node_server::{Node, NodeServer};
use super::super::proto::*;
use super::super::secret::Secret;
use super::*;

/// The behaviour of the other node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PeerBehaviour {
    /// Answers the requests of each message, the last one first.
    Answers,
    /// Reads requests and answers none.
    Hangs,
    /// Reads one message and ends the stream.
    HangsUp,
}

struct FakePeer(PeerBehaviour);

type Answered = UnboundedReceiverStream<Result<Answers, Status>>;

fn unknown<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("not here"))
}

#[tonic::async_trait]
impl Node for FakePeer {
    type ExchangeStream = Answered;
    type ScanStream = UnboundedReceiverStream<Result<ScanChunk, Status>>;

    async fn exchange(&self, request: Request<Streaming<Questions>>) -> Result<Response<Answered>, Status> {
        let behaviour = self.0;
        let (sender, answers) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut questions = request.into_inner();
            while let Ok(Some(group)) = questions.message().await {
                let answer = |question: &Question| {
                    let not_mine = question.timeout_ms == 0;
                    let rows = vec![Row {
                        value: Some(Bytes::from(group.questions.len().to_string())),
                    }];
                    Answer {
                        id: question.id,
                        what: Some(answer::What::Get(GetResponse { not_mine, rows })),
                    }
                };
                match behaviour {
                    PeerBehaviour::HangsUp => return,
                    PeerBehaviour::Hangs => {}
                    _ => {
                        let answers = group.questions.iter().rev().map(answer).collect();
                        let _ = sender.send(Ok(Answers { answers }));
                    }
                }
            }
        });
        Ok(Response::new(UnboundedReceiverStream::new(answers)))
    }

    async fn greet(&self, _: Request<GreetRequest>) -> Result<Response<GreetResponse>, Status> {
        unknown()
    }
    async fn ask(&self, _: Request<Question>) -> Result<Response<Answer>, Status> {
        unknown()
    }
    async fn scan(&self, _: Request<ScanRequest>) -> Result<Response<Self::ScanStream>, Status> {
        unknown()
    }
    async fn tell(&self, _: Request<TellRequest>) -> Result<Response<TellResponse>, Status> {
        unknown()
    }
    async fn release(&self, _: Request<ReleaseRequest>) -> Result<Response<ReleaseResponse>, Status> {
        unknown()
    }
    async fn remove_stale(
        &self,
        _: Request<RemoveStaleRequest>,
    ) -> Result<Response<RemoveStaleResponse>, Status> {
        unknown()
    }
    async fn hold(&self, _: Request<HoldRequest>) -> Result<Response<HoldResponse>, Status> {
        unknown()
    }
    async fn pin(&self, _: Request<PinRequest>) -> Result<Response<PinResponse>, Status> {
        unknown()
    }
    async fn load(&self, _: Request<LoadRequest>) -> Result<Response<LoadResponse>, Status> {
        unknown()
    }
}

fn exchange_with(address: std::net::SocketAddr) -> RequestStream {
    let channel = Endpoint::from_shared(format!("http://{address}"))
        .unwrap()
        .connect_lazy();
    let credentials = PeerCredentials::new(Secret::new("secret"), own(2, STORE, &[(2, 20)]), &node(1, 10));
    let (client, credentials) = (NodeClient::new(channel), Arc::new(credentials));
    RequestStream::new(client, credentials, Handle::current(), Arc::default())
}

async fn exchange(behaviour: PeerBehaviour) -> RequestStream {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Server::builder().add_service(NodeServer::new(FakePeer(behaviour)));
    tokio::spawn(router.serve_with_incoming(TcpIncoming::from(listener)));
    exchange_with(address)
}

fn get() -> question::What {
    question::What::Get(GetRequest::default())
}

fn within(milliseconds: u64) -> Instant {
    Instant::now() + Duration::from_millis(milliseconds)
}

#[tokio::test]
async fn each_request_gets_its_answer_and_queued_ones_batch() {
    let exchange = exchange(PeerBehaviour::Answers).await;
    let requested = (0..500).map(|_| exchange.request(get(), within(10_000)));
    let answers = futures::future::join_all(requested).await;
    let group = |outcome: &Outcome| match outcome {
        Ok(answer::What::Get(answer)) => {
            let text = answer.rows[0].value.clone().unwrap();
            std::str::from_utf8(&text).unwrap().parse::<usize>().unwrap()
        }
        other => panic!("{other:?}"),
    };
    let largest = answers.iter().map(group).max();
    assert_eq!(
        largest,
        Some(super::super::message_batching::GROUP_MAX),
        "they went one by one"
    );
    assert!(exchange.queue.state.lock().open.is_empty());
}

#[tokio::test]
async fn received_unanswered_request_may_be_executed() {
    let silent = exchange(PeerBehaviour::Hangs).await;
    let outcome = silent.request(get(), within(200)).await;
    assert!(matches!(outcome, Err(RemoteError::NoAnswer(_))), "{outcome:?}");
    assert!(silent.queue.state.lock().open.is_empty(), "it is forgotten");
    let broken = exchange(PeerBehaviour::HangsUp).await;
    for _ in 0..3 {
        let outcome = broken.request(get(), within(10_000)).await;
        assert!(matches!(outcome, Err(RemoteError::NoAnswer(_))), "{outcome:?}");
    }
}

#[tokio::test]
async fn request_to_absent_node_was_not_received() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let exchange = exchange_with(address);
    for _ in 0..3 {
        let outcome = exchange.request(get(), within(10_000)).await;
        assert!(matches!(outcome, Err(RemoteError::Unreachable(_))), "{outcome:?}");
    }
}

#[tokio::test]
async fn more_than_may_be_open_wait_and_are_not_sent() {
    let exchange = exchange(PeerBehaviour::Hangs).await;
    let filling = (0..OPEN_MAX).map(|_| exchange.request(get(), within(2_000)));
    let filling = futures::future::join_all(filling);
    let one_more = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        exchange.request(get(), within(100)).await
    };
    let (filled, outcome) = tokio::join!(filling, one_more);
    assert!(matches!(outcome, Err(RemoteError::Unreachable(_))), "{outcome:?}");
    assert!(
        filled
            .iter()
            .all(|outcome| matches!(outcome, Err(RemoteError::NoAnswer(_))))
    );
}

#[tokio::test]
async fn what_was_given_up_before_it_was_sent_is_not_sent() {
    let queue = Arc::<Queue>::default();
    {
        let mut state = queue.state.lock();
        for id in 0..3 {
            let (caller, _) = oneshot::channel();
            let pending = PendingRequest {
                bytes: 0,
                caller,
                deadline: within(1000),
                is_left: Arc::default(),
                was_sent: false,
                was_given_up: false,
            };
            state.open.insert(id, pending);
            state.waiting.push_back(Question {
                id,
                ..Question::default()
            });
        }
    }
    drop(PendingGuard { queue: &queue, id: 1 });
    let group = Outgoing(queue.clone()).next().await.unwrap();
    let ids: Vec<u64> = group.questions.iter().map(|question| question.id).collect();
    assert_eq!(ids, [0, 2]);
    queue.state.lock().is_over = true;
    assert!(Outgoing(queue).next().await.is_none());
}
