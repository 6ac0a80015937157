//! Appends frames to segment files.

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use tokio::sync::Notify;

use super::frame::{FrameHeader, SegmentHeader};
use super::ledger::{Ledger, SegmentInfo};
use super::segment::{ActiveSegment, BLOCK, Folder};
use super::writer::LogAppender;
use crate::clock::StoreClock;
use crate::disk::local_store::DiskSpace;
use crate::error::StoreError;

/// Appends frames to the newest segment of a folder.
pub(crate) struct FileAppender {
    pub ledger: Arc<Ledger>,
    pub folder: Folder,
    pub space: Arc<DiskSpace>,
    pub clock: Arc<StoreClock>,
    /// Notified when the log has begun another segment, so that earlier ones may be trimmed.
    pub rolled: Arc<Notify>,
    pub active: Option<ActiveSegment>,
    /// The number of the last closed segment, and the end of its frames.
    pub previous: (u64, u64),
}

#[async_trait]
impl LogAppender for FileAppender {
    async fn append(&mut self, frame: &mut Vec<u8>) -> Result<u64, StoreError> {
        self.space.check()?;
        let frame_len = frame.len();
        self.make_room(frame_len)?;
        let Some(active) = &mut self.active else {
            return Err(StoreError::Closed);
        };
        FrameHeader::finish(frame, active.number, self.clock.commit_time(), active.offset);
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
            // After a failed sync the state on disk is unknown, so this segment ends at the last successful sync.
            let error = StoreError::io("cannot sync", &active.path, &error);
            self.end_segment();
            return Err(error);
        }
        active.offset = end;
        self.ledger.counters.add_sync(frame_len as u64, started.elapsed());
        Ok(end)
    }
}

impl FileAppender {
    /// Ensures that the active segment has space for a frame of `frame_len` bytes. Begins another segment if necessary.
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
        self.ledger
            .begin_segment(SegmentInfo::new(active.number, active.offset));
        self.active = Some(active);
        self.ledger.note_end();
        self.rolled.notify_one();
        Ok(())
    }

    fn end_segment(&mut self) {
        let Some(active) = self.active.take() else { return };
        self.previous = (active.number, active.offset);
        self.ledger.end_segment();
    }
}
