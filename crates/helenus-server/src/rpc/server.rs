//! The gRPC server that serves the engine to the other nodes.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use helenus_cluster::{CLUSTER_DOCUMENT, DocumentVersion};
use helenus_query::cluster::{ScanRange, Versions};
use helenus_query::engine::Engine;
use helenus_query::engine::ServedScan;
use helenus_query::failure::ExecutionError;
use helenus_query::metrics::internode::InboundTraffic;
use helenus_tablet::{MetaStamp, TokenRange};
use prost::Message;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};
use uuid::Uuid;

use super::codec;
use super::cut_codec;
use super::peer_auth::{Caller, LocalIdentity, PeerAuthInterceptor};
use super::proto::node_server::{Node, NodeServer};
use super::proto::{
    Answer, Entry, GreetRequest, GreetResponse, HoldRequest, HoldResponse, LoadRequest, LoadResponse,
    PinRequest, PinResponse, Question, Questions, ReleaseRequest, ReleaseResponse, RemoveStaleRequest,
    RemoveStaleResponse, ScanChunk, ScanRequest, TellRequest, TellResponse,
};
use super::request_handler::{Outgoing, RequestHandler, is_answer, to_the_end};
use super::scoped;
use super::secret::Secret;
use super::{MESSAGE_BYTES_MAX, PROTOCOL, PROTOCOL_MIN, TabletReleased, Tls};
use crate::threads::long_requests::LongRequestPool;

/// Bytes of rows in a chunk of a scan, and maximum number of chunks that wait to be sent.
const CHUNK_BYTES: usize = 256 << 10;
const CHUNKS_AHEAD: usize = 2;
/// Interval of the pings of a silent connection, and maximum time until a response to them.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(2);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(4);

/// Maximum bytes of requests in flight on a stream and on a connection. They are fixed, because measuring costs messages.
const STREAM_WINDOW: u32 = 2 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;

/// Time without calls after which the server stops. Other nodes need a moment to see that this node has left. A call that is in flight when
/// a connection closes gets no response.
const QUIET: Duration = Duration::from_millis(100);
const QUIET_WAIT_MAX: Duration = Duration::from_secs(1);

/// Maximum number of notifications about closed tablets that wait. Further ones are dropped.
const RELEASED_MAX: usize = 64;

/// A running gRPC server for the other nodes.
pub struct RpcServer {
    address: SocketAddr,
    /// Number of requests so far, without greetings.
    calls: Arc<AtomicU64>,
    announced: watch::Receiver<DocumentVersion>,
    released: Option<mpsc::Receiver<TabletReleased>>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

impl RpcServer {
    /// Binds the address and begins to serve.
    ///
    /// # Errors
    /// The address cannot be bound, or the certificates are invalid.
    pub async fn start(
        address: SocketAddr,
        engine: Arc<Engine>,
        cluster_name: String,
        own: LocalIdentity,
        secret: Secret,
        tls: Option<&Tls>,
    ) -> io::Result<RpcServer> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let calls = Arc::<AtomicU64>::default();
        let (tell, announced) = watch::channel(DocumentVersion::default());
        let (release, released) = mpsc::channel(RELEASED_MAX);
        let (stop, mut stopped) = watch::channel(false);
        let service = NodeService {
            handler: RequestHandler {
                engine,
                long_requests: Arc::new(LongRequestPool::start()?),
                calls: calls.clone(),
            },
            cluster_name,
            host_id: own.host_id.0,
            store: own.store,
            tell,
            release,
            stopping: stopped.clone(),
        };
        let guard = PeerAuthInterceptor {
            secret,
            own,
            refusals: Arc::default(),
        };
        let service = NodeServer::new(service)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        let mut server = Server::builder()
            .tcp_nodelay(true)
            .http2_keepalive_interval(Some(KEEP_ALIVE_INTERVAL))
            .http2_keepalive_timeout(Some(KEEP_ALIVE_TIMEOUT))
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
        if let Some(tls) = tls {
            server = server.tls_config(tls.server()).map_err(io::Error::other)?;
        }
        let router = server.add_service(InterceptedService::new(service, guard));
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let serving = tokio::spawn(async move {
            let stopped = async {
                let _ = stopped.wait_for(|stopped| *stopped).await;
            };
            if let Err(error) = router.serve_with_incoming_shutdown(incoming, stopped).await {
                tracing::error!(%error, "the port for other nodes has failed");
            }
        });
        Ok(RpcServer {
            address,
            calls,
            announced,
            released: Some(released),
            stop,
            serving,
        })
    }

    /// Returns a channel with the newest version of the cluster document that another node has sent.
    pub fn announced(&self) -> watch::Receiver<DocumentVersion> {
        self.announced.clone()
    }

    /// Returns a channel with the notifications about closed tablets. `None` if it was taken before.
    pub fn released(&mut self) -> Option<mpsc::Receiver<TabletReleased>> {
        self.released.take()
    }

    /// Returns the address on which the server listens. If the configured port was 0, the address has the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the server. First waits a little until other nodes send no more calls. Then waits for running calls, for at most `at_most`,
    /// and closes the port.
    pub async fn stop(self, at_most: Duration) {
        let _ = tokio::time::timeout(QUIET_WAIT_MAX, self.quiet()).await;
        let _ = self.stop.send(true);
        let mut serving = pin!(self.serving);
        if tokio::time::timeout(at_most, serving.as_mut()).await.is_err() {
            serving.abort();
        }
    }

    async fn quiet(&self) {
        loop {
            let before = self.calls.load(Ordering::Relaxed);
            tokio::time::sleep(QUIET).await;
            if self.calls.load(Ordering::Relaxed) == before {
                return;
            }
        }
    }
}

struct NodeService {
    handler: RequestHandler,
    cluster_name: String,
    host_id: Uuid,
    store: Uuid,
    tell: watch::Sender<DocumentVersion>,
    release: mpsc::Sender<TabletReleased>,
    stopping: watch::Receiver<bool>,
}

impl NodeService {
    /// Returns the counters of the calling node.
    fn traffic<T>(&self, request: &Request<T>) -> Arc<InboundTraffic> {
        let caller = request.extensions().get::<Caller>();
        let node = caller.map_or_else(Uuid::nil, |caller| caller.0);
        self.handler.engine.metrics().inbound.of(node)
    }

    /// Counts a call that is handled at once.
    fn count_call<M: Message>(&self, request: &Request<M>) {
        let (traffic, bytes) = (self.traffic(request), request.get_ref().encoded_len());
        traffic.received.add(bytes);
        traffic.processed.add(bytes);
    }
}

#[tonic::async_trait]
impl Node for NodeService {
    async fn greet(&self, request: Request<GreetRequest>) -> Result<Response<GreetResponse>, Status> {
        self.count_call(&request);
        let request = request.into_inner();
        if request.cluster_name != self.cluster_name {
            return Err(Status::failed_precondition(format!(
                "this node is of the cluster {:?}",
                self.cluster_name
            )));
        }
        if request.protocol < PROTOCOL_MIN {
            return Err(Status::failed_precondition(format!(
                "version {} of the protocol between nodes is too old for this node, which is of version {}",
                request.protocol,
                env!("CARGO_PKG_VERSION")
            )));
        }
        self.handler.engine.observe_clock(request.clock_us);
        Ok(Response::new(GreetResponse {
            host_id: Bytes::copy_from_slice(self.host_id.as_bytes()),
            clock_us: self.handler.engine.clock_us(),
            wall_clock_us: self.handler.engine.wall_clock_us(),
            protocol: PROTOCOL,
            software: env!("CARGO_PKG_VERSION").to_owned(),
            store: Bytes::copy_from_slice(self.store.as_bytes()),
        }))
    }

    type ExchangeStream = Outgoing;

    async fn exchange(&self, request: Request<Streaming<Questions>>) -> Result<Response<Outgoing>, Status> {
        let (ready, answers) = mpsc::unbounded_channel();
        let traffic = self.traffic(&request);
        let exchange =
            self.handler
                .clone()
                .exchange(request.into_inner(), ready, self.stopping.clone(), traffic);
        tokio::spawn(exchange);
        Ok(Response::new(Outgoing(answers)))
    }

    async fn ask(&self, request: Request<Question>) -> Result<Response<Answer>, Status> {
        let (traffic, bytes) = (self.traffic(&request), request.get_ref().encoded_len());
        traffic.received.add(bytes);
        let Question { id, timeout_ms, what } = request.into_inner();
        let (handler, timeout) = (self.handler.clone(), Duration::from_millis(timeout_ms.into()));
        let answered = to_the_end(async move { handler.answer(what, timeout, Arc::default()).await }).await?;
        // The memory reserved for the response is released before it has been sent, because the reservation cannot outlive this call.
        let (what, _reserved) = answered;
        traffic.ended(bytes, is_answer(&what));
        Ok(Response::new(Answer { id, what: Some(what) }))
    }

    type ScanStream = ReceiverStream<Result<ScanChunk, Status>>;

    async fn scan(&self, request: Request<ScanRequest>) -> Result<Response<Self::ScanStream>, Status> {
        self.handler.count();
        self.count_call(&request);
        let request = request.into_inner();
        let range = ScanRange {
            tokens: TokenRange {
                first: request.first_token,
                last: request.last_token,
            },
            start: request.start,
            end: request.end,
            reversed: request.reversed,
        };
        let (engine, long_requests) = (self.handler.engine.clone(), self.handler.long_requests.clone());
        let (sender, receiver) = mpsc::channel(CHUNKS_AHEAD);
        tokio::spawn(async move {
            let work = async move { send_scan(&engine, range, sender).await };
            // The scan ends when the receiver of its chunks is dropped.
            let _ = scoped::run(&long_requests, Arc::default(), scoped::LONGEST, work).await;
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn tell(&self, request: Request<TellRequest>) -> Result<Response<TellResponse>, Status> {
        self.count_call(&request);
        let request = request.into_inner();
        let stamp = MetaStamp {
            e_tag: request.e_tag,
            object_version: request.object_version,
        };
        self.handler
            .engine
            .store()
            .meta_note_version(CLUSTER_DOCUMENT, request.cluster_version, stamp);
        self.tell.send_if_modified(|newest| {
            let is_newer = newest.version < request.cluster_version;
            if is_newer {
                *newest = DocumentVersion {
                    version: request.cluster_version,
                    content: request.cluster_document.as_ref().into(),
                };
            }
            is_newer
        });
        Ok(Response::new(TellResponse {}))
    }

    async fn release(&self, request: Request<ReleaseRequest>) -> Result<Response<ReleaseResponse>, Status> {
        self.count_call(&request);
        let request = request.into_inner();
        let by = Uuid::from_slice(&request.host_id)
            .map_err(|_| Status::invalid_argument("a host id has 16 bytes"))?;
        // The notification may be lost: the tablet is then opened a little later.
        let _ = self.release.try_send(TabletReleased {
            by,
            tablet: request.tablet,
            epoch: request.epoch,
        });
        Ok(Response::new(ReleaseResponse {}))
    }

    async fn remove_stale(
        &self,
        request: Request<RemoveStaleRequest>,
    ) -> Result<Response<RemoveStaleResponse>, Status> {
        self.count_call(&request);
        let stale = codec::stale_entries(request.into_inner());
        match self.handler.engine.serve_stale(&stale).await {
            Ok(removed) => Ok(Response::new(RemoveStaleResponse {
                not_mine: false,
                removed,
            })),
            Err(ExecutionError::NotOwned) => Ok(Response::new(RemoveStaleResponse {
                not_mine: true,
                removed: 0,
            })),
            Err(ExecutionError::Failed(error)) => Err(Status::internal(error.to_string())),
        }
    }

    async fn hold(&self, request: Request<HoldRequest>) -> Result<Response<HoldResponse>, Status> {
        self.count_call(&request);
        let cut = cut_codec::cut(request.get_ref())?;
        let engine = self.handler.engine.clone();
        let held = to_the_end(async move { engine.serve_hold(cut).await }).await?;
        let held = held.map_err(|error| Status::internal(error.to_string()))?;
        Ok(Response::new(cut_codec::hold_response(held)))
    }

    async fn pin(&self, request: Request<PinRequest>) -> Result<Response<PinResponse>, Status> {
        self.count_call(&request);
        let pin = cut_codec::pin(request.get_ref())?;
        let engine = self.handler.engine.clone();
        let pinned = to_the_end(async move { engine.serve_pin(pin).await }).await?;
        let pinned = pinned.map_err(|error| Status::internal(error.to_string()))?;
        Ok(Response::new(cut_codec::pin_response(pinned)))
    }

    async fn load(&self, request: Request<LoadRequest>) -> Result<Response<LoadResponse>, Status> {
        self.count_call(&request);
        let request = request.into_inner();
        let versions = Versions {
            schema: request.schema_version,
            headers: request.headers_version,
        };
        let engine = self.handler.engine.clone();
        let loaded = to_the_end(async move { engine.load(versions).await }).await?;
        let loaded = loaded.map_err(|error| Status::internal(error.to_string()))?;
        if request.settled {
            self.handler.engine.settled().await;
        }
        Ok(Response::new(LoadResponse {
            schema_version: loaded.schema,
            headers_version: loaded.headers,
        }))
    }
}

fn refusal(refused: ExecutionError) -> Result<ScanChunk, Status> {
    match refused {
        ExecutionError::NotOwned => Ok(ScanChunk {
            not_mine: true,
            ..ScanChunk::default()
        }),
        ExecutionError::Failed(error) => Err(Status::internal(error.to_string())),
    }
}

/// Sends the chunks of a scan until the last one, or until their receiver is dropped.
async fn send_scan(engine: &Arc<Engine>, range: ScanRange, sender: mpsc::Sender<Result<ScanChunk, Status>>) {
    let mut scan = match engine.serve_scan(&range).await {
        Ok(scan) => scan,
        Err(refused) => {
            let _ = sender.send(refusal(refused)).await;
            return;
        }
    };
    loop {
        let chunk = next_chunk(&mut scan).await;
        let is_last = chunk
            .as_ref()
            .map_or(true, |chunk| chunk.is_last || chunk.not_mine);
        if sender.send(chunk).await.is_err() || is_last {
            return;
        }
    }
}

async fn next_chunk(scan: &mut ServedScan) -> Result<ScanChunk, Status> {
    match scan.next_chunk(CHUNK_BYTES).await {
        Ok((rows, is_last)) => Ok(ScanChunk {
            not_mine: false,
            entries: rows
                .into_iter()
                .map(|(key, value)| Entry { key, value })
                .collect(),
            is_last,
        }),
        Err(refused) => refusal(refused),
    }
}
