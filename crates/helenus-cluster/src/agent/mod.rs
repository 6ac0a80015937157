//! A node's part in the cluster.
//!
//! An agent lives through *stays*: it joins with a new incarnation, and if its lease is ended by others it gives up all tablets and starts
//! anew. During a stay three things run side by side: the [`keeper`] renews the lease and does nothing else, so that nothing delays it;
//! the [`worker`] carries out what the tablet host is asked; and the [`tender`] looks at the cluster, decides, writes the
//! cluster document and tells the worker what to do.

mod config;
mod handle;
mod hosting;
mod keeper;
mod tender;
mod watching;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::mpsc;

pub use config::{AgentConfig, LEASE_DEFAULT};
pub use handle::{AgentCounts, AgentHandle, AgentState, Mailbox, Written};

use crate::document::{self, ClusterDocument, NodeRecord};
use crate::effects::{Clock, Documents, TabletHost};
use crate::error::{ClusterError, DocumentError};
use crate::heartbeat::name_of;
use crate::ids::{Incarnation, Version};
use crate::view::NodeState;
use handle::Shared;
use keeper::Keeper;
use tender::Tender;
use worker::Worker;

/// How often a node that has left reads the cluster document, if nobody wants to know sooner.
const FOLLOWING_INTERVAL: Duration = Duration::from_millis(200);

/// How a stay ended.
enum End {
    /// The node wanted to leave and is out.
    Left,
    /// Others ended the lease; why, for people.
    LostLease(String),
}

/// What the parts of an agent have in common.
#[derive(Clone)]
struct Context {
    config: Arc<AgentConfig>,
    documents: Arc<dyn Documents>,
    clock: Arc<dyn Clock>,
    host: Arc<dyn TabletHost>,
    shared: Arc<Shared>,
}

impl Context {
    fn now(&self) -> Duration {
        self.clock.monotonic()
    }

    /// Waits for a store's answer for at most `limit`.
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

/// Runs a node's part in the cluster. See [`AgentHandle::channel`] for how one is made.
pub struct Agent {
    context: Context,
    mailbox: Mailbox,
    rng: StdRng,
}

impl Agent {
    /// `seed` should be random; it makes incarnations.
    pub fn new(
        mailbox: Mailbox,
        config: AgentConfig,
        documents: Arc<dyn Documents>,
        host: Arc<dyn TabletHost>,
        seed: u64,
    ) -> Self {
        let context = Context {
            config: Arc::new(config),
            documents,
            clock: mailbox.shared.clock.clone(),
            host,
            shared: mailbox.shared.clone(),
        };
        Agent {
            context,
            mailbox,
            rng: StdRng::seed_from_u64(seed),
        }
    }

    /// Joins the cluster and takes part until the node is drained, or until something comes up that waiting does not cure. Should run where
    /// nothing hinders it for long: a lease that is renewed late ends.
    pub async fn run(&mut self) -> Result<(), ClusterError> {
        let mut former_self_is_gone = self.context.config.predecessor_is_gone;
        let result = loop {
            match self.stay(former_self_is_gone).await {
                Ok(End::Left) => break Ok(()),
                Ok(End::LostLease(reason)) => {
                    handle::count(&self.context.shared.counters.leases_lost);
                    tracing::warn!(%reason, "this node lost its lease: it has given up its tablets and joins again");
                    self.context
                        .shared
                        .state
                        .send_replace(AgentState::Joining(reason));
                }
                Err(error) => break Err(error),
            }
            former_self_is_gone = true;
        };
        let state = match &result {
            Ok(()) => AgentState::Left,
            Err(error) => AgentState::Failed(error.clone()),
        };
        self.context.shared.state.send_replace(state);
        result
    }

    /// For a node that has left: goes on to read the cluster document, since what its clients still ask of it is passed on to the tablets'
    /// owners, who change. Returns when it is told to stop ([`AgentHandle::stop_following`]).
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

    /// Publishes a document that is newer than the view. This node no longer sees who is alive: they are taken to be as they were.
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

    async fn stay(&mut self, former_self_is_gone: bool) -> Result<End, ClusterError> {
        self.check_cluster().await?;
        let me = self.record();
        let member = me.member();
        self.context.shared.set_member(member);
        let (commands, command_queue) = mpsc::unbounded_channel();
        let (events, event_queue) = mpsc::unbounded_channel();
        let mut keeper = Keeper::new(self.context.clone(), member);
        let mut worker = Worker::new(self.context.clone(), command_queue, events);
        let mut tender = Tender::new(
            self.context.clone(),
            me,
            former_self_is_gone,
            commands,
            event_queue,
        );
        let end = tokio::select! {
            biased;
            reason = keeper.run() => Ok(End::LostLease(reason)),
            end = tender.run(&mut self.mailbox) => end,
            () = worker.run() => Err(ClusterError::Stopped),
        };
        self.context.shared.end_lease();
        drop(worker);
        for tablet in tender.hosting.tablets() {
            self.context.host.abandon(tablet).await;
        }
        if matches!(end, Ok(End::Left)) {
            let name = name_of(member);
            let delete = self.context.documents.delete(&name);
            if let Err(error) = self.context.within(self.context.config.lease, delete).await {
                tracing::info!(%error, "the heartbeat of this node was left behind; others will remove it");
            }
        }
        end
    }

    /// Waits for the store, and refuses a cluster that is not this node's or that it does not understand, before anything is written.
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
                    self.context.clock.sleep(config.renewal_interval()).await;
                }
            }
        }
    }

    fn record(&mut self) -> NodeRecord {
        let config = &self.context.config;
        NodeRecord {
            host_id: config.host_id,
            incarnation: Incarnation::random(&mut self.rng),
            name: config.name.clone(),
            cql_address: config.cql_address,
            rpc_address: config.rpc_address.clone(),
            data_center: config.data_center.clone(),
            rack: config.rack.clone(),
            software_version: config.software_version.clone(),
            lease_ms: config.lease.as_millis() as u64,
            joined_at_ms: self.context.clock.wall_ms(),
            state: NodeState::Normal,
            credentials: config.credentials.clone(),
        }
    }
}
