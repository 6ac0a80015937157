//! The log thread: takes the pending group, appends it, syncs once, and hands it on.

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::frame::{FRAME_HEADER_LEN, FrameHeader, SegmentHeader};
use super::segment::{ActiveSegment, BLOCK, Folder, SegmentInfo};
use super::{Entry, Log};
use crate::clock::StoreClock;
use crate::disk::local_store::DiskSpace;
use crate::error::StoreError;
use crate::priority::set_latency_critical;

/// Where a group goes once it is in the log.
pub(crate) trait Dispatch: Send + Sync + 'static {
    fn tablet_count(&self) -> usize;
    fn tablet_of(&self, token: i64) -> usize;
    /// Applies the entries, in order.
    fn apply(&self, entries: Vec<Entry>);
    /// How long to wait before the next group, so that the background can follow.
    fn pause(&self) -> Duration;
    /// The log has moved on to another segment, and may be cut.
    fn rolled(&self);
}

/// A frame without records.
pub(super) fn empty_frame() -> Vec<u8> {
    vec![0; FRAME_HEADER_LEN]
}

/// The largest buffer that is kept for the next group.
const KEPT_BUFFER_MAX: usize = 4 << 20;

struct Writer {
    log: Arc<Log>,
    folder: Folder,
    space: Arc<DiskSpace>,
    clock: Arc<StoreClock>,
    dispatch: Arc<dyn Dispatch>,
    active: Option<ActiveSegment>,
    /// The segment before the next one to be made, and where its frames end.
    previous: (u64, u64),
}

/// Starts the log thread. `previous` is the newest segment found on disk and the end of its valid frames.
pub(crate) fn start(
    log: Arc<Log>,
    folder: Folder,
    space: Arc<DiskSpace>,
    clock: Arc<StoreClock>,
    dispatch: Arc<dyn Dispatch>,
    previous: (u64, u64),
) -> std::io::Result<JoinHandle<()>> {
    let writer = Writer {
        log,
        folder,
        space,
        clock,
        dispatch,
        active: None,
        previous,
    };
    std::thread::Builder::new()
        .name("helenus-log".into())
        .spawn(move || writer.run())
}

impl Writer {
    fn run(mut self) {
        set_latency_critical();
        let mut frame = empty_frame();
        while let Some(entries) = self.take(&mut frame) {
            let result = if frame.len() > FRAME_HEADER_LEN {
                self.commit(&mut frame)
            } else {
                Ok(())
            };
            match result {
                Ok(()) => {
                    self.note(&entries);
                    self.dispatch.apply(entries);
                    self.pause();
                }
                Err(error) => {
                    self.log.counters.failures.fetch_add(1, Ordering::Relaxed);
                    for waiter in entries.into_iter().filter_map(|entry| entry.waiter) {
                        waiter.done(Err(error.clone()));
                    }
                }
            }
            frame.truncate(FRAME_HEADER_LEN);
            frame.shrink_to(KEPT_BUFFER_MAX);
        }
    }

    fn pause(&self) {
        let pause = self.dispatch.pause();
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
    }

    /// Waits for writes and takes all that have gathered; `None` when the log is closed and empty.
    fn take(&self, frame: &mut Vec<u8>) -> Option<Vec<Entry>> {
        let mut pending = self.log.pending.lock();
        while pending.entries.is_empty() {
            if pending.closed {
                return None;
            }
            pending.writer_waits = true;
            self.log.ready.wait(&mut pending);
        }
        std::mem::swap(&mut pending.frame, frame);
        let capacity = pending.entries.len().next_power_of_two().min(1024);
        Some(std::mem::replace(
            &mut pending.entries,
            Vec::with_capacity(capacity),
        ))
    }

    /// Puts a frame into the log and on disk.
    fn commit(&mut self, frame: &mut Vec<u8>) -> Result<(), StoreError> {
        self.space.check()?;
        let frame_len = frame.len();
        self.make_room(frame_len)?;
        let Some(active) = &mut self.active else {
            return Err(StoreError::Closed);
        };
        FrameHeader::finish(frame, active.number, self.clock.now_ms(), active.offset);
        let end = active.offset + frame_len as u64;
        let padded = end.next_multiple_of(BLOCK as u64).min(active.capacity);
        frame.resize((padded - active.offset) as usize, 0);
        let started = Instant::now();
        if let Err(error) = active.file.write_all_at(frame, active.offset) {
            // A partly written frame fails its checksum until the next frame overwrites it.
            return Err(StoreError::io("cannot write", &active.path, &error));
        }
        if self.folder.fsync
            && let Err(error) = active.file.sync_data()
        {
            // The state on disk is unknown: this segment ends at the last successful sync.
            let error = StoreError::io("cannot sync", &active.path, &error);
            self.end_segment();
            return Err(error);
        }
        active.offset = end;
        let counters = &self.log.counters;
        counters.syncs.fetch_add(1, Ordering::Relaxed);
        counters.bytes.fetch_add(frame_len as u64, Ordering::Relaxed);
        counters
            .sync_nanos
            .fetch_add(started.elapsed().as_nanos() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Sees to it that the active segment holds another frame of `frame_len`.
    fn make_room(&mut self, frame_len: usize) -> Result<(), StoreError> {
        if let Some(active) = &self.active {
            if active.offset + frame_len as u64 <= active.capacity {
                return Ok(());
            }
            self.end_segment();
        }
        let (previous_number, previous_end) = self.previous;
        let header = SegmentHeader {
            number: previous_number + 1,
            previous_number,
            previous_end,
            file_len: 0,
        };
        let active = self.folder.create(header, frame_len)?;
        self.log.segments.lock().push(SegmentInfo {
            number: active.number,
            path: active.path.clone(),
            bytes: active.offset,
            last_lsn: vec![0; self.dispatch.tablet_count()],
            active: true,
        });
        self.active = Some(active);
        self.log.note_end();
        self.dispatch.rolled();
        Ok(())
    }

    fn end_segment(&mut self) {
        let Some(active) = self.active.take() else { return };
        self.previous = (active.number, active.offset);
        self.log.end_segment();
    }

    /// Enters a group that is in the log into the books.
    fn note(&self, entries: &[Entry]) {
        let counters = &self.log.counters;
        counters.groups.fetch_add(1, Ordering::Relaxed);
        counters
            .records
            .fetch_add(entries.len() as u64, Ordering::Relaxed);
        let Some(active) = &self.active else { return };
        let mut segments = self.log.segments.lock();
        let Some(info) = segments.last_mut() else { return };
        info.bytes = active.offset;
        for entry in entries {
            for op in &entry.ops {
                if let Some(last) = info.last_lsn.get_mut(self.dispatch.tablet_of(op.token)) {
                    *last = entry.lsn;
                }
            }
        }
    }
}
