//! Opens and closes the tablets of a store in a bucket while it runs.

use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use helenus_row::TokenRange;
use slatedb::Db;
use slatedb::config::{GarbageCollectorOptions, GarbageCollectorScheduleOptions, Settings};

use super::node_log::OwnLog;
use super::tablet_logs::{TabletLogs, with_own};
use super::{Remote, TabletPreparation};
use crate::boxed;
use crate::bucket::tablet_object_store::TabletObjectStore;
use crate::cache::disk::object_store::{ReadPolicy, cached};
use crate::compaction::CompactionState;
use crate::database::tablet_db::TabletDb;
use crate::database::wal::{TabletWal, TabletWalInit};
use crate::database::{self, Database};
use crate::error::{StoreError, from_slatedb};
use crate::metadata::slatedb_layout::DOCUMENTS;
use crate::store::Store;
use crate::store::assemble::{TabletParts, assemble, start_tasks};
use crate::store::bucket::maintenance;
use crate::tablet::{NodeLog, Tablet};
use crate::tree::limits::ReadLimits;

/// Maximum time of each of the two flushes before a hand-over: one while the tablet is served, one after. A flush waits for compactions if
/// there are many files at level 0.
const FLUSH_WAIT: Duration = Duration::from_secs(1);
/// Maximum time to wait for a database to close, while requests wait for the next owner.
const CLOSE_WAIT: Duration = Duration::from_millis(50);

/// Delay before the database of a tablet that was handed over is closed. The next owner opens it meanwhile, and both would write the
/// manifest.
const LEAVE_AFTER: Duration = Duration::from_secs(1);

/// Time between a database's checks of its manifest for changes by other processes. There are none while this node owns the tablet.
const MANIFEST_POLL_INTERVAL: Duration = Duration::from_secs(60);

/// Minimum number of tablets among which the memory for memtables is shared, unless the store began with fewer.
const SHARES_MIN: usize = 8;

/// A tablet whose database is open, so that its former owner can write no more files.
pub(super) struct OpenedDatabase {
    pub tablet: Arc<Tablet>,
    /// Number of the last record that the former owners have seen or reserved.
    last_lsn: u64,
    pub own: Arc<OwnLog>,
    logs: TabletLogs,
}

impl Store {
    /// Sets the preparation of all tablets that are opened from now on. A tablet whose preparation fails is not served. Only the first call
    /// has an effect. A store in a folder has its tablets open already.
    pub fn prepare_tablets(&self, preparation: TabletPreparation) {
        if let Ok(remote) = self.remote() {
            let _ = remote.preparation.set(preparation);
        }
    }

    /// Opens a tablet of a store in a bucket, and serves it. A former owner is fenced: none of its further writes takes effect, and all
    /// acknowledged ones are present. A tablet without a database gets an empty one.
    ///
    /// The opening continues if the future is dropped. [`Store::close_tablet`] then closes the tablet.
    pub async fn open_tablet(
        self: &Arc<Self>,
        id: u32,
        tokens: TokenRange,
    ) -> Result<Arc<Tablet>, StoreError> {
        self.open_tablet_after(id, tokens, std::future::ready(Ok(())))
            .await
    }

    /// Opens a tablet like [`Store::open_tablet`]. `before_serving` runs after the former owner has been fenced and before the first
    /// request.
    pub async fn open_tablet_after(
        self: &Arc<Self>,
        id: u32,
        tokens: TokenRange,
        before_serving: impl Future<Output = Result<(), StoreError>> + Send + 'static,
    ) -> Result<Arc<Tablet>, StoreError> {
        self.check_writable()?;
        let store = self.clone();
        let remote = self.remote()?;
        let abandoned = remote.times_abandoned(id);
        let open = async move { store.open_now(id, tokens, abandoned, before_serving).await };
        let opened = remote.serving.spawn(open).await;
        opened.unwrap_or_else(|error| Err(StoreError::Unavailable(error.to_string())))
    }

    /// Flushes a tablet to the bucket and closes it, so that its next owner has little to replay. The tablet is served during the first
    /// flush, and a second one writes what arrived meanwhile. A tablet that is not open is no error.
    #[boxed]
    pub async fn close_tablet(&self, id: u32) -> Result<(), StoreError> {
        let Some(tablet) = self.remote()?.stop_tablet(self, id).await else {
            return Ok(());
        };
        let closing = tokio::spawn(tablet.close_unserved());
        let is_closed = tokio::time::timeout(CLOSE_WAIT, closing).await.is_ok();
        tracing::debug!(tablet = id, is_closed, "the tablet's database is left");
        Ok(())
    }

    /// Flushes a tablet and stops serving it, so that another node can open it at once. The database is closed later, in the background.
    #[boxed]
    pub async fn hand_over_tablet(&self, id: u32) -> Result<(), StoreError> {
        if let Some(tablet) = self.remote()?.stop_tablet(self, id).await {
            tokio::spawn(async move {
                tokio::time::sleep(LEAVE_AFTER).await;
                tablet.close_unserved().await;
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
            None => remote.open_database(&self, id, tokens).await?,
        };
        let tablet = opened.tablet.clone();
        let built_ms = began.elapsed().as_millis();
        let ready = async {
            remote.take_over(opened).await?;
            let replayed_ms = began.elapsed().as_millis();
            before_serving.await?;
            if let Some(prepare) = remote.preparation.get() {
                prepare(tablet.clone()).await?;
            }
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
            tablet.accepts_writes.store(false, Ordering::Release);
            tablet.close_unserved().await;
            return Err(error);
        }
        let garbage_age = remote.databases.config.garbage_age;
        let clock = remote.databases.clock.clone();
        let maintenance = maintenance::run(
            Arc::downgrade(&self),
            tablet.clone(),
            remote.store.clone(),
            clock,
            garbage_age,
        );
        remote.databases.background.spawn(maintenance);
        remote.serving.spawn(watch(Arc::downgrade(&self), tablet.clone()));
        // The log may have been fenced before the tablet was among the open ones, so the fencing did not close it.
        if tablet.log.closed().is_some() {
            self.lose(&tablet, StoreError::Fenced);
            return Err(StoreError::Fenced);
        }
        Ok(tablet)
    }

    /// Adds an open tablet to those that are served, unless it was abandoned meanwhile.
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

    /// Returns the tablet if it is open.
    ///
    /// # Errors
    /// Another open tablet has some of its tokens.
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

    /// Stops serving a tablet. Returns false if it was not served.
    pub(super) fn remove(&self, tablet: &Arc<Tablet>) -> bool {
        let before = self.tablets.rcu(|tablets| {
            let mut tablets = Vec::clone(tablets);
            tablets.retain(|other| !Arc::ptr_eq(other, tablet));
            tablets
        });
        // If two callers remove the same tablet, exactly one sees it in the list before.
        let was_served = before.iter().any(|other| Arc::ptr_eq(other, tablet));
        if was_served && let Ok(remote) = self.remote() {
            remote.closed.lock().add(&tablet.stats());
        }
        was_served
    }
}

/// Reports a tablet whose database has failed, or was closed by another process.
async fn watch(store: Weak<Store>, tablet: Arc<Tablet>) {
    let Ok(db) = tablet.db.owned() else { return };
    let mut status = db.subscribe();
    let closed = status.wait_for(|status| status.close_reason.is_some()).await;
    drop(closed);
    let is_served = |store: Arc<Store>| store.tablets().iter().any(|other| Arc::ptr_eq(other, &tablet));
    // The next owner may open a tablet that was handed over before its database is closed here.
    if tablet.stage.is_closed() || !store.upgrade().is_some_and(is_served) {
        return;
    }
    let error = match db.snapshot() {
        Err(error) => from_slatedb(&error),
        Ok(_) => StoreError::Closed,
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
        store.lose(&tablet, error);
    }
}

impl Remote {
    fn times_abandoned(&self, id: u32) -> u64 {
        self.abandoned.lock().get(&id).copied().unwrap_or(0)
    }

    /// Waits until no other task opens or closes the tablet, and locks it.
    async fn lock(&self, id: u32) -> tokio::sync::OwnedMutexGuard<()> {
        let lock = self.changing.lock().entry(id).or_default().clone();
        lock.lock_owned().await
    }

    /// Locks the tablet without waiting. `None` if another task opens or closes it.
    pub(super) fn try_lock(&self, id: u32) -> Option<tokio::sync::OwnedMutexGuard<()>> {
        let lock = self.changing.lock().entry(id).or_default().clone();
        lock.try_lock_owned().ok()
    }

    /// Stops serving a tablet, with nothing left in its log to replay if possible. The caller closes its database. `None` if the tablet is
    /// not open.
    async fn stop_tablet(&self, store: &Store, id: u32) -> Option<Arc<Tablet>> {
        let _changing = self.lock(id).await;
        let tablet = store.tablets().iter().find(|tablet| tablet.id() == id).cloned()?;
        tablet.compactions.stop();
        // The first flush writes most rows while the tablet is still served.
        let began = Instant::now();
        let _ = tokio::time::timeout(FLUSH_WAIT, tablet.flush()).await;
        let served_ms = began.elapsed().as_millis();
        tablet.stop_writes().await;
        store.remove(&tablet);
        let flushed = tokio::time::timeout(FLUSH_WAIT, tablet.flush()).await;
        let is_flushed = matches!(flushed, Ok(Ok(())));
        let released = self.release_log(&tablet, is_flushed).await;
        if let Err(error) = released {
            tracing::warn!(tablet = id, %error, "the next owner will fence the log of this node");
        }
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

    /// Records that this process writes nothing more for a tablet, so that its next owner need not fence the log.
    async fn release_log(&self, tablet: &Tablet, is_flushed: bool) -> Result<(), StoreError> {
        let Some(logs) = self.logs_of.lock().remove(&tablet.id()) else {
            return Ok(());
        };
        let mut logs = logs.lock().await;
        if is_flushed {
            return logs.write(Vec::new()).await;
        }
        let newest = tablet.log.ledger.newest();
        let mut spans = logs.logs.clone();
        for span in spans.iter_mut().filter(|span| span.last.is_none()) {
            span.last = Some(newest);
        }
        logs.write(spans).await
    }

    /// Opens a tablet's database, and reads the document that names its logs.
    pub(super) async fn open_database(
        &self,
        store: &Arc<Store>,
        id: u32,
        tokens: TokenRange,
    ) -> Result<OpenedDatabase, StoreError> {
        let own = self.own_log(store).await?;
        let open = store.tablets.load().len();
        let (built, logs) = tokio::join!(
            self.build(id, tokens, open, own.log.clone()),
            TabletLogs::read(&self.store, id)
        );
        let (tablet, last_lsn) = built?;
        match logs {
            Ok(logs) => Ok(OpenedDatabase {
                tablet,
                last_lsn,
                own,
                logs,
            }),
            Err(error) => {
                tablet.close_unserved().await;
                Err(error)
            }
        }
    }

    /// Replays the records that are in no SSTable, and names the log of this process as the one of the tablet's further writes.
    async fn take_over(&self, opened: OpenedDatabase) -> Result<(), StoreError> {
        let OpenedDatabase {
            tablet,
            last_lsn,
            own,
            mut logs,
        } = opened;
        let recovered = self.recover(&tablet, &logs, &own).await?;
        own.log.raise_lsn(last_lsn.max(recovered.last_lsn));
        let last_seq = tablet.db.manifest().map_or(0, |manifest| manifest.last_l0_seq());
        let in_files = tablet.flushed_lsn().max(last_seq);
        tablet.compactions.write_times.begin(in_files);
        let spans = with_own(recovered.logs, own.id, own.newest());
        logs.write(spans).await.map_err(|error| match error {
            StoreError::MetaConflict(_) => StoreError::Fenced,
            error => error,
        })?;
        let logs = Arc::new(tokio::sync::Mutex::new(logs));
        self.logs_of.lock().insert(tablet.id(), logs);
        Ok(())
    }

    /// Opens a tablet's database. Also returns the number of the last record that its manifest names.
    pub(super) async fn build(
        &self,
        id: u32,
        tokens: TokenRange,
        open: usize,
        log: Arc<NodeLog>,
    ) -> Result<(Arc<Tablet>, u64), StoreError> {
        let (databases, config) = (&self.databases, &self.databases.config);
        let shares = if config.open_all_tablets {
            self.initial.len().max(1)
        } else {
            (open + 1).max(self.initial.len().min(SHARES_MIN))
        } as u64;
        let memtable_bytes = config.memtable_bytes / shares;
        let bucket = Arc::new(TabletObjectStore::new(self.store.clone()));
        let behind_cache = |reads| cached(bucket.clone(), self.disk_cache.as_ref(), reads);
        let store = behind_cache(ReadPolicy::Insert);
        let compactions = Arc::new(CompactionState::new(id, databases.history.clone()));
        let database = Database {
            id,
            only: Some(tokens),
            store: store.clone(),
            compaction_store: behind_cache(ReadPolicy::LookUp),
            compactions: compactions.clone(),
        };
        let wal = TabletWal::new();
        let init = TabletWalInit {
            wal: wal.clone(),
            clock: databases.clock.clone(),
        };
        let builder = databases
            .builder(&database, self.settings(memtable_bytes))
            .with_gc_runtime(databases.background.clone())
            .with_wal_writer(Box::new(init));
        let (built, ()) = tokio::join!(builder.build(), bucket.read_boundary(id));
        let db: Db = built.map_err(|error| from_slatedb(&error))?;
        tokio::spawn(database::run_compactor(databases.clone(), database, db.clone()));
        let parts = TabletParts {
            id,
            tokens,
            db: TabletDb::Owned(db),
            store,
            compactions,
            memtable_bytes,
            log,
            limits: ReadLimits::of_bucket(config.read_timeout, tokens.first),
            origins: self.origins.clone(),
        };
        let tablet = assemble(databases, parts);
        start_tasks(&tablet, &self.applying, &databases.background);
        Ok((tablet, wal.last_lsn()))
    }

    fn settings(&self, memtable_bytes: u64) -> Settings {
        let settings = self.databases.settings(memtable_bytes);
        Settings {
            // The compactor polls the manifest more often while it runs.
            manifest_poll_interval: MANIFEST_POLL_INTERVAL
                .max(self.databases.config.compaction_poll_interval),
            garbage_collector_options: settings.garbage_collector_options.map(|options| {
                GarbageCollectorOptions {
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
