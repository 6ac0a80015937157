//! Writes the memtables of a tablet to an SSTable. SlateDB receives them in one sorted batch, each key once.
//!
//! SlateDB's memtable is filled only to be written at once. It carries the number of the last log record in the batch, so that the next
//! start replays exactly the records that are in no SSTable.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use slatedb::config::{FlushOptions, FlushType, WriteOptions};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::error::{StoreError, from_slatedb};
use crate::stage::Stage;
use crate::tablet::Tablet;
use crate::tablet::pin::TabletCut;
use crate::tree::Tree;

type Waiter = oneshot::Sender<Result<(), StoreError>>;

/// A request for a flush.
enum Request {
    /// A flush of all memtables.
    All(Waiter),
    /// A flush of the cuts that wait to be pinned ([`super::pin`]).
    Moments,
}

/// Percentage of bytes from which a flush is worthwhile after all memtables have been joined. If less is left, most writes were newer
/// versions of the same rows, and memory has room for more of them.
const LEFT_PERCENT: usize = 75;

/// Returns the size at which the memory of a tablet with `memtable_bytes` is joined as a whole. It is half: while one half is flushed, the
/// other fills.
pub(crate) fn join_bytes(memtable_bytes: u64) -> usize {
    (memtable_bytes / 2) as usize
}

/// The flushes of one tablet. One runs at a time ([`run`]).
pub(crate) struct Flushes {
    requests: mpsc::UnboundedSender<Request>,
    received: Mutex<Option<mpsc::UnboundedReceiver<Request>>>,
    /// The cuts to be flushed before any later write. Changed only while `memory` is held.
    cuts: Mutex<VecDeque<TabletCut>>,
    /// True if a flush was requested because memory is full enough, and has not begun.
    is_due: AtomicBool,
    /// Notified when a flush has ended.
    ended: Notify,
    /// Size from which a flush is due after memory has been joined.
    due_bytes: usize,
    /// Size from which no batch is applied.
    full_bytes: usize,
    /// True if batches are applied whatever the size of memory, because the tablet is being closed.
    is_unlimited: AtomicBool,
    /// Lock that is held while memory is changed or frozen.
    pub memory: tokio::sync::Mutex<()>,
}

impl Flushes {
    /// Creates the flushes of a tablet with `memtable_bytes` of memory for rows that are in no SSTable.
    pub fn new(memtable_bytes: u64) -> Flushes {
        let (requests, received) = mpsc::unbounded_channel();
        Flushes {
            requests,
            received: Mutex::new(Some(received)),
            cuts: Mutex::default(),
            is_due: AtomicBool::new(false),
            ended: Notify::new(),
            due_bytes: join_bytes(memtable_bytes) / 100 * LEFT_PERCENT,
            full_bytes: memtable_bytes as usize,
            is_unlimited: AtomicBool::new(false),
            memory: tokio::sync::Mutex::default(),
        }
    }

    /// Requests a flush if it is due. All of memory has been joined, and has `bytes` now.
    pub fn joined(&self, bytes: usize) {
        if bytes >= self.due_bytes && !self.is_due.swap(true, Ordering::AcqRel) {
            let (waiter, _) = oneshot::channel();
            let _ = self.requests.send(Request::All(waiter));
        }
    }

    /// Waits until the memtables have room for the staged writes, or until the stage is closed or has failed.
    pub async fn wait_for_room(&self, stage: &Stage) {
        loop {
            let ended = self.ended.notified();
            let has_room = stage.tree().memory_bytes() < self.full_bytes;
            if has_room
                || self.is_unlimited.load(Ordering::Acquire)
                || stage.is_closed()
                || stage.has_failed()
            {
                return;
            }
            ended.await;
        }
    }

    /// Lets staged writes reach memory even if it is full, so that no thread waits for a flush that cannot succeed.
    pub fn lift_limit(&self) {
        self.is_unlimited.store(true, Ordering::Release);
        self.ended.notify_waiters();
    }

    /// Waits until all current memtables are in SSTables.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let (waiter, flushed) = oneshot::channel();
        self.requests
            .send(Request::All(waiter))
            .map_err(|_| StoreError::Closed)?;
        flushed.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Requests that a cut is pinned before anything later is flushed. The caller holds `memory` since before the cut was frozen.
    pub fn pin(&self, cut: TabletCut) {
        self.cuts.lock().push_back(cut);
        // The request fails only if the tablet is closed. The cut is then dropped with the tablet.
        let _ = self.requests.send(Request::Moments);
    }

    fn next_cut(&self) -> Option<TabletCut> {
        self.cuts.lock().pop_front()
    }
}

/// Runs the requested flushes of a tablet.
pub(crate) async fn run(tablet: Arc<Tablet>) {
    let flushes = &tablet.flushes;
    let Some(mut received) = flushes.received.lock().take() else {
        return;
    };
    // Number of the last record that SlateDB has received.
    let mut given = 0;
    while let Some(request) = received.recv().await {
        let mut waiters = Vec::new();
        let mut next = Some(request);
        while let Some(request) = next {
            if let Request::All(waiter) = request {
                waiters.push(waiter);
            }
            next = received.try_recv().ok();
        }
        if waiters.is_empty() {
            while let Some(cut) = flushes.next_cut() {
                tablet.pin(cut, &mut given).await;
            }
            flushes.ended.notify_waiters();
            continue;
        }
        flushes.is_due.store(false, Ordering::Release);
        let result = tablet.flush_memory(&mut given).await;
        if let Err(error) = &result {
            tracing::error!(tablet = tablet.id(), %error, "the memtables could not be flushed to an SSTable");
            tablet.stage.fail(error.clone());
        }
        flushes.ended.notify_waiters();
        for waiter in waiters {
            let _ = waiter.send(result.clone());
        }
    }
}

impl Tablet {
    async fn flush_memory(&self, given: &mut u64) -> Result<(), StoreError> {
        let tree = loop {
            let memory = self.flushes.memory.lock().await;
            let Some(cut) = self.flushes.next_cut() else {
                break self.stage.freeze();
            };
            drop(memory);
            self.pin(cut, given).await;
        };
        self.flush_tree(tree, given).await
    }

    /// Writes those memtables of a tree to an SSTable that are later than record `given`. `given` becomes the last record of them.
    pub(super) async fn flush_tree(&self, tree: Arc<Tree>, given: &mut u64) -> Result<(), StoreError> {
        if let Some(unflushed) = tree.unflushed(self.model.as_ref(), *given)? {
            let options = WriteOptions {
                seqnum: unflushed.last_seq,
            };
            let written = self
                .db
                .owned()?
                .write_with_options(unflushed.batch, &options)
                .await;
            written.map_err(|error| from_slatedb(&error))?;
            *given = unflushed.last_seq;
        }
        drop(tree);
        self.write_memtable().await?;
        self.see_files();
        Ok(())
    }

    /// Makes SlateDB write its memtable to an SSTable.
    pub(crate) async fn write_memtable(&self) -> Result<(), StoreError> {
        let options = FlushOptions {
            flush_type: FlushType::MemTable,
        };
        let flushed = self.db.owned()?.flush_with_options(options).await;
        flushed.map_err(|error| from_slatedb(&error))
    }
}
