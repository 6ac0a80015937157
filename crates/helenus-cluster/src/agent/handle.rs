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

/// Approximate number of former members that are remembered.
const SEEN_MAX: usize = 4096;

/// The state of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentState {
    /// Not in the cluster yet, or not any more after the lease was lost. The text is the reason for which the node is still waiting.
    Joining(String),
    /// In the cluster, with all tablets open that were the node's own when it joined.
    Serving,
    /// Handing over its tablets, to leave the cluster.
    Leaving,
    /// Out of the cluster, with all tablets closed. The process may end.
    Left,
    /// Stopped for a reason that waiting cannot resolve.
    Failed(ClusterError),
}

/// A request of a handle to the agent.
#[derive(Debug)]
pub(super) enum Request {
    TabletLost(TabletId),
    Drain,
    Change(MembershipChange, oneshot::Sender<Result<(), ClusterError>>),
}

/// A change that an operator requests.
#[derive(Debug, Clone, Copy)]
pub(super) enum MembershipChange {
    Move { tablet: TabletId, to: HostId },
    Split { tablet: TabletId },
    Merge { left: TabletId },
    Forget { node: HostId },
}

/// Counters of an agent since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AgentCounts {
    /// Number of tablets that were opened, and that were closed to be handed over.
    pub opened: u64,
    pub closed: u64,
    /// Number of splits and merges that were carried out.
    pub reshaped: u64,
    /// Number of nodes whose leases this node has ended.
    pub expulsions: u64,
    /// Number of times that this node lost its own lease.
    pub leases_lost: u64,
    /// Number of renewals of the lease.
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

/// Increments a counter.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A written version of the cluster document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentVersion {
    /// The version. 0 if none was written yet.
    pub version: Version,
    /// The document. Empty if only its version was announced.
    pub content: Arc<[u8]>,
}

/// State that the agent and its handles share.
pub(super) struct Shared {
    pub clock: Arc<dyn Clock>,
    /// End of the lease, in nanoseconds of the monotonic clock. 0 if there is no lease.
    deadline_ns: AtomicU64,
    /// Number of stays in the cluster so far. The tablets of one stay have been given up when the next one begins.
    stays: AtomicU64,
    pub view: watch::Sender<Arc<ClusterView>>,
    pub state: watch::Sender<AgentState>,
    /// The last version of the cluster document that this node wrote.
    pub written: watch::Sender<DocumentVersion>,
    /// The newest version that another node has announced, until the agent takes it.
    announced: Mutex<Option<DocumentVersion>>,
    /// Error of the last renewal of the lease. `None` if the renewal succeeded.
    renewal_error: Mutex<Option<String>>,
    /// This node in its current incarnation. `None` before it begins to join.
    member: Mutex<Option<Member>>,
    /// The members that are in the cluster, or that this node has seen in it.
    seen: Mutex<BTreeSet<Member>>,
    /// Wakes the agent to read the cluster document at once.
    pub refresh: Notify,
    pub counters: Counters,
    /// True if the agent is to stop following the cluster.
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

    /// Extends the lease after a successful renewal that began at `start`.
    pub fn extend_lease(&self, start: Duration, lease: Duration) {
        count(&self.counters.renewals);
        let deadline = (start + lease).as_nanos() as u64;
        self.deadline_ns.fetch_max(deadline, Ordering::AcqRel);
        *held(&self.renewal_error) = None;
    }

    /// Records the error of a renewal. Returns true for the first one after a success.
    pub fn note_renewal_error(&self, error: String) -> bool {
        held(&self.renewal_error).replace(error).is_none()
    }

    /// Ends the lease now.
    pub fn end_lease(&self) {
        self.deadline_ns.store(0, Ordering::Release);
    }

    /// Returns the announced version of the document and clears it. `None` if there is none.
    pub fn take_announced(&self) -> Option<DocumentVersion> {
        held(&self.announced).take()
    }

    /// Begins an incarnation.
    pub fn set_member(&self, member: Member) {
        self.stays.fetch_add(1, Ordering::AcqRel);
        *held(&self.member) = Some(member);
    }

    /// Remembers the members in a document of this store. They may call this node, also for a while after they have left.
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

    /// Returns true if the lease is valid and the stay is that of `term`. The lease is checked first: if a later stay has begun by then,
    /// the term shows that.
    pub fn may_serve_since(&self, term: LeaseTerm) -> bool {
        self.may_serve() && self.lease_term() == term
    }
}

/// Locks a mutex. No code panics while one is held, so a poisoned one is safe to use.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The interface of an [`Agent`](crate::Agent) for the rest of the node. Cheap to clone, and outlives the agent.
#[derive(Clone)]
pub struct AgentHandle {
    shared: Arc<Shared>,
}

/// The agent's end of its handles' requests.
pub struct AgentRequests {
    pub(super) shared: Arc<Shared>,
    pub(super) requests: mpsc::UnboundedReceiver<Request>,
}

/// Callers that wait for an agent that is gone are notified.
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
    /// Returns a handle for the tablet host and all other users, and the receiver of its requests, with which an [`Agent`](crate::Agent) is
    /// created.
    pub fn channel(clock: Arc<dyn Clock>) -> (Self, AgentRequests) {
        let (shared, requests) = Shared::new(clock);
        let handle = AgentHandle {
            shared: shared.clone(),
        };
        (handle, AgentRequests { shared, requests })
    }

    /// Returns a handle without an agent, for tests of the layers above. The node `here` sees `view`, its lease never ends, and requests
    /// have no effect.
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

    /// Returns this node's current incarnation. `None` before it begins to join.
    pub fn incarnation(&self) -> Option<Incarnation> {
        held(&self.shared.member).map(|member| member.incarnation)
    }

    /// Returns true if the cluster document of this store has shown that node in that incarnation. No node of another store qualifies, not
    /// even of a copy, because an incarnation is created for one cluster.
    pub fn has_seen(&self, host_id: HostId, incarnation: Incarnation) -> bool {
        let member = Member { host_id, incarnation };
        held(&self.shared.seen).contains(&member)
    }

    /// Returns the agent's counters.
    pub fn counts(&self) -> AgentCounts {
        self.shared.counters.read()
    }

    /// Returns true if this node's lease is valid by its own clock.
    pub fn may_serve(&self) -> bool {
        self.shared.may_serve()
    }

    /// Returns the error of the last renewal of the lease. `None` if the renewal succeeded.
    pub fn renewal_error(&self) -> Option<String> {
        held(&self.shared.renewal_error).clone()
    }

    /// Returns the current stay. Callers note it before they read anything for an answer.
    pub fn lease_term(&self) -> LeaseTerm {
        self.shared.lease_term()
    }

    /// Returns true if data read since the term was noted is the data that every other node would have read. Callers check this when an
    /// answer is ready, before they send it.
    ///
    /// A valid lease is not enough. A node that was paused past its lease reads tablets that other nodes own by now, until it notices. It
    /// may even have joined again, with another lease, when the answer is ready.
    pub fn may_serve_since(&self, term: LeaseTerm) -> bool {
        self.shared.may_serve_since(term)
    }

    /// Returns the cluster as this node knows it now.
    pub fn view(&self) -> Arc<ClusterView> {
        self.shared.view.borrow().clone()
    }

    /// Calls `read` with the cluster as this node knows it now. `read` must be short, because a new view waits for it.
    pub fn with_view<T>(&self, read: impl FnOnce(&ClusterView) -> T) -> T {
        read(&self.shared.view.borrow())
    }

    /// Returns a receiver of each new view.
    pub fn views(&self) -> watch::Receiver<Arc<ClusterView>> {
        self.shared.view.subscribe()
    }

    /// Returns a receiver of the versions of the cluster document that this node writes, to announce them to other nodes.
    pub fn written(&self) -> watch::Receiver<DocumentVersion> {
        self.shared.written.subscribe()
    }

    /// Takes an announcement that another node of this cluster has written a version of the document.
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

    /// Returns the content of `nodetool status`.
    pub fn status(&self) -> Vec<NodeStatus> {
        self.view().status()
    }

    pub fn state(&self) -> AgentState {
        self.shared.state.borrow().clone()
    }

    pub fn states(&self) -> watch::Receiver<AgentState> {
        self.shared.state.subscribe()
    }

    /// Makes the agent read the cluster document now, because a peer has refused a request as not its own, or has changed the document.
    pub fn refresh(&self) {
        self.shared.refresh.notify_one();
    }

    /// Reports that the host found an open tablet fenced and has closed it.
    pub fn tablet_lost(&self, tablet: TabletId) {
        self.request(Request::TabletLost(tablet));
    }

    /// Hands all tablets over and leaves the cluster. Waits until the process may end. May be called more than once.
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

    /// Begins a planned hand-over of a tablet. Waits until the document records it. The view shows the progress.
    pub async fn move_tablet(&self, tablet: TabletId, to: HostId) -> Result<(), ClusterError> {
        self.change(MembershipChange::Move { tablet, to }).await
    }

    /// Begins to split a tablet in two equal ranges. Otherwise like [`AgentHandle::move_tablet`].
    pub async fn split_tablet(&self, tablet: TabletId) -> Result<(), ClusterError> {
        self.change(MembershipChange::Split { tablet }).await
    }

    /// Begins to merge a tablet with the next one in token order, which must have the same owner. Otherwise like
    /// [`AgentHandle::move_tablet`].
    pub async fn merge_tablet(&self, left: TabletId) -> Result<(), ClusterError> {
        self.change(MembershipChange::Merge { left }).await
    }

    /// Forgets a node whose lease has ended. Otherwise like [`AgentHandle::move_tablet`].
    pub async fn forget_node(&self, node: HostId) -> Result<(), ClusterError> {
        self.change(MembershipChange::Forget { node }).await
    }

    async fn change(&self, change: MembershipChange) -> Result<(), ClusterError> {
        let (reply, answer) = oneshot::channel();
        self.request(Request::Change(change, reply));
        answer.await.unwrap_or(Err(ClusterError::Stopped))
    }

    /// Sends a request to the agent. If the agent has stopped, callers that wait for an answer notice the dropped sender.
    fn request(&self, request: Request) {
        let _ = self.shared.requests.send(request);
    }
}
