//! A node of a cluster: its agent, the connection between agent and store, and the port for the other nodes.
//!
//! The agent has a thread of its own, because the lease ends if it is renewed late. A read-only node has no agent, but a [`reader`].

mod admin_api;
pub mod admin_auth;
mod documents;
mod environment;
mod events;
mod host;
mod metrics;
mod reader;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use helenus_cluster::{
    Agent, AgentConfig, AgentHandle, AgentState, Credentials, DocumentVersion, HostId, TabletInfo,
    TabletState,
};
use helenus_query::engine::Engine;
use helenus_tablet::threads::NodeThread;
use helenus_tablet::{FailureStreak, MetaExpect, Store, StoreError, TabletEvent, threads};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use uuid::Uuid;

pub use admin_api::AdminApi;
pub use documents::StoreDocuments;
pub use environment::NodeEnvironment;
pub use host::StoreHost;
pub use reader::{Reader, ReaderError};

use crate::boxed;
use crate::rpc::secret::Secret;
use crate::rpc::{ClockSkew, ClusterClient, LocalIdentity, Peers, RpcServer, TabletReleased, Tls};
use crate::tls::Expiry;
use crate::transport::EventSender;

/// Name of the document with the cluster's secret, if none is configured. A process that can read the store belongs to the cluster.
pub const SECRET_DOCUMENT: &str = "cluster-secret";
/// Maximum time between two checks for documents that other nodes have changed.
const RELOAD_INTERVAL_MAX: Duration = Duration::from_secs(30);
const RELOAD_PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// Settings of a node of a cluster.
pub struct NodeConfig {
    pub agent: AgentConfig,
    /// Address of the port for the other nodes.
    pub rpc: SocketAddr,
    /// The cluster's secret. `None` uses the one that is kept in the store.
    pub secret: Option<Secret>,
    pub tls: Option<Tls>,
    pub environment: NodeEnvironment,
}

/// A running node of a cluster.
pub struct ClusterNode {
    agent: AgentHandle,
    here: HostId,
    identity: Uuid,
    secret: Secret,
    clock_skew: Arc<ClockSkew>,
    certificate_expiry: Option<Expiry>,
    rpc: RpcServer,
    tasks: Vec<JoinHandle<()>>,
    running: Option<NodeThread>,
}

/// The reason why a node cannot be part of the cluster.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    #[error("rpc = \"{0}\": cannot listen there: {1}")]
    Rpc(SocketAddr, std::io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Cluster(#[from] helenus_cluster::ClusterError),
    #[error("cannot start a thread for the cluster agent: {0}")]
    Thread(std::io::Error),
}

impl ClusterNode {
    /// Opens the port for the other nodes and begins to join. The address that other nodes use is in the agent's settings.
    #[boxed]
    pub async fn start(engine: &Arc<Engine>, config: NodeConfig) -> Result<ClusterNode, NodeError> {
        let NodeConfig {
            agent: mut agent_config,
            rpc,
            secret,
            tls,
            environment,
        } = config;
        let store = engine.store().clone();
        let secret = match secret {
            Some(secret) => secret,
            None => awaited_secret(&store).await?,
        };
        let here = agent_config.host_id;
        let identity = store.identity()?;
        agent_config.initial_tablets = host::tablets(&store);
        agent_config.store = Some(identity);
        agent_config.credentials = Some(Credentials {
            secret: secret.digest(identity),
            authorities: tls.as_ref().map(Tls::authorities).unwrap_or_default(),
        });
        let (handle, mailbox) = AgentHandle::channel(environment.clock);
        let own = LocalIdentity {
            store: identity,
            host_id: here,
            name: agent_config.description.name.clone(),
            agent: handle.clone(),
        };
        let peers = Peers::new(
            secret.clone(),
            own.clone(),
            tls.clone(),
            environment.network.clone(),
        );
        let members = ClusterClient::new(own.clone(), peers);
        let cluster_name = agent_config.cluster_name.clone();
        let server = RpcServer::start(
            &*environment.network,
            rpc,
            engine.clone(),
            cluster_name,
            own,
            secret.clone(),
            tls.as_ref(),
        );
        let mut server = server.await.map_err(|error| NodeError::Rpc(rpc, error))?;
        engine.join(members.clone());
        let documents = Arc::new(StoreDocuments::new(store.clone()));
        let tasks = vec![
            members.ping_loop(engine.clone()),
            members.announce_loop(store.clone()),
            tokio::spawn(forward_document_changes(server.announced(), handle.clone())),
            tokio::spawn(open_standbys(
                server.released(),
                handle.clone(),
                here,
                store.clone(),
            )),
            tokio::spawn(reload_documents(engine.clone(), documents.others())),
            tokio::spawn(report_losses(store.clone(), handle.clone())),
        ];
        let host = Arc::new(StoreHost::new(engine.clone(), members.clone()));
        let agent = Agent::new(mailbox, agent_config, documents, host, environment.seed);
        Ok(ClusterNode {
            agent: handle,
            here,
            identity,
            secret,
            clock_skew: members.clock_skew(),
            certificate_expiry: tls.as_ref().map(Tls::expiry),
            rpc: server,
            tasks,
            running: Some(run(agent).map_err(NodeError::Thread)?),
        })
    }

    pub fn agent(&self) -> &AgentHandle {
        &self.agent
    }

    /// Returns this node's host id.
    pub fn host_id(&self) -> HostId {
        self.here
    }

    /// Returns the identity of the store.
    pub fn store(&self) -> Uuid {
        self.identity
    }

    /// Returns the address of the port for the other nodes.
    pub fn rpc_address(&self) -> SocketAddr {
        self.rpc.address()
    }

    /// Starts to send clients events of nodes that join, leave, start or stop.
    pub fn announce(&self, announcer: EventSender) {
        let announcing = events::announce(self.agent.clone(), self.here, announcer);
        tokio::spawn(announcing);
    }

    /// Returns the cluster's requests over HTTP.
    pub fn control(&self, engine: &Arc<Engine>) -> AdminApi {
        AdminApi::new(self.agent.clone(), self.here, engine.clone(), self.secret.clone())
    }

    /// Returns the differences between this node's clock and those of other nodes.
    pub fn clock_skew(&self) -> Arc<ClockSkew> {
        self.clock_skew.clone()
    }

    /// Returns the expiry time of this node's certificate for other nodes. `None` without TLS between nodes.
    pub fn certificate_expiry(&self) -> Option<Expiry> {
        self.certificate_expiry.clone()
    }

    /// Returns the secret that the nodes of the cluster share.
    pub fn secret(&self) -> Secret {
        self.secret.clone()
    }

    /// Returns a function that sets the cluster's metrics.
    pub fn metrics_recorder(&self) -> impl Fn() + Send + Sync + 'static {
        let (agent, here) = (self.agent.clone(), self.here);
        move || metrics::record(&agent, here)
    }

    /// Waits until the node is in the cluster and has opened its tablets.
    ///
    /// # Errors
    /// The node cannot join, and waiting would not help.
    #[boxed]
    pub async fn joined(&self) -> Result<(), NodeError> {
        let mut states = self.agent.states();
        let ready = |state: &AgentState| !matches!(state, AgentState::Joining(_));
        let state = match states.wait_for(ready).await {
            Ok(state) => state.clone(),
            Err(_) => AgentState::Failed(helenus_cluster::ClusterError::Stopped),
        };
        match state {
            AgentState::Failed(error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Hands all tablets over and leaves the cluster. The node still coordinates requests.
    #[boxed]
    pub async fn drain(&self) -> Result<(), NodeError> {
        Ok(self.agent.drain().await?)
    }

    /// Completes the requests of other nodes, for at most `at_most`, and closes the port for them.
    pub async fn stop(mut self, at_most: Duration) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.rpc.stop(at_most).await;
        self.agent.stop_following();
        if let Some(running) = self.running.take() {
            running.join().await;
        }
    }
}

/// Runs the agent in a thread of its own.
fn run(mut agent: Agent) -> std::io::Result<NodeThread> {
    let run = async move {
        match agent.run().await {
            Ok(()) => agent.follow().await,
            Err(error) => tracing::error!(%error, "this node has left the cluster"),
        }
    };
    threads::spawn_with_runtime("helenus-agent", run)
}

/// Reads the secret that is kept in the store. Retries while the store does not answer.
async fn awaited_secret(store: &Store) -> Result<Secret, StoreError> {
    let mut reading = FailureStreak::new(
        "the secret of the cluster cannot be read from the store; trying again",
        "the secret of the cluster was read",
    );
    loop {
        let secret = kept_secret(store).await;
        reading.note(&secret);
        match secret {
            Err(StoreError::Unavailable(_) | StoreError::ReadTimeout(_) | StoreError::Unknown(_)) => {
                tokio::time::sleep(RELOAD_PAUSE_AFTER_FAILURE).await;
            }
            secret => return secret,
        }
    }
}

/// Returns the secret that is kept in the store. The first node creates it.
async fn kept_secret(store: &Store) -> Result<Secret, StoreError> {
    loop {
        if let Some(document) = store.meta_get(SECRET_DOCUMENT).await? {
            return Ok(Secret::new(document.content.to_vec()));
        }
        let secret = Secret::random();
        match store
            .meta_put(SECRET_DOCUMENT, secret.as_bytes(), MetaExpect::Absent)
            .await
        {
            Ok(_) => return Ok(secret),
            Err(StoreError::MetaConflict(_)) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Loads documents that other nodes have changed, in case their notification was lost. The agent's listings show such changes while the
/// agent runs. Without listings, the documents are loaded once in each interval.
async fn reload_documents(engine: Arc<Engine>, mut documents: watch::Receiver<BTreeMap<String, String>>) {
    let mut longest = RELOAD_INTERVAL_MAX;
    let mut looking = FailureStreak::new(
        "cannot look for a newer schema; trying again",
        "newer schemas are looked for again",
    );
    loop {
        if let Ok(Err(_)) = tokio::time::timeout(longest, documents.changed()).await {
            // The agent has stopped, so the channel no longer delays this loop.
            tokio::time::sleep(longest).await;
        }
        let loaded = engine.load_newest().await;
        looking.note(&loaded);
        longest = match loaded {
            Ok(()) => RELOAD_INTERVAL_MAX,
            Err(_) => RELOAD_PAUSE_AFTER_FAILURE,
        };
    }
}

/// Forwards versions of the cluster document that other nodes have written to the agent.
async fn forward_document_changes(mut announced: watch::Receiver<DocumentVersion>, agent: AgentHandle) {
    while announced.changed().await.is_ok() {
        agent.document_announced(announced.borrow_and_update().clone());
    }
}

/// Begins to open tablets that other nodes have closed to hand them over to this node.
async fn open_standbys(
    released: Option<mpsc::Receiver<TabletReleased>>,
    agent: AgentHandle,
    here: HostId,
    store: Arc<Store>,
) {
    let Some(mut released) = released else { return };
    while let Some(released) = released.recv().await {
        let view = agent.view();
        // A notification that was delayed must not take the tablet from its present owner.
        let moves_here = |tablet: &&TabletInfo| {
            tablet.id.0 == released.tablet
                && tablet.epoch == released.epoch
                && tablet.state == TabletState::Moving { to: here }
        };
        let mut theirs = view.tablets_of(HostId(released.by));
        let Some(tablet) = theirs.find(moves_here) else {
            continue;
        };
        let (id, tokens) = (tablet.id.0, tablet.tokens);
        let store = store.clone();
        tokio::spawn(async move {
            if let Err(error) = store.open_standby(id, tokens).await {
                tracing::debug!(tablet = id, %error, "a tablet is not opened ahead");
            }
        });
    }
}

/// Notifies the agent of tablets that this node no longer serves, because other nodes have opened them.
async fn report_losses(store: Arc<Store>, agent: AgentHandle) {
    let mut events = store.tablet_events();
    loop {
        match events.recv().await {
            Ok(TabletEvent::Lost { id, error }) => {
                tracing::info!(tablet = id, %error, "tablet closed: this node does not serve it any more");
                agent.tablet_lost(helenus_cluster::TabletId(id));
            }
            Err(tokio::sync::broadcast::error::RecvError::Lagged(lost)) => {
                tracing::warn!(lost, "events of tablets were lost");
            }
            Err(tokio::sync::broadcast::error::RecvError::Closed) => return,
        }
    }
}
