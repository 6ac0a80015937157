//! Opens a store: its tablets' databases, and the replay of the log into the tablets.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use object_store::ObjectStore;
use parking_lot::Mutex;
use slatedb::Db;
use slatedb_common::metrics::DefaultMetricsRecorder;
use tokio::sync::Semaphore;

use crate::block_cache::BlockCache;
use crate::books::Books;
use crate::cache::RowCache;
use crate::clock::StoreClock;
use crate::compaction::{self, Compactions};
use crate::config::StoreConfig;
use crate::database::{Database, Databases, LEVEL0_MAX, tablet_path};
use crate::disk::Space;
use crate::dispatch::{self, Router, Teller};
use crate::drain;
use crate::erase::Eraser;
use crate::error::{StoreError, from_slatedb};
use crate::filters;
use crate::flush::{self, Flushes};
use crate::hooks::Hooks;
use crate::layout::{Folders, Format, TabletEntry};
use crate::log::segment::Folder;
use crate::log::{self, Log, Record};
use crate::maintenance::Maintenance;
use crate::meta::Meta;
use crate::pace::Debt;
use crate::priority::give_way;
use crate::room::Room;
use crate::stage::{Stage, StageLimits};
use crate::stats::TabletCounters;
use crate::store::{Local, PERMIT_BYTES, Place, Running, Store};
use crate::sweep::Scans;
use crate::tablet::{OnDisk, Tablet};
use crate::tree::{self, SsTables, Tree};
use crate::wal::{Init, TabletWal};

/// How long replay waits for room before it looks whether there will be any.
const REPLAY_POLL: Duration = Duration::from_millis(200);

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

    /// The runtime on which stages are drained, and nothing else, so that nothing holds that up.
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
    pub books: Books,
    pub room: Arc<Room>,
    pub clock: Arc<StoreClock>,
    pub store: Arc<dyn ObjectStore>,
    pub eraser: Eraser,
    pub block_cache: Arc<BlockCache>,
    pub metrics: Arc<DefaultMetricsRecorder>,
    pub background: Background,
    pub writing: Background,
}

/// The tablets as they are stored, before the log is replayed.
#[derive(Default)]
struct Stored {
    tablets: Vec<Arc<Tablet>>,
    last_lsn: u64,
    /// By tablet, the last record that is in its SSTables.
    flushed: BTreeMap<u32, u64>,
}

impl Opener {
    pub async fn open(
        mut self,
        folders: Folders,
        space: Arc<Space>,
        lock: File,
    ) -> Result<Arc<Store>, StoreError> {
        let stored = self.stored(&folders).await?;
        let tablets = stored.tablets;
        let mut running = Running::default();
        let debts = self.drain(&tablets, &mut running);
        let replayed = self
            .replay(&folders, tablets.clone())
            .await
            .unwrap_or_else(|error| {
                Err(StoreError::Unavailable(format!(
                    "reading the log failed: {error}"
                )))
            })?;
        if !self.format.is_checked() {
            let fsync = self.config.fsync;
            self.books = Books::upgrade(&folders, &self.format, &replayed, stored.flushed, fsync)?;
        }
        let end = self.books.end.take();
        let log = Log::new(stored.last_lsn.max(replayed.last_lsn) + 1, replayed.segments, end);
        // What a replay could not take in is refused as what could not be before the restart.
        let has_failed = tablets.iter().any(|tablet| tablet.stage.has_failed());
        log.is_obstructed.store(has_failed, Ordering::Relaxed);
        let router = Arc::new(Router {
            tablets,
            debts,
            log,
            space,
            maintenance: Arc::default(),
            teller: Teller::start(),
        });
        self.start(
            folders,
            lock,
            router,
            running,
            (replayed.newest, replayed.records),
        )
    }

    /// Opens the tablets' databases.
    async fn stored(&self, folders: &Folders) -> Result<Stored, StoreError> {
        self.check_documents().await?;
        let mut opening = Vec::new();
        let mut parts = Vec::new();
        let databases = self.databases();
        for entry in &self.format.tablets {
            let wal = TabletWal::new();
            // Built there, SlateDB's own tasks live on the background runtime.
            let compactions = Arc::<Compactions>::default();
            let database = self.database(&databases, entry, wal.clone(), compactions.clone());
            opening.push(self.background.handle.spawn(database));
            parts.push((entry, wal, compactions));
        }
        let opened = futures::future::join_all(opening).await;
        let mut stored = Stored::default();
        for ((entry, wal, compactions), db) in parts.into_iter().zip(opened) {
            let db = match db.map_err(|error| StoreError::Unavailable(error.to_string()))? {
                Ok(db) => db,
                Err(error) => return Err(self.opening_error(entry.id, from_slatedb(&error)).await),
            };
            let after = db.manifest().replay_after_wal_id();
            self.books.inventory.check_flushed(folders, entry.id, after)?;
            stored.flushed.insert(entry.id, after);
            stored.last_lsn = stored.last_lsn.max(wal.last_lsn());
            stored
                .tablets
                .push(Arc::new(self.tablet(entry, db, compactions)?));
        }
        Ok(stored)
    }

    /// Refuses tablets whose small documents are damaged.
    async fn check_documents(&self) -> Result<(), StoreError> {
        let checks = self.format.tablets.iter().map(|entry| async {
            let checked = compaction::check_document(self.store.clone(), entry.id).await;
            match checked {
                Ok(()) => Ok(()),
                Err(error) => Err(self.opening_error(entry.id, error).await),
            }
        });
        futures::future::try_join_all(checks).await.map(|_| ())
    }

    /// Has what is staged drained, and flushed in time.
    fn drain(&self, tablets: &[Arc<Tablet>], running: &mut Running) -> Vec<Arc<Debt>> {
        let mut debts = Vec::new();
        for tablet in tablets {
            let debt = Arc::new(Debt::new(self.memtable_share(), LEVEL0_MAX));
            let drain = drain::run(tablet.clone(), debt.clone());
            running.drains.push(self.writing.handle.spawn(drain));
            debts.push(debt);
            self.background.handle.spawn(flush::run(tablet.clone()));
            self.background.handle.spawn(tree::follow(tablet));
        }
        debts
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
        lock: File,
        router: Arc<Router>,
        mut running: Running,
        (newest, replayed_records): ((u64, u64), u64),
    ) -> Result<Arc<Store>, StoreError> {
        let config = &self.config;
        let (log, space, tablets) = (router.log.clone(), router.space.clone(), router.tablets.clone());
        let wake = router.maintenance.clone();
        let folder = Folder {
            path: folders.log(),
            segment_bytes: config.log_segment_bytes.next_multiple_of(4096),
            fsync: config.fsync,
            eraser: self.eraser.clone(),
        };
        let thread = log::start(
            log.clone(),
            folder.clone(),
            space.clone(),
            self.clock.clone(),
            router,
            newest,
        )
        .map_err(|error| StoreError::Unavailable(format!("cannot start the log thread: {error}")))?;
        running.log_thread = Some(thread);
        let maintenance = Arc::new(Maintenance {
            log: log.clone(),
            inventory: self.books.inventory.clone(),
            room: self.room,
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
            meta: Meta::new(
                self.store.clone(),
                object_store::path::Path::default(),
                Some(self.books.inventory),
            ),
            metrics: self.metrics,
            block_cache_bytes: config.block_cache_bytes,
            store_id: self.format.store_id,
            closed: AtomicBool::new(false),
            place: Place::Local(Box::new(Local {
                log,
                space,
                maintenance,
                clock: self.clock,
                replayed_records,
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
        let tables = Arc::new(SsTables::new(
            entry.id,
            self.store.clone(),
            self.block_cache.clone(),
            filters::policy(self.hooks.clone()),
        ));
        let mut files = None;
        tables.look(&db, |found| files = Some(found));
        let Some(files) = files else {
            let detail = format!(
                "tablet {} shares files with others, as only one in a bucket does",
                entry.id
            );
            return Err(StoreError::Unavailable(detail));
        };
        let memtable_bytes = self.memtable_share();
        let tree = Tree::local(tables.clone(), files, flush::join_bytes(memtable_bytes));
        Ok(Tablet {
            id: entry.id,
            tokens: entry.tokens,
            db,
            cache: RowCache::new(self.config.row_cache_bytes / self.format.tablets.len().max(1) as u64),
            stage: Stage::new(tree, StageLimits::new(memtable_bytes), self.hooks.clone()),
            row_cache_on: self.config.row_cache_bytes > 0,
            hooks: self.hooks.clone(),
            clock: self.clock.clone(),
            counters: TabletCounters::default(),
            compactions,
            scans: Scans::new(),
            disk: Some(OnDisk {
                tables,
                flushes: Flushes::new(memtable_bytes),
            }),
            remote: None,
        })
    }

    /// Bytes of memtables for each tablet.
    fn memtable_share(&self) -> u64 {
        self.config.memtable_bytes / self.format.tablets.len().max(1) as u64
    }

    /// Reads the log on a thread of its own and stages what is in no SSTable.
    fn replay(
        &self,
        folders: &Folders,
        tablets: Vec<Arc<Tablet>>,
    ) -> tokio::task::JoinHandle<Result<log::replay::Replayed, StoreError>> {
        let clock = self.clock.clone();
        let path = folders.log();
        let promised = self.books.promised();
        tokio::task::spawn_blocking(move || {
            let manifests = tablets.iter().map(|tablet| tablet.db.manifest());
            let flushed: Vec<u64> = manifests.map(|manifest| manifest.replay_after_wal_id()).collect();
            let mut sink = |time_ms, Record { lsn, ops }| {
                // Times do not go back behind what was written.
                clock.raise(time_ms);
                let parts = dispatch::parts(&tablets, ops.into_iter().map(|op| (lsn, op)))?;
                for ((part, tablet), flushed) in parts.into_iter().zip(&tablets).zip(&flushed) {
                    if part.is_empty() || lsn <= *flushed || tablet.stage.is_stopped() {
                        continue;
                    }
                    while !tablet.stage.wait_for_room(REPLAY_POLL)? {}
                    if let Err(error) = tablet.apply(part) {
                        tracing::error!(tablet = tablet.id(), lsn, %error, "other tablets are served");
                    }
                }
                Ok(())
            };
            let tablet_of = |token| dispatch::tablet_of(&tablets, token);
            let replayed = log::replay::replay(&path, promised, tablets.len(), &tablet_of, &mut sink)?;
            Folder::remove_before(&path, promised.first)?;
            for (tablet, flushed) in tablets.iter().zip(flushed) {
                tablet.compactions.write_times.begin(flushed);
            }
            Ok(replayed)
        })
    }

    /// The future that opens one tablet's database.
    fn database(
        &self,
        databases: &Databases,
        entry: &TabletEntry,
        wal: TabletWal,
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
        let databases = databases.clone();
        let init = Init {
            wal,
            clock: self.clock.clone(),
        };
        let builder = databases
            .builder(&database, settings)
            .with_wal_writer(Box::new(init));
        async move {
            let db = builder.build().await?;
            tokio::spawn(compaction::run_compactor(databases, database, db.clone()));
            Ok(db)
        }
    }

    /// The error of opening a tablet. SlateDB does not say which of its documents it could not parse: it is one of
    /// the newest, which it reads first.
    async fn opening_error(&self, tablet: u32, error: StoreError) -> StoreError {
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
