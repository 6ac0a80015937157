//! All tablets of a node, and the writes to them.

mod assemble;
mod background;
pub(crate) mod bucket;
pub(crate) mod cut;
mod dispatch;
mod forced_compaction;
pub(crate) mod history;
mod late_writes;
pub(crate) mod local;
mod origins;
pub(crate) mod pinned;
mod statistics;
pub(crate) mod stats;
pub(crate) mod unfinished_batches;
pub(crate) mod write_batch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use slatedb_common::metrics::DefaultMetricsRecorder;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::boxed;
use crate::bucket::connection::Bucket;
use crate::cache::row_cache::RowCache;
use crate::clock::StoreClock;
use crate::compaction::CompactionHistory;
use crate::config::{StoreConfig, StoreUrl};
use crate::data_model::DataModel;
use crate::error::StoreError;
use crate::log::{FRAME_LEN_MAX, Waiter, WritePlace, WriteTurn, record_len};
use crate::measurement::{self, nanos};
use crate::metadata::documents::{Meta, MetaDoc, MetaExpect, MetaStamp, MetaVersion};
use crate::metadata::folders::Folders;
use crate::operation::Op;
use crate::store::bucket::Remote;
use crate::store::local::Local;
use crate::store::pinned::Pinned;
use crate::store::write_batch::WriteBatch;
use crate::tablet::origins::Origins;
use crate::tablet::{NodeLog, OpenTablets, Tablet, find};
use crate::trace;

/// Bytes of in-flight writes for each permit.
pub(crate) const PERMIT_BYTES: usize = 1024;
/// Time between two checks of the disk by a write that waits for room.
const ROOM_POLL: Duration = Duration::from_millis(200);

/// All tablets of a node.
pub struct Store {
    /// The open tablets, by token range.
    pub(crate) tablets: ArcSwap<Vec<Arc<Tablet>>>,
    pub(crate) in_flight: Arc<Semaphore>,
    pub(crate) in_flight_permits: u32,
    pub(crate) meta: Meta,
    pub(crate) metrics: Arc<DefaultMetricsRecorder>,
    pub(crate) row_cache: Arc<RowCache>,
    pub(crate) block_cache_bytes: u64,
    pub(crate) store_id: uuid::Uuid,
    pub(crate) compaction_history: Arc<CompactionHistory>,
    /// The origins of tables, shared with the tablets.
    pub(crate) origins: Arc<Origins>,
    pub(crate) closed: AtomicBool,
    pub(crate) kind: StoreKind,
}

/// The part of a store that depends on its location.
pub(crate) enum StoreKind {
    Local(Box<Local>),
    Remote(Box<Remote>),
    /// Tablets of another store, pinned at one cut.
    Pinned(Box<Pinned>),
}

impl Drop for Store {
    fn drop(&mut self) {
        let tablets = self.tablets.load_full();
        match &self.kind {
            StoreKind::Local(local) => {
                local.log.close(StoreError::Closed);
                tablets.iter().for_each(|tablet| tablet.stage.close());
            }
            StoreKind::Remote(remote) => remote.stop(),
            StoreKind::Pinned(_) => {}
        }
    }
}

impl Store {
    /// Opens the store, or creates a new one. Must be called on the runtime that is to serve reads and writes.
    ///
    /// A store in a folder replays its log and opens all of its tablets. A store in a bucket opens none, except with `open_all_tablets`;
    /// see [`Store::open_tablet`].
    #[boxed]
    pub async fn open(config: StoreConfig, model: Arc<dyn DataModel>) -> Result<Arc<Store>, StoreError> {
        config.validate()?;
        match &config.url {
            StoreUrl::File(path) => {
                let root = path.clone();
                local::open(Folders { root }, config, model).await
            }
            StoreUrl::Remote(url) => {
                let bucket = Bucket::connect(url)?;
                bucket.requests.limit_bandwidth(&config.throttles.bucket);
                match config.read_only {
                    false => bucket::open(bucket, config, model).await,
                    true => bucket::open_read_only(bucket, config, model).await,
                }
            }
        }
    }

    /// Returns the tablet that owns a token.
    ///
    /// # Errors
    /// [`StoreError::NotOwned`] if the tablet is not open here. A local store never returns it.
    pub fn tablet(&self, token: i64) -> Result<Arc<Tablet>, StoreError> {
        let tablets = self.tablets.load();
        find(&tablets, token).cloned().ok_or(StoreError::NotOwned(token))
    }

    /// Returns all open tablets, by token range.
    pub fn tablets(&self) -> OpenTablets {
        self.tablets.load_full()
    }

    /// Returns the id of the store, which is fixed when the store is created.
    pub fn store_id(&self) -> uuid::Uuid {
        self.store_id
    }

    /// Keeps the store clock, which stamps stored entries, beyond the given write timestamps in microseconds. After a restart, and on the
    /// next owner of a tablet in a bucket, timestamps continue from there ([`Store::clock_us`]).
    pub fn keep_clock_beyond(&self, stamps_us: Arc<AtomicI64>) {
        self.clock().keep_beyond(stamps_us);
    }

    /// Returns the time of the store clock in microseconds. It is beyond every stored write timestamp of this node, also from before a
    /// restart, and of former owners of open tablets.
    pub fn clock_us(&self) -> i64 {
        self.clock().now_ms().saturating_mul(1000)
    }

    /// Returns the highest stored stamp found when tablets were opened, in microseconds. It is beyond every stored write timestamp of
    /// former owners of open tablets.
    pub fn found_clock_us(&self) -> i64 {
        self.clock().found_ms().saturating_mul(1000)
    }

    /// Returns the latest time of a commit since the last call, in ms of the machine's clock. Commits of this process and of replayed logs
    /// count. `None` if there was no commit.
    pub fn take_latest_commit_ms(&self) -> Option<i64> {
        self.clock().take_latest_commit_ms()
    }

    fn clock(&self) -> &StoreClock {
        match &self.kind {
            StoreKind::Local(local) => &local.clock,
            StoreKind::Remote(remote) => remote.clock(),
            StoreKind::Pinned(pinned) => &pinned.clock,
        }
    }

    /// Returns the maximum time that a write is waited for. `None` for a local store, which has no such limit.
    pub fn write_timeout(&self) -> Option<Duration> {
        match &self.kind {
            StoreKind::Local(_) | StoreKind::Pinned(_) => None,
            StoreKind::Remote(remote) => Some(remote.write_timeout()),
        }
    }

    /// Returns the number of log records that were read when a local store was opened.
    pub fn replayed_records(&self) -> u64 {
        match &self.kind {
            StoreKind::Local(local) => local.replayed_records,
            StoreKind::Remote(_) | StoreKind::Pinned(_) => 0,
        }
    }

    /// Writes the batch, in one or several tablets: all of it or, after a crash or an error, nothing. Waits until the batch is durable and
    /// visible to reads. If `durable` is false, it need not be on a local store's disk. A write that was begun continues if the future is
    /// dropped.
    pub async fn write(&self, batch: WriteBatch, durable: bool) -> Result<(), StoreError> {
        self.write_followed(batch, durable, std::future::ready(())).await
    }

    /// Writes the batch like [`Store::write`]. If the caller gets an unknown outcome and the batch is written after all, `late` runs in the
    /// background. It does the work that must follow the batch and that the caller does otherwise.
    pub async fn write_followed(
        &self,
        mut batch: WriteBatch,
        durable: bool,
        late: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), StoreError> {
        if batch.ops.is_empty() {
            return Ok(());
        }
        self.check_writable()?;
        let late_writes = self.apply_archived_tombstones(&mut batch.ops).await?;
        if !late_writes.is_empty() {
            batch.hold = Some(Arc::new((batch.hold.take(), late_writes)));
        }
        let (size, operands) = self.check(&batch)?;
        let tablets = batch.tablets.unwrap_or_else(|| self.tablets());
        let log = log_of(&tablets, &batch.ops)?;
        if log.is_obstructed.load(Ordering::Relaxed) {
            refuse_failed(&tablets, &batch.ops)?;
        }
        let deadline = self.write_timeout().map(Deadline::after);
        let permit = self.permit(size, deadline).await?;
        let submitted = Instant::now();
        let (sender, mut receiver) = oneshot::channel();
        let waiter = Waiter {
            sender,
            _permit: Some(permit),
            _hold: batch.hold,
            turn: batch.turn,
        };
        log.submit(batch.ops, tablets, durable || self.is_shared(), waiter);
        let result = outcome(&mut receiver, deadline).await;
        record_write_stats(submitted, operands);
        result.unwrap_or_else(|undecided| {
            tokio::spawn(async move {
                if let Ok(Ok(())) = receiver.await {
                    late.await;
                }
            });
            Err(undecided)
        })
    }

    /// Waits until the write at `place`, and all that it follows from, are durable and visible to reads.
    ///
    /// # Errors
    /// One of them has failed, or may have failed.
    pub async fn confirm(&self, place: WritePlace) -> Result<(), StoreError> {
        let log = {
            let tablets = self.tablets.load();
            let found = tablets.iter().find(|tablet| tablet.log.has(place));
            found.ok_or(StoreError::NotOwned(0))?.log.clone()
        };
        let (sender, mut receiver) = oneshot::channel();
        let waiter = Waiter {
            turn: Some(Arc::new(After(place))),
            ..Waiter::new(sender)
        };
        log.submit(Vec::new(), OpenTablets::default(), false, waiter);
        let deadline = self.write_timeout().map(Deadline::after);
        outcome(&mut receiver, deadline).await.unwrap_or_else(Err)
    }

    /// Checks that operations together are not larger than a record of the log may be. Returns their size.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`].
    pub fn check_size(&self, ops: &[Op]) -> Result<usize, StoreError> {
        let size = record_len(ops);
        let limit = FRAME_LEN_MAX / 2;
        match size <= limit {
            true => Ok(size),
            false => Err(StoreError::TooLarge { size, limit }),
        }
    }

    /// Checks that a batch may be written. Returns its size as a record, and its number of operations.
    pub(crate) fn check(&self, batch: &WriteBatch) -> Result<(usize, u32), StoreError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        if batch.ops.iter().any(|op| op.key.is_empty()) {
            return Err(StoreError::InvalidConfig("a key must not be empty".into()));
        }
        let size = self.check_size(&batch.ops)?;
        Ok((size, u32::try_from(batch.ops.len()).unwrap_or(u32::MAX)))
    }

    async fn permit(
        &self,
        size: usize,
        deadline: Option<Deadline>,
    ) -> Result<OwnedSemaphorePermit, StoreError> {
        let permits = (size.div_ceil(PERMIT_BYTES) as u32).min(self.in_flight_permits);
        if let Ok(permit) = self.in_flight.clone().try_acquire_many_owned(permits) {
            return Ok(permit);
        }
        trace::step(|| "Waiting until the writes in flight leave room");
        let since = Instant::now();
        // Boxed, so that the futures of other writes stay small.
        let permit = Box::pin(self.wait_for_room(permits, deadline)).await;
        measurement::count(|store| store.admission_ns += nanos(since.elapsed()));
        permit
    }

    /// Waits until writes in flight have ended. If memory is full because the disk is, this fails with the disk's error.
    async fn wait_for_room(
        &self,
        permits: u32,
        deadline: Option<Deadline>,
    ) -> Result<OwnedSemaphorePermit, StoreError> {
        let acquire = self.in_flight.clone().acquire_many_owned(permits);
        let mut acquire = std::pin::pin!(acquire);
        loop {
            if let StoreKind::Local(local) = &self.kind {
                local.space.check()?;
            }
            if let Some(deadline) = deadline
                && Instant::now() >= deadline.at
            {
                return Err(StoreError::Overloaded(deadline.whole.as_millis() as u64));
            }
            match tokio::time::timeout(ROOM_POLL, acquire.as_mut()).await {
                Ok(permit) => return permit.map_err(|_| StoreError::Closed),
                Err(_) => continue,
            }
        }
    }

    /// Reads a small document.
    #[boxed]
    pub async fn meta_get(&self, name: &str) -> Result<Option<MetaDoc>, StoreError> {
        self.meta.get(name).await
    }

    /// Returns true if a small document may differ from the version that was last read or written. The check is cheaper than reading the
    /// document.
    #[boxed]
    pub async fn meta_may_differ(&self, name: &str) -> Result<bool, StoreError> {
        self.meta.may_differ(name).await
    }

    /// Replaces a small document, atomically and durably, if `expect` holds. Returns its new version.
    #[boxed]
    pub async fn meta_put(
        &self,
        name: &str,
        content: &[u8],
        expect: MetaExpect,
    ) -> Result<MetaVersion, StoreError> {
        self.check_writable()?;
        self.meta.put(name, content, expect).await
    }

    /// Reads a small document with a lease. In a bucket, such documents use connections of their own, so that they are not delayed by reads
    /// of logs and tables.
    #[boxed]
    pub async fn lease_get(&self, name: &str) -> Result<Option<MetaDoc>, StoreError> {
        self.leases().get(name).await
    }

    /// Replaces a small document with a lease, as [`Store::meta_put`] does.
    #[boxed]
    pub async fn lease_put(
        &self,
        name: &str,
        content: &[u8],
        expect: MetaExpect,
    ) -> Result<MetaVersion, StoreError> {
        self.check_writable()?;
        self.leases().put(name, content, expect).await
    }

    fn leases(&self) -> &Meta {
        match &self.kind {
            StoreKind::Remote(remote) => &remote.leases,
            StoreKind::Local(_) | StoreKind::Pinned(_) => &self.meta,
        }
    }

    /// Returns the bucket's stamp of a version of a small document. `None` if it is not the version that was last read or written here.
    pub fn meta_stamp(&self, name: &str, version: MetaVersion) -> Option<MetaStamp> {
        self.meta.stamp(name, version)
    }

    /// Records that another process that shares the bucket has read or written this version.
    pub fn meta_note_version(&self, name: &str, version: MetaVersion, stamp: MetaStamp) {
        self.meta.note_version(name, version, stamp);
    }

    /// Returns the names of all small documents.
    #[boxed]
    pub async fn meta_list(&self) -> Result<Vec<String>, StoreError> {
        self.meta.list().await
    }

    /// Removes a small document.
    #[boxed]
    pub async fn meta_delete(&self, name: &str) -> Result<(), StoreError> {
        self.check_writable()?;
        self.meta.delete(name).await
    }

    /// Writes staged rows and memtables to SSTables, and trims the log.
    #[boxed]
    pub async fn flush(&self) -> Result<(), StoreError> {
        self.check_writable()?;
        for tablet in self.tablets().iter() {
            tablet.flush().await?;
        }
        if let StoreKind::Local(local) = &self.kind {
            // A failure is logged by maintenance, which tries again.
            let _ = local.maintenance.trim().await;
        }
        Ok(())
    }

    /// Makes a local store's disk appear to have `free` bytes free. `None` ends this. For tests.
    #[doc(hidden)]
    pub fn simulate_free_disk_bytes(&self, free: Option<u64>) {
        if let StoreKind::Local(local) = &self.kind {
            local.space.simulate_free(free);
        }
    }

    /// Ends writes, flushes memtables so that the next start has nothing to replay, and releases all resources.
    #[boxed]
    pub async fn close(&self) -> Result<(), StoreError> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        match &self.kind {
            StoreKind::Local(local) => local.close(&self.tablets()).await,
            StoreKind::Remote(remote) => remote.close(self).await,
            StoreKind::Pinned(_) => Ok(()),
        }
    }
}

/// The turn of an empty write that waits for the writes of a place.
struct After(WritePlace);

impl WriteTurn for After {
    fn follows(&self) -> Option<WritePlace> {
        Some(self.0)
    }

    fn queued(&self, _place: WritePlace) {}

    fn passed(&self) {}
}

/// Waits for the outcome of a write that was queued.
///
/// # Errors
/// The outcome is not known at the deadline. The receiver may still get it later.
async fn outcome(
    receiver: &mut oneshot::Receiver<Result<(), StoreError>>,
    deadline: Option<Deadline>,
) -> Result<Result<(), StoreError>, StoreError> {
    let Some(deadline) = deadline else {
        return Ok(receiver.await.unwrap_or(Err(StoreError::Closed)));
    };
    match tokio::time::timeout_at(deadline.at.into(), receiver).await {
        Ok(outcome) => Ok(outcome.unwrap_or(Err(StoreError::Unknown("the log is gone".to_owned())))),
        Err(_) => Err(deadline.unknown()),
    }
}

/// Time until which the outcome of a write is waited for.
#[derive(Clone, Copy)]
struct Deadline {
    at: Instant,
    whole: Duration,
}

impl Deadline {
    fn after(whole: Duration) -> Deadline {
        Deadline {
            at: Instant::now() + whole,
            whole,
        }
    }

    fn unknown(&self) -> StoreError {
        let ms = self.whole.as_millis();
        StoreError::Unknown(format!("the object store did not confirm it within {ms} ms"))
    }
}

/// Returns the log of the tablets of some operations.
///
/// # Errors
/// [`StoreError::NotOwned`] if an operation has no tablet. Also if the tablets have different logs, because one was fenced since.
fn log_of(tablets: &[Arc<Tablet>], ops: &[Op]) -> Result<Arc<NodeLog>, StoreError> {
    let mut log: Option<&Arc<NodeLog>> = None;
    for op in ops {
        let tablet = find(tablets, op.token).ok_or(StoreError::NotOwned(op.token))?;
        if !Arc::ptr_eq(log.get_or_insert(&tablet.log), &tablet.log) {
            return Err(StoreError::NotOwned(op.token));
        }
    }
    log.cloned().ok_or(StoreError::Closed)
}

/// Refuses a write to a tablet that takes no more writes.
fn refuse_failed(tablets: &[Arc<Tablet>], ops: &[Op]) -> Result<(), StoreError> {
    let failures = ops
        .iter()
        .filter_map(|op| find(tablets, op.token)?.stage.failure());
    failures.map(Err).next().unwrap_or(Ok(()))
}

/// Counts a write in the measurement of its request.
fn record_write_stats(submitted: Instant, operands: u32) {
    let written = Instant::now();
    measurement::count(|store| {
        store.operands = store.operands.saturating_add(operands);
        store.log_ns += nanos(written.saturating_duration_since(submitted));
    });
    if trace::is_recording() {
        trace::step_at(submitted, "Appending to commitlog".into());
        trace::step_at(written, "Commitlog synced; added to memtable".into());
    }
}

/// Returns the permits for `write_in_flight_bytes`.
pub(crate) fn in_flight_permits(config: &StoreConfig) -> u32 {
    u32::try_from(config.write_in_flight_bytes / PERMIT_BYTES as u64)
        .unwrap_or(u32::MAX)
        .clamp(1, 1 << 28)
}
