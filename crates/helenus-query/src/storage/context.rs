//! The parts of the node that execution needs.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use helenus_cql::error::CqlError;
use helenus_tablet::Store;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::{
    HeaderTables, LiveTables, LockRequest, NoVirtualTables, PartitionGuard, PartitionLocks, SchemaEpochs,
    VirtualTables,
};
use crate::clock::{Clock, TimestampSource};
use crate::cluster::{Cluster, Owner, Versions};
use crate::figures::Figures;
use crate::figures::running::RunningStatements;
use crate::index::building::Backfills;
use crate::index::posting_lists::PostingLists;
use crate::index::stale_entry::StaleCounts;
use crate::limits::Limits;
use crate::limits::answers::ResultMemory;
use crate::limits::client_memory::ClientMemory;
use crate::limits::partition_rates::PartitionRates;
use crate::schema::Schema;
use crate::trace::Traces;

/// The basis of reads and writes of rows: the store, the schema, the clocks, the locks, the other nodes and the limits.
pub struct ExecutionContext {
    pub(crate) store: Arc<Store>,
    /// The limits. They are replaced as a whole when settings change.
    pub(crate) limits: ArcSwap<Limits>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) timestamps: TimestampSource,
    pub(crate) schema: ArcSwap<Schema>,
    pub(crate) live_tables: Arc<LiveTables>,
    pub(crate) headers: Arc<HeaderTables>,
    pub(crate) locks: PartitionLocks,
    /// Traces of requests for which clients turned tracing on.
    pub(crate) traces: Arc<Traces>,
    /// Latencies and statistics of reads.
    pub(crate) figures: Arc<Figures>,
    /// Clients' running statements.
    pub(crate) running: RunningStatements,
    /// Request rates of partitions of tables with a limit.
    pub(crate) partition_rates: PartitionRates,
    /// Memory that clients' requests and answers hold.
    pub(crate) client_memory: Arc<ClientMemory>,
    /// Memory for answers.
    pub(crate) answers: Arc<ResultMemory>,
    pub(crate) writes: SchemaEpochs,
    /// Wakes tasks that wait for a newer schema.
    pub(crate) installed: Notify,
    /// Counts of stale index entries.
    pub(crate) stale: Arc<StaleCounts>,
    /// Indexes and views that this node builds.
    pub(crate) backfills: Backfills,
    /// Directories of vector indexes.
    pub(crate) posting_lists: PostingLists,
    /// The cluster. Not set if the node is alone.
    pub(crate) cluster: OnceLock<Arc<dyn Cluster>>,
    pub(crate) virtual_tables: Box<dyn VirtualTables>,
    /// One permit for each part of whole-table aggregates that may be read concurrently.
    pub(crate) scan_permits: Arc<Semaphore>,
    /// Memory that an opened earlier time takes. `None` for the current time.
    pub(crate) history_memory: Option<OwnedSemaphorePermit>,
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
            limits: ArcSwap::new(self.limits.load_full()),
            clock,
            timestamps: TimestampSource::default(),
            schema: ArcSwap::from_pointee(schema),
            live_tables: self.live_tables.clone(),
            headers: self.headers.clone(),
            locks: PartitionLocks::default(),
            traces: self.traces.clone(),
            figures: self.figures.clone(),
            running: RunningStatements::default(),
            partition_rates: PartitionRates::default(),
            client_memory: self.client_memory.clone(),
            answers: self.answers.clone(),
            writes: SchemaEpochs::default(),
            installed: Notify::default(),
            stale: self.stale.clone(),
            backfills: Backfills::default(),
            posting_lists: PostingLists::default(),
            cluster: OnceLock::new(),
            virtual_tables: Box::new(NoVirtualTables),
            scan_permits: self.scan_permits.clone(),
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
        self.timestamps.next_us(self.clock.as_ref())
    }

    /// Returns the versions of the loaded documents.
    pub(crate) fn versions(&self) -> Versions {
        Versions {
            schema: self.schema().document_version,
            headers: self.headers.version(),
        }
    }

    /// Locks every given partition, to read before a write, or to assign a timestamp to a write. Writes to a partition that is locked alone
    /// may be pending, so it must be read through the locks ([`super::row_reads::ReadView`]).
    ///
    /// # Errors
    /// A lock was not available within the store's write timeout.
    pub(crate) async fn lock_partitions(
        &self,
        partitions: impl IntoIterator<Item = LockRequest>,
    ) -> Result<Arc<PartitionGuard>, CqlError> {
        let longest = self.store.write_timeout();
        let mut guard = self.locks.lock_within(partitions, longest).await?;
        if self.cluster().is_some() {
            guard.tablets = Some(self.store.tablets());
        }
        Ok(Arc::new(guard))
    }
}
