//! Calls to other nodes.
//!
//! A connection is established when it is first needed, and then kept. Pings check that a silent connection is alive. A failed call is
//! *unreachable* if no connection was established, so that it was surely not executed. Otherwise it has *no answer*, and may have been
//! executed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use helenus_cluster::{DocumentVersion, NodeInfo};
use helenus_query::cluster::{
    Forwarded, ListSearch, PartAnswer, Pin, PinnedCut, RemoteError, RemoteScan, RemoteWrite, ScanRange,
    StaleEntries, Versions,
};
use helenus_query::metrics::internode::{OutboundQueue, OutboundTraffic};
use helenus_query::response::Outcome;
use helenus_query::trace;
use helenus_tablet::{MetaStamp, TokenRange};
use parking_lot::Mutex;
use prost::Message;
use tokio::runtime::Handle;
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status, Streaming};
use uuid::Uuid;

use super::codec;
use super::cut_codec;
use super::failure::failure;
use super::part_codec;
use super::peer_auth::{LocalIdentity, PeerCredentials};
use super::proto::node_client::NodeClient;
use super::proto::{
    Entry, GetRequest, GreetRequest, GreetResponse, Key, LoadRequest, Operand, PartRequest, ReleaseRequest,
    ScanChunk, ScanRequest, TellRequest, WriteRequest, answer, question,
};
use super::request_stream::{self, RequestStream, is_large};
use super::secret::Secret;
use super::{MESSAGE_BYTES_MAX, TabletReleased, Tls};

/// Maximum time to establish a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval of the pings of a silent connection, and maximum time until a response to them.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(1);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum bytes of responses in flight on the connection for requests.
const REQUESTS_WINDOW: u32 = 8 << 20;

/// Purpose of a connection. Small and large messages use separate connections, so that small ones do not queue behind large ones.
#[derive(Clone, Copy)]
enum Traffic {
    /// Greetings, and messages about the cluster document.
    Control,
    Requests,
    /// Scans and large requests.
    Bulk,
}

/// The connections to other nodes, by address.
pub struct Peers {
    secret: Secret,
    own: LocalIdentity,
    tls: Option<Tls>,
    /// The runtime that serves requests.
    runtime: Handle,
    clients: Mutex<HashMap<String, Arc<Peer>>>,
    /// Counters of requests to each node, over all its incarnations.
    traffic: Mutex<HashMap<Uuid, Arc<OutboundTraffic>>>,
}

/// The connections to one other node.
struct Peer {
    client: NodeClient<Channel>,
    /// Client for scans and large requests.
    bulk: NodeClient<Channel>,
    credentials: Arc<PeerCredentials>,
    exchange: RequestStream,
    host_id: Uuid,
    traffic: Arc<OutboundTraffic>,
}

impl Peer {
    /// Makes a separate call, outside the request stream, and counts it.
    async fn call<M: Message, A>(
        &self,
        request: Request<M>,
        call: impl AsyncFnOnce(Request<M>) -> Result<Response<A>, Status>,
    ) -> Result<A, Status> {
        let bytes = request.get_ref().encoded_len();
        self.traffic.sent.add(bytes);
        let answer = call(request).await;
        match answer.as_ref().map_err(Status::code) {
            Err(Code::DeadlineExceeded | Code::Cancelled) => self.traffic.expired.add(bytes),
            Err(Code::Unavailable) => self.traffic.failed.add(bytes),
            Ok(_) | Err(_) => {}
        }
        answer.map(Response::into_inner)
    }
}

fn unavailable(error: RemoteError) -> Status {
    Status::unavailable(format!("{error:?}"))
}

fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

fn unexpected(_: answer::What) -> RemoteError {
    RemoteError::NoAnswer("unexpected kind of response".to_owned())
}

impl Peers {
    /// Returns an empty set of connections. Connections for requests will use the runtime of the caller.
    pub fn new(secret: Secret, own: LocalIdentity, tls: Option<Tls>) -> Peers {
        Peers {
            secret,
            own,
            tls,
            runtime: Handle::current(),
            clients: Mutex::default(),
            traffic: Mutex::default(),
        }
    }

    /// Drops the connections to all other addresses.
    pub fn keep_only(&self, addresses: &[&str]) {
        self.clients
            .lock()
            .retain(|address, _| addresses.contains(&address.as_str()));
    }

    /// Returns the counters of requests to each connected node, and its queue of requests that are yet to be sent.
    pub fn outbound(&self) -> Vec<(Uuid, Arc<OutboundTraffic>, OutboundQueue)> {
        let clients = self.clients.lock();
        let of_peer = |peer: &Arc<Peer>| (peer.host_id, peer.traffic.clone(), peer.exchange.waiting());
        clients.values().map(of_peer).collect()
    }

    fn peer(&self, node: &NodeInfo) -> Result<Arc<Peer>, RemoteError> {
        let address = node.description.rpc_address.as_str();
        let mut clients = self.clients.lock();
        if let Some(peer) = clients.get(address)
            && peer.credentials.is_for(node)
        {
            return Ok(peer.clone());
        }
        let connect = |traffic| {
            let channel = self
                .connect(address, traffic)
                .map_err(|error| RemoteError::Unreachable(format!("{address}: {error}")))?;
            Ok(NodeClient::new(channel)
                .max_decoding_message_size(MESSAGE_BYTES_MAX)
                .max_encoding_message_size(MESSAGE_BYTES_MAX))
        };
        let client = connect(Traffic::Control)?;
        let (requests, bulk) = {
            let _entered = self.runtime.enter();
            (connect(Traffic::Requests)?, connect(Traffic::Bulk)?)
        };
        let credentials = Arc::new(PeerCredentials::new(self.secret.clone(), self.own.clone(), node));
        let host_id = node.host_id.0;
        let traffic = self.traffic.lock().entry(host_id).or_default().clone();
        let runtime = self.runtime.clone();
        let peer = Arc::new(Peer {
            exchange: RequestStream::new(requests, credentials.clone(), runtime, traffic.clone()),
            host_id,
            traffic,
            client,
            bulk,
            credentials,
        });
        clients.insert(address.to_owned(), peer.clone());
        Ok(peer)
    }

    /// Sends a request over the stream, or by a separate call if it is large.
    async fn request(
        &self,
        node: &NodeInfo,
        what: question::What,
        deadline: Instant,
    ) -> Result<answer::What, RemoteError> {
        let peer = self.peer(node)?;
        let answer = if is_large(&what) {
            let question = request_stream::question(0, what, deadline);
            let question = peer.credentials.request(question, left(deadline));
            let mut client = peer.bulk.clone();
            let answer = peer.call(question, async move |question| client.ask(question).await);
            answer.await.map_err(|status| failure(&status))?.what
        } else {
            Some(peer.exchange.request(what, deadline).await?)
        };
        match answer {
            Some(answer::What::Failure(why)) => Err(RemoteError::NoAnswer(why)),
            Some(answer) => Ok(answer),
            None => Err(RemoteError::NoAnswer(
                "the response is of a newer version of Helenus".to_owned(),
            )),
        }
    }

    fn connect(&self, address: &str, traffic: Traffic) -> Result<Channel, tonic::transport::Error> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let mut endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))?
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(KEEP_ALIVE_TIMEOUT);
        endpoint = match traffic {
            // A fixed window needs no measurements, which would cost extra messages.
            Traffic::Requests => endpoint
                .initial_stream_window_size(REQUESTS_WINDOW)
                .initial_connection_window_size(REQUESTS_WINDOW),
            Traffic::Control | Traffic::Bulk => endpoint.http2_adaptive_window(true),
        };
        if let Some(tls) = &self.tls {
            endpoint = endpoint.tls_config(tls.client())?;
        }
        Ok(endpoint.connect_lazy())
    }

    pub async fn ping(
        &self,
        node: &NodeInfo,
        message: GreetRequest,
        timeout: Duration,
    ) -> Result<GreetResponse, Status> {
        let peer = self.peer(node).map_err(unavailable)?;
        let request = peer.credentials.request(message, timeout);
        let mut client = peer.client.clone();
        peer.call(request, async move |request| client.greet(request).await)
            .await
    }

    /// Sends the new version of the cluster document, and the stamp by which the store identifies it.
    pub async fn announce_document(
        &self,
        node: &NodeInfo,
        written: &DocumentVersion,
        stamp: MetaStamp,
        timeout: Duration,
    ) -> Result<(), Status> {
        let peer = self.peer(node).map_err(unavailable)?;
        let message = TellRequest {
            cluster_version: written.version,
            cluster_document: Bytes::copy_from_slice(&written.content),
            e_tag: stamp.e_tag,
            object_version: stamp.object_version,
        };
        let request = peer.credentials.request(message, timeout);
        let mut client = peer.client.clone();
        peer.call(request, async move |request| client.tell(request).await)
            .await
            .map(|_| ())
    }

    /// Notifies the next owner of a tablet that the tablet is closed here.
    pub async fn release(
        &self,
        node: &NodeInfo,
        released: TabletReleased,
        timeout: Duration,
    ) -> Result<(), Status> {
        let peer = self.peer(node).map_err(unavailable)?;
        let message = ReleaseRequest {
            host_id: Bytes::copy_from_slice(released.by.as_bytes()),
            tablet: released.tablet,
            epoch: released.epoch,
        };
        let request = peer.credentials.request(message, timeout);
        let mut client = peer.client.clone();
        peer.call(request, async move |request| client.release(request).await)
            .await
            .map(|_| ())
    }

    pub async fn execute(
        &self,
        node: &NodeInfo,
        forwarded: &Forwarded<'_>,
        deadline: Instant,
    ) -> Result<Outcome, RemoteError> {
        let began = trace::is_recording().then(std::time::Instant::now);
        let known = codec::known_result(forwarded);
        let message = codec::statement(forwarded, known.as_deref(), began.is_some());
        let answer = match self
            .request(node, question::What::Execute(message), deadline)
            .await?
        {
            answer::What::Execute(answer) => answer,
            other => return Err(unexpected(other)),
        };
        for step in answer.steps {
            let Some(began) = began else { break };
            let at = began + Duration::from_micros(step.elapsed_us);
            trace::step_at(
                at,
                format!("{} (on {})", step.activity, node.description.rpc_address).into(),
            );
        }
        if answer.not_mine {
            return Err(RemoteError::NotOwned);
        }
        let outcome = codec::outcome(&answer.message, known).map_err(RemoteError::Failed)?;
        Ok(Outcome {
            is_applied: answer.applied,
            ..outcome
        })
    }

    /// Requests that a node reads a part of an aggregate, and returns its partial result.
    pub async fn read_part(
        &self,
        node: &NodeInfo,
        forwarded: &Forwarded<'_>,
        tokens: TokenRange,
        deadline: Instant,
    ) -> Result<PartAnswer, RemoteError> {
        let message = PartRequest {
            statement: Some(codec::statement(forwarded, None, false)),
            first_token: tokens.first,
            last_token: tokens.last,
        };
        match self
            .request(node, question::What::Part(message), deadline)
            .await?
        {
            answer::What::Part(answer) => part_codec::answer(answer),
            other => Err(unexpected(other)),
        }
    }

    pub async fn get(
        &self,
        node: &NodeInfo,
        keys: &[(i64, Bytes)],
        deadline: Instant,
    ) -> Result<Vec<Option<Bytes>>, RemoteError> {
        let key = |(token, key): &(i64, Bytes)| Key {
            token: *token,
            key: key.clone(),
        };
        let message = GetRequest {
            keys: keys.iter().map(key).collect(),
        };
        let answer = match self.request(node, question::What::Get(message), deadline).await? {
            answer::What::Get(answer) => answer,
            other => return Err(unexpected(other)),
        };
        if answer.not_mine {
            return Err(RemoteError::NotOwned);
        }
        if answer.rows.len() != keys.len() {
            return Err(RemoteError::NoAnswer(
                "as many rows as keys were expected".to_owned(),
            ));
        }
        Ok(answer.rows.into_iter().map(|row| row.value).collect())
    }

    pub async fn search_lists(
        &self,
        node: &NodeInfo,
        search: &ListSearch,
        deadline: Instant,
    ) -> Result<Vec<Bytes>, RemoteError> {
        let message = question::What::SearchLists(codec::list_search_request(search));
        match self.request(node, message, deadline).await? {
            answer::What::SearchLists(answer) if answer.not_mine => Err(RemoteError::NotOwned),
            answer::What::SearchLists(answer) => Ok(answer.lists),
            other => Err(unexpected(other)),
        }
    }

    pub async fn scan(
        &self,
        node: &NodeInfo,
        range: &ScanRange,
        deadline: Instant,
    ) -> Result<Box<dyn RemoteScan>, RemoteError> {
        let message = ScanRequest {
            first_token: range.tokens.first,
            last_token: range.tokens.last,
            start: range.start.clone(),
            end: range.end.clone(),
            reversed: range.reversed,
        };
        let peer = self.peer(node)?;
        let request = peer.credentials.request(message, left(deadline));
        let mut client = peer.bulk.clone();
        let chunks = peer.call(request, async move |request| client.scan(request).await);
        let chunks = chunks.await.map_err(|status| failure(&status))?;
        Ok(Box::new(Chunks {
            chunks,
            entries: Vec::new().into_iter(),
            is_last: false,
        }))
    }

    pub async fn write(
        &self,
        node: &NodeInfo,
        write: &RemoteWrite,
        deadline: Instant,
    ) -> Result<(), RemoteError> {
        let operand = |op: &helenus_tablet::Op| Operand {
            token: op.token,
            key: op.key.clone(),
            operand: op.operand.clone(),
        };
        let message = WriteRequest {
            operands: write.ops.iter().map(operand).collect(),
            durable: write.durable,
            maintain_indexes: write.maintains_indexes,
            schema_version: write.schema_version,
        };
        let answer = match self
            .request(node, question::What::Write(message), deadline)
            .await?
        {
            answer::What::Write(answer) => answer,
            other => return Err(unexpected(other)),
        };
        match (answer.not_mine, answer.error.is_empty()) {
            (true, _) => Err(RemoteError::NotOwned),
            (false, true) => Ok(()),
            (false, false) => {
                let error = codec::outcome(&answer.error, None).err();
                Err(error.map_or_else(
                    || RemoteError::NoAnswer("an error was expected".to_owned()),
                    RemoteError::Failed,
                ))
            }
        }
    }

    /// Requests that a node removes stale index entries of its rows. Returns the number of removed entries.
    pub async fn remove_stale(
        &self,
        node: &NodeInfo,
        stale: &StaleEntries,
        deadline: Instant,
    ) -> Result<u64, RemoteError> {
        let peer = self.peer(node)?;
        let request = peer
            .credentials
            .request(codec::stale_request(stale), left(deadline));
        let mut client = peer.client.clone();
        let answer = peer.call(request, async move |request| client.remove_stale(request).await);
        let answer = answer.await.map_err(|status| failure(&status))?;
        match answer.not_mine {
            true => Err(RemoteError::NotOwned),
            false => Ok(answer.removed),
        }
    }

    pub async fn hold(
        &self,
        node: &NodeInfo,
        cut: Uuid,
        deadline: Instant,
    ) -> Result<Vec<TokenRange>, RemoteError> {
        let peer = self.peer(node)?;
        let request = peer
            .credentials
            .request(cut_codec::hold_request(cut), left(deadline));
        let mut client = peer.client.clone();
        let answer = peer.call(request, async move |request| client.hold(request).await);
        let held = answer.await.map_err(|status| failure(&status))?;
        Ok(cut_codec::held(&held))
    }

    pub async fn pin(&self, node: &NodeInfo, pin: Pin, deadline: Instant) -> Result<PinnedCut, RemoteError> {
        let peer = self.peer(node)?;
        let request = peer
            .credentials
            .request(cut_codec::pin_request(pin), left(deadline));
        let mut client = peer.client.clone();
        let answer = peer.call(request, async move |request| client.pin(request).await);
        let pinned = answer.await.map_err(|status| failure(&status))?;
        cut_codec::pinned(&pinned).map_err(|status| failure(&status))
    }

    pub async fn load(
        &self,
        node: &NodeInfo,
        versions: Versions,
        is_settled: bool,
        deadline: Instant,
    ) -> Result<(), RemoteError> {
        let message = LoadRequest {
            schema_version: versions.schema,
            headers_version: versions.headers,
            settled: is_settled,
        };
        let peer = self.peer(node)?;
        let request = peer.credentials.request(message, left(deadline));
        let mut client = peer.client.clone();
        let answer = peer.call(request, async move |request| client.load(request).await);
        let loaded = answer.await.map_err(|status| failure(&status))?;
        match loaded.schema_version >= versions.schema && loaded.headers_version >= versions.headers {
            true => Ok(()),
            false => Err(RemoteError::NoAnswer(
                "the node has not read the newest cluster document".to_owned(),
            )),
        }
    }
}

/// The rows of a scan, as they arrive.
struct Chunks {
    chunks: Streaming<ScanChunk>,
    entries: std::vec::IntoIter<Entry>,
    is_last: bool,
}

#[async_trait]
impl RemoteScan for Chunks {
    async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, RemoteError> {
        loop {
            if let Some(entry) = self.entries.next() {
                return Ok(Some((entry.key, entry.value)));
            }
            if self.is_last {
                return Ok(None);
            }
            let chunk = self.chunks.message().await.map_err(|status| failure(&status))?;
            let Some(chunk) = chunk else {
                return Err(RemoteError::NoAnswer("a scan was cut off".to_owned()));
            };
            if chunk.not_mine {
                return Err(RemoteError::NotOwned);
            }
            self.entries = chunk.entries.into_iter();
            self.is_last = chunk.is_last;
        }
    }
}
