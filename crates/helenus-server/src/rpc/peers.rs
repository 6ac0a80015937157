//! The connections to other nodes.
//!
//! Each node has a connection for each purpose ([`Traffic`]). A connection is established when it is first needed, and then kept. A failed
//! request is *unreachable* if it was surely not executed. Otherwise it has *no answer*, and may have been executed.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use helenus_cluster::NodeInfo;
use helenus_query::cluster::{ReturnAddress, Sent};
use helenus_query::metrics::internode::{OutboundQueue, OutboundTraffic};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::Instant;
use uuid::Uuid;

use super::Tls;
use super::connection::{PeerConnection, ScanAnswers, Target};
use super::failure::CallError;
use super::frame::Kind;
use super::handshake::Traffic;
use super::peer_auth::{LocalIdentity, PeerCredentials};
use super::secret::Secret;
use crate::network::Network;

/// Bytes of a request above which the request would delay others on the connection for requests.
const LARGE_REQUEST_LEN: usize = 64 << 10;

/// The connections to other nodes, by address.
pub struct Peers {
    secret: Secret,
    own: LocalIdentity,
    tls: Option<Tls>,
    network: Arc<dyn Network>,
    /// The runtime that serves requests.
    runtime: Handle,
    peers: Mutex<HashMap<String, Arc<Peer>>>,
    /// Counters of requests to each node, over all its incarnations.
    traffic: Mutex<HashMap<Uuid, Arc<OutboundTraffic>>>,
}

/// The connections to one other node.
struct Peer {
    control: PeerConnection,
    requests: PeerConnection,
    bulk: PeerConnection,
    credentials: Arc<PeerCredentials>,
    host_id: Uuid,
    traffic: Arc<OutboundTraffic>,
}

impl Peer {
    /// Returns the requests that are yet to be sent.
    fn unsent(&self) -> OutboundQueue {
        let connections = [&self.control, &self.requests, &self.bulk];
        let unsent = connections.into_iter().map(PeerConnection::unsent);
        unsent.fold(OutboundQueue::default(), |sum, queue| OutboundQueue {
            messages: sum.messages + queue.messages,
            bytes: sum.bytes + queue.bytes,
        })
    }
}

impl Peers {
    /// Returns an empty set of connections. Connections for requests will use the runtime of the caller.
    pub fn new(secret: Secret, own: LocalIdentity, tls: Option<Tls>, network: Arc<dyn Network>) -> Peers {
        Peers {
            secret,
            own,
            tls,
            network,
            runtime: Handle::current(),
            peers: Mutex::default(),
            traffic: Mutex::default(),
        }
    }

    /// Drops the connections to all other addresses.
    pub fn keep_only(&self, addresses: &[&str]) {
        self.peers
            .lock()
            .retain(|address, _| addresses.contains(&address.as_str()));
    }

    /// Returns the counters of requests to each connected node, and its queue of requests that are yet to be sent.
    pub fn outbound(&self) -> Vec<(Uuid, Arc<OutboundTraffic>, OutboundQueue)> {
        let peers = self.peers.lock();
        let of_peer = |peer: &Arc<Peer>| (peer.host_id, peer.traffic.clone(), peer.unsent());
        peers.values().map(of_peer).collect()
    }

    /// Returns the connections to a node. They are made again when the node, or this one, is in another incarnation.
    fn peer(&self, node: &NodeInfo) -> Arc<Peer> {
        let address = node.description.rpc_address.as_str();
        let mut peers = self.peers.lock();
        if let Some(peer) = peers.get(address)
            && peer.credentials.is_for(node)
        {
            return peer.clone();
        }
        let peer = Arc::new(self.connect(node));
        peers.insert(address.to_owned(), peer.clone());
        peer
    }

    fn connect(&self, node: &NodeInfo) -> Peer {
        let credentials = Arc::new(PeerCredentials::new(self.secret.clone(), self.own.clone(), node));
        let host_id = node.host_id.0;
        let traffic = self.traffic.lock().entry(host_id).or_default().clone();
        let connection = |purpose, runtime| {
            let target = Target {
                address: node.description.rpc_address.clone(),
                tls: self.tls.clone(),
                network: self.network.clone(),
                credentials: credentials.clone(),
                traffic: purpose,
            };
            PeerConnection::new(target, runtime, traffic.clone())
        };
        Peer {
            control: connection(Traffic::Control, Handle::current()),
            requests: connection(Traffic::Requests, self.runtime.clone()),
            bulk: connection(Traffic::Bulk, self.runtime.clone()),
            credentials: credentials.clone(),
            host_id,
            traffic: traffic.clone(),
        }
    }

    /// Sends a request about the cluster, and returns the body of its answer.
    pub(super) async fn control(
        &self,
        node: &NodeInfo,
        kind: Kind,
        body: BytesMut,
        deadline: Instant,
    ) -> Result<Bytes, CallError> {
        self.peer(node).control.request(kind, body, deadline).await
    }

    /// Sends a request about rows, and returns the body of its answer.
    pub(super) async fn request(
        &self,
        node: &NodeInfo,
        kind: Kind,
        body: BytesMut,
        deadline: Instant,
    ) -> Result<Bytes, CallError> {
        let peer = self.peer(node);
        let connection = match body.len() > LARGE_REQUEST_LEN {
            true => &peer.bulk,
            false => &peer.requests,
        };
        connection.request(kind, body, deadline).await
    }

    /// Queues a statement whose answer goes to `back`. `None` if nothing was queued.
    pub(super) fn relay_body(
        &self,
        node: &NodeInfo,
        body: BytesMut,
        deadline: Instant,
        back: ReturnAddress,
    ) -> Option<Sent> {
        match body.len() > LARGE_REQUEST_LEN {
            true => None,
            false => self.peer(node).requests.relay(body, deadline, back),
        }
    }

    /// Begins a scan.
    pub(super) async fn begin_scan(
        &self,
        node: &NodeInfo,
        body: BytesMut,
        deadline: Instant,
    ) -> Result<ScanAnswers, CallError> {
        self.peer(node).bulk.scan(body, deadline).await
    }
}
