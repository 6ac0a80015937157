//! The engine's [`Cluster`]: finds owners in the agent's view and calls other nodes through [`Peers`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use helenus_cluster::{
    AgentHandle, AgentState, CLUSTER_DOCUMENT, ClusterView, HostId, LeaseTerm, NodeInfo, NodeState, TabletId,
    TabletInfo, TabletState,
};
use helenus_query::cluster::{
    Cluster, ListSearch, Owner, PartAnswer, Pin, PinnedCut, RelayAnswer, RemoteError, RemoteScan,
    RemoteWrite, ReportedNode, ReportedTablet, Request, ReturnAddress, ScanRange, Sent, StaleEntries,
    TransactionAnswer, TransactionStep, Versions,
};
use helenus_query::metrics::internode::{OutboundQueue, OutboundTraffic};
use helenus_query::response::Outcome;
use helenus_tablet::{Store, TokenRange};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use uuid::Uuid;

use super::metrics::PeerRequestMetrics;
use super::refusal_log::RefusalLog;
use super::{ClockSkew, LocalIdentity, Peers, TabletReleased};

/// Minimum time between two requests to the agent to read the cluster document.
const REFRESH_INTERVAL_MS: u64 = 50;
/// Maximum time to wait for a new view after such a request.
const REFRESH_WAIT: Duration = Duration::from_millis(30);
/// Maximum time for a notification of another node.
const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(1);

/// The other nodes of the cluster, as the engine sees them.
pub struct ClusterClient {
    pub(super) agent: AgentHandle,
    pub(super) here: HostId,
    /// The identity of the store.
    pub(super) store: Uuid,
    pub(super) peers: Peers,
    /// Refusals of this node by other nodes.
    pub(super) refusals: RefusalLog,
    counts: PeerRequestMetrics,
    /// Number of tablets opened here so far.
    opened: watch::Sender<u64>,
    began: Instant,
    refreshed_ms: AtomicU64,
    pub(super) clock_skew: Arc<ClockSkew>,
}

impl ClusterClient {
    /// Returns the client of this node, whose identity is `own`.
    pub fn new(own: LocalIdentity, peers: Peers) -> Arc<ClusterClient> {
        Arc::new(ClusterClient {
            agent: own.agent,
            here: own.host_id,
            store: own.store,
            peers,
            refusals: RefusalLog::default(),
            counts: PeerRequestMetrics::default(),
            opened: watch::Sender::default(),
            began: Instant::now(),
            refreshed_ms: AtomicU64::new(0),
            clock_skew: Arc::default(),
        })
    }

    /// Returns the differences between this node's clock and those of other nodes.
    pub fn clock_skew(&self) -> Arc<ClockSkew> {
        self.clock_skew.clone()
    }

    /// Wakes the requests that wait for a tablet, because one was opened.
    pub fn has_opened(&self) {
        self.opened.send_modify(|count| *count += 1);
    }

    /// Notifies a tablet's next owner that the tablet is closed here, so that it opens the tablet at once. Does not wait for the
    /// notification.
    pub fn release(self: &Arc<Self>, tablet: TabletId) {
        let view = self.agent.view();
        let mut mine = view.tablets_of(self.here);
        let Some(moving) = mine.find(|info| info.id == tablet) else {
            return;
        };
        let TabletState::Moving { to } = moving.state else {
            return;
        };
        let Some(next) = view.node(to).cloned() else {
            return;
        };
        let released = TabletReleased {
            by: self.here.0,
            tablet: tablet.0,
            epoch: moving.epoch,
        };
        let members = self.clone();
        tokio::spawn(async move {
            let reported = members.peers.release(&next, released, NOTIFICATION_TIMEOUT);
            if let Err(error) = reported.await {
                tracing::debug!(node = %next.description.name, error = error.text(), "a node was not notified that its tablet is closed");
            }
        });
    }

    fn peer(&self, node: Uuid) -> Result<Arc<NodeInfo>, RemoteError> {
        let view = self.agent.view();
        match view.node(HostId(node)) {
            Some(known) => Ok(known.clone()),
            None => Err(RemoteError::Unreachable(format!("node {node} has left"))),
        }
    }

    /// Requests that the agent reads the cluster document, unless this was requested a moment ago.
    fn refresh_soon(&self) {
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let last_ms = self.refreshed_ms.load(Ordering::Relaxed);
        let is_due = now_ms.saturating_sub(last_ms) >= REFRESH_INTERVAL_MS;
        let is_first = || {
            let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
            self.refreshed_ms
                .compare_exchange(last_ms, now_ms, set, fetch)
                .is_ok()
        };
        if is_due && is_first() {
            self.agent.refresh();
        }
    }

    /// Sends each version of the cluster document that this node writes to the other nodes, until the agent has stopped. Tablets that they
    /// must open are already closed here.
    pub fn announce_loop(self: &Arc<Self>, store: Arc<Store>) -> JoinHandle<()> {
        let members = self.clone();
        tokio::spawn(async move {
            let mut written = members.agent.written();
            while written.changed().await.is_ok() {
                let document = written.borrow_and_update().clone();
                let stamp = store
                    .meta_stamp(CLUSTER_DOCUMENT, document.version)
                    .unwrap_or_default();
                let view = members.agent.view();
                for node in view.nodes().iter().filter(|node| node.host_id != members.here) {
                    let (members, node) = (members.clone(), node.clone());
                    let (document, stamp) = (document.clone(), stamp.clone());
                    // Each node has a task of its own, so that one that hangs does not delay the others.
                    tokio::spawn(async move {
                        let reported = members
                            .peers
                            .announce_document(&node, &document, stamp, NOTIFICATION_TIMEOUT)
                            .await;
                        if let Err(error) = reported {
                            tracing::debug!(node = %node.description.name, error = error.text(), "a node was not notified of the cluster document");
                        }
                    });
                }
            }
        })
    }
}

#[async_trait]
impl Cluster for ClusterClient {
    fn owner(&self, token: i64) -> Owner {
        let owner = |view: &ClusterView| view.tablet_of(token).and_then(|tablet| tablet.owner);
        match self.agent.with_view(owner) {
            Some(owner) if owner == self.here => Owner::Here,
            Some(owner) => Owner::Peer(owner.0),
            None => Owner::Unowned,
        }
    }

    fn tablet(&self, token: i64) -> TokenRange {
        let tokens = |view: &ClusterView| view.tablet_of(token).map(|tablet| tablet.tokens);
        self.agent.with_view(tokens).unwrap_or(TokenRange::RING)
    }

    fn nodes(&self) -> Vec<ReportedNode> {
        let view = self.agent.view();
        let node = |node: &Arc<NodeInfo>| ReportedNode {
            host_id: node.host_id.0,
            native_address: node.description.cql_address,
            data_center: node.description.data_center.clone(),
            rack: node.description.rack.clone(),
            is_alive: node.alive,
            tokens: view
                .tablets_of(node.host_id)
                .map(|tablet| tablet.tokens.last)
                .collect(),
            name: node.description.name.clone(),
            rpc_address: node.description.rpc_address.clone(),
            software_version: node.description.software_version.clone(),
            is_leaving: node.state == NodeState::Leaving,
        };
        view.nodes().iter().map(node).collect()
    }

    fn tablets(&self) -> Vec<ReportedTablet> {
        let tablet = |tablet: &TabletInfo| ReportedTablet {
            id: tablet.id.0,
            tokens: tablet.tokens,
            owner: tablet.owner.map(|owner| owner.0),
            epoch: tablet.epoch,
            state: tablet.state.to_string(),
        };
        self.agent.view().tablets().iter().map(tablet).collect()
    }

    fn here(&self) -> Uuid {
        self.here.0
    }

    fn lease_term(&self) -> LeaseTerm {
        self.agent.lease_term()
    }

    fn may_serve_since(&self, term: LeaseTerm) -> bool {
        self.agent.may_serve_since(term)
    }

    fn changes(&self) -> u64 {
        // The sum changes with each of the two, because neither ever decreases.
        self.agent.with_view(ClusterView::version) + *self.opened.borrow()
    }

    fn has_left(&self) -> bool {
        self.agent.state() == AgentState::Left
    }

    async fn changed(&self, since: u64, at_most: Duration) -> bool {
        let (mut views, mut opened) = (self.agent.views(), self.opened.subscribe());
        self.refresh_soon();
        let changes = async {
            while self.changes() == since {
                tokio::select! {
                    changed = views.changed() => if changed.is_err() { return },
                    _ = opened.changed() => {}
                }
            }
        };
        let _ = tokio::time::timeout(at_most, changes).await;
        !matches!(self.agent.state(), AgentState::Failed(_))
    }

    fn outbound(&self) -> Vec<(Uuid, Arc<OutboundTraffic>, OutboundQueue)> {
        self.peers.outbound()
    }

    async fn refresh(&self) {
        let mut views = self.agent.views();
        self.agent.refresh();
        let _ = tokio::time::timeout(REFRESH_WAIT, views.changed()).await;
    }

    async fn execute(
        &self,
        node: Uuid,
        request: &Request<'_>,
        deadline: Instant,
    ) -> Result<Outcome, RemoteError> {
        let peer = self.peer(node)?;
        let requested = self.peers.execute(&peer, request, deadline);
        self.counts.statements.count(requested.await)
    }

    fn relay(
        &self,
        node: Uuid,
        request: &Request<'_>,
        deadline: Instant,
        back: ReturnAddress,
    ) -> Option<Sent> {
        let peer = self.peer(node).ok()?;
        self.peers.relay(&peer, request, deadline, back)
    }

    fn count_relayed(&self, answer: &RelayAnswer) {
        self.counts.statements.record(answer);
        self.counts.relayed.increment(1);
    }

    async fn read_part(
        &self,
        node: Uuid,
        request: &Request<'_>,
        tokens: TokenRange,
        deadline: Instant,
    ) -> Result<PartAnswer, RemoteError> {
        let peer = self.peer(node)?;
        let requested = self.peers.read_part(&peer, request, tokens, deadline);
        self.counts.parts.count(requested.await)
    }

    async fn get(
        &self,
        node: Uuid,
        keys: &[(i64, Bytes)],
        deadline: Instant,
    ) -> Result<Vec<Option<Bytes>>, RemoteError> {
        let peer = self.peer(node)?;
        let requested = self.peers.get(&peer, keys, deadline);
        self.counts.gets.count(requested.await)
    }

    async fn scan(
        &self,
        node: Uuid,
        range: &ScanRange,
        deadline: Instant,
    ) -> Result<Box<dyn RemoteScan>, RemoteError> {
        let peer = self.peer(node)?;
        let requested = self.peers.scan(&peer, range, deadline);
        self.counts.scans.count(requested.await)
    }

    async fn search_lists(
        &self,
        node: Uuid,
        search: &ListSearch,
        deadline: Instant,
    ) -> Result<Vec<Bytes>, RemoteError> {
        let peer = self.peer(node)?;
        let requested = self.peers.search_lists(&peer, search, deadline);
        self.counts.list_searches.count(requested.await)
    }

    async fn write(&self, node: Uuid, write: &RemoteWrite, deadline: Instant) -> Result<(), RemoteError> {
        let peer = self.peer(node)?;
        let requested = self.peers.write(&peer, write, deadline);
        self.counts.writes.count(requested.await)
    }

    async fn transact(
        &self,
        node: Uuid,
        step: &TransactionStep,
        deadline: Instant,
    ) -> Result<TransactionAnswer, RemoteError> {
        let peer = self.peer(node)?;
        let requested = self.peers.transact(&peer, step, deadline);
        self.counts.transactions.count(requested.await)
    }

    async fn remove_stale(
        &self,
        node: Uuid,
        stale: &StaleEntries,
        deadline: Instant,
    ) -> Result<u64, RemoteError> {
        let peer = self.peer(node)?;
        self.peers.remove_stale(&peer, stale, deadline).await
    }

    async fn hold(&self, node: Uuid, cut: Uuid, deadline: Instant) -> Result<Vec<TokenRange>, RemoteError> {
        let peer = self.peer(node)?;
        self.peers.hold(&peer, cut, deadline).await
    }

    async fn pin(&self, node: Uuid, pin: Pin, deadline: Instant) -> Result<PinnedCut, RemoteError> {
        let peer = self.peer(node)?;
        self.peers.pin(&peer, pin, deadline).await
    }

    async fn load(
        &self,
        node: Uuid,
        versions: Versions,
        is_settled: bool,
        deadline: Instant,
    ) -> Result<(), RemoteError> {
        let peer = self.peer(node)?;
        self.peers.load(&peer, versions, is_settled, deadline).await
    }
}
