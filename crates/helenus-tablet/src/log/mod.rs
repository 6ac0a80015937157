//! The node's commit log: one sequence of records that all of its tablets share, in files of a folder, objects of a bucket, or records of a
//! topic.
//!
//! Writers append their records to a queue under a lock ([`Log`]). The log thread takes the pending group, makes it durable as one frame by
//! a [`LogAppender`], and applies it ([`Dispatch`]). Thus many writers share one sync or one PUT. After an error nothing is applied.
//!
//! | log | appended | replayed |
//! |---|---|---|
//! | [`file`] | frames in segment files, each followed by `fdatasync` | when the folder is opened |
//! | [`object`] | one object a frame, by put-if-absent | by the next owner of a tablet, which fences the log first |
//! | [`topic`] | records of a partition, which all replicas in sync have | likewise |
//!
//! A write may follow from earlier ones that are not yet durable ([`order`]). It is applied if they are, and refused if they are refused.
//!
//! Segment files are reused, because overwriting existing blocks costs the disk half as much as growing a file. A frame names its segment,
//! so frames of the file's earlier use are not mistaken for new ones. The end of a segment's frames is recorded in the header of its
//! successor, so only the newest segment may end in a torn frame.

pub(crate) mod file;
pub(crate) mod frame;
mod high_water_mark;
pub(crate) mod ledger;
pub(crate) mod object;
pub(crate) mod order;
pub(crate) mod replay;
pub(crate) mod segment;
pub(crate) mod stats;
pub(crate) mod topic;
mod wakeup;
pub(crate) mod writer;

use std::any::Any;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

pub use frame::{
    FRAME_LEN_MAX, FrameHeader, LOG_VERSION, Record, SegmentHeader, decode_records, encode_record, record_len,
};
pub(crate) use high_water_mark::{HighWaterMark, LogPosition};
pub(crate) use ledger::{Ledger, SegmentInfo};
pub use order::{WritePlace, WriteTurn};
#[cfg(test)]
pub(crate) use writer::LogAppender;
pub(crate) use writer::{Dispatch, start};

use self::order::LogFailures;
use self::stats::LogStats;
use self::wakeup::Wakeup;
use crate::error::StoreError;
use crate::operation::Op;

/// A writer that waits for the outcome of its write, and its share of the bytes in flight.
pub(crate) struct Waiter {
    pub sender: oneshot::Sender<Result<(), StoreError>>,
    pub _permit: Option<OwnedSemaphorePermit>,
    /// Value that is kept alive until the outcome is known. `None` if there is nothing to keep.
    pub _hold: Option<Arc<dyn Any + Send + Sync>>,
    /// The write's order relative to writes that it follows from or that follow from it. `None` if it has no such order.
    pub turn: Option<Arc<dyn WriteTurn>>,
}

impl Waiter {
    /// Returns a waiter without a permit, a kept value or a turn.
    pub fn new(sender: oneshot::Sender<Result<(), StoreError>>) -> Waiter {
        Waiter {
            sender,
            _permit: None,
            _hold: None,
            turn: None,
        }
    }

    pub fn done(self, result: Result<(), StoreError>) {
        self.notify(result);
    }

    /// Sends the result to the writer before its write has ended. The caller must keep the returned turn until the write has ended.
    pub fn notify(self, result: Result<(), StoreError>) -> Option<Arc<dyn WriteTurn>> {
        // An error is ignored, because the writer may have stopped waiting.
        let _ = self.sender.send(result);
        self.turn
    }
}

/// Routes the operations of a write to tablets.
pub(crate) trait Route: Send + Sync + 'static {
    /// Refuses operations if one of their tablets is not open for writes.
    fn check(&self, ops: &[Op]) -> Result<(), StoreError>;
}

/// A queued write.
pub(crate) struct Entry<R> {
    pub lsn: u64,
    pub ops: Vec<Op>,
    pub route: R,
    /// True if the write leaves a record in the log.
    pub is_durable: bool,
    /// True if the write follows from other writes.
    pub is_dependent: bool,
    /// The waiting writer. `None` once it has been notified.
    pub waiter: Option<Waiter>,
}

/// Work that the log thread does between two groups.
pub(crate) type BetweenGroups = BoxFuture<'static, ()>;

/// Writes that the log thread has taken, and its work after them.
type Taken<R> = (Vec<Entry<R>>, Vec<BetweenGroups>);

/// The writes of the next group commit.
struct PendingGroup<R> {
    /// A frame: space for its header, then records.
    frame: Vec<u8>,
    entries: Vec<Entry<R>>,
    next_lsn: u64,
    /// Work of the log thread after it has applied `entries`.
    between_groups: Vec<BetweenGroups>,
    failures: LogFailures,
    /// Reason why the log is closed. `None` if it takes writes.
    closed: Option<StoreError>,
    /// Number of queued writes at which the log thread is woken. 0 if it is not waiting.
    awaited: usize,
}

/// The log's queue and its ledger, shared by writers, the log thread and maintenance.
pub(crate) struct Log<R> {
    pending: Mutex<PendingGroup<R>>,
    ready: Wakeup,
    /// The id by which the history names this log. Set when the log has begun.
    pub id: OnceLock<uuid::Uuid>,
    pub ledger: Arc<Ledger>,
    /// True if a tablet has refused a record of the log. Further writes to that tablet are refused before they are logged.
    pub is_obstructed: AtomicBool,
}

impl<R: Route> Log<R> {
    /// Returns an empty log.
    pub fn new() -> Arc<Self> {
        Arc::new(Log {
            pending: Mutex::new(PendingGroup {
                frame: writer::empty_frame(),
                entries: Vec::new(),
                next_lsn: 1,
                between_groups: Vec::new(),
                failures: LogFailures::of_new_log(),
                closed: None,
                awaited: 0,
            }),
            ready: Wakeup::new(),
            id: OnceLock::new(),
            ledger: Arc::default(),
            is_obstructed: AtomicBool::new(false),
        })
    }

    /// Ensures that the numbers of later records are greater than `lsn`.
    pub fn raise_lsn(&self, lsn: u64) {
        let mut pending = self.pending.lock();
        pending.next_lsn = pending.next_lsn.max(lsn + 1);
    }

    /// Queues a write. A write that is not `durable` takes its place in the order but leaves no record. A write to a tablet that is closed
    /// for writes is refused. So every accepted write to a tablet is queued before the barrier ([`Log::barrier`]) that follows its closing.
    pub fn submit(&self, ops: Vec<Op>, route: R, durable: bool, waiter: Waiter) {
        let turn = waiter.turn.clone();
        let follows = turn.as_ref().and_then(|turn| turn.follows());
        let mut pending = self.pending.lock();
        let refused = match &pending.closed {
            Some(error) => Some(error.clone()),
            None => route.check(&ops).err(),
        };
        let refused = refused.or_else(|| turn.as_ref()?.refusal());
        let refused = refused.or_else(|| pending.failures.refusal(follows, &ops));
        if let Some(error) = refused {
            drop(pending);
            waiter.done(Err(error));
            return;
        }
        if let Some(turn) = &turn {
            turn.queued(pending.failures.place());
        }
        let lsn = pending.next_lsn;
        pending.next_lsn += 1;
        if durable {
            encode_record(lsn, &ops, &mut pending.frame);
        }
        let waiter = Some(waiter);
        pending.entries.push(Entry {
            lsn,
            ops,
            route,
            is_durable: durable,
            is_dependent: follows.is_some(),
            waiter,
        });
        let wake = pending.awaited > 0 && pending.entries.len() >= pending.awaited;
        if wake {
            pending.awaited = 0;
        }
        drop(pending);
        if wake {
            self.ready.wake();
        }
        if let Some(turn) = turn {
            turn.passed();
        }
    }

    /// Returns the counters of the log, with its queue and its segments.
    pub fn stats(&self) -> LogStats {
        LogStats {
            queued: self.pending.lock().entries.len() as u64,
            ..self.ledger.stats()
        }
    }

    /// Waits until all currently queued writes have been applied or refused.
    pub async fn barrier(&self, route: R) {
        let (sender, receiver) = oneshot::channel();
        self.submit(Vec::new(), route, false, Waiter::new(sender));
        let _ = receiver.await;
    }

    /// Runs work on the log thread after all currently queued writes have been applied, and before any later one. The work is dropped if
    /// the log is closed.
    pub fn between_groups(&self, work: BetweenGroups) {
        let mut pending = self.pending.lock();
        if pending.closed.is_none() {
            pending.between_groups.push(work);
            pending.awaited = 0;
            drop(pending);
            self.ready.wake();
        }
    }

    /// Refuses all queued writes.
    pub fn refuse_pending(&self, error: &StoreError) {
        let refused = {
            let mut pending = self.pending.lock();
            pending.failures.add(error);
            pending.frame = writer::empty_frame();
            std::mem::take(&mut pending.entries)
        };
        refuse(refused, error);
    }

    /// Counts a failure of writes that were taken from the queue, and refuses the queued writes that may follow from one of them.
    pub(super) fn refuse_dependent(&self, error: &StoreError) {
        let refused: Vec<Entry<R>> = {
            let mut pending = self.pending.lock();
            let pending = &mut *pending;
            pending.failures.add(error);
            let refused = pending
                .entries
                .extract_if(.., |entry| entry.is_dependent)
                .collect();
            pending.frame = writer::empty_frame();
            for entry in pending.entries.iter().filter(|entry| entry.is_durable) {
                encode_record(entry.lsn, &entry.ops, &mut pending.frame);
            }
            refused
        };
        refuse(refused, error);
    }

    /// Closes the log for writes. The log thread ends after it has written what is queued. Only the first reason is kept.
    pub fn close(&self, error: StoreError) {
        self.pending.lock().closed.get_or_insert(error);
        self.ready.wake();
    }

    /// Returns true if the place is in this log.
    pub fn has(&self, place: WritePlace) -> bool {
        self.pending.lock().failures.are_of_log_of(place)
    }

    /// Returns the reason why the log is closed. `None` if it takes writes.
    pub fn closed(&self) -> Option<StoreError> {
        self.pending.lock().closed.clone()
    }

    /// Waits for writes, and takes all queued ones with the work to be done after them. `None` if the log is closed and the queue is empty.
    async fn take(&self, frame: &mut Vec<u8>) -> Option<Taken<R>> {
        let is_ready = |pending: &mut PendingGroup<R>| {
            let is_empty = pending.entries.is_empty() && pending.between_groups.is_empty();
            pending.awaited = 1;
            !is_empty || pending.closed.is_some()
        };
        self.ready.wait(&self.pending, is_ready).await;
        let mut pending = self.pending.lock();
        pending.awaited = 0;
        if pending.entries.is_empty() && pending.between_groups.is_empty() {
            return None;
        }
        std::mem::swap(&mut pending.frame, frame);
        let capacity = pending.entries.len().next_power_of_two().min(1024);
        let entries = std::mem::replace(&mut pending.entries, Vec::with_capacity(capacity));
        Some((entries, std::mem::take(&mut pending.between_groups)))
    }

    /// Waits until `more` further writes are queued, the log is closed, or `longest` has passed.
    async fn wait_for(&self, more: usize, longest: Duration) {
        let count = self.pending.lock().entries.len().saturating_add(more);
        let is_ready = |pending: &mut PendingGroup<R>| {
            pending.awaited = count;
            pending.entries.len() >= count || pending.closed.is_some()
        };
        self.ready
            .wait_until(&self.pending, is_ready, Instant::now() + longest)
            .await;
        self.pending.lock().awaited = 0;
    }
}

fn refuse<R>(entries: Vec<Entry<R>>, error: &StoreError) {
    for waiter in entries.into_iter().filter_map(|entry| entry.waiter) {
        waiter.done(Err(error.clone()));
    }
}
