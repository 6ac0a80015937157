//! The agent's main loop. It reads the cluster's state, decides, writes the cluster document, and gives commands to the tablet task runner.

mod document_reader;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::failure_detector::FailureDetector;
use super::handle::{AgentRequests, AgentState, DocumentVersion, MembershipChange, Request};
use super::local_tablets::LocalTablets;
use super::tablet_tasks::{TabletCommand, TabletTaskEvent};
use super::{AgentContext, IncarnationEnd};
use crate::decide::{Decision, DecisionInput, decide, leads};
use crate::document::{self, ClusterDocument, NodeRecord};
use crate::environment::{Expect, TabletLoad, TabletSpec};
use crate::error::{ClusterError, DocumentError};
use crate::ids::{Epoch, TabletId, Version};
use crate::stability::StabilityTracker;
use crate::view::NodeState;

/// Maximum number of writes in a row before the agent refreshes its knowledge.
const WRITES_IN_A_ROW_MAX: usize = 8;
/// Time between two reads of the document by a node that is about to get a tablet, in case it misses the announcement.
const EXPECTING_INTERVAL: Duration = Duration::from_millis(100);
/// Time between two checks for a lease by a node that is about to join.
const LEASE_CHECK_INTERVAL: Duration = Duration::from_millis(25);

/// Number of leases before the leading node first sweeps the store for orphaned data, and between later sweeps.
const FIRST_SWEEP_LEASES: u32 = 30;
const SWEEP_LEASES: u32 = 300;

type Reply = oneshot::Sender<Result<(), ClusterError>>;

pub(super) struct ControlLoop {
    context: AgentContext,
    me: NodeRecord,
    failure_detector: FailureDetector,
    /// True if the last check of the heartbeats failed.
    is_blind: bool,
    /// True if the last write of the cluster document failed.
    is_mute: bool,
    /// The state of the tablets on this node.
    pub local_tablets: LocalTablets,
    events: mpsc::UnboundedReceiver<TabletTaskEvent>,
    known: Option<(Version, Arc<ClusterDocument>)>,
    /// The stamp of the document when it was last read.
    read_stamp: Option<String>,
    /// True if the document has shown this node in this incarnation.
    joined: bool,
    draining: bool,
    loads: BTreeMap<TabletId, TabletLoad>,
    stability: StabilityTracker,
    rebalance_due: bool,
    changes: Vec<(MembershipChange, Reply)>,
    next_check: Duration,
    next_read: Option<Duration>,
    last_read: Duration,
    next_tend: Duration,
    /// Time of the next sweep of the store for orphaned data.
    next_sweep: Duration,
}

impl ControlLoop {
    pub fn new(
        context: AgentContext,
        me: NodeRecord,
        previous_incarnation_stopped: bool,
        commands: mpsc::UnboundedSender<TabletCommand>,
        events: mpsc::UnboundedReceiver<TabletTaskEvent>,
    ) -> Self {
        let now = context.now();
        let failure_detector =
            FailureDetector::new(context.clone(), me.member(), previous_incarnation_stopped);
        ControlLoop {
            failure_detector,
            is_blind: false,
            is_mute: false,
            local_tablets: LocalTablets::new(context.clone(), me.host_id, commands),
            events,
            known: None,
            read_stamp: None,
            joined: false,
            draining: false,
            loads: BTreeMap::new(),
            stability: StabilityTracker::default(),
            rebalance_due: false,
            changes: Vec::new(),
            next_check: now,
            next_read: Some(now),
            last_read: Duration::ZERO,
            next_tend: now,
            next_sweep: now + context.config.lease * FIRST_SWEEP_LEASES,
            context,
            me,
        }
    }

    pub async fn run(&mut self, agent_requests: &mut AgentRequests) -> Result<IncarnationEnd, ClusterError> {
        loop {
            self.refresh().await;
            loop {
                if let Some(end) = self.apply_decisions().await? {
                    // A node that has left still forwards requests for a while, so it needs the last view.
                    self.publish();
                    return Ok(end);
                }
                if let Some(document) = self.document()
                    && self.joined
                {
                    self.local_tablets.reconcile(&document);
                }
                self.publish();
                // Clients may be waiting for the effect of an event, so decisions come before the next refresh. But events must not delay a
                // refresh for long.
                let overdue = self.next_check + self.check_interval();
                if !self.wait(agent_requests).await || self.context.now() >= overdue {
                    break;
                }
            }
        }
    }

    fn check_interval(&self) -> Duration {
        let nodes = self
            .known
            .as_ref()
            .map_or(0, |(_, document)| document.nodes.len());
        self.context.config.check_interval(nodes.saturating_sub(1))
    }

    fn document(&self) -> Option<Arc<ClusterDocument>> {
        self.known.as_ref().map(|(_, document)| document.clone())
    }

    /// Updates the known state of the cluster, as far as it is due.
    async fn refresh(&mut self) {
        let document = self.document();
        if self.context.now() >= self.next_check {
            let seen = self.failure_detector.check_heartbeats(document.as_deref()).await;
            let was_blind = std::mem::replace(&mut self.is_blind, seen.is_err());
            match seen {
                Ok(()) if self.failure_detector.document_stamp != self.read_stamp => self.read_immediately(),
                Ok(()) => {}
                Err(error) if !was_blind => {
                    tracing::info!(%error, "the nodes' heartbeats could not be seen; trying again");
                }
                Err(_) => {}
            }
            self.next_check = self.context.now() + self.check_interval();
        }
        if self.next_read.is_some_and(|time| self.context.now() >= time) {
            self.read().await;
        }
        if let Some(document) = self.document() {
            self.failure_detector.expire_leases(&document).await;
            self.run_leader_duties(&document).await;
        }
    }

    /// Does the periodic work of the leading node, and reads the loads for a joining node before it takes its share.
    async fn run_leader_duties(&mut self, document: &ClusterDocument) {
        let now = self.context.now();
        if now < self.next_tend {
            return;
        }
        self.next_tend = now + self.context.config.lease * 2;
        let no_tablets = BTreeMap::new();
        let leads = self.with_input(document, &no_tablets, |input| leads(document, input));
        if !leads {
            self.stability = StabilityTracker::default();
        }
        if !leads && self.joined {
            return;
        }
        self.loads = self.failure_detector.read_loads(document).await;
        if leads {
            self.rebalance_due = true;
            let suspected = self.failure_detector.suspected(document);
            let limits = &self.context.config.limits;
            self.stability
                .observe(self.context.now(), document, &suspected, &self.loads, limits);
            self.failure_detector.delete_leftovers(document).await;
            if now >= self.next_sweep {
                self.next_sweep = now + self.context.config.lease * SWEEP_LEASES;
                self.local_tablets.find_orphan_tablets();
            }
            self.local_tablets.remove_retired(document);
        }
    }

    fn with_input<T>(
        &self,
        document: &ClusterDocument,
        closed: &BTreeMap<TabletId, Epoch>,
        use_input: impl FnOnce(&DecisionInput) -> T,
    ) -> T {
        let config = &self.context.config;
        use_input(&DecisionInput {
            cluster_name: &config.cluster_name,
            store: config.store,
            initial_tablets: &config.initial_tablets,
            limits: &config.limits,
            me: &self.me,
            joined: self.joined,
            draining: self.draining,
            dead: &self.failure_detector.dead,
            suspected: &self.failure_detector.suspected(document),
            closed,
            reshaped: &self.local_tablets.reshaped,
            removed: &self.local_tablets.removed,
            loads: &self.loads,
            mergeable: &self.stability.mergeable(self.context.now(), &config.limits),
            rebalance_due: self.rebalance_due,
            now_ms: self.context.clock.wall_ms(),
        })
    }

    /// Writes the document as long as there are changes to write. Returns the reason if the incarnation has ended.
    async fn apply_decisions(&mut self) -> Result<Option<IncarnationEnd>, ClusterError> {
        // A node without a lease would join only to be expelled.
        if !self.joined && !self.draining && !self.context.shared.may_serve() {
            return Ok(None);
        }
        for _ in 0..WRITES_IN_A_ROW_MAX {
            let document = self.document();
            let empty = ClusterDocument::create(&self.context.config.cluster_name, &TabletSpec::ring(1));
            let closed = self.local_tablets.closed();
            let decision = self.with_input(document.as_deref().unwrap_or(&empty), &closed, |input| {
                decide(document.as_deref(), input)
            });
            let written = match decision.unwrap_or_else(|error| Decision::Wait(error.to_string())) {
                Decision::Keep => match self.changes.pop() {
                    Some((change, reply)) => self.change(change, reply).await,
                    None => break,
                },
                Decision::Write(next) => self.write(*next).await,
                Decision::Wait(reason) => {
                    self.report_obstacle(reason);
                    break;
                }
                Decision::IncompatibleMember(member, error) => {
                    // A member that has ended need not be compatible.
                    if self.failure_detector.renews(member) {
                        return Err(error);
                    }
                    self.report_obstacle(error.to_string());
                    break;
                }
                Decision::Expelled => {
                    return Ok(Some(IncarnationEnd::LostLease(
                        "another node expelled this one".into(),
                    )));
                }
                Decision::Left => return Ok(Some(IncarnationEnd::Left)),
            };
            match written {
                Ok(()) => {}
                // The node that was faster may have announced its version.
                Err(DocumentError::Conflict) if self.take_announcement() => {}
                Err(DocumentError::Conflict) => self.read().await,
                Err(DocumentError::Unavailable(reason)) => {
                    if !std::mem::replace(&mut self.is_mute, true) {
                        tracing::info!(%reason, "the cluster document could not be written; trying again");
                    }
                    self.next_read = Some(self.context.now() + self.context.config.retry_interval());
                    break;
                }
            }
        }
        self.rebalance_due = false;
        Ok(None)
    }

    /// Reports the reason for which this node cannot write a change. Reports each reason once.
    fn report_obstacle(&self, reason: String) {
        if self.joined {
            tracing::error!(%reason, "the cluster document can't be changed");
            return;
        }
        self.context.shared.state.send_if_modified(|state| {
            let next = AgentState::Joining(reason);
            let changed = *state != next;
            if changed {
                tracing::info!(state = ?next, "this node can't join yet");
                *state = next;
            }
            changed
        });
    }

    async fn write(&mut self, next: ClusterDocument) -> Result<(), DocumentError> {
        let expect = match &self.known {
            Some((version, _)) => Expect::Version(*version),
            None => Expect::Absent,
        };
        let content = next.encode();
        let put = self.context.documents.put(document::NAME, &content, expect);
        let version = self.context.within(self.context.config.lease, put).await?;
        self.is_mute = false;
        self.observe_document(version, next);
        self.context.shared.written.send_replace(DocumentVersion {
            version,
            content: content.into(),
        });
        Ok(())
    }

    /// Makes a change that an operator has requested.
    async fn change(&mut self, change: MembershipChange, reply: Reply) -> Result<(), DocumentError> {
        let Some(document) = self.document() else {
            let _ = reply.send(Err(ClusterError::Refused("this node has not joined yet".into())));
            return Ok(());
        };
        let mut next = ClusterDocument::clone(&document);
        let result = match change {
            MembershipChange::Move { tablet, to } => next.begin_move(tablet, to),
            MembershipChange::Split { tablet } => next.tablet(tablet).cloned().and_then(|record| {
                let middle = record.tokens.middle();
                next.begin_split(tablet, middle.unwrap_or(record.tokens.first))
            }),
            MembershipChange::Merge { left } => next.begin_merge(left),
            MembershipChange::Forget { node } => next.forget_lost(node),
        };
        let result = match result {
            Ok(()) => match self.write(next).await {
                Err(DocumentError::Conflict) => {
                    self.changes.push((change, reply));
                    return Err(DocumentError::Conflict);
                }
                written => written.map_err(ClusterError::from),
            },
            refused => refused,
        };
        // Sending fails if the caller no longer waits, which is no error.
        let _ = reply.send(result);
        Ok(())
    }

    fn handle_request(&mut self, request: Request) {
        match request {
            Request::Drain => self.draining = true,
            Request::Change(change, reply) => self.changes.insert(0, (change, reply)),
            Request::TabletLost(tablet) => {
                if self.local_tablets.lost(tablet) {
                    self.read_immediately();
                }
            }
        }
    }

    /// Publishes the known state to the rest of the node.
    fn publish(&mut self) {
        let Some((version, document)) = &self.known else {
            return;
        };
        let view = document.view(*version, |node| self.failure_detector.alive(node));
        self.context.shared.view.send_if_modified(|current| {
            let changed = **current != *view;
            *current = view;
            changed
        });
        let state = match document.node(self.me.host_id) {
            Some(me) if self.joined && me.state == NodeState::Leaving => AgentState::Leaving,
            Some(_) if self.joined && self.local_tablets.has_opened_all(document) => AgentState::Serving,
            _ => return,
        };
        self.context.shared.state.send_if_modified(|current| {
            let changed = *current != state;
            *current = state;
            changed
        });
    }

    /// Waits for an event, or until the next check is due. Returns true if there was an event.
    async fn wait(&mut self, agent_requests: &mut AgentRequests) -> bool {
        let now = self.context.now();
        let pause = self.next_time().saturating_sub(now);
        let shared = self.context.shared.clone();
        let mut is_news = true;
        tokio::select! {
            biased;
            Some(event) = self.events.recv() => self.local_tablets.handle_event(event),
            Some(request) = agent_requests.requests.recv() => self.handle_request(request),
            () = shared.refresh.notified() => is_news = self.take_refresh_request(now),
            () = self.context.clock.sleep(pause) => is_news = false,
        }
        while let Ok(event) = self.events.try_recv() {
            self.local_tablets.handle_event(event);
        }
        while let Ok(request) = agent_requests.requests.try_recv() {
            self.handle_request(request);
        }
        // The next write should build on the announced version.
        self.take_announcement() || is_news
    }

    fn next_time(&mut self) -> Duration {
        let mut time = self.next_check;
        if let Some(document) = self.document() {
            if self.expects_tablets(&document) && self.next_read.is_none() {
                self.next_read = Some(self.last_read + EXPECTING_INTERVAL);
            }
            time = time.min(self.failure_detector.next_look(&document).unwrap_or(time));
        }
        let waits_for_lease = !self.joined && !self.context.shared.may_serve();
        let lease_check = waits_for_lease.then(|| self.context.now() + LEASE_CHECK_INTERVAL);
        let times = self.local_tablets.next_time().into_iter().chain(self.next_read);
        times.chain(lease_check).fold(time, Duration::min)
    }

    fn expects_tablets(&self, document: &ClusterDocument) -> bool {
        let me = Some(self.me.host_id);
        self.joined && document.tablets.iter().any(|tablet| tablet.moving_to == me)
    }
}
