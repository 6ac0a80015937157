//! All tablets of a node and their log.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use bytes::Bytes;
use object_store::ObjectStore;
use parking_lot::Mutex;
use slatedb::db_cache::foyer::{FoyerCache, FoyerCacheOptions};
use slatedb_common::metrics::{DefaultMetricsRecorder, MetricValue};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::clock::StoreClock;
use crate::config::{StoreConfig, StoreUrl};
use crate::disk::{LocalStore, Space};
use crate::dispatch::tablet_of;
use crate::error::{StoreError, from_slatedb};
use crate::hooks::Hooks;
use crate::layout::Folders;
use crate::log::{FRAME_LEN_MAX, Log, Waiter, record_len};
use crate::maintenance::Maintenance;
use crate::meta::{Meta, MetaDoc, MetaExpect, MetaVersion};
use crate::open::{Background, Opener};
use crate::stats::StoreStats;
use crate::tablet::Tablet;
use crate::trace;
use crate::work::{self, nanos};

/// One blind write: `operand` is to be merged into the row at `key`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Op {
    /// The partition's token, which finds the tablet.
    pub token: i64,
    pub key: Bytes,
    pub operand: Bytes,
}

/// Writes that become durable and visible together.
#[derive(Debug, Clone, Default)]
pub struct WriteBatch {
    pub ops: Vec<Op>,
}

impl WriteBatch {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a merge. Several of one key are merged in the order in which they were added.
    pub fn merge(&mut self, token: i64, key: Bytes, operand: Bytes) {
        self.ops.push(Op { token, key, operand });
    }

    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }
}

/// The bytes that a permit of the in-flight limit stands for.
pub(crate) const PERMIT_BYTES: usize = 1024;
/// How often a write that waits for room looks at the disk.
const ROOM_POLL: std::time::Duration = std::time::Duration::from_millis(200);

/// All tablets of the node.
pub struct Store {
    pub(crate) tablets: Vec<Arc<Tablet>>,
    pub(crate) log: Arc<Log>,
    pub(crate) in_flight: Arc<Semaphore>,
    pub(crate) in_flight_permits: u32,
    pub(crate) meta: Meta,
    pub(crate) metrics: Arc<DefaultMetricsRecorder>,
    pub(crate) space: Arc<Space>,
    pub(crate) maintenance: Arc<Maintenance>,
    pub(crate) block_cache_bytes: u64,
    pub(crate) store_id: uuid::Uuid,
    pub(crate) replayed_records: u64,
    pub(crate) closed: AtomicBool,
    pub(crate) running: Mutex<Running>,
    /// Keeps other processes out.
    pub(crate) _lock: File,
}

/// What is stopped by `close`.
#[derive(Default)]
pub(crate) struct Running {
    pub(crate) log_thread: Option<JoinHandle<()>>,
    pub(crate) drains: Vec<tokio::task::JoinHandle<()>>,
    pub(crate) maintenance: Option<tokio::task::JoinHandle<()>>,
    pub(crate) background: Option<Background>,
    pub(crate) writing: Option<Background>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(maintenance) = self.maintenance.take() {
            maintenance.abort();
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.log.close();
        self.tablets.iter().for_each(|tablet| tablet.stage.close());
    }
}

impl Store {
    /// Opens the store, or makes a new one, and replays its log. Call it from the runtime that is to serve reads and writes.
    pub async fn open(config: StoreConfig, hooks: Arc<dyn Hooks>) -> Result<Arc<Store>, StoreError> {
        config.validate()?;
        let root = match &config.url {
            StoreUrl::File(path) => path.clone(),
            StoreUrl::Remote(url) => {
                StoreUrl::remote(url)?;
                return Err(StoreError::InvalidConfig(format!(
                    "store = \"{url}\": this version keeps its data in a local folder only (file:///path)"
                )));
            }
        };
        let folders = Folders { root };
        let lock = folders.lock()?;
        let format = folders.load_format(config.tablet_count, config.fsync)?;
        folders.remove_unfinished();
        let log_path = folders.log();
        std::fs::create_dir_all(&log_path)
            .map_err(|error| StoreError::io("cannot create", &log_path, &error))?;

        let space = Arc::new(Space::new(&log_path, config.disk_reserve_bytes));
        let object_store: Arc<dyn ObjectStore> =
            Arc::new(LocalStore::open(&folders.root, space.clone(), config.fsync)?);
        let opener = Opener {
            clock: Arc::new(StoreClock::new(config.clock.clone())),
            block_cache: Arc::new(FoyerCache::new_with_opts(FoyerCacheOptions {
                max_capacity: config.block_cache_bytes,
                shards: 16,
            })),
            metrics: Arc::new(DefaultMetricsRecorder::new()),
            store: object_store.clone(),
            background: Background::start(config.background_threads)?,
            writing: Background::start_writing()?,
            config,
            hooks,
            format,
        };
        opener.open(folders, space, lock).await
    }

    /// The tablet that owns a token.
    pub fn tablet(&self, token: i64) -> &Arc<Tablet> {
        &self.tablets[tablet_of(&self.tablets, token)]
    }

    /// All tablets, by token range.
    pub fn tablets(&self) -> &[Arc<Tablet>] {
        &self.tablets
    }

    /// Identifies the store; made with it.
    pub fn store_id(&self) -> uuid::Uuid {
        self.store_id
    }

    /// How many log records were read when the store was opened.
    pub fn replayed_records(&self) -> u64 {
        self.replayed_records
    }

    /// Writes the batch, in one or several tablets: all of it or, after a crash or an error, nothing. Returns when it is on disk and
    /// seen by reads; with `durable` off it need not be on disk. A write that was begun goes on when the future is dropped.
    pub async fn write(&self, batch: WriteBatch, durable: bool) -> Result<(), StoreError> {
        if batch.ops.is_empty() {
            return Ok(());
        }
        if self.closed.load(Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        if batch.ops.iter().any(|op| op.key.is_empty()) {
            return Err(StoreError::InvalidConfig("a key must not be empty".into()));
        }
        let size = record_len(&batch.ops);
        let limit = FRAME_LEN_MAX / 2;
        if size > limit {
            return Err(StoreError::TooLarge { size, limit });
        }
        let operands = u32::try_from(batch.ops.len()).unwrap_or(u32::MAX);
        let permits = (size.div_ceil(PERMIT_BYTES) as u32).min(self.in_flight_permits);
        let permit = match self.in_flight.clone().try_acquire_many_owned(permits) {
            Ok(permit) => permit,
            Err(_) => self.wait_for_room(permits).await?,
        };
        let (sender, receiver) = oneshot::channel();
        let waiter = Waiter {
            sender,
            _permit: permit,
        };
        let submitted = Instant::now();
        self.log.submit(batch.ops, durable, waiter);
        let result = receiver.await.unwrap_or(Err(StoreError::Closed));
        account(submitted, operands);
        result
    }

    /// Waits until writes in flight have ended; waiting for room in memory can be waiting for room on disk.
    async fn wait_for_room(&self, permits: u32) -> Result<OwnedSemaphorePermit, StoreError> {
        trace::step(|| "Waiting until the writes in flight leave room");
        let since = Instant::now();
        let permit = self.poll_for_room(permits).await;
        work::count(|work| work.admission_ns += nanos(since.elapsed()));
        permit
    }

    async fn poll_for_room(&self, permits: u32) -> Result<OwnedSemaphorePermit, StoreError> {
        let acquire = self.in_flight.clone().acquire_many_owned(permits);
        let mut acquire = std::pin::pin!(acquire);
        loop {
            self.space.check()?;
            match tokio::time::timeout(ROOM_POLL, acquire.as_mut()).await {
                Ok(permit) => return permit.map_err(|_| StoreError::Closed),
                Err(_) => continue,
            }
        }
    }

    /// Reads a small document.
    pub async fn meta_get(&self, name: &str) -> Result<Option<MetaDoc>, StoreError> {
        self.meta.get(name).await
    }

    /// Replaces a small document, atomically and durably, if `expect` holds; returns its new version.
    pub async fn meta_put(
        &self,
        name: &str,
        content: &[u8],
        expect: MetaExpect,
    ) -> Result<MetaVersion, StoreError> {
        self.meta.put(name, content, expect).await
    }

    /// The names of all small documents.
    pub async fn meta_list(&self) -> Result<Vec<String>, StoreError> {
        self.meta.list().await
    }

    /// Removes a small document.
    pub async fn meta_delete(&self, name: &str) -> Result<(), StoreError> {
        self.meta.delete(name).await
    }

    /// Writes what is in memory to SSTables, and cuts the log.
    pub async fn flush(&self) -> Result<(), StoreError> {
        for tablet in &self.tablets {
            tablet.flush().await?;
        }
        self.maintenance.trim().await;
        Ok(())
    }

    fn staged_bytes(&self) -> u64 {
        self.tablets
            .iter()
            .map(|tablet| tablet.stage.bytes() as u64)
            .sum()
    }

    /// What the store counts.
    pub fn stats(&self) -> StoreStats {
        let mut log = self.log.counters.read();
        {
            let segments = self.log.segments.lock();
            log.segments = segments.len() as u64;
            log.live_bytes = segments.iter().map(|segment| segment.bytes).sum();
        }
        let metrics = Metrics::read(&self.metrics);
        StoreStats {
            log,
            tablets: self.tablets.iter().map(|tablet| tablet.stats()).collect(),
            in_flight_bytes: u64::from(self.in_flight_permits)
                .saturating_sub(self.in_flight.available_permits() as u64)
                .saturating_mul(PERMIT_BYTES as u64),
            memtable_bytes: metrics.sum("slatedb.db.total_mem_size_bytes") + self.staged_bytes(),
            flushes: metrics.sum("slatedb.db.immutable_memtable_flushes"),
            compactions_running: metrics.sum("slatedb.compactor.running_compactions"),
            compacted_bytes: metrics.sum("slatedb.compactor.bytes_compacted"),
            back_pressure: metrics.sum("slatedb.db.backpressure_count"),
            block_cache_bytes: self.block_cache_bytes,
            block_cache_hits: metrics.sum_with("slatedb.db_cache.access_count", &["hit"]),
            block_cache_misses: metrics.sum_with("slatedb.db_cache.access_count", &["miss"]),
            block_reads: metrics.sum_with("slatedb.db_cache.access_count", &["miss", "data_block"]),
            index_reads: metrics.sum_with("slatedb.db_cache.access_count", &["miss", "index"])
                + metrics.sum_with("slatedb.db_cache.access_count", &["miss", "filter"]),
            disk_free_bytes: self.space.free_bytes(),
        }
    }

    /// Makes the disk look as if `free` bytes were free; `None` ends it. For tests.
    #[doc(hidden)]
    pub fn simulate_free_disk_bytes(&self, free: Option<u64>) {
        let free = free.and_then(|free| i64::try_from(free).ok()).unwrap_or(-1);
        self.space.simulated_free.store(free, Ordering::Relaxed);
    }

    /// Ends writes, flushes memtables so that the next start has nothing to replay, and releases the folder's files.
    pub async fn close(&self) -> Result<(), StoreError> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.log.close();
        let mut running = std::mem::take(&mut *self.running.lock());
        if let Some(thread) = running.log_thread.take() {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
        for tablet in &self.tablets {
            tablet.stage.close();
        }
        for drain in running.drains.drain(..) {
            let _ = drain.await;
        }
        if let Some(maintenance) = running.maintenance.take() {
            maintenance.abort();
            let _ = maintenance.await;
        }
        let closing = self.tablets.iter().map(|tablet| tablet.db.close());
        let results = futures::future::join_all(closing).await;
        self.maintenance.trim().await;
        drop(running);
        for result in results {
            match result.map_err(|error| from_slatedb(&error)) {
                Ok(()) | Err(StoreError::Closed) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Enters a write into the work of its request.
fn account(submitted: Instant, operands: u32) {
    let written = Instant::now();
    work::count(|work| {
        work.operands = work.operands.saturating_add(operands);
        work.log_ns += nanos(written.saturating_duration_since(submitted));
    });
    if trace::is_recording() {
        trace::step_at(submitted, "Appending to commitlog".into());
        trace::step_at(written, "Commitlog synced; added to memtable".into());
    }
}

/// The metrics that SlateDB has recorded, of all tablets.
struct Metrics(slatedb_common::metrics::Metrics);

impl Metrics {
    fn read(recorder: &DefaultMetricsRecorder) -> Self {
        Metrics(recorder.snapshot())
    }

    fn sum(&self, name: &str) -> u64 {
        self.sum_with(name, &[])
    }

    /// The sum over the metrics of that name that have labels of all these values.
    fn sum_with(&self, name: &str, labels: &[&str]) -> u64 {
        self.0
            .by_name(name)
            .iter()
            .filter(|metric| {
                let has = |label: &&str| metric.labels.iter().any(|(_, value)| value == label);
                labels.iter().all(has)
            })
            .map(|metric| match &metric.value {
                MetricValue::Counter(value) => *value,
                MetricValue::Gauge(value) | MetricValue::UpDownCounter(value) => {
                    u64::try_from(*value).unwrap_or(0)
                }
                MetricValue::Histogram { .. } => 0,
            })
            .sum()
    }
}
