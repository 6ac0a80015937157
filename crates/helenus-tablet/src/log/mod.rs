//! The node's commit log: one sequence of records that all of its tablets share, in files of a folder or in objects of a bucket.
//!
//! Writers append their records to a queue under a lock ([`Log`]). The log thread takes the pending group, has it made durable as one frame by a
//! [`LogAppender`], and hands the group on to be applied ([`Dispatch`]). Many writers thus share one sync or one PUT, and after an error nothing
//! is applied.
//!
//! | log | appended | replayed |
//! |---|---|---|
//! | [`file`] | frames in segment files, each followed by `fdatasync` | when the folder is opened |
//! | [`object`] | one object a frame, by put-if-absent | by the next owner of a tablet, which fences the log first |
//! | [`topic`] | records of a partition, which all replicas in sync have | likewise |
//!
//! A write may follow from earlier ones that are still on their way ([`order`]): it is applied if they are, and refused with them.
//!
//! Segment files are reused: overwriting existing blocks costs the disk half of growing a file. A frame names its segment, so that a frame
//! of the file's former use is not mistaken for a new one. The end of a segment's frames is recorded in the header of its successor; only the
//! newest segment may end in a torn frame.

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
pub(crate) mod writer;

use std::any::Any;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
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
use crate::error::StoreError;
use crate::operation::Op;

/// A writer that waits for its outcome, and its share of the bytes in flight.
pub(crate) struct Waiter {
    pub sender: oneshot::Sender<Result<(), StoreError>>,
    pub _permit: Option<OwnedSemaphorePermit>,
    /// Kept for the writer until the outcome is known.
    pub _hold: Option<Arc<dyn Any + Send + Sync>>,
    /// The write's order among those that it follows from, and those that follow from it.
    pub turn: Option<Arc<dyn WriteTurn>>,
}

impl Waiter {
    /// Returns a writer of nothing, which holds nothing.
    pub fn new(sender: oneshot::Sender<Result<(), StoreError>>) -> Waiter {
        Waiter {
            sender,
            _permit: None,
            _hold: None,
            turn: None,
        }
    }

    pub fn done(self, result: Result<(), StoreError>) {
        self.tell(result);
    }

    /// Answers the writer before its write has ended. The turn is to be kept until then.
    pub fn tell(self, result: Result<(), StoreError>) -> Option<Arc<dyn WriteTurn>> {
        // The writer may have stopped waiting.
        let _ = self.sender.send(result);
        self.turn
    }
}

/// The tablets to which the operations of a write belong.
pub(crate) trait Route: Send + Sync + 'static {
    /// Refuses operations of which one has no tablet that takes writes.
    fn check(&self, ops: &[Op]) -> Result<(), StoreError>;
}

/// A write on its way through the log.
pub(crate) struct Entry<R> {
    pub lsn: u64,
    pub ops: Vec<Op>,
    pub route: R,
    /// False for a write that leaves no record.
    pub is_durable: bool,
    /// True for a write that follows from others.
    pub is_dependent: bool,
    /// `None` once the writer has been told.
    pub waiter: Option<Waiter>,
}

/// What the log thread does between two groups.
pub(crate) type BetweenGroups = Box<dyn FnOnce() + Send>;

/// The writes that wait for the next group commit.
struct PendingGroup<R> {
    /// A frame: room for its header, then records.
    frame: Vec<u8>,
    entries: Vec<Entry<R>>,
    next_lsn: u64,
    /// What the log thread does once it has applied `entries`.
    then: Vec<BetweenGroups>,
    failures: LogFailures,
    /// Why no more writes are taken.
    closed: Option<StoreError>,
    /// The log thread waits for as many writes.
    awaited: usize,
}

/// The log's queue and its books, shared by writers, the log thread and maintenance.
pub(crate) struct Log<R> {
    pending: Mutex<PendingGroup<R>>,
    ready: Condvar,
    /// What it is called in the history; set when it has begun.
    pub id: OnceLock<uuid::Uuid>,
    pub ledger: Arc<Ledger>,
    /// Whether a tablet has refused a record of the log: further writes to it are refused before they are logged.
    pub is_obstructed: AtomicBool,
}

impl<R: Route> Log<R> {
    /// Returns a log that nothing is written to yet.
    pub fn new() -> Arc<Self> {
        Arc::new(Log {
            pending: Mutex::new(PendingGroup {
                frame: writer::empty_frame(),
                entries: Vec::new(),
                next_lsn: 1,
                then: Vec::new(),
                failures: LogFailures::of_new_log(),
                closed: None,
                awaited: 0,
            }),
            ready: Condvar::new(),
            id: OnceLock::new(),
            ledger: Arc::default(),
            is_obstructed: AtomicBool::new(false),
        })
    }

    /// Records from now on have greater numbers than `lsn`.
    pub fn raise_lsn(&self, lsn: u64) {
        let mut pending = self.pending.lock();
        pending.next_lsn = pending.next_lsn.max(lsn + 1);
    }

    /// Queues a write. One that need not be durable keeps its place in the order but leaves no record. A write whose tablets take no writes any
    /// more is refused: what is queued before a tablet is closed comes before the barrier ([`Log::barrier`]) that follows, and nothing after it.
    pub fn submit(&self, ops: Vec<Op>, route: R, durable: bool, waiter: Waiter) {
        let turn = waiter.turn.clone();
        let follows = turn.as_ref().and_then(|turn| turn.follows());
        let mut pending = self.pending.lock();
        let refused = match &pending.closed {
            Some(error) => Some(error.clone()),
            None => route.check(&ops).err(),
        };
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
            self.ready.notify_one();
        }
        if let Some(turn) = turn {
            turn.passed();
        }
    }

    /// Waits until all writes that are queued now have been applied or refused.
    pub async fn barrier(&self, route: R) {
        let (sender, receiver) = oneshot::channel();
        self.submit(Vec::new(), route, false, Waiter::new(sender));
        let _ = receiver.await;
    }

    /// Has the log thread do something at a moment when all writes that are queued now have been applied, and none of later ones. It is dropped if
    /// the log is closed.
    pub fn between_groups(&self, work: BetweenGroups) {
        let mut pending = self.pending.lock();
        if pending.closed.is_none() {
            pending.then.push(work);
            pending.awaited = 0;
            drop(pending);
            self.ready.notify_one();
        }
    }

    /// Refuses the writes that wait for the log.
    pub fn refuse_pending(&self, error: &StoreError) {
        let refused = {
            let mut pending = self.pending.lock();
            pending.failures.add(error);
            pending.frame = writer::empty_frame();
            std::mem::take(&mut pending.entries)
        };
        refuse(refused, error);
    }

    /// Counts a failure of writes that were taken from the queue, and refuses those of the queue that may follow from one of them.
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

    /// Stops taking writes; the log thread ends once it has written what is queued. The first reason stays.
    pub fn close(&self, error: StoreError) {
        self.pending.lock().closed.get_or_insert(error);
        self.ready.notify_one();
    }

    /// Returns true for the log of that place.
    pub fn has(&self, place: WritePlace) -> bool {
        self.pending.lock().failures.are_of_log_of(place)
    }

    /// Why no more writes are taken, if so.
    pub fn closed(&self) -> Option<StoreError> {
        self.pending.lock().closed.clone()
    }

    /// Waits until so many more writes are queued, the log is closed, or the time is over.
    fn wait_for(&self, more: usize, longest: Duration) {
        let until = Instant::now() + longest;
        let mut pending = self.pending.lock();
        let count = pending.entries.len().saturating_add(more);
        while pending.entries.len() < count && pending.closed.is_none() {
            pending.awaited = count;
            if self.ready.wait_until(&mut pending, until).timed_out() {
                break;
            }
        }
        pending.awaited = 0;
    }
}

fn refuse<R>(entries: Vec<Entry<R>>, error: &StoreError) {
    for waiter in entries.into_iter().filter_map(|entry| entry.waiter) {
        waiter.done(Err(error.clone()));
    }
}
