//! The process that takes compactions off the nodes of a store (`helenus compact`), and how nodes detect it.
//!
//! The owner of a tablet schedules compactions in the tablet's list and commits them. Workers claim scheduled compactions, on the owner or
//! here. A compactor regularly writes the document `compactor` as a heartbeat. While that document changes, owners leave compactions
//! unclaimed.
//!
//! A compactor merges rows and purges nothing. Whether a tombstone, expired data or a row under a deletion may be purged depends on the
//! owner's memory and log. A compactor also does not continue a compaction of which another process has written a part: that part may lack
//! the deletion of a partition whose rows are in the rest.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use hashbrown::HashMap;
use object_store::ObjectStore;
use object_store::path::Path;
use slatedb::admin::Admin;
use slatedb::compactor::{Compaction, CompactionStatus};
use slatedb::config::CompactionWorkerOptions;
use slatedb::{
    CompactionFilter, CompactionFilterDecision, CompactionFilterError, CompactionFilterSupplier,
    CompactionJobContext, CompactionWorker, CompactionWorkerBuilder, RowEntry,
};
use slatedb_common::clock::{DefaultSystemClock, SystemClock, SystemClockTicker};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::bucket::connection::Bucket;
use crate::bucket::store_identity::BindTarget;
use crate::bucket::subfolders::subfolders;
use crate::bucket::{check, format};
use crate::compaction;
use crate::config::{StoreConfig, StoreUrl};
use crate::data_model::{DataModel, Merge};
use crate::database::throttled;
use crate::error::{StoreError, from_slatedb};
use crate::failure_streak::FailureStreak;
use crate::metadata::documents::{Meta, MetaExpect};
use crate::metadata::slatedb_layout::tablet_path;
use crate::store::Store;
use crate::store::background::BackgroundRuntime;
use crate::tree::filters;

/// The document that compactors write as a heartbeat.
const SIGN_OF_LIFE: &str = "compactor";
/// Time between two writes of the heartbeat, and between two reads.
const SIGN_INTERVAL: Duration = Duration::from_secs(5);
/// Time without a heartbeat after which compactors count as gone.
const SILENT_MAX: Duration = Duration::from_secs(15);
/// Time for which a scheduled compaction is left to its owner. An owner that runs its own compactions claims them in this time.
const LEFT_TO_OWNER: Duration = Duration::from_secs(3);

/// Watches the compactors' heartbeat as long as the store is open. Only changes of the document count, so clocks need not agree.
pub(super) async fn follow_presence(store: Weak<Store>) {
    let mut version = None;
    let mut changed: Option<Instant> = None;
    loop {
        tokio::time::sleep(SIGN_INTERVAL).await;
        let Some(store) = store.upgrade() else { return };
        let Ok(remote) = store.remote() else { return };
        if let Ok(found) = store.meta.get(SIGN_OF_LIFE).await {
            let found = found.map_or(0, |doc| doc.version);
            if version.replace(found).is_some_and(|before| before != found) {
                changed = Some(Instant::now());
            }
        }
        let is_present = changed.is_some_and(|changed| changed.elapsed() < SILENT_MAX);
        if remote.databases.compactors.set(is_present) {
            tracing::info!(
                is_present,
                "compactors beside the nodes: compactions pass to them, or back"
            );
        }
    }
}

/// Runs the compactions of the store's owners until `stop` is ready. Then releases the claims.
///
/// # Errors
/// There is no store, or it cannot be used.
pub async fn compact(
    config: StoreConfig,
    model: Arc<dyn DataModel>,
    stop: impl Future<Output = ()>,
) -> Result<(), StoreError> {
    let StoreUrl::Remote(url) = &config.url else {
        return Err(StoreError::InvalidConfig(format!(
            "store = \"{}\": a store in a local folder has one process; a compactor is for stores in a bucket",
            config.url
        )));
    };
    let bucket = Bucket::connect(url)?;
    bucket.requests.limit_bandwidth(&config.throttles.bucket);
    check::check(&bucket).await?;
    if format::load(&bucket).await?.is_none() {
        return Err(StoreError::InvalidConfig(format!(
            "store = \"{url}\": there is no store; the first node creates it"
        )));
    }
    BindTarget::store(&bucket).identity(Uuid::new_v4()).await?;
    bucket.checksums.require();
    let mut compactor = CompactorProcess::new(&bucket, config, model)?;
    let mut looking = FailureStreak::new(
        "cannot look for compactions; trying again",
        "compactions are looked for again",
    );
    tokio::pin!(stop);
    loop {
        let round = async {
            looking.note(&compactor.round().await);
            tokio::time::sleep(compactor.interval).await;
        };
        tokio::select! {
            biased;
            () = &mut stop => break,
            () = round => {}
        }
    }
    compactor.close().await;
    Ok(())
}

/// The compaction worker of one tablet.
struct Session {
    worker: Arc<CompactionWorker>,
    running: JoinHandle<()>,
}

struct CompactorProcess {
    store: Arc<dyn ObjectStore>,
    meta: Meta,
    model: Arc<dyn DataModel>,
    options: CompactionWorkerOptions,
    background: BackgroundRuntime,
    clock: Arc<AheadClock>,
    interval: Duration,
    sessions_max: usize,
    signed: Option<Instant>,
    sessions: HashMap<u32, Session>,
    /// Scheduled compactions by id, with the time at which each was first seen.
    seen: HashMap<u128, Instant>,
}

impl CompactorProcess {
    fn new(bucket: &Bucket, config: StoreConfig, model: Arc<dyn DataModel>) -> Result<Self, StoreError> {
        let options = CompactionWorkerOptions {
            max_concurrent_compactions: 1,
            // The parts of a job would begin together, before any of them is recorded.
            max_subcompactions: 1,
            ..compaction::worker_options(&config)
        };
        Ok(CompactorProcess {
            store: throttled(&bucket.store, &config.throttles.compaction),
            meta: Meta::new(bucket.store.clone(), Path::default(), None),
            model,
            options,
            background: BackgroundRuntime::start(config.background_threads)?,
            clock: Arc::default(),
            interval: config.compaction_poll_interval,
            sessions_max: compaction::slots(&config),
            signed: None,
            sessions: HashMap::new(),
            seen: HashMap::new(),
        })
    }

    async fn round(&mut self) -> Result<(), StoreError> {
        self.sign().await?;
        let tablets: Vec<u32> = subfolders(self.store.as_ref(), &Path::from("tablets")).await?;
        let mut scheduled = HashMap::new();
        for tablet in tablets {
            // A tablet that is being deleted must not keep the others from being compacted.
            if let Err(error) = self.look_at(tablet, &mut scheduled).await {
                tracing::debug!(tablet, %error, "cannot read a tablet's compactions");
            }
            self.sign().await?;
        }
        self.seen = scheduled;
        Ok(())
    }

    /// Writes the heartbeat, if it is due.
    async fn sign(&mut self) -> Result<(), StoreError> {
        if self.signed.is_some_and(|signed| signed.elapsed() < SIGN_INTERVAL) {
            return Ok(());
        }
        let put = self.meta.put(SIGN_OF_LIFE, b"{}", MetaExpect::Any).await;
        match put {
            // A conflict means that another compactor has written the heartbeat.
            Ok(_) | Err(StoreError::MetaConflict(_)) => self.signed = Some(Instant::now()),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Starts or ends the worker of a tablet, depending on its list of compactions.
    async fn look_at(
        &mut self,
        tablet: u32,
        scheduled: &mut HashMap<u128, Instant>,
    ) -> Result<(), StoreError> {
        let admin = Admin::builder(tablet_path(tablet), self.store.clone()).build();
        let list = admin.read_compactions(None).await;
        let list = list.map_err(|error| from_slatedb(&error))?;
        let jobs: Vec<&Compaction> = list.iter().flat_map(|list| list.recent_compactions()).collect();
        self.clock
            .pass(jobs.iter().map(|job| job.id().timestamp_ms()).max());
        let open = |job: &&&Compaction| job.status() == CompactionStatus::Scheduled;
        let mut is_due = false;
        let mut is_begun = false;
        for job in jobs.iter().filter(open) {
            let id = job.id().0;
            let since = *self.seen.get(&id).unwrap_or(&Instant::now());
            scheduled.insert(id, since);
            is_due |= since.elapsed() >= LEFT_TO_OWNER;
            is_begun |= has_output(job);
        }
        let is_busy = jobs.iter().any(|job| {
            matches!(
                job.status(),
                CompactionStatus::Scheduled | CompactionStatus::Running
            )
        });
        let has_ended = |session: &Session| session.running.is_finished();
        if self
            .sessions
            .get(&tablet)
            .is_some_and(|session| has_ended(session) || !is_busy || is_begun)
        {
            self.end(tablet).await;
        } else if is_due
            && !is_begun
            && !self.sessions.contains_key(&tablet)
            && self.sessions.len() < self.sessions_max
        {
            self.begin(tablet).await?;
        }
        Ok(())
    }

    async fn begin(&mut self, tablet: u32) -> Result<(), StoreError> {
        let path = tablet_path(tablet);
        let worker = CompactionWorkerBuilder::new(path.clone(), self.store.clone())
            .with_options(self.options.clone())
            .with_runtime(self.background.handle.clone())
            .with_system_clock(self.clock.clone())
            .with_merge_operator(Arc::new(Merge(self.model.clone())))
            .with_filter_policies(vec![filters::policy(self.model.clone())])
            .with_compaction_filter_supplier(Arc::new(WholeJobs {
                store: self.store.clone(),
                root: path,
            }))
            .build()
            .await
            .map_err(|error| from_slatedb(&error))?;
        tracing::info!(tablet, "compacting a tablet");
        let worker = Arc::new(worker);
        let running = worker.clone();
        let running = self.background.handle.spawn(async move {
            if let Err(error) = running.run().await {
                tracing::warn!(tablet, %error, "the compactions of a tablet have failed; trying again");
            }
        });
        self.sessions.insert(tablet, Session { worker, running });
        Ok(())
    }

    async fn end(&mut self, tablet: u32) {
        let Some(session) = self.sessions.remove(&tablet) else {
            return;
        };
        if let Err(error) = session.worker.stop().await {
            tracing::debug!(tablet, %error, "a worker was not stopped in order");
        }
        tracing::info!(tablet, "a tablet's compactions are done");
    }

    async fn close(mut self) {
        let tablets: Vec<u32> = self.sessions.keys().copied().collect();
        for tablet in tablets {
            self.end(tablet).await;
        }
    }
}

fn has_output(job: &Compaction) -> bool {
    !job.output_ssts().is_empty()
        || job
            .subcompactions()
            .iter()
            .any(|part| !part.output_ssts().is_empty())
}

/// Refuses compactions that another process has begun, and keeps all entries of the others.
struct WholeJobs {
    store: Arc<dyn ObjectStore>,
    root: Path,
}

#[async_trait]
impl CompactionFilterSupplier for WholeJobs {
    async fn create_compaction_filter(
        &self,
        context: &CompactionJobContext,
    ) -> Result<Box<dyn CompactionFilter>, CompactionFilterError> {
        let failed =
            |error: Box<dyn std::error::Error + Send + Sync>| CompactionFilterError::CreationError(error);
        // A claimed job is changed by its worker only, so the list still shows output that another process has written.
        let admin = Admin::builder(self.root.clone(), self.store.clone()).build();
        let list = admin.read_compactions(None).await;
        let list = list.map_err(|error| failed(Box::new(error)))?;
        let mut jobs = list.iter().flat_map(|list| list.recent_compactions());
        let job = jobs.find(|job| job.active() && job.spec().destination() == Some(context.destination));
        match job.map(has_output) {
            Some(false) => Ok(Box::new(KeepAll)),
            Some(true) => Err(failed(
                "another process has begun it, and its owner is to end it".into(),
            )),
            None => Err(failed("it is no longer in the tablet's list".into())),
        }
    }
}

struct KeepAll;

#[async_trait]
impl CompactionFilter for KeepAll {
    async fn filter(&mut self, _entry: &RowEntry) -> Result<CompactionFilterDecision, CompactionFilterError> {
        Ok(CompactionFilterDecision::Keep)
    }

    async fn on_compaction_end(&mut self) -> Result<(), CompactionFilterError> {
        Ok(())
    }
}

/// A clock that is not behind those of the owners. Otherwise new files could look older than their compaction, and be deleted as garbage.
#[derive(Debug, Default)]
struct AheadClock {
    inner: DefaultSystemClock,
    ahead_ms: AtomicI64,
}

impl AheadClock {
    /// Advances the clock beyond a time. `None` counts as 0.
    fn pass(&self, time_ms: Option<u64>) {
        let time_ms = time_ms
            .and_then(|time_ms| i64::try_from(time_ms).ok())
            .unwrap_or(0);
        let ahead_ms = time_ms
            .saturating_add(1)
            .saturating_sub(self.inner.now().timestamp_millis());
        self.ahead_ms.fetch_max(ahead_ms, Ordering::AcqRel);
    }
}

impl SystemClock for AheadClock {
    fn now(&self) -> DateTime<Utc> {
        self.inner.now() + TimeDelta::milliseconds(self.ahead_ms.load(Ordering::Acquire).max(0))
    }

    fn sleep<'a>(&'a self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        self.inner.sleep(duration)
    }

    fn ticker<'a>(&'a self, duration: Duration) -> SystemClockTicker<'a> {
        SystemClockTicker::new(self, duration)
    }
}
