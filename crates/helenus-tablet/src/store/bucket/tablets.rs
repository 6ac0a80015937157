//! Opens and closes the tablets of a store in a bucket while it runs.

use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use object_store::ObjectStore;
use slatedb::Db;
use slatedb::config::{GarbageCollectorOptions, GarbageCollectorScheduleOptions, Settings};

use super::batch_log::PendingBatches;
use super::{Remote, TabletEvent};
use crate::bucket::clock_recovery;
use crate::bucket::tablet_object_store::{LogPutOutcomes, TabletObjectStore};
use crate::cache::row_cache::RowCache;
use crate::compaction::CompactionState;
use crate::database::{self, Database};
use crate::error::{StoreError, from_slatedb};
use crate::metadata::slatedb_layout::DOCUMENTS;
use crate::stage::{Stage, StageLimits};
use crate::store::Store;
use crate::store::bucket::maintenance;
use crate::tablet::group_commit::TabletLogWriter;
use crate::tablet::obsolete_files::Scans;
use crate::tablet::stats::TabletCounters;
use crate::tablet::{Tablet, group_commit};
use crate::token_range::TokenRange;
use crate::tree::Tree;

/// How long a tablet that is to be handed over may take to flush, while it is still served. A flush waits for compactions when there are
/// many files at level 0.
const FLUSH_WAIT: Duration = Duration::from_secs(1);
/// How long a database may take to close, while requests wait for its next owner.
const CLOSE_WAIT: Duration = Duration::from_millis(50);

/// The delay before the database of a tablet that was handed over is closed: its next owner opens it meanwhile, and both would write the
/// manifest.
const LEAVE_AFTER: Duration = Duration::from_secs(1);

/// How often a database checks its manifest for changes by other processes; there are none while this node owns the tablet.
const MANIFEST_POLL_INTERVAL: Duration = Duration::from_secs(60);

/// Tablets that a node is taken to have at least when memory is shared out.
const SHARES_MIN: usize = 8;

/// A tablet whose database is open, its former owner fenced.
pub(super) struct OpenedDatabase {
    pub tablet: Arc<Tablet>,
    /// The cross-tablet batches to finish.
    pub pending: PendingBatches,
}

impl Store {
    /// Opens a tablet of a store in a bucket, and serves it. A former owner is fenced: none of its further writes takes effect, and all that it
    /// acknowledged are present. A tablet without a database gets an empty one.
    ///
    /// The opening continues if the future is dropped; [`Store::close_tablet`] ends it then.
    pub async fn open_tablet(
        self: &Arc<Self>,
        id: u32,
        tokens: TokenRange,
    ) -> Result<Arc<Tablet>, StoreError> {
        self.open_tablet_then(id, tokens, std::future::ready(Ok(())))
            .await
    }

    /// The same, with something to be done between the fencing of the former owner and the first request.
    pub async fn open_tablet_then(
        self: &Arc<Self>,
        id: u32,
        tokens: TokenRange,
        before_serving: impl Future<Output = Result<(), StoreError>> + Send + 'static,
    ) -> Result<Arc<Tablet>, StoreError> {
        let store = self.clone();
        let remote = self.remote()?;
        let abandoned = remote.times_abandoned(id);
        let open = async move { store.open_now(id, tokens, abandoned, before_serving).await };
        let opened = remote.serving.spawn(open).await;
        opened.unwrap_or_else(|error| Err(StoreError::Unavailable(error.to_string())))
    }

    /// Flushes a tablet to the bucket and closes it, so that its next owner has little to replay: only the writes that arrived during the flush.
    /// It is served meanwhile. A tablet that is not open is no error.
    pub async fn close_tablet(&self, id: u32) -> Result<(), StoreError> {
        let Some(tablet) = self.remote()?.stop_tablet(self, id).await else {
            return Ok(());
        };
        let closing = tokio::spawn(close_unserved(tablet));
        let is_closed = tokio::time::timeout(CLOSE_WAIT, closing).await.is_ok();
        tracing::debug!(tablet = id, is_closed, "the tablet's database is left");
        Ok(())
    }

    /// The same without a look back, for another node to open it at once.
    pub async fn hand_over_tablet(&self, id: u32) -> Result<(), StoreError> {
        if let Some(tablet) = self.remote()?.stop_tablet(self, id).await {
            tokio::spawn(async move {
                tokio::time::sleep(LEAVE_AFTER).await;
                close_unserved(tablet).await;
            });
        }
        Ok(())
    }

    async fn open_now(
        self: Arc<Self>,
        id: u32,
        tokens: TokenRange,
        abandoned: u64,
        before_serving: impl Future<Output = Result<(), StoreError>>,
    ) -> Result<Arc<Tablet>, StoreError> {
        let remote = self.remote()?;
        let _changing = remote.lock(id).await;
        if self.closed.load(std::sync::atomic::Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        if let Some(tablet) = self.open_already(id, tokens)? {
            return Ok(tablet);
        }
        let began = Instant::now();
        let opened = match remote.promote_standby(id, tokens).await {
            Some(opened) => opened,
            None => {
                remote
                    .open_database(id, tokens, self.tablets.load().len())
                    .await?
            }
        };
        let OpenedDatabase { tablet, pending } = opened;
        let built_ms = began.elapsed().as_millis();
        let Some(log_writer) = tablet.remote.clone() else {
            return Err(StoreError::Closed);
        };
        tokio::spawn(watch(Arc::downgrade(&self), tablet.clone(), log_writer.clone()));
        let ready = async {
            remote.batches.replay(&tablet, pending).await?;
            let replayed_ms = began.elapsed().as_millis();
            before_serving.await?;
            let ready_ms = began.elapsed().as_millis();
            tracing::debug!(
                tablet = id,
                built_ms,
                replayed_ms,
                ready_ms,
                "the tablet can be served"
            );
            self.serve(&tablet, abandoned)
        };
        if let Err(error) = ready.await {
            log_writer.close(StoreError::Closed);
            log_writer.ended().await;
            let _ = tablet.db.close().await;
            return Err(error);
        }
        let garbage_age = remote.databases.config.garbage_age;
        let clock = remote.databases.clock.clone();
        let maintenance = maintenance::run(tablet.clone(), remote.store.clone(), clock, garbage_age);
        remote.databases.background.spawn(maintenance);
        // It may have been lost before it was to be found.
        if log_writer.has_ended() {
            self.remove(&tablet);
            return Err(StoreError::Fenced);
        }
        Ok(tablet)
    }

    /// Shows an open tablet to requests, unless it was abandoned meanwhile.
    fn serve(&self, tablet: &Arc<Tablet>, abandoned: u64) -> Result<(), StoreError> {
        let (id, tokens) = (tablet.id(), tablet.token_range());
        let times = self.remote()?.abandoned.lock();
        if times.get(&id).copied().unwrap_or(0) != abandoned {
            return Err(StoreError::NotOwned(tokens.first));
        }
        self.open_already(id, tokens)?;
        self.tablets.rcu(|tablets| {
            let mut tablets = Vec::clone(tablets);
            let at = tablets.partition_point(|other| other.token_range().first < tokens.first);
            tablets.insert(at, tablet.clone());
            tablets
        });
        Ok(())
    }

    /// The tablet, if it is open.
    ///
    /// # Errors
    /// Another tablet that is open has some of its tokens.
    fn open_already(&self, id: u32, tokens: TokenRange) -> Result<Option<Arc<Tablet>>, StoreError> {
        for tablet in self.tablets.load().iter() {
            let theirs = tablet.token_range();
            if tablet.id() == id && theirs == tokens {
                return Ok(Some(tablet.clone()));
            }
            if theirs.first <= tokens.last && tokens.first <= theirs.last || tablet.id() == id {
                return Err(StoreError::InvalidConfig(format!(
                    "tablet {id} of tokens {} to {}: tablet {} of tokens {} to {} is open",
                    tokens.first,
                    tokens.last,
                    tablet.id(),
                    theirs.first,
                    theirs.last
                )));
            }
        }
        Ok(None)
    }

    /// Serves a tablet no more.
    pub(super) fn remove(&self, tablet: &Arc<Tablet>) {
        let before = self.tablets.rcu(|tablets| {
            let mut tablets = Vec::clone(tablets);
            tablets.retain(|other| !Arc::ptr_eq(other, tablet));
            tablets
        });
        // Of two that remove it one did.
        if before.iter().any(|other| Arc::ptr_eq(other, tablet))
            && let Ok(remote) = self.remote()
        {
            remote.closed.lock().add(&tablet.stats());
        }
    }
}

/// Writes a tablet's groups; when it can write no more, closes it.
async fn watch(store: Weak<Store>, tablet: Arc<Tablet>, log_writer: Arc<TabletLogWriter>) {
    let Err(error) = group_commit::run(tablet.clone(), log_writer).await else {
        return;
    };
    match &error {
        StoreError::Fenced => {
            tracing::warn!(
                tablet = tablet.id(),
                "another process has opened this tablet; it is closed here"
            );
        }
        error => tracing::error!(tablet = tablet.id(), %error, "a tablet has failed and is closed"),
    }
    if let Some(store) = store.upgrade() {
        store.remove(&tablet);
        if let Ok(remote) = store.remote() {
            let id = tablet.id();
            // There may be no listener.
            let _ = remote.events.send(TabletEvent::Lost { id, error });
        }
    }
    let _ = tablet.db.close().await;
}

/// Closes the database of a tablet that is no longer served. Every group is in the log, so nothing is left to write, and the next owner may
/// open the tablet before this is done.
pub(super) async fn close_unserved(tablet: Arc<Tablet>) {
    let options = slatedb::config::CloseOptions { flush_type: None };
    if let Err(error) = tablet.db.close_with_options(options).await {
        tracing::debug!(tablet = tablet.id(), %error, "a database was not closed in order");
    }
}

impl Remote {
    fn times_abandoned(&self, id: u32) -> u64 {
        self.abandoned.lock().get(&id).copied().unwrap_or(0)
    }

    /// Waits until no other task opens or closes the tablet.
    async fn lock(&self, id: u32) -> tokio::sync::OwnedMutexGuard<()> {
        let lock = self.changing.lock().entry(id).or_default().clone();
        lock.lock_owned().await
    }

    /// The same without waiting: `None` if someone does.
    pub(super) fn try_lock(&self, id: u32) -> Option<tokio::sync::OwnedMutexGuard<()>> {
        let lock = self.changing.lock().entry(id).or_default().clone();
        lock.try_lock_owned().ok()
    }

    /// Serves a tablet no more, with next to nothing in its log to replay. Its database is still to be left; `None` if the tablet is not
    /// open.
    async fn stop_tablet(&self, store: &Store, id: u32) -> Option<Arc<Tablet>> {
        let _changing = self.lock(id).await;
        let tablet = store.tablets().iter().find(|tablet| tablet.id() == id).cloned()?;
        let log_writer = tablet.remote.clone()?;
        tablet.compactions.stop();
        // Most of it while it is still served.
        let began = Instant::now();
        let flushed = tokio::time::timeout(FLUSH_WAIT, tablet.flush()).await;
        let is_flushed = matches!(flushed, Ok(Ok(())));
        let served_ms = began.elapsed().as_millis();
        log_writer.close(StoreError::NotOwned(tablet.token_range().first));
        log_writer.ended().await;
        store.remove(&tablet);
        let closed_ms = began.elapsed().as_millis();
        tracing::debug!(
            tablet = id,
            served_ms,
            closed_ms,
            is_flushed,
            "the tablet is closed"
        );
        Some(tablet)
    }

    /// Opens a tablet's database.
    pub(super) async fn build(
        &self,
        id: u32,
        tokens: TokenRange,
        open: usize,
    ) -> Result<Arc<Tablet>, StoreError> {
        let (databases, config) = (&self.databases, &self.databases.config);
        let shares = if config.open_all_tablets {
            self.initial.len().max(1)
        } else {
            (open + 1).max(self.initial.len().min(SHARES_MIN))
        } as u64;
        let memtable_bytes = config.memtable_bytes / shares;
        let puts = Arc::<LogPutOutcomes>::default();
        let guarded = |store: &Arc<dyn ObjectStore>| {
            Arc::new(TabletObjectStore::new(
                store.clone(),
                puts.clone(),
                self.counters.clone(),
            ))
        };
        let store = guarded(&self.store);
        let log_apart = self.log_store.as_ref().map(guarded);
        let log = log_apart.clone().unwrap_or_else(|| store.clone());
        let compactions = Arc::<CompactionState>::default();
        let database = Database {
            id,
            only: Some(tokens),
            store: store.clone(),
            log: log_apart.map(|log| log as Arc<dyn ObjectStore>),
            compactions: compactions.clone(),
        };
        let builder = databases.builder(&database, self.settings(memtable_bytes));
        let builder = builder.with_gc_runtime(databases.background.clone());
        let (built, ()) = tokio::join!(builder.build(), store.read_boundary(id));
        let db: Db = built.map_err(|error| from_slatedb(&error))?;
        // Nothing is stamped before that.
        let newest = log.front.newest();
        let reader: Arc<dyn ObjectStore> = log.clone();
        let raised = clock_recovery::raise(&databases.clock, &reader, id, &db.manifest(), newest).await;
        log.front.end();
        if let Err(error) = raised {
            let _ = db.close().await;
            return Err(error);
        }
        let tree = db.snapshot().map_err(|error| from_slatedb(&error))?;
        compactions.write_times.begin(tree.seq());
        tokio::spawn(database::run_compactor(databases.clone(), database, db.clone()));
        Ok(Arc::new(Tablet {
            id,
            tokens,
            db,
            cache: RowCache::new(config.row_cache_bytes / shares),
            stage: Stage::new(
                Tree::SlateDb(tree),
                StageLimits::new(memtable_bytes),
                databases.model.clone(),
            ),
            row_cache_on: config.row_cache_bytes > 0,
            model: databases.model.clone(),
            clock: databases.clock.clone(),
            counters: TabletCounters::default(),
            compactions,
            scans: Scans::new(),
            disk: None,
            remote: Some(Arc::new(TabletLogWriter::new(
                puts,
                self.counters.clone(),
                config.read_timeout,
            ))),
        }))
    }

    fn settings(&self, memtable_bytes: u64) -> Settings {
        let settings = self.databases.settings(memtable_bytes);
        Settings {
            // While its compactor runs, that looks oftener.
            manifest_poll_interval: MANIFEST_POLL_INTERVAL
                .max(self.databases.config.compaction_poll_interval),
            garbage_collector_options: settings.garbage_collector_options.map(|options| {
                GarbageCollectorOptions {
                    // Those of fences are empty, and keep a writer that slept for days from going on.
                    wal_options: Some(DOCUMENTS),
                    detach_options: Some(GarbageCollectorScheduleOptions {
                        interval: DOCUMENTS.interval,
                    }),
                    boundary_files_enabled: true,
                    ..options
                }
            }),
            ..settings
        }
    }
}
