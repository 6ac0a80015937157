//! All tablets of a node and their log.

mod figures;

use std::any::Any;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use bytes::Bytes;
use object_store::ObjectStore;
use parking_lot::Mutex;
use slatedb_common::metrics::DefaultMetricsRecorder;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::block_cache::BlockCache;
use crate::books::Books;
use crate::clock::StoreClock;
use crate::config::{StoreConfig, StoreUrl};
use crate::disk::{LocalStore, Space, free_bytes};
use crate::dispatch::tablet_of;
use crate::erase::Eraser;
use crate::error::{StoreError, from_slatedb};
use crate::hooks::Hooks;
use crate::layout::Folders;
use crate::log::{FRAME_LEN_MAX, Log, Waiter, record_len};
use crate::maintenance::Maintenance;
use crate::meta::{Meta, MetaDoc, MetaExpect, MetaStamp, MetaVersion};
use crate::open::{Background, Opener};
use crate::private;
use crate::remote::{self, Bucket, Remote};
use crate::room::Room;
use crate::sealed::Seals;
use crate::tablet::Tablet;
use crate::trace;
use crate::work::{self, nanos};

/// One blind write: `operand` is to be merged into the row at `key`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Op {
    /// The partition's token, which finds the tablet.
    pub token: i64,
    pub key: Bytes,
    pub operand: Bytes,
}

/// Writes that become durable and visible together.
#[derive(Clone, Default)]
pub struct WriteBatch {
    pub ops: Vec<Op>,
    /// Kept until the outcome of the write is known, even when its writer is told before that it is not: a lock under which was read
    /// what the write follows from.
    pub hold: Option<Arc<dyn Any + Send + Sync>>,
    /// Of a store in a bucket: the tablets that were open when was read what the write follows from. It is written to these or, if another process
    /// may have had one of them since, not at all.
    pub tablets: Option<OpenTablets>,
}

/// The tablets that were open at one time, by token range.
pub type OpenTablets = Arc<Vec<Arc<Tablet>>>;

impl WriteBatch {
    pub fn new() -> Self {
        Self::default()
    }

    /// These operations, with nothing that they depend on.
    pub fn of(ops: Vec<Op>) -> Self {
        WriteBatch {
            ops,
            ..Self::default()
        }
    }

    /// Adds a merge. Several of one key are merged in the order in which they were added.
    pub fn merge(&mut self, token: i64, key: Bytes, operand: Bytes) {
        self.ops.push(Op { token, key, operand });
    }

    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }
}

/// The bytes that a permit of the in-flight limit stands for.
pub(crate) const PERMIT_BYTES: usize = 1024;
/// How often a write that waits for room looks at the disk.
const ROOM_POLL: Duration = Duration::from_millis(200);

/// All tablets of the node.
pub struct Store {
    /// Those that are open, by token range.
    pub(crate) tablets: ArcSwap<Vec<Arc<Tablet>>>,
    pub(crate) in_flight: Arc<Semaphore>,
    pub(crate) in_flight_permits: u32,
    pub(crate) meta: Meta,
    pub(crate) metrics: Arc<DefaultMetricsRecorder>,
    pub(crate) block_cache_bytes: u64,
    pub(crate) store_id: uuid::Uuid,
    pub(crate) closed: AtomicBool,
    pub(crate) place: Place,
}

/// What depends on where the store lies.
pub(crate) enum Place {
    Local(Box<Local>),
    Remote(Box<Remote>),
}

/// A store in a folder: one log for all tablets, which are open as long as the store is.
pub(crate) struct Local {
    pub log: Arc<Log>,
    pub space: Arc<Space>,
    pub maintenance: Arc<Maintenance>,
    /// By which what is stored is stamped.
    pub clock: Arc<StoreClock>,
    pub replayed_records: u64,
    pub running: Mutex<Running>,
    /// Keeps other processes out.
    pub _lock: File,
}

/// What is stopped by `close`.
#[derive(Default)]
pub(crate) struct Running {
    pub(crate) log_thread: Option<JoinHandle<()>>,
    pub(crate) drains: Vec<tokio::task::JoinHandle<()>>,
    pub(crate) maintenance: Option<tokio::task::JoinHandle<()>>,
    pub(crate) background: Option<Background>,
    pub(crate) writing: Option<Background>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(maintenance) = self.maintenance.take() {
            maintenance.abort();
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let tablets = self.tablets.load_full();
        match &self.place {
            Place::Local(local) => {
                local.log.close();
                tablets.iter().for_each(|tablet| tablet.stage.close());
            }
            Place::Remote(remote) => remote.stop(),
        }
    }
}

impl Store {
    /// Opens the store, or makes a new one. Call it from the runtime that is to serve reads and writes.
    ///
    /// A store in a folder replays its log, and all of its tablets are open from then on. One in a bucket opens none but with
    /// `open_all_tablets`; see [`Store::open_tablet`].
    pub async fn open(config: StoreConfig, hooks: Arc<dyn Hooks>) -> Result<Arc<Store>, StoreError> {
        config.validate()?;
        match &config.url {
            StoreUrl::File(path) => {
                let root = path.clone();
                Self::open_folder(Folders { root }, config, hooks).await
            }
            StoreUrl::Remote(url) => {
                let bucket = Bucket::connect(url)?;
                remote::open(bucket, config, hooks).await
            }
        }
    }

    async fn open_folder(
        folders: Folders,
        config: StoreConfig,
        hooks: Arc<dyn Hooks>,
    ) -> Result<Arc<Store>, StoreError> {
        let lock = folders.lock()?;
        private::tighten(&folders.root);
        let room = Arc::new(Room::new(&folders.log()));
        room.release_if_full(free_bytes(&folders.root));
        let format = folders.load_format(config.tablet_count, config.fsync)?;
        folders.remove_unfinished();
        let seals = Arc::<Seals>::default();
        let books = Books::open(&folders, &format, &seals, config.fsync)?;
        let log_path = folders.log();

        let space = Arc::new(Space::new(&log_path, config.disk_reserve_bytes, room.clone()));
        let eraser = Eraser::start().map_err(|error| {
            StoreError::Unavailable(format!("cannot start the thread that deletes: {error}"))
        })?;
        let local = LocalStore::open(&folders.root, space.clone(), eraser.clone(), seals, config.fsync)?;
        let object_store: Arc<dyn ObjectStore> = Arc::new(local);
        let opener = Opener {
            clock: Arc::new(StoreClock::new(config.clock.clone())),
            block_cache: BlockCache::new(config.block_cache_bytes),
            metrics: Arc::new(DefaultMetricsRecorder::new()),
            store: object_store.clone(),
            eraser,
            background: Background::start(config.background_threads)?,
            writing: Background::start_writing()?,
            config,
            hooks,
            format,
            books,
            room,
        };
        opener.open(folders, space, lock).await
    }

    /// The tablet that owns a token.
    ///
    /// # Errors
    /// [`StoreError::NotOwned`] if it is not open here; never so on a local store.
    pub fn tablet(&self, token: i64) -> Result<Arc<Tablet>, StoreError> {
        let tablets = self.tablets.load();
        find(&tablets, token).ok_or(StoreError::NotOwned(token))
    }

    /// All tablets that are open, by token range.
    pub fn tablets(&self) -> OpenTablets {
        self.tablets.load_full()
    }

    /// Identifies the store; made with it.
    pub fn store_id(&self) -> uuid::Uuid {
        self.store_id
    }

    /// Keeps the clock by which what is stored is stamped beyond the write timestamps that are given, in microseconds: a node that is started
    /// anew, and the next owner of a tablet in a bucket, go on from there ([`Store::clock_us`]).
    pub fn keep_clock_beyond(&self, stamps_us: Arc<AtomicI64>) {
        self.clock().keep_beyond(stamps_us);
    }

    /// The clock by which what is stored is stamped, in microseconds: beyond every write timestamp that is stored and was given by this node,
    /// before it was started too, or by a former owner of an open tablet.
    pub fn clock_us(&self) -> i64 {
        self.clock().now_ms().saturating_mul(1000)
    }

    /// The highest stamp that was found stored when tablets were opened, in microseconds: beyond every write timestamp that is stored and was
    /// given by a former owner of an open tablet.
    pub fn found_clock_us(&self) -> i64 {
        self.clock().found_ms().saturating_mul(1000)
    }

    fn clock(&self) -> &StoreClock {
        match &self.place {
            Place::Local(local) => &local.clock,
            Place::Remote(remote) => remote.clock(),
        }
    }

    /// How long a write is waited for at most; a local store has no such limit.
    pub fn write_timeout(&self) -> Option<Duration> {
        match &self.place {
            Place::Local(_) => None,
            Place::Remote(remote) => Some(remote.write_timeout()),
        }
    }

    /// How many log records were read when a local store was opened.
    pub fn replayed_records(&self) -> u64 {
        match &self.place {
            Place::Local(local) => local.replayed_records,
            Place::Remote(_) => 0,
        }
    }

    /// Writes the batch, in one or several tablets: all of it or, after a crash or an error, nothing. Returns when it is durable and
    /// seen by reads; with `durable` off it need not be on a local store's disk. A write that was begun goes on when the future is
    /// dropped.
    pub async fn write(&self, mut batch: WriteBatch, durable: bool) -> Result<(), StoreError> {
        if batch.ops.is_empty() {
            return Ok(());
        }
        let late = self.under_archived(&mut batch.ops).await?;
        if !late.is_empty() {
            batch.hold = Some(Arc::new((batch.hold.take(), late)));
        }
        let (size, operands) = self.check(&batch)?;
        let (submitted, result) = match &self.place {
            Place::Local(local) => {
                if local.log.is_obstructed.load(Ordering::Relaxed) {
                    self.refuse_failed(&batch)?;
                }
                let permit = self.permit(local, size).await?;
                let submitted = Instant::now();
                let (sender, receiver) = oneshot::channel();
                let waiter = Waiter {
                    sender,
                    _permit: permit,
                    _hold: batch.hold,
                };
                local.log.submit(batch.ops, durable, waiter);
                (submitted, receiver.await.unwrap_or(Err(StoreError::Closed)))
            }
            Place::Remote(remote) => {
                let submitted = Instant::now();
                (submitted, remote.write(self, batch, size).await)
            }
        };
        account(submitted, operands);
        result
    }

    /// Refuses a write to a tablet that takes none any more.
    fn refuse_failed(&self, batch: &WriteBatch) -> Result<(), StoreError> {
        for op in &batch.ops {
            if let Some(error) = self.tablet(op.token)?.stage.failure() {
                return Err(error);
            }
        }
        Ok(())
    }

    /// The size of a batch as a record, and its number of operations, if it may be written.
    pub(crate) fn check(&self, batch: &WriteBatch) -> Result<(usize, u32), StoreError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        if batch.ops.iter().any(|op| op.key.is_empty()) {
            return Err(StoreError::InvalidConfig("a key must not be empty".into()));
        }
        let size = record_len(&batch.ops);
        let limit = FRAME_LEN_MAX / 2;
        if size > limit {
            return Err(StoreError::TooLarge { size, limit });
        }
        Ok((size, u32::try_from(batch.ops.len()).unwrap_or(u32::MAX)))
    }

    async fn permit(&self, local: &Local, size: usize) -> Result<OwnedSemaphorePermit, StoreError> {
        let permits = self.permits_for(size);
        match self.in_flight.clone().try_acquire_many_owned(permits) {
            Ok(permit) => Ok(permit),
            Err(_) => self.wait_for_room(local, permits).await,
        }
    }

    pub(crate) fn permits_for(&self, size: usize) -> u32 {
        (size.div_ceil(PERMIT_BYTES) as u32).min(self.in_flight_permits)
    }

    /// Waits until writes in flight have ended; waiting for room in memory can be waiting for room on disk.
    async fn wait_for_room(&self, local: &Local, permits: u32) -> Result<OwnedSemaphorePermit, StoreError> {
        trace::step(|| "Waiting until the writes in flight leave room");
        let since = Instant::now();
        let permit = self.poll_for_room(local, permits).await;
        work::count(|work| work.admission_ns += nanos(since.elapsed()));
        permit
    }

    async fn poll_for_room(&self, local: &Local, permits: u32) -> Result<OwnedSemaphorePermit, StoreError> {
        let acquire = self.in_flight.clone().acquire_many_owned(permits);
        let mut acquire = std::pin::pin!(acquire);
        loop {
            local.space.check()?;
            match tokio::time::timeout(ROOM_POLL, acquire.as_mut()).await {
                Ok(permit) => return permit.map_err(|_| StoreError::Closed),
                Err(_) => continue,
            }
        }
    }

    /// Reads a small document.
    pub async fn meta_get(&self, name: &str) -> Result<Option<MetaDoc>, StoreError> {
        self.meta.get(name).await
    }

    /// Replaces a small document, atomically and durably, if `expect` holds; returns its new version.
    pub async fn meta_put(
        &self,
        name: &str,
        content: &[u8],
        expect: MetaExpect,
    ) -> Result<MetaVersion, StoreError> {
        self.meta.put(name, content, expect).await
    }

    /// How the bucket tells that version of a small document, if it is the last one that was read or written here.
    pub fn meta_stamp(&self, name: &str, version: MetaVersion) -> Option<MetaStamp> {
        self.meta.stamp(name, version)
    }

    /// Another process that shares the bucket has read or written that version.
    pub fn meta_learn(&self, name: &str, version: MetaVersion, stamp: MetaStamp) {
        self.meta.learn(name, version, stamp);
    }

    /// The names of all small documents.
    pub async fn meta_list(&self) -> Result<Vec<String>, StoreError> {
        self.meta.list().await
    }

    /// Removes a small document.
    pub async fn meta_delete(&self, name: &str) -> Result<(), StoreError> {
        self.meta.delete(name).await
    }

    /// Writes what is in memory to SSTables, and cuts the log.
    pub async fn flush(&self) -> Result<(), StoreError> {
        for tablet in self.tablets().iter() {
            tablet.flush().await?;
        }
        if let Place::Local(local) = &self.place {
            local.maintenance.trim().await;
        }
        Ok(())
    }

    /// Makes a local store's disk look as if `free` bytes were free; `None` ends it. For tests.
    #[doc(hidden)]
    pub fn simulate_free_disk_bytes(&self, free: Option<u64>) {
        let free = free.and_then(|free| i64::try_from(free).ok()).unwrap_or(-1);
        if let Place::Local(local) = &self.place {
            local.space.simulated_free.store(free, Ordering::Relaxed);
        }
    }

    /// Ends writes, flushes memtables so that the next start has nothing to replay, and releases what the store holds.
    pub async fn close(&self) -> Result<(), StoreError> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        match &self.place {
            Place::Local(local) => local.close(&self.tablets()).await,
            Place::Remote(remote) => remote.close(self).await,
        }
    }
}

impl Local {
    async fn close(&self, tablets: &[Arc<Tablet>]) -> Result<(), StoreError> {
        self.log.close();
        let mut running = std::mem::take(&mut *self.running.lock());
        if let Some(thread) = running.log_thread.take() {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
        self.log.end_segment();
        self.log.note_end();
        for tablet in tablets {
            tablet.stage.close();
        }
        for drain in running.drains.drain(..) {
            let _ = drain.await;
        }
        if let Some(maintenance) = running.maintenance.take() {
            maintenance.abort();
            let _ = maintenance.await;
        }
        let closing = tablets.iter().map(|tablet| async {
            let flushed = tablet.flush().await;
            let closed = tablet.db.close().await.map_err(|error| from_slatedb(&error));
            flushed.and(closed)
        });
        let results = futures::future::join_all(closing).await;
        self.maintenance.trim().await;
        drop(running);
        for result in results {
            match result {
                Ok(()) | Err(StoreError::Closed) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The tablet of a token among `tablets`, which ascend and may leave gaps.
pub(crate) fn find(tablets: &[Arc<Tablet>], token: i64) -> Option<Arc<Tablet>> {
    let tablet = tablets.get(tablet_of(tablets, token))?;
    tablet.token_range().contains(token).then(|| tablet.clone())
}

/// Enters a write into the work of its request.
fn account(submitted: Instant, operands: u32) {
    let written = Instant::now();
    work::count(|work| {
        work.operands = work.operands.saturating_add(operands);
        work.log_ns += nanos(written.saturating_duration_since(submitted));
    });
    if trace::is_recording() {
        trace::step_at(submitted, "Appending to commitlog".into());
        trace::step_at(written, "Commitlog synced; added to memtable".into());
    }
}
