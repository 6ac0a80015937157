//! The node's log: one append-only sequence of segment files that all tablets share.
//!
//! Writers append their records to a queue under a lock. One thread takes the pending group, writes it as one frame, syncs once, and hands
//! the group on to be applied. Many writers thus share one fdatasync, and after an error nothing is applied.
//!
//! Segment files are reused: overwriting existing blocks costs the disk half of growing a file. A frame names its segment, so that a frame
//! of the file's former use is not mistaken for a new one. The end of a segment's frames is recorded in the header of its successor; only the
//! newest segment may end in a torn frame.

pub(crate) mod frame;
mod high_water_mark;
pub(crate) mod replay;
pub(crate) mod segment;
pub(crate) mod stats;
mod writer;

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::{Condvar, Mutex};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

pub use frame::{
    FRAME_LEN_MAX, FrameHeader, LOG_VERSION, Record, SegmentHeader, decode_records, encode_record, record_len,
};
pub(crate) use high_water_mark::{HighWaterMark, LogPosition};
pub(crate) use segment::SegmentInfo;
pub(crate) use writer::{Dispatch, start};

use crate::error::StoreError;
use crate::log::stats::LogCounters;
use crate::operation::Op;

/// A writer that waits for its outcome, and its share of the bytes in flight.
pub(crate) struct Waiter {
    pub sender: oneshot::Sender<Result<(), StoreError>>,
    pub _permit: OwnedSemaphorePermit,
    /// Kept for the writer until the outcome is known.
    pub _hold: Option<Arc<dyn Any + Send + Sync>>,
}

impl Waiter {
    pub fn done(self, result: Result<(), StoreError>) {
        // The writer may have stopped waiting.
        let _ = self.sender.send(result);
    }
}

/// A write on its way through the log.
pub(crate) struct Entry {
    pub lsn: u64,
    pub ops: Vec<Op>,
    /// `None` once the writer has been told.
    pub waiter: Option<Waiter>,
}

/// The writes that wait for the next group commit.
struct PendingGroup {
    /// A frame: room for its header, then records.
    frame: Vec<u8>,
    entries: Vec<Entry>,
    next_lsn: u64,
    closed: bool,
    writer_waits: bool,
}

/// The log's queue and its books, shared by writers, the log thread and maintenance.
pub(crate) struct Log {
    pending: Mutex<PendingGroup>,
    ready: Condvar,
    /// All segments but the one being written, oldest first, then that one.
    pub segments: Mutex<Vec<SegmentInfo>>,
    pub counters: LogCounters,
    /// Where it is noted how far the log has come.
    high_water_mark: Option<HighWaterMark>,
    /// Whether a tablet has refused a record of the log: further writes to it are refused before they are logged.
    pub is_obstructed: AtomicBool,
}

impl Log {
    pub fn new(
        next_lsn: u64,
        segments: Vec<SegmentInfo>,
        high_water_mark: Option<HighWaterMark>,
    ) -> Arc<Self> {
        Arc::new(Log {
            pending: Mutex::new(PendingGroup {
                frame: writer::empty_frame(),
                entries: Vec::new(),
                next_lsn,
                closed: false,
                writer_waits: false,
            }),
            ready: Condvar::new(),
            segments: Mutex::new(segments),
            counters: LogCounters::default(),
            high_water_mark,
            is_obstructed: AtomicBool::new(false),
        })
    }

    /// Queues a write. One that need not be durable keeps its place in the order but leaves no record.
    pub fn submit(&self, ops: Vec<Op>, durable: bool, waiter: Waiter) {
        let mut pending = self.pending.lock();
        if pending.closed {
            drop(pending);
            waiter.done(Err(StoreError::Closed));
            return;
        }
        let lsn = pending.next_lsn;
        pending.next_lsn += 1;
        if durable {
            encode_record(lsn, &ops, &mut pending.frame);
        }
        let waiter = Some(waiter);
        pending.entries.push(Entry { lsn, ops, waiter });
        let wake = std::mem::take(&mut pending.writer_waits);
        drop(pending);
        if wake {
            self.ready.notify_one();
        }
    }

    /// Refuses the writes that wait for the log.
    pub fn refuse_pending(&self, error: &StoreError) {
        let refused = {
            let mut pending = self.pending.lock();
            pending.frame = writer::empty_frame();
            std::mem::take(&mut pending.entries)
        };
        for waiter in refused.into_iter().filter_map(|entry| entry.waiter) {
            waiter.done(Err(error.clone()));
        }
    }

    /// Notes how far the newest segment is on disk.
    pub fn note_end(&self) {
        let Some(high_water_mark) = &self.high_water_mark else {
            return;
        };
        let newest = self.segments.lock().last().map(|segment| LogPosition {
            segment: segment.number,
            offset: segment.bytes,
        });
        if let Some(newest) = newest {
            high_water_mark.note(newest);
        }
    }

    /// Nothing more is written to the newest segment.
    pub fn end_segment(&self) {
        if let Some(newest) = self.segments.lock().last_mut() {
            newest.active = false;
        }
    }

    /// Stops taking writes; the log thread ends once it has written what is queued.
    pub fn close(&self) {
        self.pending.lock().closed = true;
        self.ready.notify_one();
    }
}
