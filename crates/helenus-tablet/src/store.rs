//! All tablets of a node and their log.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use bytes::Bytes;
use object_store::ObjectStore;
use parking_lot::Mutex;
use slatedb::config::{
    CompactionWorkerOptions, CompactorOptions, CompressionCodec, GarbageCollectorDirectoryOptions,
    GarbageCollectorOptions, Settings,
};
use slatedb::db_cache::foyer::{FoyerCache, FoyerCacheOptions};
use slatedb::{BloomFilterPolicy, CompactorBuilder, Db, FilterPolicy, RowEntry, ValueDeletable};
use slatedb_common::metrics::{DefaultMetricsRecorder, MetricValue};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::applier::{self, Router};
use crate::cache::RowCache;
use crate::clock::StoreClock;
use crate::config::{StoreConfig, StoreUrl};
use crate::disk::{LocalStore, Space};
use crate::error::{StoreError, from_slatedb};
use crate::hooks::{Filters, Hooks, Merge, Partitions};
use crate::layout::{Folders, Format, TabletEntry};
use crate::log::segment::Folder;
use crate::log::{self, FRAME_LEN_MAX, Log, Record, Waiter, record_len};
use crate::maintenance::{Maintenance, tablet_path};
use crate::meta::{Meta, MetaDoc, MetaExpect, MetaVersion};
use crate::stats::{StoreStats, TabletCounters};
use crate::tablet::Tablet;
use crate::wal::{Init, ReplayMessage, TabletWal};

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
const PERMIT_BYTES: usize = 1024;
/// How often a write that waits for room looks at the disk.
const ROOM_POLL: std::time::Duration = std::time::Duration::from_millis(200);
/// Replayed frames that wait for a tablet at most.
const REPLAY_QUEUE: usize = 64;

/// All tablets of the node.
pub struct Store {
    tablets: Vec<Arc<Tablet>>,
    log: Arc<Log>,
    in_flight: Arc<Semaphore>,
    in_flight_permits: u32,
    meta: Meta,
    metrics: Arc<DefaultMetricsRecorder>,
    space: Arc<Space>,
    maintenance: Arc<Maintenance>,
    block_cache_bytes: u64,
    store_id: uuid::Uuid,
    replayed_records: u64,
    closed: AtomicBool,
    running: Mutex<Running>,
    /// Keeps other processes out.
    _lock: File,
}

/// What is stopped by `close`.
#[derive(Default)]
struct Running {
    log_thread: Option<JoinHandle<()>>,
    appliers: Vec<tokio::task::JoinHandle<()>>,
    maintenance: Option<tokio::task::JoinHandle<()>>,
    background: Option<Background>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(maintenance) = self.maintenance.take() {
            maintenance.abort();
        }
    }
}

/// The runtime of flushes, compactions and garbage collection. Unlike a bare one it may be dropped anywhere: it is not waited for.
struct Background {
    runtime: Option<tokio::runtime::Runtime>,
    handle: tokio::runtime::Handle,
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.log.close();
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
            config,
            hooks,
            format,
        };
        opener.open(folders, space, lock).await
    }

    /// The tablet that owns a token.
    pub fn tablet(&self, token: i64) -> &Arc<Tablet> {
        &self.tablets[applier::tablet_of(&self.tablets, token)]
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
        self.log.submit(batch.ops, durable, waiter);
        receiver.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Waits until writes in flight have ended; waiting for room in memory can be waiting for room on disk.
    async fn wait_for_room(&self, permits: u32) -> Result<OwnedSemaphorePermit, StoreError> {
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
            memtable_bytes: metrics.sum("slatedb.db.total_mem_size_bytes"),
            flushes: metrics.sum("slatedb.db.immutable_memtable_flushes"),
            compactions_running: metrics.sum("slatedb.compactor.running_compactions"),
            compacted_bytes: metrics.sum("slatedb.compactor.bytes_compacted"),
            back_pressure: metrics.sum("slatedb.db.backpressure_count"),
            block_cache_bytes: self.block_cache_bytes,
            block_cache_hits: metrics.sum_with("slatedb.db_cache.access_count", "hit"),
            block_cache_misses: metrics.sum_with("slatedb.db_cache.access_count", "miss"),
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
        for applier in running.appliers.drain(..) {
            let _ = applier.await;
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

/// The metrics that SlateDB has recorded, of all tablets.
struct Metrics(slatedb_common::metrics::Metrics);

impl Metrics {
    fn read(recorder: &DefaultMetricsRecorder) -> Self {
        Metrics(recorder.snapshot())
    }

    fn sum(&self, name: &str) -> u64 {
        self.sum_with(name, "")
    }

    /// The sum over the metrics of that name that have a label of that value, or all with an empty one.
    fn sum_with(&self, name: &str, label: &str) -> u64 {
        self.0
            .by_name(name)
            .iter()
            .filter(|metric| label.is_empty() || metric.labels.iter().any(|(_, value)| value == label))
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

impl Background {
    fn start(threads: usize) -> Result<Self, StoreError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads.max(1))
            .thread_name("helenus-bg")
            .on_thread_start(|| {
                // Flushes and compactions give way to requests when the cores are busy.
                let _ = rustix::process::setpriority_process(None, 5);
            })
            .enable_all()
            .build()
            .map_err(|error| StoreError::Unavailable(format!("cannot start threads: {error}")))?;
        Ok(Background {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        })
    }
}

struct Opener {
    config: StoreConfig,
    hooks: Arc<dyn Hooks>,
    format: Format,
    clock: Arc<StoreClock>,
    store: Arc<dyn ObjectStore>,
    block_cache: Arc<FoyerCache>,
    metrics: Arc<DefaultMetricsRecorder>,
    background: Background,
}

impl Opener {
    async fn open(self, folders: Folders, space: Arc<Space>, lock: File) -> Result<Arc<Store>, StoreError> {
        let mut wals = Vec::new();
        let mut senders = Vec::new();
        let mut opening = Vec::new();
        for entry in &self.format.tablets {
            let wal = TabletWal::new();
            let (sender, receiver) = mpsc::channel(REPLAY_QUEUE);
            let init = Init {
                wal: wal.clone(),
                messages: Mutex::new(Some(receiver)),
                clock: self.clock.clone(),
            };
            // Built there, SlateDB's own tasks live on the background runtime; its writer is set to run on this one.
            opening.push(self.background.handle.spawn(self.database(entry, init)?));
            wals.push(wal);
            senders.push(sender);
        }
        let reading = self.replay(&folders, senders);
        let opened = futures::future::join_all(opening).await;
        let replayed = reading.await.unwrap_or_else(|error| {
            Err(StoreError::Unavailable(format!(
                "reading the log failed: {error}"
            )))
        })?;
        let mut tablets = Vec::new();
        for (entry, db) in self.format.tablets.iter().zip(opened) {
            let db = db
                .map_err(|error| StoreError::Unavailable(error.to_string()))?
                .map_err(|error| from_slatedb(&error))?;
            tablets.push(Arc::new(self.tablet(entry, db)));
        }
        let last_lsn = wals
            .iter()
            .map(TabletWal::last_lsn)
            .max()
            .unwrap_or(0)
            .max(replayed.last_lsn);
        self.start(folders, space, lock, tablets, replayed, last_lsn)
    }

    fn start(
        self,
        folders: Folders,
        space: Arc<Space>,
        lock: File,
        tablets: Vec<Arc<Tablet>>,
        replayed: log::replay::Replayed,
        last_lsn: u64,
    ) -> Result<Arc<Store>, StoreError> {
        let config = &self.config;
        let log = Log::new(last_lsn + 1, replayed.segments);
        let wake = Arc::new(tokio::sync::Notify::new());
        let folder = Folder {
            path: folders.log(),
            segment_bytes: config.log_segment_bytes.next_multiple_of(4096),
            fsync: config.fsync,
        };
        let mut running = Running::default();
        let mut senders = Vec::new();
        for tablet in &tablets {
            let (sender, receiver) = mpsc::unbounded_channel();
            senders.push(sender);
            running.appliers.push(tokio::spawn(applier::run(
                tablet.clone(),
                space.clone(),
                receiver,
            )));
        }
        let router = Arc::new(Router {
            tablets: tablets.clone(),
            senders,
            maintenance: wake.clone(),
        });
        let thread = log::start(
            log.clone(),
            folder.clone(),
            space.clone(),
            self.clock.clone(),
            router,
            replayed.newest,
        )
        .map_err(|error| StoreError::Unavailable(format!("cannot start the log thread: {error}")))?;
        running.log_thread = Some(thread);
        let maintenance = Arc::new(Maintenance {
            log: log.clone(),
            folder,
            log_max_bytes: config.log_max_bytes,
            tablets: tablets.clone(),
            store: self.store.clone(),
            space: space.clone(),
            wake,
        });
        running.maintenance = Some(self.background.handle.spawn(maintenance.clone().run()));
        running.background = Some(self.background);
        let in_flight_permits = u32::try_from(config.write_in_flight_bytes / PERMIT_BYTES as u64)
            .unwrap_or(u32::MAX)
            .clamp(1, 1 << 28);
        Ok(Arc::new(Store {
            tablets,
            log,
            in_flight: Arc::new(Semaphore::new(in_flight_permits as usize)),
            in_flight_permits,
            meta: Meta::new(self.store.clone(), object_store::path::Path::default(), true),
            metrics: self.metrics,
            space,
            maintenance,
            block_cache_bytes: config.block_cache_bytes,
            store_id: self.format.store_id,
            replayed_records: replayed.records,
            closed: AtomicBool::new(false),
            running: Mutex::new(running),
            _lock: lock,
        }))
    }

    fn tablet(&self, entry: &TabletEntry, db: Db) -> Tablet {
        Tablet {
            id: entry.id,
            tokens: entry.tokens,
            db,
            cache: RowCache::new(self.config.row_cache_bytes / self.format.tablets.len().max(1) as u64),
            row_cache_on: self.config.row_cache_bytes > 0,
            hooks: self.hooks.clone(),
            counters: TabletCounters::default(),
        }
    }

    /// Reads the log on a thread of its own and hands each tablet its rows.
    fn replay(
        &self,
        folders: &Folders,
        senders: Vec<mpsc::Sender<ReplayMessage>>,
    ) -> tokio::task::JoinHandle<Result<log::replay::Replayed, StoreError>> {
        let ranges: Vec<_> = self.format.tablets.iter().map(|entry| entry.tokens).collect();
        let hooks = self.hooks.clone();
        let path = folders.log();
        tokio::task::spawn_blocking(move || {
            let tablet_of = |token: i64| ranges.partition_point(|range| range.last < token);
            let mut sink = |time_ms, record: Record| {
                for (sender, rows) in
                    senders
                        .iter()
                        .zip(rows(record, time_ms, ranges.len(), &tablet_of, hooks.as_ref()))
                {
                    if !rows.is_empty() {
                        // A tablet that failed to open has dropped its end; its own error is the one to report.
                        let _ = sender.blocking_send(ReplayMessage::Rows(rows));
                    }
                }
            };
            let result = log::replay::replay(&path, ranges.len(), &tablet_of, &mut sink);
            for sender in &senders {
                let _ = sender.blocking_send(match &result {
                    Ok(_) => ReplayMessage::End,
                    Err(error) => ReplayMessage::Failed(error.clone()),
                });
            }
            result
        })
    }

    /// The future that opens one tablet's database.
    fn database(
        &self,
        entry: &TabletEntry,
        init: Init,
    ) -> Result<impl Future<Output = Result<Db, slatedb::Error>> + Send + 'static, StoreError> {
        let opened = Arc::new(OnceLock::new());
        let path = tablet_path(entry.id);
        let merge = Arc::new(Merge(self.hooks.clone()));
        let filters: Vec<Arc<dyn FilterPolicy>> = vec![Arc::new(
            BloomFilterPolicy::new(10).with_prefix_extractor(Arc::new(Partitions(self.hooks.clone()))),
        )];
        let options = self.compactor_options();
        let compactor = CompactorBuilder::new(path.clone(), self.store.clone())
            .with_runtime(self.background.handle.clone())
            .with_options(options.clone())
            .with_filter_policies(filters.clone())
            .with_compaction_filter_supplier(Arc::new(Filters {
                hooks: self.hooks.clone(),
                db: opened.clone(),
            }));
        let mut builder = Db::builder(path, self.store.clone())
            .with_settings(self.settings(options))
            .with_wal_writer(Box::new(init))
            .with_merge_operator(merge)
            .with_compactor_builder(compactor)
            .with_filter_policies(filters)
            .with_db_cache(self.block_cache.clone(), u64::from(entry.id))
            .with_system_clock(self.clock.clone())
            .with_metrics_recorder(self.metrics.clone())
            .with_write_runtime(tokio::runtime::Handle::current());
        if let Some(seed) = self.config.seed {
            builder = builder.with_seed(seed.wrapping_add(u64::from(entry.id)));
        }
        Ok(async move {
            let db = builder.build().await?;
            let _ = opened.set(db.clone());
            Ok(db)
        })
    }

    fn settings(&self, compactor: CompactorOptions) -> Settings {
        let share = self.config.memtable_bytes / self.format.tablets.len().max(1) as u64;
        let directory = GarbageCollectorDirectoryOptions {
            interval: Some((self.config.garbage_age / 2).max(std::time::Duration::from_secs(1))),
            min_age: self.config.garbage_age,
            dry_run: false,
        };
        Settings {
            flush_interval: None,
            // A quarter each: one filled, one or two written to disk, and slack before writes have to wait.
            l0_sst_size_bytes: (share / 4).clamp(1 << 20, 64 << 20) as usize,
            max_unflushed_bytes: share.max(2 << 20) as usize,
            l0_max_ssts: 16,
            l0_max_ssts_per_key: 16,
            l0_flush_parallelism: 1,
            compression_codec: Some(CompressionCodec::Lz4),
            compactor_options: Some(compactor),
            garbage_collector_options: Some(GarbageCollectorOptions {
                manifest_options: Some(directory),
                wal_options: None,
                wal_fence_options: None,
                compacted_options: Some(directory),
                compactions_options: Some(directory),
                detach_options: None,
                // A local file system cannot overwrite on condition; the folder's lock takes its place.
                boundary_files_enabled: false,
                ..GarbageCollectorOptions::default()
            }),
            ..Settings::default()
        }
    }

    fn compactor_options(&self) -> CompactorOptions {
        CompactorOptions {
            poll_interval: self.config.compaction_poll_interval,
            commit_compacted_interval: self
                .config
                .compaction_poll_interval
                .min(std::time::Duration::from_secs(1)),
            max_concurrent_compactions: 2,
            worker: Some(CompactionWorkerOptions {
                max_concurrent_compactions: 2,
                compactions_poll_interval: self.config.compaction_poll_interval,
                max_subcompactions: self.config.background_threads.clamp(1, 4),
                compression_codec: Some(CompressionCodec::Lz4),
                ..CompactionWorkerOptions::default()
            }),
            ..CompactorOptions::default()
        }
    }
}

/// A record's rows by tablet. All of a record's operands of one key become one row, as when it was first applied.
fn rows(
    record: Record,
    time_ms: i64,
    tablet_count: usize,
    tablet_of: &dyn Fn(i64) -> usize,
    hooks: &dyn Hooks,
) -> Vec<Vec<RowEntry>> {
    let mut tablets: Vec<Vec<RowEntry>> = vec![Vec::new(); tablet_count];
    let mut seen = hashbrown::HashMap::new();
    let unique = record.ops.len() == 1;
    for op in record.ops {
        let tablet = tablet_of(op.token);
        let Some(rows) = tablets.get_mut(tablet) else {
            continue;
        };
        if !unique {
            if let Some(&index) = seen.get(&(tablet, op.key.clone()))
                && let Some(RowEntry {
                    value: ValueDeletable::Merge(before),
                    ..
                }) = rows.get_mut::<usize>(index)
            {
                match hooks.merge(&op.key, Some(before), std::slice::from_ref(&op.operand)) {
                    Ok(merged) => *before = merged,
                    Err(error) => tracing::error!(%error, "a record's operands could not be merged"),
                }
                continue;
            }
            seen.insert((tablet, op.key.clone()), rows.len());
        }
        rows.push(RowEntry {
            key: op.key,
            value: ValueDeletable::Merge(op.operand),
            seq: record.lsn,
            create_ts: Some(time_ms),
            expire_ts: None,
        });
    }
    tablets
}
