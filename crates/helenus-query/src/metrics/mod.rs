//! Metrics of the whole process about the requests of clients: latencies by kind of statement and by table, and the rows and tombstones
//! that reads meet. Statements enter them when they end.
//!
//! Recent values weigh more in quantiles: the weight of a new value grows by the factor e each minute (Cassandra's
//! `DecayingEstimatedHistogramReservoir`). Quantiles therefore describe about the last five minutes.

pub mod histogram;
pub mod internode;
pub mod log_lines;
pub mod rate_limits;
pub mod running;
pub mod sampling;
pub mod slow_statements;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use helenus_cql::ast::BatchKind;
use parking_lot::Mutex;
use uuid::Uuid;

use self::histogram::{Histogram, Snapshot};
use self::internode::Inbound;
use self::rate_limits::RateLimitMetrics;
use self::sampling::PartitionSampling;
use self::slow_statements::SlowStatements;

/// Kind of a statement, by which latencies are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// Reads of partitions that the statement names.
    Read,
    /// Writes to one table, without a condition.
    Write,
    /// Lightweight transactions.
    Lwt,
    /// Reads of token ranges, and reads by an index.
    Range,
    Batch,
    /// Transactions over partitions.
    Transaction,
}

impl StatementKind {
    pub const ALL: [StatementKind; 6] = [
        StatementKind::Read,
        StatementKind::Write,
        StatementKind::Lwt,
        StatementKind::Range,
        StatementKind::Batch,
        StatementKind::Transaction,
    ];

    pub fn name(self) -> &'static str {
        match self {
            StatementKind::Read => "read",
            StatementKind::Write => "write",
            StatementKind::Lwt => "lwt",
            StatementKind::Range => "range",
            StatementKind::Batch => "batch",
            StatementKind::Transaction => "transaction",
        }
    }
}

/// Latencies by kind of statement.
#[derive(Debug, Default)]
pub struct Latencies {
    kinds: [Histogram; 6],
}

impl Latencies {
    pub fn of(&self, kind: StatementKind) -> &Histogram {
        let [read, write, lwt, range, batch, transaction] = &self.kinds;
        match kind {
            StatementKind::Read => read,
            StatementKind::Write => write,
            StatementKind::Lwt => lwt,
            StatementKind::Range => range,
            StatementKind::Batch => batch,
            StatementKind::Transaction => transaction,
        }
    }

    /// Returns the latencies of all writes, including conditional ones and batches, as Cassandra counts them.
    pub fn writes(&self) -> Snapshot {
        let mut writes = self.of(StatementKind::Write).snapshot();
        writes.add(&self.of(StatementKind::Lwt).snapshot());
        writes.add(&self.of(StatementKind::Batch).snapshot());
        writes
    }
}

/// The metrics of one table.
#[derive(Debug, Default)]
pub struct TableMetrics {
    /// Latencies of the statements of this node's clients, in microseconds. The sum is in nanoseconds.
    pub coordinator: Latencies,
    /// Latencies of the work that this node did itself. Unused on a single node, where `coordinator` is the same.
    local: Latencies,
    /// Live rows that a read returned.
    pub rows_per_read: Histogram,
    /// Deleted and expired cells and rows that a read met.
    pub tombstones_per_read: Histogram,
}

impl TableMetrics {
    fn histograms(&self) -> impl Iterator<Item = &Histogram> {
        let latencies = self.coordinator.kinds.iter().chain(&self.local.kinds);
        latencies.chain([&self.rows_per_read, &self.tombstones_per_read])
    }

    /// Returns the latencies of the work that this node did itself. `is_clustered` is true if the node is one of several.
    pub fn local(&self, is_clustered: bool) -> &Latencies {
        match is_clustered {
            true => &self.local,
            false => &self.coordinator,
        }
    }

    /// Returns the number of clients' statements since the node started.
    pub fn statements(&self) -> u64 {
        self.coordinator.kinds.iter().map(Histogram::count).sum()
    }
}

/// Numbers of partitions written by the batches of clients, without conditional batches (Cassandra's `BatchMetrics`).
#[derive(Debug, Default)]
pub struct BatchMetrics {
    logged: Histogram,
    unlogged: Histogram,
    counter: Histogram,
}

impl BatchMetrics {
    pub fn of(&self, kind: BatchKind) -> &Histogram {
        match kind {
            BatchKind::Logged => &self.logged,
            BatchKind::Unlogged => &self.unlogged,
            BatchKind::Counter => &self.counter,
        }
    }
}

/// The place where a latency was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Coordinator,
    Local,
}

/// The transport's report about its queue.
#[derive(Debug, Default)]
pub struct QueueMetrics {
    waiting: AtomicU64,
    running_max: AtomicU64,
}

/// The queue of requests at one point in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportQueue {
    /// Requests that wait until others have ended.
    pub waiting: u64,
    /// Maximum number of requests that run at a time.
    pub running_max: u64,
}

impl QueueMetrics {
    pub fn set_waiting(&self, requests: usize) {
        self.waiting.store(requests as u64, Ordering::Relaxed);
    }

    pub fn set_running_max(&self, requests: usize) {
        self.running_max.store(requests as u64, Ordering::Relaxed);
    }

    pub fn read(&self) -> TransportQueue {
        TransportQueue {
            waiting: self.waiting.load(Ordering::Relaxed),
            running_max: self.running_max.load(Ordering::Relaxed),
        }
    }
}

/// The metrics of a node. Entering a value takes no lock, except for the first of a table.
#[derive(Debug)]
pub struct NodeMetrics {
    pub slow_statements: SlowStatements,
    /// Latencies of all tables, by kind of statement.
    pub latencies: Latencies,
    pub batches: BatchMetrics,
    pub transport: QueueMetrics,
    pub inbound: Inbound,
    pub rate_limits: RateLimitMetrics,
    /// Samples of the partitions that are read and written.
    pub sampling: Arc<PartitionSampling>,
    /// Metrics by the id of the table. Tables without requests have no entry.
    tables: ArcSwap<HashMap<Uuid, Arc<TableMetrics>>>,
    /// Held while a table is added.
    adding: Mutex<()>,
    /// Weight of a value that is entered now, among the recent values.
    weight: AtomicU64,
    began: Instant,
}

impl Default for NodeMetrics {
    fn default() -> NodeMetrics {
        NodeMetrics {
            slow_statements: SlowStatements::default(),
            latencies: Latencies::default(),
            batches: BatchMetrics::default(),
            transport: QueueMetrics::default(),
            inbound: Inbound::default(),
            rate_limits: RateLimitMetrics::default(),
            sampling: Arc::default(),
            tables: ArcSwap::default(),
            adding: Mutex::default(),
            weight: AtomicU64::new(1),
            began: Instant::now(),
        }
    }
}

/// Interval at which rates and weights are updated.
const TICK: Duration = Duration::from_secs(5);
/// Seconds in which the weight of a new value grows by the factor e.
const MEAN_LIFETIME_S: f64 = 60.0;
/// Maximum weight of a new value: e^10. When it is reached, all weights are divided by it.
const WEIGHT_MAX: u64 = 22_026;

impl NodeMetrics {
    /// Returns the metrics of a table. `None` if the table has had no request.
    pub fn table(&self, id: Uuid) -> Option<Arc<TableMetrics>> {
        self.tables.load().get(&id).cloned()
    }

    /// Calls `enter` with the metrics of a table, which are created if necessary.
    fn with_table(&self, id: Uuid, enter: impl Fn(&TableMetrics)) {
        if let Some(metrics) = self.tables.load().get(&id) {
            return enter(metrics);
        }
        let _adding = self.adding.lock();
        let mut tables = HashMap::clone(&self.tables.load());
        let metrics = tables.entry(id).or_default().clone();
        self.tables.store(Arc::new(tables));
        enter(&metrics);
    }

    /// Drops the metrics of tables that no longer exist.
    pub(crate) fn retain(&self, exists: impl Fn(Uuid) -> bool) {
        if self.tables.load().keys().all(|id| exists(*id)) {
            return;
        }
        let _adding = self.adding.lock();
        let mut tables = HashMap::clone(&self.tables.load());
        tables.retain(|id, _| exists(*id));
        self.tables.store(Arc::new(tables));
    }

    /// Enters the latency of a statement.
    pub(crate) fn statement(&self, kind: StatementKind, took: Duration) {
        let weight = self.weight.load(Ordering::Relaxed);
        enter_latency(&self.latencies, kind, took, weight);
    }

    /// Enters the latency of a statement for its table.
    pub(crate) fn statement_of(&self, table: Uuid, side: Side, kind: StatementKind, took: Duration) {
        let weight = self.weight.load(Ordering::Relaxed);
        self.with_table(table, |metrics| {
            let latencies = match side {
                Side::Coordinator => &metrics.coordinator,
                Side::Local => &metrics.local,
            };
            enter_latency(latencies, kind, took, weight);
        });
    }

    /// Enters the numbers of rows and tombstones that a read of a table met.
    pub(crate) fn read_of(&self, table: Uuid, rows: u64, tombstones: u64) {
        let weight = self.weight.load(Ordering::Relaxed);
        self.with_table(table, |metrics| {
            metrics.rows_per_read.record(rows, rows, weight);
            metrics.tombstones_per_read.record(tombstones, tombstones, weight);
        });
    }

    /// Enters the number of partitions of a batch.
    pub(crate) fn batch(&self, kind: BatchKind, partitions: usize) {
        let weight = self.weight.load(Ordering::Relaxed);
        let partitions = partitions as u64;
        self.batches.of(kind).record(partitions, partitions, weight);
    }

    /// Keeps rates and weights up to date as long as the metrics exist.
    pub(crate) fn begin_ticks(self: &Arc<Self>) {
        tokio::spawn(tick(Arc::downgrade(self)));
    }

    fn for_each(&self, each: impl Fn(&Histogram)) {
        let BatchMetrics {
            logged,
            unlogged,
            counter,
        } = &self.batches;
        [logged, unlogged, counter].into_iter().for_each(&each);
        self.latencies.kinds.iter().for_each(&each);
        let tables = self.tables.load();
        tables
            .values()
            .flat_map(|table| table.histograms())
            .for_each(&each);
    }
}

fn enter_latency(latencies: &Latencies, kind: StatementKind, took: Duration, weight: u64) {
    let nanos = helenus_tablet::nanos(took);
    latencies.of(kind).record(nanos / 1000, nanos, weight);
}

async fn tick(metrics: Weak<NodeMetrics>) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.tick().await;
    let Some(began) = metrics.upgrade().map(|metrics| metrics.began) else {
        return;
    };
    let mut landmark = began;
    loop {
        ticks.tick().await;
        let Some(metrics) = metrics.upgrade() else { return };
        metrics.for_each(|histogram| histogram.update_rate(TICK.as_secs_f64()));
        let weight = (landmark.elapsed().as_secs_f64() / MEAN_LIFETIME_S).exp() as u64;
        if weight >= WEIGHT_MAX {
            landmark = Instant::now();
            metrics.weight.store(1, Ordering::Relaxed);
            metrics.for_each(|histogram| histogram.rescale(weight));
        } else {
            metrics.weight.store(weight.max(1), Ordering::Relaxed);
        }
    }
}
