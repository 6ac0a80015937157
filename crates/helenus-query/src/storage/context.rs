//! The parts of the node that execution needs.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use helenus_tablet::Store;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::Instant;

use super::change_streams::ChangeStreams;
use super::undecided::UndecidedTransactions;
use super::{NoVirtualTables, PartitionLocks, RowHooks, SchemaEpochs, VirtualTables};
use crate::clock::{Clock, TimestampSource};
use crate::cluster::{Cluster, Owner, Versions};
use crate::index::building::Backfills;
use crate::index::posting_lists::PostingLists;
use crate::index::stale_entry::StaleCounts;
use crate::limits::Limits;
use crate::limits::node_limits::NodeLimits;
use crate::metrics::NodeMetrics;
use crate::metrics::running::RunningStatements;
use crate::schema::Schema;
use crate::trace::Traces;

/// The basis of reads and writes of rows: the store, the schema, the clocks, the locks, the other nodes and the limits.
pub struct ExecutionContext {
    pub(crate) store: Arc<Store>,
    /// The data model of the store, with the sets of tables that it knows.
    pub(crate) hooks: Arc<RowHooks>,
    pub(crate) limits: NodeLimits,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) schema: ArcSwap<Schema>,
    /// Wakes tasks that wait for a newer schema.
    pub(crate) installed: Notify,
    pub(crate) writing: WriteState,
    pub(crate) indexes: IndexState,
    /// Streams of captured changes.
    pub(crate) change_streams: ChangeStreams,
    /// Traces of requests for which clients turned tracing on.
    pub(crate) traces: Arc<Traces>,
    /// Latencies and statistics of reads.
    pub(crate) metrics: Arc<NodeMetrics>,
    /// Clients' running statements.
    pub(crate) running: RunningStatements,
    /// The cluster. Not set if the node is alone.
    pub(crate) cluster: OnceLock<Arc<dyn Cluster>>,
    pub(crate) virtual_tables: Box<dyn VirtualTables>,
    /// Memory that an opened earlier time takes. `None` for the current time.
    pub(crate) history_memory: Option<OwnedSemaphorePermit>,
}

/// The state of the writes in progress on this node.
#[derive(Default)]
pub(crate) struct WriteState {
    pub timestamps: TimestampSource,
    pub locks: PartitionLocks,
    pub epochs: SchemaEpochs,
    /// Transactions over partitions of several owners.
    pub undecided: UndecidedTransactions,
}

/// This node's work on indexes and views, and its copies of their directories.
#[derive(Default)]
pub(crate) struct IndexState {
    /// Counts of stale index entries.
    pub stale: Arc<StaleCounts>,
    /// Indexes and views that this node builds.
    pub backfills: Backfills,
    /// Directories of vector indexes.
    pub posting_lists: PostingLists,
}

impl ExecutionContext {
    /// Returns the node's cluster. `None` if the node is alone.
    pub(crate) fn cluster(&self) -> Option<&Arc<dyn Cluster>> {
        self.cluster.get()
    }

    /// Returns true if this node owns the token. A node that is alone owns all tokens.
    pub(crate) fn owns(&self, token: i64) -> bool {
        self.cluster()
            .is_none_or(|cluster| cluster.owner(token) == Owner::Here)
    }

    /// Returns a context for reads as of an earlier time. It has other tablets and tables, and a stopped clock. Nothing is written there.
    pub(crate) fn as_of(&self, store: Arc<Store>, schema: Schema, clock: Arc<dyn Clock>) -> ExecutionContext {
        ExecutionContext {
            store,
            hooks: self.hooks.clone(),
            limits: self.limits.as_of(),
            clock,
            schema: ArcSwap::from_pointee(schema),
            installed: Notify::default(),
            writing: WriteState::default(),
            indexes: IndexState {
                stale: self.indexes.stale.clone(),
                ..IndexState::default()
            },
            change_streams: ChangeStreams::default(),
            traces: self.traces.clone(),
            metrics: self.metrics.clone(),
            running: RunningStatements::default(),
            cluster: OnceLock::new(),
            virtual_tables: Box::new(NoVirtualTables),
            history_memory: None,
        }
    }

    /// Returns the current limits.
    pub(crate) fn limits(&self) -> arc_swap::Guard<Arc<Limits>> {
        self.limits.load()
    }

    /// Returns the deadline of a request that begins now.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.limits().request_timeout
    }

    /// Returns the current schema.
    pub(crate) fn schema(&self) -> Arc<Schema> {
        self.schema.load_full()
    }

    /// Returns the next write timestamp of the node, in microseconds.
    pub(crate) fn next_timestamp_us(&self) -> i64 {
        self.writing.timestamps.next_us(self.clock.as_ref())
    }

    /// Returns the versions of the loaded documents.
    pub(crate) fn versions(&self) -> Versions {
        Versions {
            schema: self.schema().document_version,
            headers: self.hooks.headers.version(),
        }
    }
}
