//! Keeps the logs in a bucket short. Flushes the tablets that need old objects, deletes the objects that no tablet needs, and deletes the
//! remains of logs of processes that have ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use object_store::ObjectStore;
use object_store::path::Path;
use slatedb::admin::Admin;

use super::Remote;
use super::node_log::OwnLog;
use super::tablet_logs::TabletLogs;
use crate::error::{StoreError, chain, from_slatedb};
use crate::failure_streak::FailureStreak;
use crate::log::ledger::newest;
use crate::log::object::{LogId, is_fence, numbers};
use crate::metadata::slatedb_layout::tablet_path;
use crate::store::Store;

const INTERVAL: Duration = Duration::from_secs(1);
/// Number of objects above which the tablets that need the oldest are flushed. If this node fails, the next owners of its tablets read all
/// objects while requests wait.
const OBJECTS_MAX: usize = 1024;
/// Minimum time between such flushes. More frequent ones would make more small files than compactions can merge.
const FLUSH_INTERVAL_MIN: Duration = Duration::from_secs(5);
/// Number of objects that are deleted at once, and the time after which fewer are deleted.
const TRIM_OBJECTS: usize = 64;
const TRIM_INTERVAL: Duration = Duration::from_secs(60);
/// Time between two sweeps of the logs of other processes.
const SWEEP_INTERVAL: Duration = Duration::from_secs(600);
/// Maximum number of tablets' documents that are read at the same time.
const READS: usize = 16;
const FIRST_SWEEP: Duration = Duration::from_secs(60);

/// Objects that no tablet needs. They are deleted once a stored object of the log no longer names them.
struct Unneeded {
    log: LogId,
    /// The numbers of the objects.
    numbers: std::ops::Range<u64>,
    /// Number of the newest object when they were found.
    newest: u64,
}

/// The failure streaks of each kind of work.
struct Streaks {
    archiving: FailureStreak,
    trimming: FailureStreak,
    deleting: FailureStreak,
}

impl Streaks {
    fn new() -> Streaks {
        Streaks {
            archiving: FailureStreak::new(
                "the newest part of the log is not in the history yet; trying again",
                "the newest part of the log is in the history again",
            ),
            trimming: FailureStreak::new(
                "the log could not be trimmed; trying again",
                "the log is trimmed again",
            ),
            deleting: FailureStreak::new(
                "objects of the log could not be deleted; trying again",
                "objects of the log are deleted again",
            ),
        }
    }
}

/// Maintains the logs until the store is closed.
pub(super) async fn run(store: Weak<Store>) {
    let mut unneeded: Vec<Unneeded> = Vec::new();
    let (mut trimmed, mut flushed) = (Instant::now(), Instant::now());
    let mut sweep_due = Instant::now() + FIRST_SWEEP;
    let mut streaks = Streaks::new();
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Some(store) = store.upgrade() else { return };
        let Ok(remote) = store.remote() else { return };
        let Some(own) = remote.own_log.lock().await.clone() else {
            continue;
        };
        streaks.archiving.note(&remote.archive_newest(&own).await);
        let is_long = own.log.ledger.segments.lock().len() >= TRIM_OBJECTS;
        if is_long || trimmed.elapsed() >= TRIM_INTERVAL {
            let found = remote.unneeded(&store, &own).await;
            streaks.trimming.note(&found);
            unneeded.extend(found.ok().flatten());
            trimmed = Instant::now();
        }
        streaks
            .deleting
            .note(&remote.delete_unneeded(&own, &mut unneeded).await);
        if flushed.elapsed() >= FLUSH_INTERVAL_MIN && remote.flush_pinning_tablets(&store, &own).await {
            flushed = Instant::now();
        }
        if Instant::now() >= sweep_due {
            if let Err(error) = remote.sweep_logs(&store, &own).await {
                tracing::warn!(%error, "the logs of former processes could not be looked at");
            }
            sweep_due = Instant::now() + SWEEP_INTERVAL;
        }
    }
}

impl Remote {
    /// Removes the oldest objects that no tablet needs from the ledger. `None` if there are none.
    async fn unneeded(&self, store: &Store, own: &OwnLog) -> Result<Option<Unneeded>, StoreError> {
        let tablets = store.tablets();
        let mut flushed: BTreeMap<u32, u64> = tablets
            .iter()
            .map(|tablet| (tablet.id(), tablet.flushed_lsn()))
            .collect();
        let oldest = own.log.ledger.segments.lock().first().cloned();
        for (tablet, last) in oldest.iter().flat_map(|oldest| &oldest.last_lsn) {
            if flushed.get(tablet).is_some_and(|lsn| lsn < last) {
                return Ok(None);
            }
        }
        // The manifest in memory may be newer than the stored one. Only the stored one counts.
        for (tablet, lsn) in &mut flushed {
            *lsn = self.stored_flushed(*tablet).await?;
        }
        self.add_released(own, &mut flushed).await?;
        let is_flushed = |(tablet, last): &(u32, u64)| flushed.get(tablet).is_some_and(|lsn| last <= lsn);
        let mut segments = own.log.ledger.segments.lock();
        let count = segments
            .iter()
            .take_while(|segment| !segment.active && segment.last_lsn.iter().all(is_flushed))
            .count();
        let newest = newest(&segments);
        let removed: Vec<u64> = segments.drain(..count).map(|segment| segment.number).collect();
        let (Some(first), Some(last)) = (removed.first(), removed.last()) else {
            return Ok(None);
        };
        Ok(Some(Unneeded {
            log: own.id,
            numbers: *first..last + 1,
            newest,
        }))
    }

    async fn stored_flushed(&self, tablet: u32) -> Result<u64, StoreError> {
        let admin = Admin::builder(tablet_path(tablet), self.store.clone()).build();
        let manifest = admin.read_manifest(None).await;
        let manifest = manifest.map_err(|error| from_slatedb(&error))?;
        Ok(manifest.map_or(0, |manifest| manifest.replay_after_wal_id()))
    }

    /// Adds the tablets that are not open here and do not need this log.
    async fn add_released(&self, own: &OwnLog, flushed: &mut BTreeMap<u32, u64>) -> Result<(), StoreError> {
        let others: BTreeSet<u32> = {
            let segments = own.log.ledger.segments.lock();
            let tablets = segments.iter().flat_map(|segment| &segment.last_lsn);
            tablets
                .map(|(tablet, _)| *tablet)
                .filter(|tablet| !flushed.contains_key(tablet))
                .collect()
        };
        for tablet in others {
            let logs = TabletLogs::read(&self.store, tablet).await?;
            if logs.logs.iter().all(|span| span.log != own.id) {
                flushed.insert(tablet, u64::MAX);
            }
        }
        Ok(())
    }

    async fn delete_unneeded(&self, own: &OwnLog, unneeded: &mut Vec<Unneeded>) -> Result<(), StoreError> {
        // Objects of a former log are left to the sweep.
        unneeded.retain(|found| found.log == own.id);
        let newest = own.newest();
        // The object after `newest` may have been in flight when the unneeded ones were found. It may still name them.
        let due = unneeded.extract_if(.., |found| found.newest + 1 < newest);
        let due: Vec<Unneeded> = due.collect();
        for found in due {
            self.trim_log(own, found.numbers).await?;
        }
        Ok(())
    }

    pub(super) async fn delete_objects(&self, paths: Vec<Path>) -> Result<(), StoreError> {
        if paths.is_empty() {
            return Ok(());
        }
        let paths = futures::stream::iter(paths.into_iter().map(Ok)).boxed();
        let mut deleted = self.log_store().delete_stream(paths);
        while let Some(result) = deleted.next().await {
            match result {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(StoreError::Unavailable(chain(&error))),
            }
        }
        Ok(())
    }

    /// Flushes the tablets that need the oldest objects, if there are too many. Returns true if there were.
    async fn flush_pinning_tablets(&self, store: &Store, own: &OwnLog) -> bool {
        let pinned: BTreeMap<u32, u64> = {
            let segments = own.log.ledger.segments.lock();
            let bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
            if segments.len() <= OBJECTS_MAX && bytes <= self.databases.config.log_max_bytes {
                return false;
            }
            let half = segments.iter().take(segments.len() / 2);
            half.flat_map(|segment| segment.last_lsn.iter().copied())
                .collect()
        };
        let tablets = store.tablets();
        let pinning = tablets.iter().filter(|tablet| {
            let last = pinned.get(&tablet.id());
            last.is_some_and(|last| tablet.flushed_lsn() < *last)
        });
        let flushes = pinning.map(|tablet| async move {
            if let Err(error) = tablet.flush().await {
                tracing::warn!(tablet = tablet.id(), %error, "a tablet could not be flushed");
            }
        });
        futures::future::join_all(flushes).await;
        true
    }

    /// Deletes the objects of fenced logs that no tablet needs, except their fences.
    ///
    /// The order is important: the fences are looked at before the tablets' documents. A tablet names a log before the log has a record of
    /// it, and a fenced log gets no more records. So if a tablet needs a log that is seen to be fenced, its document already names that
    /// log.
    async fn sweep_logs(&self, store: &Store, own: &OwnLog) -> Result<(), StoreError> {
        let ended = self.ended_logs(own.id).await?;
        if ended.is_empty() {
            return Ok(());
        }
        let needed = self.needed_logs(store).await?;
        for log in ended.into_iter().filter(|log| !needed.contains(log)) {
            self.delete_fenced(log).await?;
        }
        Ok(())
    }

    /// Returns the logs that tablets name in their documents.
    pub(super) async fn needed_logs(&self, store: &Store) -> Result<BTreeSet<LogId>, StoreError> {
        let tablets = store.stored_tablets().await?;
        let reads = futures::stream::iter(tablets).map(|tablet| TabletLogs::read(&self.store, tablet));
        let documents: Vec<TabletLogs> = reads.buffer_unordered(READS).try_collect().await?;
        let spans = documents.iter().flat_map(|document| &document.logs);
        Ok(spans.map(|span| span.log).collect())
    }

    /// Returns the numbers of a log's objects before its fence. Empty if the log is not fenced.
    pub(super) async fn fenced_objects(&self, log: LogId) -> Result<Vec<u64>, StoreError> {
        let mut numbers = numbers(self.log_store().as_ref(), log).await?;
        let Some(last) = numbers.pop() else {
            return Ok(Vec::new());
        };
        if numbers.is_empty() || !is_fence(self.log_store().as_ref(), log, last).await? {
            return Ok(Vec::new());
        }
        Ok(numbers)
    }

    /// Fences the log of this process, which has ended, and deletes its objects if no tablet needs them.
    pub(super) async fn end_log(&self, store: &Store, own: &Arc<OwnLog>) {
        let ended = async {
            self.fence(own.id).await?;
            match self.needed_logs(store).await?.contains(&own.id) {
                true => Ok(()),
                false => self.delete_fenced(own.id).await,
            }
        };
        let ended: Result<(), StoreError> = ended.await;
        if let Err(error) = ended {
            tracing::debug!(log = %own.id, %error, "the log was not ended in order");
        }
    }
}
