//! The agent: a node's part in the cluster.
//!
//! An agent joins with a new incarnation. If other nodes end its lease, it gives up all tablets and joins again with another one. During an
//! incarnation three tasks run side by side:
//!
//! - The [`lease_renewer`] renews the lease and does nothing else, so that nothing delays it.
//! - The [`tablet_tasks`] runner executes the calls to the tablet host.
//! - The [`control_loop`] reads the cluster's state, decides, writes the cluster document and gives commands to the runner.

mod config;
mod control_loop;
mod failure_detector;
mod handle;
mod lease_renewer;
mod local_tablets;
mod tablet_tasks;

use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::mpsc;

pub use config::{AgentConfig, LEASE_DEFAULT};
pub use handle::{AgentCounts, AgentHandle, AgentRequests, AgentState, DocumentVersion};

use crate::document::{self, ClusterDocument, NodeRecord};
use crate::environment::{Clock, Documents, TabletHost};
use crate::error::{ClusterError, DocumentError};
use crate::heartbeat::name_of;
use crate::ids::{Incarnation, Version};
use crate::view::NodeState;
use control_loop::ControlLoop;
use handle::Shared;
use lease_renewer::LeaseRenewer;
use tablet_tasks::TabletTaskRunner;

/// Time between two reads of the cluster document by a node that has left, without a request to read it sooner.
const FOLLOWING_INTERVAL: Duration = Duration::from_millis(200);

/// The reason for which an incarnation ended.
enum IncarnationEnd {
    /// The node wanted to leave, and is out.
    Left,
    /// Other nodes ended the lease. The text is the reason.
    LostLease(String),
}

/// State that the parts of an agent share.
#[derive(Clone)]
struct AgentContext {
    config: Arc<AgentConfig>,
    documents: Arc<dyn Documents>,
    clock: Arc<dyn Clock>,
    host: Arc<dyn TabletHost>,
    shared: Arc<Shared>,
}

impl AgentContext {
    fn now(&self) -> Duration {
        self.clock.monotonic()
    }

    /// Waits for an answer of the store, for at most `limit`.
    async fn within<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = Result<T, DocumentError>>,
    ) -> Result<T, DocumentError> {
        match select(Box::pin(call), self.clock.sleep(limit)).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => Err(DocumentError::Unavailable(format!(
                "no answer within {} ms",
                limit.as_millis()
            ))),
        }
    }
}

/// Runs a node's part in the cluster. Created with the requests of [`AgentHandle::channel`].
pub struct Agent {
    context: AgentContext,
    agent_requests: AgentRequests,
    rng: StdRng,
}

impl Agent {
    /// Creates an agent. `seed` should be random, because incarnations are generated from it.
    pub fn new(
        agent_requests: AgentRequests,
        config: AgentConfig,
        documents: Arc<dyn Documents>,
        host: Arc<dyn TabletHost>,
        seed: u64,
    ) -> Self {
        let context = AgentContext {
            config: Arc::new(config),
            documents,
            clock: agent_requests.shared.clock.clone(),
            host,
            shared: agent_requests.shared.clone(),
        };
        Agent {
            context,
            agent_requests,
            rng: StdRng::seed_from_u64(seed),
        }
    }

    /// Joins the cluster and takes part until the node is drained, or until an error occurs that waiting cannot resolve. Must run where
    /// nothing delays it for long, because a lease that is renewed late ends.
    pub async fn run(&mut self) -> Result<(), ClusterError> {
        let mut previous_incarnation_stopped = self.context.config.previous_incarnation_stopped;
        let result = loop {
            match self.run_incarnation(previous_incarnation_stopped).await {
                Ok(IncarnationEnd::Left) => break Ok(()),
                Ok(IncarnationEnd::LostLease(reason)) => {
                    handle::count(&self.context.shared.counters.leases_lost);
                    tracing::warn!(%reason, "this node was expelled after its lease ended: it has closed its tablets and joins again");
                    self.context
                        .shared
                        .state
                        .send_replace(AgentState::Joining(reason));
                }
                Err(error) => break Err(error),
            }
            previous_incarnation_stopped = true;
        };
        let state = match &result {
            Ok(()) => AgentState::Left,
            Err(error) => AgentState::Failed(error.clone()),
        };
        self.context.shared.state.send_replace(state);
        result
    }

    /// Continues to read the cluster document after the node has left. Requests of its remaining clients are forwarded to the tablets'
    /// owners, which change. Runs until [`AgentHandle::stop_following`].
    pub async fn follow(&self) {
        let shared = &self.context.shared;
        let mut stopped = shared.stopped.subscribe();
        let mut stopping = std::pin::pin!(stopped.wait_for(|stopped| *stopped));
        loop {
            tokio::select! {
                biased;
                _ = &mut stopping => return,
                () = shared.refresh.notified() => {}
                () = self.context.clock.sleep(FOLLOWING_INTERVAL) => {}
            }
            let get = self.context.documents.get(document::NAME);
            let found = self.context.within(self.context.config.lease, get).await;
            if let Ok(Some(found)) = found
                && let Ok(document) = ClusterDocument::decode(&found.content)
            {
                self.show(found.version, &document);
            }
        }
    }

    /// Publishes a document that is newer than the view. This node no longer sees which nodes are alive, so their last state is kept.
    fn show(&self, version: Version, document: &ClusterDocument) {
        if document.check_store(self.context.config.store).is_err() {
            return;
        }
        self.context.shared.remember(document);
        self.context.shared.view.send_if_modified(|view| {
            let is_newer = view.version() < version;
            if is_newer {
                let alive = |node: &NodeRecord| view.node(node.host_id).is_none_or(|known| known.alive);
                *view = document.view(version, alive);
            }
            is_newer
        });
    }

    async fn run_incarnation(
        &mut self,
        previous_incarnation_stopped: bool,
    ) -> Result<IncarnationEnd, ClusterError> {
        self.check_cluster().await?;
        let me = self.record();
        let member = me.member();
        self.context.shared.set_member(member);
        let (commands, command_queue) = mpsc::unbounded_channel();
        let (events, event_queue) = mpsc::unbounded_channel();
        let mut lease_renewer = LeaseRenewer::new(self.context.clone(), member);
        let mut tablet_tasks = TabletTaskRunner::new(self.context.clone(), command_queue, events);
        let mut control_loop = ControlLoop::new(
            self.context.clone(),
            me,
            previous_incarnation_stopped,
            commands,
            event_queue,
        );
        let end = tokio::select! {
            biased;
            reason = lease_renewer.run() => Ok(IncarnationEnd::LostLease(reason)),
            end = control_loop.run(&mut self.agent_requests) => end,
            () = tablet_tasks.run() => Err(ClusterError::Stopped),
        };
        self.context.shared.end_lease();
        drop(tablet_tasks);
        for tablet in control_loop.local_tablets.tablets() {
            self.context.host.abandon(tablet).await;
        }
        if matches!(end, Ok(IncarnationEnd::Left)) {
            let name = name_of(member);
            let delete = self.context.documents.delete(&name);
            if let Err(error) = self.context.within(self.context.config.lease, delete).await {
                tracing::info!(%error, "the heartbeat of this node was left behind; others will remove it");
            }
        }
        end
    }

    /// Waits for the store. Refuses the cluster of another node or of an unknown format, before anything is written.
    async fn check_cluster(&mut self) -> Result<(), ClusterError> {
        let config = self.context.config.clone();
        loop {
            let get = self.context.documents.get(document::NAME);
            match self.context.within(config.lease, get).await {
                Ok(None) => return Ok(()),
                Ok(Some(found)) => {
                    let found = ClusterDocument::decode(&found.content)?;
                    found.check_store(config.store)?;
                    return match found.cluster_name == config.cluster_name {
                        true => Ok(()),
                        false => Err(ClusterError::WrongCluster {
                            found: found.cluster_name,
                            configured: config.cluster_name.clone(),
                        }),
                    };
                }
                Err(error) => {
                    let state = AgentState::Joining(error.to_string());
                    self.context.shared.state.send_replace(state);
                    self.context.clock.sleep(config.check_interval(0)).await;
                }
            }
        }
    }

    fn record(&mut self) -> NodeRecord {
        let config = &self.context.config;
        NodeRecord {
            host_id: config.host_id,
            incarnation: Incarnation::random(&mut self.rng),
            description: config.description.clone(),
            lease_ms: config.lease.as_millis() as u64,
            joined_at_ms: self.context.clock.wall_ms(),
            state: NodeState::Normal,
            credentials: config.credentials.clone(),
        }
    }
}
