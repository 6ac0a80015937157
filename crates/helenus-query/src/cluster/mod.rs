//! Cooperation of several nodes: every node accepts every request, and each partition has one owner.
//!
//! [`Cluster`] is what the query layer requires of the layers above: the owner of a token, and requests to that node. An engine without a
//! cluster is a single node, and skips all of this.
//!
//! - A statement whose rows lie in one tablet runs as a whole on the tablet's owner ([`crate::execution::routing`]). Conditions, counters
//!   and indexes need that node's locks.
//! - A statement that spans several tablets is split. Modifications are split by partition, reads by row and range
//!   ([`crate::storage::key_reads`]), and batches by operand ([`crate::execution::writes`]).
//! - Aggregates, filters and groups over a token range are computed by the owner of each part ([`Cluster::read_part`]). The owner returns
//!   only the result of its rows. If that fails, the part's rows are read like those of any range.
//! - A node that does not own the requested tokens refuses without having done anything. Then, or if no connection was established, the
//!   request is sent to the current owner.
//! - A write without an answer is sent again if it is idempotent. Otherwise the client gets the error that the write's outcome is unknown.
//! - The result of a read is returned only if the node has held its lease since before the read. The lease is checked after the read.

mod part;
mod relay;
mod request;
mod transactions;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
pub use helenus_cluster::LeaseTerm;
use helenus_cql::error::CqlError;
pub use helenus_row::TableId;
use helenus_tablet::{HistoryPosition, Op, PinnedTablet, TokenRange};
use tokio::time::Instant;
use uuid::Uuid;

use crate::measurement;
use crate::metrics::internode::{OutboundQueue, OutboundTraffic};
use crate::response::Outcome;

pub use crate::index::list_search::ListSearch;
pub use crate::index::stale_entry::{StaleEntries, StaleEntry};
pub use part::{PartAnswer, PartPage, PartRows};
pub use relay::{RelayAnswer, RelayReceiver, ReturnAddress, Sent};
pub(crate) use request::RequestWork;
pub use request::{Request, Source};
pub use transactions::{IntentState, TransactionAnswer, TransactionStep};

/// The node that serves a tablet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    Here,
    Peer(Uuid),
    /// No node at present: the owner has failed, or the tablet is being moved.
    Unowned,
}

/// A node, as reported to drivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedNode {
    pub host_id: Uuid,
    /// Address for drivers.
    pub native_address: SocketAddr,
    pub data_center: String,
    pub rack: String,
    pub is_alive: bool,
    /// The last token of each of the node's tablets.
    pub tokens: Vec<i64>,
    pub name: String,
    /// Address for other nodes: `host:port`.
    pub rpc_address: String,
    pub software_version: String,
    /// True if the node is handing its tablets over in order to leave.
    pub is_leaving: bool,
}

/// A tablet, as reported to operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedTablet {
    pub id: u32,
    pub tokens: TokenRange,
    pub owner: Option<Uuid>,
    pub epoch: u64,
    /// The tablet's state in words.
    pub state: String,
}

impl ReportedTablet {
    /// Returns the tablet's share of the ring, from 0 to 1.
    pub fn share(&self) -> f64 {
        (self.tokens.last as f64 - self.tokens.first as f64 + 1.0) / 2f64.powi(64)
    }
}

/// Versions of the documents that all nodes must have loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    pub schema: u64,
    /// Version of the set of tables that ever had a partition header.
    pub headers: u64,
}

/// A range of keys of one tablet.
#[derive(Clone, Debug)]
pub struct ScanRange {
    /// Tokens that the range spans.
    pub tokens: TokenRange,
    pub start: Bytes,
    /// The first key after the range. `None` if the range ends with the tablet.
    pub end: Option<Bytes>,
    pub reversed: bool,
}

/// Merge operands for one node.
#[derive(Clone, Debug)]
pub struct RemoteWrite {
    pub ops: Vec<Op>,
    pub durable: bool,
    /// True if the operands are rows of tables, so that the owner updates the rows' indexes too.
    pub maintains_indexes: bool,
    /// True if the owner does not capture the changes.
    pub is_uncaptured: bool,
    pub schema_version: u64,
}

/// The reason why another node did not execute a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteError {
    /// The node does not own the tokens, and has done nothing.
    NotOwned,
    /// The node was not reached, and nothing was sent.
    Unreachable(String),
    /// The request was sent, and the node has not answered.
    NoAnswer(String),
    /// The node failed with an error for the client.
    Failed(CqlError),
}

/// Pinned tablets of one point in time, and the positions of the logs at that time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PinnedCut {
    pub tablets: Vec<PinnedTablet>,
    pub positions: Vec<HistoryPosition>,
}

/// Request to a node that takes part in a consistent cut ([`Cluster::hold`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pin {
    /// Release the log, and pin the tablets that were frozen.
    Held(Uuid),
    /// Release the log, and drop the cut.
    Release(Uuid),
    /// Pin the SSTables that exist, without a common time.
    Flushed,
}

/// A stream of rows from another node.
#[async_trait]
pub trait RemoteScan: Send {
    /// Returns the next key and merged row. `None` after the last row.
    async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, RemoteError>;
}

/// The other nodes, and the owners of tablets. Answers come from the newest view that the node has.
#[async_trait]
pub trait Cluster: Send + Sync + 'static {
    /// Returns the owner of a token.
    fn owner(&self, token: i64) -> Owner;
    /// Returns the range of the tablet that a token lies in.
    fn tablet(&self, token: i64) -> TokenRange;
    /// Returns all nodes of the cluster, including this one.
    fn nodes(&self) -> Vec<ReportedNode>;
    /// Returns every tablet, in the order of tokens.
    fn tablets(&self) -> Vec<ReportedTablet>;
    /// Returns this node's id.
    fn here(&self) -> Uuid;
    /// Returns the term of the node's current stay in the cluster. The caller takes it before a read.
    fn lease_term(&self) -> LeaseTerm;
    /// Returns false if another node may have owned this node's tablets at some time since `term` was taken. A read in between may then be
    /// stale.
    fn may_serve_since(&self, term: LeaseTerm) -> bool;
    /// Returns a number that grows when the view changes or a tablet is opened here.
    fn changes(&self) -> u64;
    /// Returns true once the node has left. It has no open tablet any more, and all its reads go to the owners, which check their own
    /// leases.
    fn has_left(&self) -> bool;
    /// Waits until the number of changes is no longer `since`, but at most for `at_most`. Returns false if the view will not change any
    /// more, because the node takes no part in the cluster.
    async fn changed(&self, since: u64, at_most: Duration) -> bool;
    /// Returns the requests that this node has sent to each other node, and those that are pending.
    fn outbound(&self) -> Vec<(Uuid, Arc<OutboundTraffic>, OutboundQueue)> {
        Vec::new()
    }
    /// Reads the view again.
    async fn refresh(&self);

    /// Has the owner of the request's rows execute it. The result is encoded for the client if the request has the client's body.
    async fn execute(
        &self,
        node: Uuid,
        request: &Request<'_>,
        deadline: Instant,
    ) -> Result<Outcome, RemoteError>;
    /// Queues a request for the owner of its rows, and returns at once. The answer goes to `back`. `None` if nothing was queued, because the
    /// request would have to wait. [`Cluster::execute`] is then the way.
    fn relay(
        &self,
        _node: Uuid,
        _request: &Request<'_>,
        _deadline: Instant,
        _back: ReturnAddress,
    ) -> Option<Sent> {
        None
    }
    /// Counts the answer to a relayed request.
    fn count_relayed(&self, _answer: &RelayAnswer) {}
    /// Returns the result of the rows that `node` owns among the tokens. For a statement that returns rows, these are at most one page
    /// after its paging state.
    async fn read_part(
        &self,
        node: Uuid,
        request: &Request<'_>,
        tokens: TokenRange,
        deadline: Instant,
    ) -> Result<PartAnswer, RemoteError>;
    async fn get(
        &self,
        node: Uuid,
        keys: &[(i64, Bytes)],
        deadline: Instant,
    ) -> Result<Vec<Option<Bytes>>, RemoteError>;
    async fn scan(
        &self,
        node: Uuid,
        range: &ScanRange,
        deadline: Instant,
    ) -> Result<Box<dyn RemoteScan>, RemoteError>;
    /// Searches posting lists on the node that owns them. Returns the encoded entries of each list.
    async fn search_lists(
        &self,
        node: Uuid,
        search: &ListSearch,
        deadline: Instant,
    ) -> Result<Vec<Bytes>, RemoteError>;
    async fn write(&self, node: Uuid, write: &RemoteWrite, deadline: Instant) -> Result<(), RemoteError>;
    /// Has `node` take a step of a transaction over partitions of several owners. [`RemoteError::NotOwned`] means that the step was not
    /// taken, and that the transaction's lock session there has ended or will end.
    async fn transact(
        &self,
        node: Uuid,
        step: &TransactionStep,
        deadline: Instant,
    ) -> Result<TransactionAnswer, RemoteError>;
    /// Removes stale entries from the indexes of the node's rows. Returns the number of removed entries.
    async fn remove_stale(
        &self,
        node: Uuid,
        stale: &StaleEntries,
        deadline: Instant,
    ) -> Result<u64, RemoteError>;
    /// Freezes the tablets of `node`, and holds its log until [`Cluster::pin`], or for a short time. Returns the tokens of the node's
    /// tablets.
    async fn hold(&self, node: Uuid, cut: Uuid, deadline: Instant) -> Result<Vec<TokenRange>, RemoteError>;
    /// Releases the held log of `node`, and pins its tablets as `pin` requires.
    async fn pin(&self, node: Uuid, pin: Pin, deadline: Instant) -> Result<PinnedCut, RemoteError>;
    /// Makes `node` load the documents of these versions. With `is_settled`, also waits until all writes planned there with older ones have
    /// ended.
    async fn load(
        &self,
        node: Uuid,
        versions: Versions,
        is_settled: bool,
        deadline: Instant,
    ) -> Result<(), RemoteError>;
}

/// Waits between tries. Each wait is longer than the last, but ends when the cluster has changed since the last try began.
#[derive(Clone)]
pub(crate) struct Backoff {
    wait: Duration,
    deadline: Instant,
    /// Number of the cluster's changes when the last try began.
    seen: u64,
}

/// Maximum time for which a node that takes no part in the cluster any more retries its pending requests.
const LEFT_PATIENCE: Duration = Duration::from_secs(2);
/// The first wait between tries, and the longest.
const WAIT_MIN: Duration = Duration::from_millis(2);
const WAIT_MAX: Duration = Duration::from_millis(100);

impl Backoff {
    /// Starts the waits of a request. Must be called before the first try, so that a change during the try ends the first wait.
    pub fn until(deadline: Instant, cluster: &dyn Cluster) -> Backoff {
        Backoff {
            wait: WAIT_MIN,
            deadline,
            seen: cluster.changes(),
        }
    }

    /// Waits before the next try. Returns false if the deadline leaves no time for one.
    pub async fn wait(&mut self, cluster: &dyn Cluster) -> bool {
        if Instant::now() + self.wait >= self.deadline {
            return false;
        }
        let began = std::time::Instant::now();
        let takes_part = cluster.changed(self.seen, self.wait).await;
        measurement::waited_to_be_owned(began);
        if !takes_part {
            self.deadline = self.deadline.min(Instant::now() + LEFT_PATIENCE);
        }
        let changes = cluster.changes();
        self.wait = match changes == self.seen {
            true => (self.wait * 2).min(WAIT_MAX),
            // The cluster has changed, so the next try may already succeed.
            false => WAIT_MIN,
        };
        self.seen = changes;
        true
    }
}
