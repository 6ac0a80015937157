//! Reads the log of one epoch from a partition.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use uuid::Uuid;

use super::client::{TopicClient, TopicError, TopicRecord};
use super::format::{LogPlace, Part, RecordKey};
use crate::error::StoreError;
use crate::log::frame::{FrameHeader, decode_records};
use crate::log::object::Group;

/// Time without progress after which reading fails, and the pause between two tries.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(20);

/// A complete frame, and the offset of its first part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredFrame {
    pub number: u64,
    pub offset: i64,
    pub bytes: Vec<u8>,
}

/// Assembles the frames of a log from the records of its partition, in their order.
pub(super) struct LogReader {
    store: Uuid,
    epoch: u64,
    /// The last part that was taken. `None` at the beginning.
    last: Option<Part>,
    /// The frame whose last part has not been taken yet. `None` if there is no such frame.
    open: Option<StoredFrame>,
    pub frames: Vec<StoredFrame>,
    /// The offset of the record that ends the log. `None` if the log has not ended.
    pub end: Option<i64>,
    /// True if the partition has a later log, which was begun when no tablet needed this one.
    pub is_succeeded: bool,
    /// The id of another store that has records in the partition. `None` if there is none.
    pub stranger: Option<Uuid>,
    /// The first part that does not follow its predecessor, because a record before it is missing. `None` if there is no gap.
    pub gap: Option<Part>,
}

impl LogReader {
    pub fn new(store: Uuid, epoch: u64) -> LogReader {
        LogReader {
            store,
            epoch,
            last: None,
            open: None,
            frames: Vec::new(),
            end: None,
            is_succeeded: false,
            stranger: None,
            gap: None,
        }
    }

    /// Takes the next record of the partition.
    pub fn take(&mut self, offset: i64, record: &TopicRecord) {
        let Some(key) = RecordKey::decode(&record.key) else {
            return;
        };
        if key.store != self.store {
            self.stranger = Some(key.store);
            return;
        }
        self.is_succeeded |= key.part.is_some() && key.epoch > self.epoch;
        if self.end.is_some() || key.epoch < self.epoch {
            return;
        }
        if key.ends(self.epoch) {
            self.end = Some(offset);
            return;
        }
        if let Some(part) = key.part {
            self.take_part(offset, part, &record.value);
        }
    }

    fn take_part(&mut self, offset: i64, part: Part, value: &[u8]) {
        // The part was taken already, and this record is a later try of it.
        if self.last.is_some_and(|last| part <= last) {
            return;
        }
        let follows = match self.last {
            None => part.index == 0,
            Some(last) if last.index + 1 == last.count => part.frame == last.frame + 1 && part.index == 0,
            Some(last) => (part.frame, part.index, part.count) == (last.frame, last.index + 1, last.count),
        };
        if !follows {
            self.gap.get_or_insert(part);
            return;
        }
        self.last = Some(part);
        let mut frame = self.open.take().unwrap_or(StoredFrame {
            number: part.frame,
            offset,
            bytes: Vec::new(),
        });
        frame.bytes.extend_from_slice(value);
        match part.index + 1 == part.count {
            true => self.frames.push(frame),
            false => self.open = Some(frame),
        }
    }
}

/// Passes all records of the partition before offset `until` to `take`. Waits for records that are not readable yet.
pub(super) async fn read_until(
    client: &dyn TopicClient,
    partition: u32,
    until: i64,
    mut take: impl FnMut(i64, &TopicRecord),
) -> Result<(), StoreError> {
    let mut next = retried(|| client.bounds(partition)).await?.start;
    let mut progress = Instant::now();
    while next < until {
        match client.fetch(partition, next).await {
            Ok(records) if !records.is_empty() => {
                for (offset, record) in records.into_iter().take_while(|(offset, _)| *offset < until) {
                    take(offset, &record);
                    next = offset + 1;
                }
                progress = Instant::now();
                continue;
            }
            // The records at this offset were deleted since, so reading continues at the new start.
            Err(TopicError::OutOfRange) => {
                let first = retried(|| client.bounds(partition)).await?.start;
                if first > next {
                    next = first;
                    continue;
                }
            }
            Err(error) if progress.elapsed() > PATIENCE => return Err(error.into()),
            Ok(_) | Err(_) => {}
        }
        if progress.elapsed() > PATIENCE {
            return Err(StoreError::Unavailable(format!(
                "partition {partition} of the log's topic: the record at offset {next} cannot be read"
            )));
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Retries an idempotent request until it succeeds or [`PATIENCE`] is over.
pub(super) async fn retried<T, F>(mut request: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, TopicError>>,
{
    let began = Instant::now();
    loop {
        match request().await {
            Ok(answer) => return Ok(answer),
            Err(error) if began.elapsed() > PATIENCE => return Err(error.into()),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

pub(super) fn corrupt(place: LogPlace, frame: u64, detail: &str) -> StoreError {
    StoreError::Corrupt {
        file: format!(
            "partition {} of the log's topic, epoch {}, frame {frame}",
            place.partition, place.epoch
        ),
        detail: detail.to_owned(),
    }
}

/// Decodes the group commit in a frame.
pub(super) fn group(place: LogPlace, frame: StoredFrame) -> Result<(u64, Group), StoreError> {
    let damaged = || corrupt(place, frame.number, "the frame does not match its checksum");
    let bytes = Bytes::from(frame.bytes);
    let (header, body) = FrameHeader::decode(&bytes, frame.number).ok_or_else(damaged)?;
    let group = Group {
        first: header.durable_offset,
        time_ms: header.time_ms,
        machine_ms: header.machine_ms(),
        records: decode_records(bytes.slice_ref(body)).ok_or_else(damaged)?,
    };
    Ok((frame.number, group))
}
