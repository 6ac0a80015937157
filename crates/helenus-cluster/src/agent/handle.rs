//! The agent's interface to the rest of the node.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot, watch};

use crate::document::{ClusterDocument, NodeRecord};
use crate::environment::Clock;
use crate::error::ClusterError;
use crate::ids::{HostId, Incarnation, LeaseTerm, Member, TabletId, Version};
use crate::view::{ClusterView, NodeInfo, NodeStatus};

/// Members of the past that are remembered, about.
const SEEN_MAX: usize = 4096;

/// Where the agent stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentState {
    /// Not in the cluster yet, or not any more after it lost its lease; why it is still waiting, for people.
    Joining(String),
    /// In the cluster. It has opened the tablets that were its own when it joined.
    Serving,
    /// Hands its tablets over.
    Leaving,
    /// Out of the cluster, all tablets closed: the process may end.
    Left,
    /// Stopped for a reason that waiting does not cure.
    Failed(ClusterError),
}

/// What a handle asks the agent to do.
#[derive(Debug)]
pub(super) enum Request {
    TabletLost(TabletId),
    Drain,
    Change(MembershipChange, oneshot::Sender<Result<(), ClusterError>>),
}

/// A change that an operator asks for.
#[derive(Debug, Clone, Copy)]
pub(super) enum MembershipChange {
    Move { tablet: TabletId, to: HostId },
    Split { tablet: TabletId },
    Merge { left: TabletId },
    Forget { node: HostId },
}

/// What an agent has done since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AgentCounts {
    /// Tablets opened, and closed to be handed over.
    pub opened: u64,
    pub closed: u64,
    /// Splits and merges carried out.
    pub reshaped: u64,
    /// Nodes whose leases this one has ended.
    pub expulsions: u64,
    /// Times that this node lost its own.
    pub leases_lost: u64,
    /// Renewals of the lease.
    pub renewals: u64,
}

#[derive(Default)]
pub(super) struct Counters {
    pub opened: AtomicU64,
    pub closed: AtomicU64,
    pub reshaped: AtomicU64,
    pub expulsions: AtomicU64,
    pub leases_lost: AtomicU64,
    pub renewals: AtomicU64,
}

impl Counters {
    fn read(&self) -> AgentCounts {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        AgentCounts {
            opened: get(&self.opened),
            closed: get(&self.closed),
            reshaped: get(&self.reshaped),
            expulsions: get(&self.expulsions),
            leases_lost: get(&self.leases_lost),
            renewals: get(&self.renewals),
        }
    }
}

/// One more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A version of the cluster document that was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentVersion {
    /// 0 before any was.
    pub version: Version,
    /// The document; empty where only its version was told.
    pub content: Arc<[u8]>,
}

/// What the agent and its handles share.
pub(super) struct Shared {
    pub clock: Arc<dyn Clock>,
    /// Nanoseconds of the monotonic clock; 0 when there is no lease.
    deadline_ns: AtomicU64,
    /// Stays so far. The tablets of one have been given up when the next one begins.
    stays: AtomicU64,
    pub view: watch::Sender<Arc<ClusterView>>,
    pub state: watch::Sender<AgentState>,
    /// The cluster document as this node wrote it last.
    pub written: watch::Sender<DocumentVersion>,
    /// The newest that another node has told of, until the agent takes it.
    announced: Mutex<Option<DocumentVersion>>,
    /// Error of the last renewal of the lease. `None` if the renewal succeeded.
    renewal_error: Mutex<Option<String>>,
    /// This node in its present incarnation.
    member: Mutex<Option<Member>>,
    /// Who is in the cluster, or was while this node looked.
    seen: Mutex<BTreeSet<Member>>,
    /// Wakes the agent up to look at the cluster document at once.
    pub refresh: Notify,
    pub counters: Counters,
    /// Whether the agent is to follow the cluster no more.
    pub stopped: watch::Sender<bool>,
    requests: mpsc::UnboundedSender<Request>,
}

impl Shared {
    pub fn new(clock: Arc<dyn Clock>) -> (Arc<Self>, mpsc::UnboundedReceiver<Request>) {
        let (requests, receiver) = mpsc::unbounded_channel();
        let shared = Shared {
            clock,
            deadline_ns: AtomicU64::new(0),
            stays: AtomicU64::new(0),
            view: watch::Sender::new(Arc::default()),
            state: watch::Sender::new(AgentState::Joining("the agent has not started".into())),
            written: watch::Sender::default(),
            announced: Mutex::default(),
            renewal_error: Mutex::default(),
            member: Mutex::default(),
            seen: Mutex::default(),
            refresh: Notify::new(),
            counters: Counters::default(),
            stopped: watch::Sender::default(),
            requests,
        };
        (Arc::new(shared), receiver)
    }

    /// A renewal that began at `start` has succeeded.
    pub fn extend_lease(&self, start: Duration, lease: Duration) {
        count(&self.counters.renewals);
        let deadline = (start + lease).as_nanos() as u64;
        self.deadline_ns.fetch_max(deadline, Ordering::AcqRel);
        *held(&self.renewal_error) = None;
    }

    /// Notes the error of a renewal. Returns true for the first one after a success.
    pub fn note_renewal_error(&self, error: String) -> bool {
        held(&self.renewal_error).replace(error).is_none()
    }

    /// Ends the lease now.
    pub fn end_lease(&self) {
        self.deadline_ns.store(0, Ordering::Release);
    }

    /// What another node has told of, once.
    pub fn take_announced(&self) -> Option<DocumentVersion> {
        held(&self.announced).take()
    }

    /// An incarnation begins.
    pub fn set_member(&self, member: Member) {
        self.stays.fetch_add(1, Ordering::AcqRel);
        *held(&self.member) = Some(member);
    }

    /// The document is this store's own: who is in it may speak to this node, also for a while after leaving.
    pub fn remember(&self, document: &ClusterDocument) {
        let mut seen = held(&self.seen);
        if seen.len() > SEEN_MAX {
            seen.retain(|member| document.has(*member));
        }
        seen.extend(document.nodes.iter().map(NodeRecord::member));
    }

    pub fn may_serve(&self) -> bool {
        let deadline_ns = self.deadline_ns.load(Ordering::Acquire);
        u128::from(deadline_ns) > self.clock.monotonic().as_nanos()
    }

    pub fn lease_term(&self) -> LeaseTerm {
        LeaseTerm(self.stays.load(Ordering::Acquire))
    }

    /// Returns the lease is looked at first: if it is one of a later stay, so is the term.
    pub fn may_serve_since(&self, term: LeaseTerm) -> bool {
        self.may_serve() && self.lease_term() == term
    }
}

/// Nothing that panics happens while one of them is held.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The rest of the node's side of an [`Agent`](crate::Agent). Cheap to clone; outlives the agent.
#[derive(Clone)]
pub struct AgentHandle {
    shared: Arc<Shared>,
}

/// The agent's end of its handles' requests.
pub struct AgentRequests {
    pub(super) shared: Arc<Shared>,
    pub(super) requests: mpsc::UnboundedReceiver<Request>,
}

/// Whoever waits for an agent that is gone is told.
impl Drop for AgentRequests {
    fn drop(&mut self) {
        self.shared.end_lease();
        self.shared.state.send_if_modified(|state| {
            let ended = matches!(state, AgentState::Left | AgentState::Failed(_));
            if !ended {
                *state = AgentState::Failed(ClusterError::Stopped);
            }
            !ended
        });
    }
}

impl AgentHandle {
    /// Returns a handle, which the tablet host and all others can have at once, and the requests_of_handles that an [`Agent`](crate::Agent)
    /// is then made with.
    pub fn channel(clock: Arc<dyn Clock>) -> (Self, AgentRequests) {
        let (shared, requests) = Shared::new(clock);
        let handle = AgentHandle {
            shared: shared.clone(),
        };
        (handle, AgentRequests { shared, requests })
    }

    /// Returns a handle without an agent, for tests of what stands above: the node `here` sees `view`, its lease never ends, and nothing is
    /// done on request.
    pub fn detached(view: ClusterView, here: HostId, clock: Arc<dyn Clock>) -> Self {
        let (shared, _) = Shared::new(clock);
        shared.extend_lease(Duration::ZERO, Duration::from_nanos(u64::MAX));
        let member = |node: &Arc<NodeInfo>| Member {
            host_id: node.host_id,
            incarnation: node.incarnation,
        };
        held(&shared.seen).extend(view.nodes().iter().map(member));
        *held(&shared.member) = view.node(here).map(member);
        shared.view.send_replace(Arc::new(view));
        shared.state.send_replace(AgentState::Serving);
        AgentHandle { shared }
    }

    /// This node's present incarnation in the cluster, once it has begun to join.
    pub fn incarnation(&self) -> Option<Incarnation> {
        held(&self.shared.member).map(|member| member.incarnation)
    }

    /// Whether the cluster document of this node's own store has shown that node in that incarnation. No node of another store can be, not
    /// even of a copy: an incarnation is made for a incarnation in one cluster.
    pub fn has_seen(&self, host_id: HostId, incarnation: Incarnation) -> bool {
        let member = Member { host_id, incarnation };
        held(&self.shared.seen).contains(&member)
    }

    /// What the agent has done.
    pub fn counts(&self) -> AgentCounts {
        self.shared.counters.read()
    }

    /// Whether this node's lease is valid by its own clock.
    pub fn may_serve(&self) -> bool {
        self.shared.may_serve()
    }

    /// Error of the last renewal of the lease. `None` if the renewal succeeded.
    pub fn renewal_error(&self) -> Option<String> {
        held(&self.shared.renewal_error).clone()
    }

    /// Returns the present stay, to be noted before anything is read for an answer.
    pub fn lease_term(&self) -> LeaseTerm {
        self.shared.lease_term()
    }

    /// Whether what was read since the term was noted is what every other node would have read. To be asked when an answer is ready, before it is
    /// sent. A node that was paused past its lease reads tablets that others have by now until it notices, and may have joined again, with another
    /// lease, when the answer is ready: so a valid lease does not do.
    pub fn may_serve_since(&self, term: LeaseTerm) -> bool {
        self.shared.may_serve_since(term)
    }

    /// Returns the cluster as this node knows it now.
    pub fn view(&self) -> Arc<ClusterView> {
        self.shared.view.borrow().clone()
    }

    /// Returns each new view, as it is published.
    pub fn views(&self) -> watch::Receiver<Arc<ClusterView>> {
        self.shared.view.subscribe()
    }

    /// Returns the cluster document as this node writes it: the others are told of it.
    pub fn written(&self) -> watch::Receiver<DocumentVersion> {
        self.shared.written.subscribe()
    }

    /// Another node of this cluster has written that.
    pub fn document_announced(&self, written: DocumentVersion) {
        if self.shared.view.borrow().version() >= written.version {
            return;
        }
        let mut announced = held(&self.shared.announced);
        if announced
            .as_ref()
            .is_none_or(|newest| newest.version < written.version)
        {
            *announced = Some(written);
        }
        drop(announced);
        self.refresh();
    }

    /// What `nodetool status` shows.
    pub fn status(&self) -> Vec<NodeStatus> {
        self.view().status()
    }

    pub fn state(&self) -> AgentState {
        self.shared.state.borrow().clone()
    }

    pub fn states(&self) -> watch::Receiver<AgentState> {
        self.shared.state.subscribe()
    }

    /// Has the agent look at the cluster document now: a peer said "not mine", or that it has changed the document.
    pub fn refresh(&self) {
        self.shared.refresh.notify_one();
    }

    /// The host found an open tablet fenced and has closed it.
    pub fn tablet_lost(&self, tablet: TabletId) {
        self.request(Request::TabletLost(tablet));
    }

    /// Hands all tablets over and leaves the cluster. Returns when the process may end; asking twice is fine.
    pub async fn drain(&self) -> Result<(), ClusterError> {
        let mut states = self.shared.state.subscribe();
        self.request(Request::Drain);
        let last = states
            .wait_for(|state| matches!(state, AgentState::Left | AgentState::Failed(_)))
            .await
            .map(|state| state.clone());
        match last {
            Ok(AgentState::Failed(error)) => Err(error),
            Ok(_) => Ok(()),
            Err(_) => Err(ClusterError::Stopped),
        }
    }

    /// Ends [`Agent::follow`](crate::Agent::follow).
    pub fn stop_following(&self) {
        self.shared.stopped.send_replace(true);
    }

    /// Begins a planned hand-over of a tablet. Returns when the document says so; the view shows the rest.
    pub async fn move_tablet(&self, tablet: TabletId, to: HostId) -> Result<(), ClusterError> {
        self.change(MembershipChange::Move { tablet, to }).await
    }

    /// Begins to split a tablet in two equal ranges, otherwise as [`AgentHandle::move_tablet`].
    pub async fn split_tablet(&self, tablet: TabletId) -> Result<(), ClusterError> {
        self.change(MembershipChange::Split { tablet }).await
    }

    /// Begins to merge a tablet with the next one in token order, which must have the same owner; otherwise as
    /// [`AgentHandle::move_tablet`].
    pub async fn merge_tablet(&self, left: TabletId) -> Result<(), ClusterError> {
        self.change(MembershipChange::Merge { left }).await
    }

    /// Forgets a node whose lease has ended, otherwise as [`AgentHandle::move_tablet`].
    pub async fn forget_node(&self, node: HostId) -> Result<(), ClusterError> {
        self.change(MembershipChange::Forget { node }).await
    }

    async fn change(&self, change: MembershipChange) -> Result<(), ClusterError> {
        let (reply, answer) = oneshot::channel();
        self.request(Request::Change(change, reply));
        answer.await.unwrap_or(Err(ClusterError::Stopped))
    }

    /// An agent that has stopped hears nothing, and who waits for an answer learns it by the dropped sender.
    fn request(&self, request: Request) {
        let _ = self.shared.requests.send(request);
    }
}
