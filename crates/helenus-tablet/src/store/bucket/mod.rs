//! A store in a bucket: tablets without a disk of their own, opened and closed while the store runs.
//!
//! The writes to all tablets of a node share one log ([`crate::log::object`]), with an object for each group commit. Writes are visible and
//! acknowledged only after that object is stored. A batch over several tablets is one record of the log.
//!
//! A node that opens a tablet first makes sure that the former owner can acknowledge nothing more. Then it replays the records that are in
//! no SSTable ([`recovery`]). The tablet's document `LOGS` names the logs that have them ([`tablet_logs`]). An owner that hands a tablet
//! over flushes and closes it first, so that nothing is to be replayed. A node that finds its log fenced closes the tablets that wrote to
//! it, and reports them ([`TabletEvent`]).
//!
//! ```text
//! FORMAT                   format version, id, the initial tablets, the location of a separate log
//! LOG_MOVE                 there while the log is moved, see `migrate_log`
//! PLACE                    the store's identity and location, see `crate::bucket::store_identity`
//! tablets/<id>/            one SlateDB database for each tablet
//! tablets/<id>/meta/LOGS   the logs that hold records of the tablet which are in no SSTable
//! logs/<id>/<number>       the log of one process
//! log_claims/<n>/<epoch>   the claim of a partition, of a log in a topic
//! meta/<name>              small documents, changed by compare-and-set
//! ```
//!
//! The logs may be in a separate store ([`crate::bucket::log_store`]), or in a topic ([`crate::log::topic`]).

mod archived;
mod compactor;
mod history;
mod log_maintenance;
mod log_medium;
mod maintenance;
mod migrate;
mod migrate_log;
mod node_log;
mod open;
mod read_only;
mod recovery;
mod reshape;
mod single_node;
mod standby;
mod tablet_logs;
mod tablets;

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use hashbrown::HashMap;
use helenus_row::TokenRange;
use object_store::ObjectStore;
use object_store::path::Path;
use parking_lot::Mutex;
use tokio::sync::broadcast;

pub use compactor::compact;
pub use migrate::{Copied, migrate};
pub use migrate_log::{LogMove, log_place};
pub(crate) use open::{open, open_read_only};
pub use read_only::RefreshRound;

use crate::bucket::connection::Bucket;
use crate::bucket::metered_object_store::BucketStats;
use crate::bucket::metered_object_store::Requests;
use crate::cache::disk::object_store::{ReadPolicy, cached};
use crate::cache::disk::{DiskCache, DiskCacheStats};
use crate::clock::StoreClock;
use crate::database::Databases;
use crate::error::StoreError;
use crate::log::stats::LogStats;
use crate::log::topic::TopicLogs;
use crate::metadata::documents::Meta;
use crate::metadata::format::Format;
use crate::store::Store;
use crate::store::background::BackgroundRuntime;
use crate::tablet::Tablet;
use crate::tablet::origins::Origins;
use crate::tablet::stats::TabletTotals;
use node_log::OwnLog;
use read_only::Follower;
use recovery::Recoveries;
use tablet_logs::TabletLogs;

/// A change of a tablet that this process did not request.
#[derive(Debug, Clone)]
pub enum TabletEvent {
    /// The tablet is closed here. If `error` is [`StoreError::Fenced`], another process has opened it. With any other error, opening it
    /// again may help.
    Lost { id: u32, error: StoreError },
}

/// Maximum number of events by which a slow listener may lag behind.
const EVENTS_MAX: usize = 1024;

/// Prepares a tablet before its first request. All its writes have been replayed, and the former owner has been fenced.
pub type TabletPreparation =
    Box<dyn Fn(Arc<Tablet>) -> BoxFuture<'static, Result<(), StoreError>> + Send + Sync>;

/// The parts of a store in a bucket, besides its open tablets.
pub(crate) struct Remote {
    databases: Databases,
    /// The origins of the store's tables.
    origins: Arc<Origins>,
    store: Arc<dyn ObjectStore>,
    /// The documents with the leases of nodes, over connections of their own.
    pub(super) leases: Meta,
    /// The object store of the log. `None` if the log is beside the store's data, or in a topic.
    log_store: Option<Arc<dyn ObjectStore>>,
    /// The topic of the log. `None` if the log is in a bucket.
    topic: Option<TopicLogs>,
    requests: Arc<Requests>,
    disk_cache: Option<Arc<DiskCache>>,
    /// The runtime on which requests are served.
    serving: tokio::runtime::Handle,
    /// The log of this process. `None` before the first tablet is opened.
    own_log: tokio::sync::Mutex<Option<Arc<OwnLog>>>,
    /// Logs of former owners, while tablets are recovered from them.
    recoveries: Arc<Recoveries>,
    /// The document that names the logs of a tablet, for each open tablet.
    logs_of: Mutex<HashMap<u32, Arc<tokio::sync::Mutex<TabletLogs>>>>,
    /// The counters of earlier logs of this process.
    former_logs: Mutex<LogStats>,
    events: broadcast::Sender<TabletEvent>,
    /// A lock for each tablet, so that one task at a time opens or closes it.
    changing: Mutex<HashMap<u32, Arc<tokio::sync::Mutex<()>>>>,
    /// Tablets opened before this node owns them.
    standby: Mutex<HashMap<u32, standby::StandbyTablet>>,
    /// Number of times that each tablet was abandoned. A tablet whose opening began before the last time is not served.
    abandoned: Mutex<HashMap<u32, u64>>,
    /// Prepares each tablet for its first request.
    preparation: OnceLock<TabletPreparation>,
    /// The state of a read-only store. `None` for other stores.
    follower: Option<Follower>,
    /// Counters of tablets that have been closed.
    closed: Mutex<TabletTotals>,
    tasks: Mutex<Vec<tokio::task::JoinHandle<()>>>,
    background: Mutex<Option<BackgroundRuntime>>,
    /// The runtime on which stages are applied.
    writing: Mutex<Option<BackgroundRuntime>>,
    applying: tokio::runtime::Handle,
    /// The tablets with which the store was created.
    initial: Vec<(u32, TokenRange)>,
    /// The identity of the store, which no copy shares.
    identity: uuid::Uuid,
}

impl Remote {
    fn new(
        databases: Databases,
        bucket: &Bucket,
        log_store: Option<Arc<dyn ObjectStore>>,
        background: BackgroundRuntime,
        writing: BackgroundRuntime,
        format: &Format,
        identity: uuid::Uuid,
    ) -> Remote {
        let initial = format.tablets.iter().map(|entry| (entry.id, entry.tokens));
        let store = bucket.store.clone();
        Remote {
            follower: databases.config.read_only.then(Follower::default),
            databases,
            origins: Arc::default(),
            store,
            leases: Meta::new(bucket.urgent.clone(), Path::default(), None),
            log_store,
            topic: None,
            requests: bucket.requests.clone(),
            disk_cache: None,
            serving: tokio::runtime::Handle::current(),
            own_log: tokio::sync::Mutex::default(),
            recoveries: Arc::default(),
            logs_of: Mutex::default(),
            former_logs: Mutex::default(),
            events: broadcast::channel(EVENTS_MAX).0,
            changing: Mutex::default(),
            standby: Mutex::default(),
            abandoned: Mutex::default(),
            preparation: OnceLock::new(),
            closed: Mutex::default(),
            tasks: Mutex::default(),
            background: Mutex::new(Some(background)),
            applying: writing.handle.clone(),
            writing: Mutex::new(Some(writing)),
            initial: initial.collect(),
            identity,
        }
    }

    /// Returns the clock that stamps stored entries.
    pub fn clock(&self) -> &StoreClock {
        &self.databases.clock
    }

    pub fn write_timeout(&self) -> std::time::Duration {
        self.databases.config.write_timeout
    }

    /// Returns the shared resources from which tablets are assembled.
    pub fn databases(&self) -> &Databases {
        &self.databases
    }

    /// Returns the object store with the tablets' files, behind the disk cache.
    pub fn tablet_files(&self) -> Arc<dyn ObjectStore> {
        cached(self.store.clone(), self.disk_cache.as_ref(), ReadPolicy::Insert)
    }

    /// Returns the object store of the logs.
    fn log_store(&self) -> &Arc<dyn ObjectStore> {
        self.log_store.as_ref().unwrap_or(&self.store)
    }

    /// Returns the requests to the store's bucket and to the log's since the store was opened.
    pub fn bucket_stats(&self) -> BucketStats {
        self.requests.read()
    }

    pub fn disk_cache_stats(&self) -> Option<DiskCacheStats> {
        self.disk_cache.as_ref().map(|cache| cache.stats())
    }

    pub fn totals_of_closed(&self) -> TabletTotals {
        *self.closed.lock()
    }

    /// Returns the counters of this process's logs since the store was opened.
    pub fn log_stats(&self) -> LogStats {
        let mut stats = *self.former_logs.lock();
        if let Ok(own) = self.own_log.try_lock()
            && let Some(own) = own.as_ref()
        {
            stats.add(&own.log.stats());
        }
        stats
    }

    /// Stops background tasks. Tablets stay as they are.
    pub fn stop(&self) {
        for task in self.tasks.lock().drain(..) {
            task.abort();
        }
    }

    pub async fn close(&self, store: &Store) -> Result<(), StoreError> {
        self.stop();
        self.close_standbys();
        let mut closing = store.tablets();
        if self.follower.is_some() {
            // The tablets of a read-only store have no open databases.
            closing = Arc::default();
        }
        let closing = closing.iter().map(|tablet| store.close_tablet(tablet.id()));
        let results = futures::future::join_all(closing).await;
        let own = self.own_log.lock().await.take();
        if let Some(own) = own {
            own.close().await;
            self.end_log(store, &own).await;
        }
        if let Some(cache) = &self.disk_cache {
            cache.close().await;
        }
        drop(self.writing.lock().take());
        drop(self.background.lock().take());
        results.into_iter().collect()
    }
}

impl Store {
    /// Subscribes to the loss of tablets. A local store sends no events.
    pub fn tablet_events(&self) -> broadcast::Receiver<TabletEvent> {
        match self.remote() {
            Ok(remote) => remote.events.subscribe(),
            Err(_) => broadcast::channel(1).1,
        }
    }

    /// Returns the tablets with which a store in a bucket was created, by id. Empty for other stores.
    pub fn initial_tablets(&self) -> Vec<(u32, TokenRange)> {
        match self.remote() {
            Ok(remote) => remote.initial.clone(),
            Err(_) => Vec::new(),
        }
    }

    /// Returns true for a store in a bucket, which several nodes can share.
    pub fn is_shared(&self) -> bool {
        self.remote().is_ok()
    }

    /// Returns the identity by which nodes recognise a store in a bucket. No copy of the store shares it ([`CopyRestore`]).
    pub fn identity(&self) -> Result<uuid::Uuid, StoreError> {
        Ok(self.remote()?.identity)
    }

    /// Returns the object store of a store in a bucket, below the prefix of its URL.
    pub fn objects(&self) -> Result<Arc<dyn ObjectStore>, StoreError> {
        Ok(self.remote()?.store.clone())
    }

    pub(crate) fn remote(&self) -> Result<&Remote, StoreError> {
        match &self.kind {
            crate::store::StoreKind::Remote(remote) => Ok(remote),
            crate::store::StoreKind::Local(_) | crate::store::StoreKind::Pinned(_) => Err(
                StoreError::InvalidConfig("a store in a local folder has all of its tablets, always".into()),
            ),
        }
    }
}
