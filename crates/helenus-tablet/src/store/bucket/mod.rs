//! A store in a bucket: tablets without a disk of their own, opened and closed while the store runs.
//!
//! A tablet's database keeps its log in the bucket too. Pending writes form a group ([`crate::tablet::group_commit`]). A group is one batch
//! of the database and one object of its log, whose PUT acknowledges it; only then do readers see it. During the PUT the next group forms.
//!
//! A node that opens a tablet fences the former owner: it takes the number of the former owner's next log object, whose PUT then fails. A
//! tablet that finds itself fenced closes itself and reports it ([`TabletEvent`]).
//!
//! A cross-tablet batch first becomes an object of its own ([`batch_log`]), since no log holds all of it.
//!
//! ```text
//! FORMAT            format version, id, the initial tablets, the location of a separate log
//! PLACE             the store's identity and location, see `crate::bucket::store_identity`
//! tablets/<id>/     one SlateDB database for each tablet, its log in wal/
//! batches/<uuid>    cross-tablet batches in progress
//! meta/<name>       small documents, changed by compare-and-set
//! ```
//!
//! The log, `tablets/<id>/wal/` and `batches/`, may lie in a separate store ([`crate::bucket::log_store`]).

mod batch_log;
mod maintenance;
mod migrate;
mod open;
mod reshape;
mod single_node;
mod standby;
mod tablets;
mod write;

use std::sync::Arc;

use hashbrown::HashMap;
use object_store::ObjectStore;
use parking_lot::Mutex;
use tokio::sync::broadcast;

pub use migrate::{Copied, migrate};
pub(crate) use open::open;

use crate::bucket::connection::Bucket;
use crate::bucket::metered_object_store::BucketStats;
use crate::bucket::metered_object_store::Requests;
use crate::clock::StoreClock;
use crate::database::Databases;
use crate::error::StoreError;
use crate::log::stats::{LogCounters, LogStats};
use crate::metadata::format::Format;
use crate::store::Store;
use crate::store::background::BackgroundRuntime;
use crate::tablet::stats::TabletTotals;
use crate::token_range::TokenRange;
use batch_log::BatchLog;

/// A change of a tablet that this process did not request.
#[derive(Debug, Clone)]
pub enum TabletEvent {
    /// It is closed. [`StoreError::Fenced`]: someone else has opened it. With any other error it may help to open it again.
    Lost { id: u32, error: StoreError },
}

/// Events that a slow listener may lag behind.
const EVENTS_MAX: usize = 1024;

/// The parts of a store in a bucket, besides its open tablets.
pub(crate) struct Remote {
    databases: Databases,
    store: Arc<dyn ObjectStore>,
    /// Where the log lies, if not in the store.
    log_store: Option<Arc<dyn ObjectStore>>,
    requests: Arc<Requests>,
    batches: Arc<BatchLog>,
    /// Where requests are served, and groups written.
    serving: tokio::runtime::Handle,
    counters: Arc<LogCounters>,
    events: broadcast::Sender<TabletEvent>,
    /// A tablet is opened or closed by one task at a time.
    changing: Mutex<HashMap<u32, Arc<tokio::sync::Mutex<()>>>>,
    /// Tablets opened before this node owns them.
    standby: Mutex<HashMap<u32, standby::StandbyTablet>>,
    /// How often each tablet was abandoned: an opening begun before that is not served.
    abandoned: Mutex<HashMap<u32, u64>>,
    /// Counters of tablets that have been closed.
    closed: Mutex<TabletTotals>,
    tasks: Mutex<Vec<tokio::task::JoinHandle<()>>>,
    background: Mutex<Option<BackgroundRuntime>>,
    /// The tablets that the store began with.
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
        format: &Format,
        identity: uuid::Uuid,
    ) -> Remote {
        let initial = format.tablets.iter().map(|entry| (entry.id, entry.tokens));
        let store = bucket.store.clone();
        Remote {
            batches: Arc::new(BatchLog::new(log_store.as_ref().unwrap_or(&store).clone())),
            databases,
            store,
            log_store,
            requests: bucket.requests.clone(),
            serving: tokio::runtime::Handle::current(),
            counters: Arc::default(),
            events: broadcast::channel(EVENTS_MAX).0,
            changing: Mutex::default(),
            standby: Mutex::default(),
            abandoned: Mutex::default(),
            closed: Mutex::default(),
            tasks: Mutex::default(),
            background: Mutex::new(Some(background)),
            initial: initial.collect(),
            identity,
        }
    }

    /// The clock that stamps stored entries.
    pub fn clock(&self) -> &StoreClock {
        &self.databases.clock
    }

    pub fn write_timeout(&self) -> std::time::Duration {
        self.databases.config.write_timeout
    }

    /// Where the log lies.
    fn log(&self) -> &Arc<dyn ObjectStore> {
        self.log_store.as_ref().unwrap_or(&self.store)
    }

    /// Requests to the bucket, and to that of the log, since the store was opened.
    pub fn bucket_stats(&self) -> BucketStats {
        self.requests.read()
    }

    pub fn totals_of_closed(&self) -> TabletTotals {
        *self.closed.lock()
    }

    /// The log objects of all tablets since the store was opened.
    pub fn log_stats(&self) -> LogStats {
        self.counters.read()
    }

    /// Stops background tasks; tablets stay as they are.
    pub fn stop(&self) {
        for task in self.tasks.lock().drain(..) {
            task.abort();
        }
    }

    pub async fn close(&self, store: &Store) -> Result<(), StoreError> {
        self.stop();
        self.close_standbys();
        let closing = store.tablets();
        let closing = closing.iter().map(|tablet| store.close_tablet(tablet.id()));
        let results = futures::future::join_all(closing).await;
        drop(self.background.lock().take());
        results.into_iter().collect()
    }
}

impl Store {
    /// Tablets that were lost, as it happens; nothing of a local store.
    pub fn tablet_events(&self) -> broadcast::Receiver<TabletEvent> {
        match self.remote() {
            Ok(remote) => remote.events.subscribe(),
            Err(_) => broadcast::channel(1).1,
        }
    }

    /// The tablets that a store in a bucket began with, by id.
    pub fn initial_tablets(&self) -> Vec<(u32, TokenRange)> {
        match self.remote() {
            Ok(remote) => remote.initial.clone(),
            Err(_) => Vec::new(),
        }
    }

    /// True of a store in a bucket, which several nodes can share.
    pub fn is_shared(&self) -> bool {
        self.remote().is_ok()
    }

    /// The identity by which nodes know a store in a bucket, and which no copy of it shares ([`CopyRestore`]).
    pub fn identity(&self) -> Result<uuid::Uuid, StoreError> {
        Ok(self.remote()?.identity)
    }

    /// The object store of a store in a bucket, below the prefix of its URL.
    pub fn objects(&self) -> Result<Arc<dyn ObjectStore>, StoreError> {
        Ok(self.remote()?.store.clone())
    }

    pub(crate) fn remote(&self) -> Result<&Remote, StoreError> {
        match &self.kind {
            crate::store::StoreKind::Remote(remote) => Ok(remote),
            crate::store::StoreKind::Local(_) => Err(StoreError::InvalidConfig(
                "a store in a local folder has all of its tablets, always".into(),
            )),
        }
    }
}
