//! Several nodes as one: a request comes to any of them, and each partition is its owner's.
//!
//! [`Cluster`] is what the query floor asks of the floors above: who owns a token, and to carry a question to that node. An engine
//! without one is alone, and none of this is on its way.
//!
//! - A statement whose rows lie in one tablet is run whole by the tablet's owner ([`crate::execution::routing`]): conditions, counters and indexes need
//!   its locks. What spans several tablets is cut: modifications by the partitions that they name, reads row by row and range by range
//!   ([`crate::storage::reads`]), batches by their operands ([`crate::execution::writes`]).
//! - Of an aggregate, and of rows that are filtered or grouped, over a range of tokens each part is read by the owner of its tokens, who
//!   answers with what its rows come to ([`Cluster::read_part`]). Where that fails, the rows of the part are read as those of any range.
//! - A node that does not own what it is asked for says so, having done nothing. Then, and where no connection was had, the question is
//!   put again to whoever owns it by then. A write that was sent and not answered is sent again if that comes to the same; otherwise the
//!   client is told that its outcome is unknown.
//! - What a read gives is answered only if the node has had its lease since before it has read, which it asks after it has read.

mod part;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
pub use helenus_cluster::LeaseTerm;
use helenus_cql::ast::BatchKind;
use helenus_cql::error::CqlError;
use helenus_tablet::{HistoryPosition, Op, PinnedTablet, TokenRange};
use tokio::time::Instant;
use uuid::Uuid;

use crate::analysis::{BatchStatement, Prepared};
use crate::figures::internode::{OutboundQueue, OutboundTraffic};
use crate::request::QueryOptions;
use crate::response::Outcome;
use crate::trace;

pub use crate::index::list_search::ListSearch;
pub use crate::index::stale_entry::{StaleEntries, StaleEntry};
pub use part::{Origin, PartAnswer, PartPage, PartRows};

/// Who serves a tablet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    Here,
    Peer(Uuid),
    /// Nobody for now: its owner is gone, or it is on its way.
    Nobody,
}

/// A node, as drivers are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub host_id: Uuid,
    /// Where drivers connect.
    pub native_address: SocketAddr,
    pub data_center: String,
    pub rack: String,
    pub is_alive: bool,
    /// The last tokens of its tablets.
    pub tokens: Vec<i64>,
    pub name: String,
    /// Where the other nodes connect: `host:port`.
    pub rpc_address: String,
    pub software_version: String,
    /// It hands its tablets over.
    pub is_leaving: bool,
}

/// A tablet, as operators are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tablet {
    pub id: u32,
    pub tokens: TokenRange,
    pub owner: Option<Uuid>,
    pub epoch: u64,
    /// What it goes through, for people.
    pub state: String,
}

impl Tablet {
    /// Its part of the ring, from 0 to 1.
    pub fn share(&self) -> f64 {
        (self.tokens.last as f64 - self.tokens.first as f64 + 1.0) / 2f64.powi(64)
    }
}

/// The documents that all nodes must have loaded alike, by their versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    pub schema: u64,
    /// Of the set of tables that ever had a partition header.
    pub headers: u64,
}

/// The text of a request.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    Text(&'a str),
    Prepared(&'a Prepared),
    Batch(BatchKind, &'a [BatchStatement]),
}

/// A statement on its way to its owner. [`QueryOptions::place`] says what of it is to be done there.
pub struct Forwarded<'a> {
    pub keyspace: Option<&'a str>,
    pub source: Source<'a>,
    pub options: &'a QueryOptions,
    /// The schema that it was planned with; its owner's must not be older.
    pub schema_version: u64,
}

/// A range of keys of one tablet.
#[derive(Clone, Debug)]
pub struct ScanRange {
    /// The tokens that it spans.
    pub tokens: TokenRange,
    pub start: Bytes,
    /// The first key behind it; none is the end of the tablet.
    pub end: Option<Bytes>,
    pub reversed: bool,
}

/// Merge operands for one node.
#[derive(Clone, Debug)]
pub struct RemoteWrite {
    pub ops: Vec<Op>,
    pub durable: bool,
    /// They are rows of tables, whose indexes follow.
    pub maintains_indexes: bool,
    pub schema_version: u64,
}

/// Why another node did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteError {
    /// It does not own that, and has done nothing.
    NotOwned,
    /// It was not reached, and nothing was sent.
    Unreachable(String),
    /// It was asked, and has not answered.
    NoAnswer(String),
    /// It has failed in a way that the client is told of.
    Failed(CqlError),
}

/// Tablets as they are at one moment, and how far the logs are then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    pub tablets: Vec<PinnedTablet>,
    pub positions: Vec<HistoryPosition>,
}

/// What a node is to do about a moment of all nodes ([`Cluster::hold`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pin {
    /// Have the log go on, and pin what was frozen.
    Held(Uuid),
    /// Have the log go on, and forget the moment.
    LetGo(Uuid),
    /// Pin what is in SSTables, at no moment in particular.
    Flushed,
}

/// Rows that come from another node.
#[async_trait]
pub trait RemoteScan: Send {
    /// Returns the next key and merged row.
    async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, RemoteError>;
}

/// The other nodes, and who owns what. Answers are given by the newest view that the node has.
#[async_trait]
pub trait Cluster: Send + Sync + 'static {
    /// Returns the owner of a token.
    fn owner(&self, token: i64) -> Owner;
    /// Returns the range of the tablet that a token lies in.
    fn tablet(&self, token: i64) -> TokenRange;
    /// Returns every node that takes part, this one included.
    fn nodes(&self) -> Vec<Node>;
    /// Returns every tablet, in the order of tokens.
    fn tablets(&self) -> Vec<Tablet>;
    /// This node's id.
    fn here(&self) -> Uuid;
    /// Returns the node's present stay in the cluster, to be noted before something is read for an answer.
    fn lease_term(&self) -> LeaseTerm;
    /// Returns false if others may have owned what this node owned when the term was noted, or since: what it has read may be old.
    fn may_serve_since(&self, term: LeaseTerm) -> bool;
    /// Returns a number that grows whenever the view has changed or a tablet was opened here.
    fn changes(&self) -> u64;
    /// Returns true once the node has left: it has no tablet open any more, and what it reads comes from owners, who answer for it.
    fn has_left(&self) -> bool;
    /// Returns when that is no longer the number of changes, or after that time; false if the view will not change any more, since the
    /// node takes no part.
    async fn changed(&self, since: u64, at_most: Duration) -> bool;
    /// What this node has asked of each of the others, and asks now.
    fn outbound(&self) -> Vec<(Uuid, Arc<OutboundTraffic>, OutboundQueue)> {
        Vec::new()
    }
    /// Reads the view anew.
    async fn refresh(&self);

    async fn execute(
        &self,
        node: Uuid,
        statement: &Forwarded<'_>,
        deadline: Instant,
    ) -> Result<Outcome, RemoteError>;
    /// Has the owner of the tokens read its rows of them; what they come to. Of a statement that gives rows, those after its paging state,
    /// at most a page.
    async fn read_part(
        &self,
        node: Uuid,
        statement: &Forwarded<'_>,
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
    /// Has posting lists of that node searched there; the encoded entries of each.
    async fn search_lists(
        &self,
        node: Uuid,
        search: &ListSearch,
        deadline: Instant,
    ) -> Result<Vec<Bytes>, RemoteError>;
    async fn write(&self, node: Uuid, write: &RemoteWrite, deadline: Instant) -> Result<(), RemoteError>;
    /// Has index entries of that node's rows removed that stand for nothing; their number.
    async fn remove_stale(
        &self,
        node: Uuid,
        stale: &StaleEntries,
        deadline: Instant,
    ) -> Result<u64, RemoteError>;
    /// Has that node freeze its tablets, and hold its log until [`Cluster::pin`], or for a short time; the tokens of its tablets.
    async fn hold(&self, node: Uuid, moment: Uuid, deadline: Instant)
    -> Result<Vec<TokenRange>, RemoteError>;
    /// Has that node's log go on.
    async fn pin(&self, node: Uuid, pin: Pin, deadline: Instant) -> Result<Moment, RemoteError>;
    /// Has that node load the documents; `is_settled` also waits until no write is under way there that was planned before.
    async fn load(
        &self,
        node: Uuid,
        versions: Versions,
        is_settled: bool,
        deadline: Instant,
    ) -> Result<(), RemoteError>;
}

/// Waits between tries, longer each time, and no longer than until something has changed since the last try began.
pub(crate) struct Backoff {
    wait: Duration,
    deadline: Instant,
    /// What the cluster had changed when the last try began.
    seen: u64,
}

/// How long a node that takes no part any more tries to pass on what it was asked before.
const LEFT_PATIENCE: Duration = Duration::from_secs(2);
/// The first wait between tries, and the longest.
const WAIT_MIN: Duration = Duration::from_millis(2);
const WAIT_MAX: Duration = Duration::from_millis(100);

impl Backoff {
    /// Make it before the first try.
    pub fn until(deadline: Instant, cluster: &dyn Cluster) -> Backoff {
        Backoff {
            wait: WAIT_MIN,
            deadline,
            seen: cluster.changes(),
        }
    }

    /// Returns false if the time is over.
    pub async fn wait(&mut self, cluster: &dyn Cluster) -> bool {
        if Instant::now() + self.wait >= self.deadline {
            return false;
        }
        let began = std::time::Instant::now();
        let takes_part = cluster.changed(self.seen, self.wait).await;
        trace::waited_to_be_owned(began);
        if !takes_part {
            self.deadline = self.deadline.min(Instant::now() + LEFT_PATIENCE);
        }
        let changes = cluster.changes();
        self.wait = match changes == self.seen {
            true => (self.wait * 2).min(WAIT_MAX),
            // What was waited for may have happened, or is near.
            false => WAIT_MIN,
        };
        self.seen = changes;
        true
    }
}
