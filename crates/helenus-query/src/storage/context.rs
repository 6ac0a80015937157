//! What execution needs of the node.

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

/// The store, the schema, the clocks, the locks, the other nodes and the limits: what reads and writes of rows stand on.
pub struct ExecutionContext {
    pub(crate) store: Arc<Store>,
    /// Replaced as a whole when settings change.
    pub(crate) limits: ArcSwap<Limits>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) timestamps: TimestampSource,
    pub(crate) schema: ArcSwap<Schema>,
    pub(crate) live_tables: Arc<LiveTables>,
    pub(crate) headers: Arc<HeaderTables>,
    pub(crate) locks: PartitionLocks,
    /// Of requests that asked to be traced.
    pub(crate) traces: Arc<Traces>,
    /// Latencies and what reads meet.
    pub(crate) figures: Arc<Figures>,
    /// The statements of clients that run now.
    pub(crate) running: RunningStatements,
    /// How often partitions of tables with a limit are asked for.
    pub(crate) partition_rates: PartitionRates,
    /// The memory that clients' requests and answers hold.
    pub(crate) client_memory: Arc<ClientMemory>,
    /// The memory that answers may take.
    pub(crate) answers: Arc<ResultMemory>,
    pub(crate) writes: SchemaEpochs,
    /// Wakes those who wait for a newer schema.
    pub(crate) installed: Notify,
    /// Index entries that stand for nothing.
    pub(crate) stale: Arc<StaleCounts>,
    /// Indexes and views that are being built here.
    pub(crate) backfills: Backfills,
    /// The directories of indexes on vectors.
    pub(crate) posting_lists: PostingLists,
    /// Set once the node is one of several.
    pub(crate) cluster: OnceLock<Arc<dyn Cluster>>,
    pub(crate) virtual_tables: Box<dyn VirtualTables>,
    /// One for each part of a whole-table aggregate that may be read at a time.
    pub(crate) scan_permits: Arc<Semaphore>,
    /// The memory that an open time of the past takes. `None` of today.
    pub(crate) past_memory: Option<OwnedSemaphorePermit>,
}

impl ExecutionContext {
    /// Returns the cluster that the node is in.
    pub(crate) fn cluster(&self) -> Option<&Arc<dyn Cluster>> {
        self.cluster.get()
    }

    /// Returns true of the owner of a token, and of a node that is alone.
    pub(crate) fn owns(&self, token: i64) -> bool {
        self.cluster()
            .is_none_or(|cluster| cluster.owner(token) == Owner::Here)
    }

    /// What reads of the past stand on: other tablets and tables, and a time that stands still. Nothing is written there.
    pub(crate) fn of_past(
        &self,
        store: Arc<Store>,
        schema: Schema,
        clock: Arc<dyn Clock>,
    ) -> ExecutionContext {
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
            past_memory: None,
        }
    }

    /// Returns the limits that hold now.
    pub(crate) fn limits(&self) -> arc_swap::Guard<Arc<Limits>> {
        self.limits.load()
    }

    /// When a request that begins now is given up.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.limits().request_timeout
    }

    /// Today's schema.
    pub(crate) fn schema(&self) -> Arc<Schema> {
        self.schema.load_full()
    }

    /// Returns the next write timestamp of the node, in microseconds.
    pub(crate) fn next_timestamp_us(&self) -> i64 {
        self.timestamps.next_us(self.clock.as_ref())
    }

    /// Returns the versions of the documents that are loaded.
    pub(crate) fn versions(&self) -> Versions {
        Versions {
            schema: self.schema().document_version,
            headers: self.headers.version(),
        }
    }

    /// Locks every partition given, to read what is then written, or to date what is written. What is read of partitions that are locked alone
    /// must be read through the locks ([`super::read::ReadView`]), since writes to them may be pending.
    ///
    /// # Errors
    /// A lock was not to be had within the store's write timeout.
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
