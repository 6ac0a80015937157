//! Opens a store: its tablets' databases, and the replay of the log into them.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arc_swap::ArcSwap;
use object_store::ObjectStore;
use parking_lot::Mutex;
use slatedb::{Db, RowEntry, ValueDeletable};
use slatedb_common::metrics::DefaultMetricsRecorder;
use tokio::sync::{Semaphore, mpsc};

use crate::block_cache::BlockCache;
use crate::cache::RowCache;
use crate::clock::StoreClock;
use crate::compaction::{self, Compactions};
use crate::config::StoreConfig;
use crate::database::{Database, Databases, LEVEL0_MAX, Opened, tablet_path};
use crate::disk::Space;
use crate::dispatch::Router;
use crate::drain;
use crate::error::{StoreError, from_slatedb};
use crate::filters;
use crate::hooks::Hooks;
use crate::layout::{Folders, Format, TabletEntry};
use crate::log::segment::Folder;
use crate::log::{self, Log, Record};
use crate::maintenance::Maintenance;
use crate::meta::Meta;
use crate::pace::Debt;
use crate::priority::give_way;
use crate::stage::{Stage, StageLimits};
use crate::stats::TabletCounters;
use crate::store::{Local, PERMIT_BYTES, Place, Running, Store};
use crate::sweep::Scans;
use crate::tablet::Tablet;
use crate::tree::{self, SsTables, Tree};
use crate::wal::{Init, ReplayMessage, TabletWal};

/// Replayed frames that wait for a tablet at most.
const REPLAY_QUEUE: usize = 64;

/// The runtime of flushes, compactions and garbage collection. Unlike a bare one it may be dropped anywhere: it is not waited for.
pub(crate) struct Background {
    runtime: Option<tokio::runtime::Runtime>,
    pub handle: tokio::runtime::Handle,
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Background {
    pub fn start(threads: usize) -> Result<Self, StoreError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads.max(1))
            .thread_name("helenus-bg")
            .on_thread_start(give_way)
            .enable_all()
            .build()
            .map_err(|error| StoreError::Unavailable(format!("cannot start threads: {error}")))?;
        Ok(Background::new(runtime))
    }

    /// The runtime on which stages are drained into memtables, and nothing else, so that nothing holds that up.
    pub fn start_writing() -> Result<Self, StoreError> {
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads((cores / 4).max(1))
            .thread_name("helenus-drain")
            .on_thread_start(give_way)
            .enable_time()
            .build()
            .map_err(|error| StoreError::Unavailable(format!("cannot start threads: {error}")))?;
        Ok(Background::new(runtime))
    }

    fn new(runtime: tokio::runtime::Runtime) -> Self {
        Background {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        }
    }
}

/// What a store is opened with.
pub(crate) struct Opener {
    pub config: StoreConfig,
    pub hooks: Arc<dyn Hooks>,
    pub format: Format,
    pub clock: Arc<StoreClock>,
    pub store: Arc<dyn ObjectStore>,
    pub block_cache: Arc<BlockCache>,
    pub metrics: Arc<DefaultMetricsRecorder>,
    pub background: Background,
    pub writing: Background,
}

impl Opener {
    pub async fn open(
        self,
        folders: Folders,
        space: Arc<Space>,
        lock: File,
    ) -> Result<Arc<Store>, StoreError> {
        let mut wals = Vec::new();
        let mut senders = Vec::new();
        let mut opening = Vec::new();
        let mut known = Vec::new();
        let databases = self.databases();
        for entry in &self.format.tablets {
            let wal = TabletWal::new();
            let (sender, receiver) = mpsc::channel(REPLAY_QUEUE);
            let init = Init {
                wal: wal.clone(),
                messages: Mutex::new(Some(receiver)),
                clock: self.clock.clone(),
            };
            // Built there, SlateDB's own tasks live on the background runtime, but for its writer.
            let compactions = Arc::<Compactions>::default();
            let database = self.database(&databases, entry, init, compactions.clone());
            opening.push(self.background.handle.spawn(database));
            wals.push(wal);
            senders.push(sender);
            known.push(compactions);
        }
        let reading = self.replay(&folders, senders);
        let opened = futures::future::join_all(opening).await;
        let replayed = reading.await.unwrap_or_else(|error| {
            Err(StoreError::Unavailable(format!(
                "reading the log failed: {error}"
            )))
        })?;
        let mut tablets = Vec::new();
        for ((entry, db), compactions) in self.format.tablets.iter().zip(opened).zip(known) {
            let db = match db.map_err(|error| StoreError::Unavailable(error.to_string()))? {
                Ok(db) => db,
                Err(error) => return Err(self.opening_error(entry.id, &error).await),
            };
            tablets.push(Arc::new(self.tablet(entry, db, compactions)?));
        }
        let last_lsn = wals
            .iter()
            .map(TabletWal::last_lsn)
            .max()
            .unwrap_or(0)
            .max(replayed.last_lsn);
        self.start(folders, space, lock, tablets, replayed, last_lsn)
    }

    fn databases(&self) -> Databases {
        Databases {
            config: self.config.clone(),
            hooks: self.hooks.clone(),
            clock: self.clock.clone(),
            block_cache: self.block_cache.clone(),
            metrics: self.metrics.clone(),
            background: self.background.handle.clone(),
            slots: Arc::new(Semaphore::new(compaction::slots(&self.config))),
        }
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
        let mut debts = Vec::new();
        for tablet in &tablets {
            let debt = Arc::new(Debt::new(self.memtable_share(), LEVEL0_MAX));
            let drain = drain::run(tablet.clone(), debt.clone());
            running.drains.push(self.writing.handle.spawn(drain));
            debts.push(debt);
            self.background.handle.spawn(tree::follow(tablet));
        }
        let router = Arc::new(Router {
            tablets: tablets.clone(),
            debts,
            log: log.clone(),
            space: space.clone(),
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
            clock: self.clock.clone(),
            garbage_age: config.garbage_age,
        });
        running.maintenance = Some(self.background.handle.spawn(maintenance.clone().run()));
        running.background = Some(self.background);
        running.writing = Some(self.writing);
        let in_flight_permits = in_flight_permits(config);
        Ok(Arc::new(Store {
            tablets: ArcSwap::from_pointee(tablets),
            in_flight: Arc::new(Semaphore::new(in_flight_permits as usize)),
            in_flight_permits,
            meta: Meta::new(self.store.clone(), object_store::path::Path::default(), true),
            metrics: self.metrics,
            block_cache_bytes: config.block_cache_bytes,
            store_id: self.format.store_id,
            closed: AtomicBool::new(false),
            place: Place::Local(Box::new(Local {
                log,
                space,
                maintenance,
                replayed_records: replayed.records,
                running: Mutex::new(running),
                _lock: lock,
            })),
        }))
    }

    fn tablet(
        &self,
        entry: &TabletEntry,
        db: Db,
        compactions: Arc<Compactions>,
    ) -> Result<Tablet, StoreError> {
        let tree = db.snapshot().map_err(|error| from_slatedb(&error))?;
        let limits = StageLimits::new(self.memtable_share());
        let tables = Arc::new(SsTables::new(
            entry.id,
            self.store.clone(),
            self.block_cache.clone(),
            filters::policy(self.hooks.clone()),
        ));
        let tree = Tree::local(tree, tables.clone());
        let tablet = Tablet {
            id: entry.id,
            tokens: entry.tokens,
            db,
            cache: RowCache::new(self.config.row_cache_bytes / self.format.tablets.len().max(1) as u64),
            stage: Stage::new(tree, limits, self.hooks.clone()),
            row_cache_on: self.config.row_cache_bytes > 0,
            hooks: self.hooks.clone(),
            counters: TabletCounters::default(),
            compactions,
            scans: Scans::new(),
            tables: Some(tables),
            remote: None,
        };
        tablet.see_files();
        Ok(tablet)
    }

    /// Bytes of memtables for each tablet.
    fn memtable_share(&self) -> u64 {
        self.config.memtable_bytes / self.format.tablets.len().max(1) as u64
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
        databases: &Databases,
        entry: &TabletEntry,
        init: Init,
        compactions: Arc<Compactions>,
    ) -> impl Future<Output = Result<Db, slatedb::Error>> + Send + 'static {
        let database = Database {
            id: entry.id,
            only: None,
            store: self.store.clone(),
            log: None,
            compactions,
        };
        let settings = databases.settings(self.memtable_share());
        let opened = Opened::default();
        let builder = databases
            .builder(&database, settings)
            .with_compactor_builder(databases.compactor(&database, &opened))
            .with_wal_writer(Box::new(init))
            .with_write_runtime(self.writing.handle.clone());
        async move {
            let db = builder.build().await?;
            let _ = opened.set(db.clone());
            Ok(db)
        }
    }

    /// The error of opening a tablet. SlateDB does not say which of its documents it could not parse: it is one of
    /// the newest, which it reads first.
    async fn opening_error(&self, tablet: u32, error: &slatedb::Error) -> StoreError {
        let error = from_slatedb(error);
        let StoreError::Unavailable(detail) = &error else {
            return error;
        };
        if !detail.contains("transactional object") {
            return error;
        }
        let mut newest = Vec::new();
        for kind in ["manifest", "compactions"] {
            let folder = tablet_path(tablet).join(kind);
            if let Ok(found) = self.store.list_with_delimiter(Some(&folder)).await {
                newest.extend(
                    found
                        .objects
                        .into_iter()
                        .map(|object| object.location.to_string())
                        .max(),
                );
            }
        }
        StoreError::Corrupt {
            file: newest.join(" or "),
            detail: detail.clone(),
        }
    }
}

/// What the bytes of writes in flight amount to in permits.
pub(crate) fn in_flight_permits(config: &StoreConfig) -> u32 {
    u32::try_from(config.write_in_flight_bytes / PERMIT_BYTES as u64)
        .unwrap_or(u32::MAX)
        .clamp(1, 1 << 28)
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
