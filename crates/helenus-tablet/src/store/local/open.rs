//! Opens a local store: the databases of its tablets, and the replay of the log.

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
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};

use crate::cache::row_cache::RowCache;
use crate::clock::{CommitTime, StoreClock};
use crate::compaction::{CompactionHistory, CompactionState};
use crate::config::StoreConfig;
use crate::data_model::DataModel;
use crate::database::tablet_db::TabletDb;
use crate::database::wal::{TabletWal, TabletWalInit};
use crate::database::{Database, Databases};
use crate::disk::disk_reserve::DiskReserve;
use crate::disk::incremental_delete::FileDeleter;
use crate::disk::local_store::DiskSpace;
use crate::error::{StoreError, from_slatedb};
use crate::log::Record;
use crate::log::file::FileAppender;
use crate::log::segment::Folder;
use crate::metadata::documents::Meta;
use crate::metadata::folders::Folders;
use crate::metadata::format::{Format, TabletEntry};
use crate::metadata::slatedb_layout::tablet_path;
use crate::metadata::store_metadata::StoreMetadata;
use crate::operation::Op;
use crate::store::assemble::{TabletParts, assemble, start_tasks};
use crate::store::background::BackgroundRuntime;
use crate::store::dispatch::{CompletionNotifier, TabletRouter};
use crate::store::in_flight_permits;
use crate::store::local::maintenance::Maintenance;
use crate::store::local::{Local, Running};
use crate::store::{Store, StoreKind};
use crate::tablet::origins::Origins;
use crate::tablet::{NodeLog, Tablet, find, tablet_of};
use crate::tree::block_cache::BlockCache;
use crate::tree::limits::ReadLimits;
use crate::{compaction, database, log};

/// Time that replay waits for room before it checks whether the tablet has failed.
const REPLAY_POLL: Duration = Duration::from_millis(200);

/// The inputs of opening a local store.
pub(crate) struct StoreOpener {
    pub config: StoreConfig,
    pub model: Arc<dyn DataModel>,
    pub format: Format,
    pub metadata: StoreMetadata,
    pub reserve: Arc<DiskReserve>,
    pub clock: Arc<StoreClock>,
    pub store: Arc<dyn ObjectStore>,
    pub deleter: FileDeleter,
    pub block_cache: Arc<BlockCache>,
    pub row_cache: Arc<RowCache>,
    pub metrics: Arc<DefaultMetricsRecorder>,
    pub compaction_history: Arc<CompactionHistory>,
    pub origins: Arc<Origins>,
    pub background: BackgroundRuntime,
    pub writing: BackgroundRuntime,
}

/// The tablets as they are stored, before the log is replayed.
#[derive(Default)]
struct RecoveredTablets {
    tablets: Vec<Arc<Tablet>>,
    last_lsn: u64,
    /// Number of the last record in each tablet's SSTables.
    flushed: BTreeMap<u32, u64>,
}

impl StoreOpener {
    pub async fn open(
        mut self,
        folders: Folders,
        space: Arc<DiskSpace>,
        lock: File,
    ) -> Result<Arc<Store>, StoreError> {
        let log = NodeLog::new();
        let databases = self.databases();
        let recovered = self.recovered(&folders, &databases, &log).await?;
        let tablets = recovered.tablets;
        let mut running = Running::default();
        for tablet in &tablets {
            let applier = start_tasks(tablet, &self.writing.handle, &self.background.handle);
            running.stage_appliers.push(applier);
        }
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
            self.metadata =
                StoreMetadata::upgrade(&folders, &self.format, &replayed, recovered.flushed, fsync)?;
        }
        if let Some(high_water_mark) = self.metadata.high_water_mark.take() {
            let _ = log.ledger.high_water_mark.set(high_water_mark);
        }
        let (segment, offset) = replayed.newest;
        // Without segments, all frames of that number were retired: they come before the end of the log.
        let end = if replayed.segments.is_empty() {
            u64::MAX
        } else {
            offset
        };
        log.ledger.note_reached(segment, end);
        let _ = log.id.set(self.format.store_id);
        *log.ledger.segments.lock() = replayed.segments;
        log.raise_lsn(recovered.last_lsn.max(replayed.last_lsn));
        // A tablet that refused a record during replay refuses writes as before the restart.
        let has_failed = tablets.iter().any(|tablet| tablet.stage.has_failed());
        log.is_obstructed.store(has_failed, Ordering::Relaxed);
        let router = Arc::new(TabletRouter {
            log,
            space: Some(space),
            notifier: CompletionNotifier::start(),
            on_fenced: Box::new(|| {}),
        });
        self.start(
            folders,
            lock,
            tablets,
            router,
            running,
            (replayed.newest, replayed.records),
        )
    }

    /// Opens the tablets' databases.
    async fn recovered(
        &self,
        folders: &Folders,
        databases: &Databases,
        log: &Arc<NodeLog>,
    ) -> Result<RecoveredTablets, StoreError> {
        self.check_documents().await?;
        let mut opening = Vec::new();
        let mut parts = Vec::new();
        for entry in &self.format.tablets {
            let wal = TabletWal::new();
            // Databases are built on the background runtime, so that SlateDB's own tasks run there.
            let compactions = Arc::new(CompactionState::new(entry.id, databases.history.clone()));
            let database = self.database(databases, entry, wal.clone(), compactions.clone());
            opening.push(self.background.handle.spawn(database));
            parts.push((entry, wal, compactions));
        }
        let opened = futures::future::join_all(opening).await;
        let mut recovered = RecoveredTablets::default();
        for ((entry, wal, compactions), db) in parts.into_iter().zip(opened) {
            let db = match db.map_err(|error| StoreError::Unavailable(error.to_string()))? {
                Ok(db) => db,
                Err(error) => return Err(self.opening_error(entry.id, from_slatedb(&error)).await),
            };
            let after = db.manifest().replay_after_wal_id();
            self.metadata.inventory.check_flushed(folders, entry.id, after)?;
            recovered.flushed.insert(entry.id, after);
            recovered.last_lsn = recovered.last_lsn.max(wal.last_lsn());
            let tablet = self.tablet(databases, entry, db, compactions, log.clone())?;
            recovered.tablets.push(tablet);
        }
        Ok(recovered)
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

    fn databases(&self) -> Databases {
        Databases {
            config: self.config.clone(),
            model: self.model.clone(),
            clock: self.clock.clone(),
            block_cache: self.block_cache.clone(),
            row_cache: self.row_cache.clone(),
            metrics: self.metrics.clone(),
            background: self.background.handle.clone(),
            slots: Arc::new(Semaphore::new(compaction::slots(&self.config))),
            compactors: Arc::default(),
            history: self.compaction_history.clone(),
        }
    }

    fn start(
        self,
        folders: Folders,
        lock: File,
        tablets: Vec<Arc<Tablet>>,
        router: Arc<TabletRouter>,
        mut running: Running,
        (newest, replayed_records): ((u64, u64), u64),
    ) -> Result<Arc<Store>, StoreError> {
        let databases = self.databases();
        let config = &self.config;
        let (log, Some(space)) = (router.log.clone(), router.space.clone()) else {
            return Err(StoreError::Closed);
        };
        let wake = Arc::<Notify>::default();
        let folder = Folder {
            path: folders.log(),
            segment_bytes: config.log_segment_bytes.next_multiple_of(4096),
            fsync: config.fsync,
            deleter: self.deleter.clone(),
        };
        let appender = FileAppender {
            ledger: log.ledger.clone(),
            folder: folder.clone(),
            space: space.clone(),
            clock: self.clock.clone(),
            rolled: wake.clone(),
            active: None,
            previous: newest,
        };
        let thread = log::start(log.clone(), router, appender)
            .map_err(|error| StoreError::Unavailable(format!("cannot start the log thread: {error}")))?;
        running.log_thread = Some(thread);
        let maintenance = Arc::new(Maintenance {
            ledger: log.ledger.clone(),
            inventory: self.metadata.inventory.clone(),
            reserve: self.reserve,
            folder,
            log_max_bytes: config.log_max_bytes,
            tablets: tablets.clone(),
            store: self.store.clone(),
            space: space.clone(),
            wake,
            clock: self.clock.clone(),
            garbage_age: config.garbage_age,
            log: self.format.store_id,
            keeps_history: config.keeps_history,
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
                Some(self.metadata.inventory),
            ),
            metrics: self.metrics,
            row_cache: self.row_cache,
            block_cache_bytes: config.block_cache_bytes,
            store_id: self.format.store_id,
            compaction_history: self.compaction_history,
            origins: self.origins,
            closed: AtomicBool::new(false),
            kind: StoreKind::Local(Box::new(Local {
                log,
                databases,
                objects: self.store,
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
        databases: &Databases,
        entry: &TabletEntry,
        db: Db,
        compactions: Arc<CompactionState>,
        log: Arc<NodeLog>,
    ) -> Result<Arc<Tablet>, StoreError> {
        if !db.manifest().external_dbs().is_empty() {
            let detail = format!(
                "tablet {} shares files with others, as only one in a bucket does",
                entry.id
            );
            return Err(StoreError::Unavailable(detail));
        }
        let parts = TabletParts {
            id: entry.id,
            tokens: entry.tokens,
            db: TabletDb::Owned(db),
            store: self.store.clone(),
            compactions,
            memtable_bytes: self.memtable_share(),
            log,
            limits: ReadLimits::default(),
            origins: self.origins.clone(),
        };
        Ok(assemble(databases, parts))
    }

    /// Returns the bytes of memtables for each tablet.
    fn memtable_share(&self) -> u64 {
        self.config.memtable_bytes / self.format.tablets.len().max(1) as u64
    }

    /// Reads the log on a thread of its own and stages the records that are in no SSTable.
    #[allow(clippy::disallowed_methods, reason = "the local disk is not simulated")]
    fn replay(
        &self,
        folders: &Folders,
        tablets: Vec<Arc<Tablet>>,
    ) -> tokio::task::JoinHandle<Result<log::replay::Replayed, StoreError>> {
        let clock = self.clock.clone();
        let path = folders.log();
        let expected = self.metadata.expected();
        let runtime = Handle::current();
        tokio::task::spawn_blocking(move || {
            let flushed: Vec<u64> = tablets.iter().map(|tablet| tablet.flushed_lsn()).collect();
            let mut sink = |time: CommitTime, Record { lsn, ops }| {
                // The clock must not go back behind the stored times.
                clock.raise(time.clock_ms);
                clock.note_commit(time);
                let parts = parts(&tablets, lsn, ops)?;
                for ((part, tablet), flushed) in parts.into_iter().zip(&tablets).zip(&flushed) {
                    if part.is_empty() || lsn <= *flushed || tablet.stage.is_stopped() {
                        continue;
                    }
                    while !runtime.block_on(tablet.stage.wait_for_room(REPLAY_POLL))? {}
                    if let Err(error) = tablet.stage_ops(part) {
                        tracing::error!(tablet = tablet.id(), lsn, %error, "other tablets are served");
                    }
                }
                Ok(())
            };
            let tablet_of = |token| find(&tablets, token).map(|tablet| tablet.id());
            let replayed = log::replay::replay(&path, expected, &tablet_of, &mut sink)?;
            Folder::remove_before(&path, expected.first)?;
            for (tablet, flushed) in tablets.iter().zip(flushed) {
                tablet.compactions.write_times.begin(flushed);
            }
            Ok(replayed)
        })
    }

    /// Returns the future that opens one tablet's database.
    fn database(
        &self,
        databases: &Databases,
        entry: &TabletEntry,
        wal: TabletWal,
        compactions: Arc<CompactionState>,
    ) -> impl Future<Output = Result<Db, slatedb::Error>> + Send + 'static {
        let database = Database {
            id: entry.id,
            only: None,
            store: self.store.clone(),
            compaction_store: self.store.clone(),
            compactions,
        };
        let settings = databases.settings(self.memtable_share());
        let databases = databases.clone();
        let init = TabletWalInit {
            wal,
            clock: self.clock.clone(),
        };
        let builder = databases
            .builder(&database, settings)
            .with_wal_writer(Box::new(init));
        async move {
            let db = builder.build().await?;
            tokio::spawn(database::run_compactor(databases, database, db.clone()));
            Ok(db)
        }
    }

    /// Returns the error of opening a tablet. SlateDB does not report which of its documents it could not parse. It is one of the newest,
    /// which it reads first.
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

/// Divides the operations of a record by tablet.
///
/// # Errors
/// An operation has no tablet.
fn parts(tablets: &[Arc<Tablet>], lsn: u64, ops: Vec<Op>) -> Result<Vec<Vec<(u64, Op)>>, StoreError> {
    let mut parts: Vec<Vec<(u64, Op)>> = tablets.iter().map(|_| Vec::new()).collect();
    for op in ops {
        let part = parts.get_mut(tablet_of(tablets, op.token));
        part.ok_or(StoreError::NotOwned(op.token))?.push((lsn, op));
    }
    Ok(parts)
}
