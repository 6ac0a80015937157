//! Figures about what clients ask for: latencies by kind of statement and by table, rows and tombstones that reads meet.
//!
//! Recent values weigh more in quantiles: the weight of a value grows by e each minute (Cassandra's `DecayingEstimatedHistogramReservoir`), so
//! that the last five minutes decide.

pub mod histogram;
pub mod internode;
pub mod log_lines;
pub mod rate_limits;
pub mod running;
pub mod sampling;

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
use self::rate_limits::RateLimitFigures;
use self::sampling::PartitionSampling;

/// What a statement does, as far as its latency is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// Of partitions that it names.
    Read,
    /// Of one table, without a condition.
    Write,
    /// Lightweight transactions.
    Lwt,
    /// Reads of ranges of tokens, and by an index.
    Range,
    Batch,
}

impl StatementKind {
    pub const ALL: [StatementKind; 5] = [
        StatementKind::Read,
        StatementKind::Write,
        StatementKind::Lwt,
        StatementKind::Range,
        StatementKind::Batch,
    ];

    pub fn name(self) -> &'static str {
        match self {
            StatementKind::Read => "read",
            StatementKind::Write => "write",
            StatementKind::Lwt => "lwt",
            StatementKind::Range => "range",
            StatementKind::Batch => "batch",
        }
    }
}

/// Latencies by what was done.
#[derive(Debug, Default)]
pub struct Latencies {
    kinds: [Histogram; 5],
}

impl Latencies {
    pub fn of(&self, kind: StatementKind) -> &Histogram {
        let [read, write, lwt, range, batch] = &self.kinds;
        match kind {
            StatementKind::Read => read,
            StatementKind::Write => write,
            StatementKind::Lwt => lwt,
            StatementKind::Range => range,
            StatementKind::Batch => batch,
        }
    }

    /// Returns all writes, conditional ones and batches too, as Cassandra counts them.
    pub fn writes(&self) -> Snapshot {
        let mut writes = self.of(StatementKind::Write).snapshot();
        writes.add(&self.of(StatementKind::Lwt).snapshot());
        writes.add(&self.of(StatementKind::Batch).snapshot());
        writes
    }
}

/// The figures of one table.
#[derive(Debug, Default)]
pub struct TableFigures {
    /// As the clients of this node see it, in microseconds; the sum in nanoseconds.
    pub coordinator: Latencies,
    /// Of what this node did itself; unused on a node alone, where it is the same.
    local: Latencies,
    /// Live rows that a read gave.
    pub rows_per_read: Histogram,
    /// Cells and rows that are deleted or expired and were met by a read.
    pub tombstones_per_read: Histogram,
}

impl TableFigures {
    fn histograms(&self) -> impl Iterator<Item = &Histogram> {
        let latencies = self.coordinator.kinds.iter().chain(&self.local.kinds);
        latencies.chain([&self.rows_per_read, &self.tombstones_per_read])
    }

    /// Latencies of what this node did itself. `is_clustered` says whether it is one of several.
    pub fn local(&self, is_clustered: bool) -> &Latencies {
        match is_clustered {
            true => &self.local,
            false => &self.coordinator,
        }
    }

    /// Statements of clients since the node began.
    pub fn statements(&self) -> u64 {
        self.coordinator.kinds.iter().map(Histogram::count).sum()
    }
}

/// How many partitions the batches of clients have written, those with conditions left out (Cassandra's `BatchMetrics`).
#[derive(Debug, Default)]
pub struct BatchFigures {
    logged: Histogram,
    unlogged: Histogram,
    counter: Histogram,
}

impl BatchFigures {
    pub fn of(&self, kind: BatchKind) -> &Histogram {
        match kind {
            BatchKind::Logged => &self.logged,
            BatchKind::Unlogged => &self.unlogged,
            BatchKind::Counter => &self.counter,
        }
    }
}

/// Where a latency was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Coordinator,
    Local,
}

/// What the transport tells of its queue.
#[derive(Debug, Default)]
pub struct TransportFigures {
    waiting: AtomicU64,
    running_max: AtomicU64,
}

/// The queue of requests at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportQueue {
    /// Requests that wait for others to end.
    pub waiting: u64,
    /// How many may run at a time.
    pub running_max: u64,
}

impl TransportFigures {
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

/// The figures of a node. Entering takes no lock.
#[derive(Debug)]
pub struct Figures {
    /// By kind, of all tables.
    pub latencies: Latencies,
    pub batches: BatchFigures,
    pub transport: TransportFigures,
    pub inbound: Inbound,
    pub rate_limits: RateLimitFigures,
    /// Which partitions are asked for.
    pub sampling: Arc<PartitionSampling>,
    /// By the id of the table; those that nobody has asked for have none.
    tables: ArcSwap<HashMap<Uuid, Arc<TableFigures>>>,
    /// Held while one is added.
    adding: Mutex<()>,
    /// Of a value that is entered now, among the recent ones.
    weight: AtomicU64,
    began: Instant,
}

impl Default for Figures {
    fn default() -> Figures {
        Figures {
            latencies: Latencies::default(),
            batches: BatchFigures::default(),
            transport: TransportFigures::default(),
            inbound: Inbound::default(),
            rate_limits: RateLimitFigures::default(),
            sampling: Arc::default(),
            tables: ArcSwap::default(),
            adding: Mutex::default(),
            weight: AtomicU64::new(1),
            began: Instant::now(),
        }
    }
}

/// How often rates and weights are brought up to date.
const TICK: Duration = Duration::from_secs(5);
/// The time in which the weight of a value grows by e.
const MEAN_LIFETIME_S: f64 = 60.0;
/// Weights are divided by the greatest when they have reached it: e^10.
const WEIGHT_MAX: u64 = 22_026;

impl Figures {
    /// Returns the figures of a table; none if nobody has asked it for anything.
    pub fn table(&self, id: Uuid) -> Option<Arc<TableFigures>> {
        self.tables.load().get(&id).cloned()
    }

    /// Calls `enter` with the figures of a table.
    fn with_table(&self, id: Uuid, enter: impl Fn(&TableFigures)) {
        if let Some(figures) = self.tables.load().get(&id) {
            return enter(figures);
        }
        let _adding = self.adding.lock();
        let mut tables = HashMap::clone(&self.tables.load());
        let figures = tables.entry(id).or_default().clone();
        self.tables.store(Arc::new(tables));
        enter(&figures);
    }

    /// Forgets the tables that there are no more.
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

    /// Enters the latency of a statement about a table.
    pub(crate) fn statement_of(&self, table: Uuid, side: Side, kind: StatementKind, took: Duration) {
        let weight = self.weight.load(Ordering::Relaxed);
        self.with_table(table, |figures| {
            let latencies = match side {
                Side::Coordinator => &figures.coordinator,
                Side::Local => &figures.local,
            };
            enter_latency(latencies, kind, took, weight);
        });
    }

    /// Enters what a read of a table has met.
    pub(crate) fn read_of(&self, table: Uuid, rows: u64, tombstones: u64) {
        let weight = self.weight.load(Ordering::Relaxed);
        self.with_table(table, |figures| {
            figures.rows_per_read.record(rows, rows, weight);
            figures.tombstones_per_read.record(tombstones, tombstones, weight);
        });
    }

    /// Enters the partitions of a batch.
    pub(crate) fn batch(&self, kind: BatchKind, partitions: usize) {
        let weight = self.weight.load(Ordering::Relaxed);
        let partitions = partitions as u64;
        self.batches.of(kind).record(partitions, partitions, weight);
    }

    /// Keeps rates and weights up to date as long as the figures are there.
    pub(crate) fn begin_ticks(self: &Arc<Self>) {
        tokio::spawn(tick(Arc::downgrade(self)));
    }

    fn for_each(&self, each: impl Fn(&Histogram)) {
        let BatchFigures {
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

async fn tick(figures: Weak<Figures>) {
    let mut ticks = tokio::time::interval(TICK);
    ticks.tick().await;
    let Some(began) = figures.upgrade().map(|figures| figures.began) else {
        return;
    };
    let mut landmark = began;
    loop {
        ticks.tick().await;
        let Some(figures) = figures.upgrade() else { return };
        figures.for_each(|histogram| histogram.update_rate(TICK.as_secs_f64()));
        let weight = (landmark.elapsed().as_secs_f64() / MEAN_LIFETIME_S).exp() as u64;
        if weight >= WEIGHT_MAX {
            landmark = Instant::now();
            figures.weight.store(1, Ordering::Relaxed);
            figures.for_each(|histogram| histogram.rescale(weight));
        } else {
            figures.weight.store(weight.max(1), Ordering::Relaxed);
        }
    }
}
