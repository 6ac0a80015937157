//! The encoding of a record of a topic. The value is a part of a frame ([`crate::log::frame`]), and the key identifies the part.
//! `docs/data-layout.md` describes them.

use bytes::Buf;
use uuid::Uuid;

use super::client::TopicRecord;
use crate::log::frame::FrameHeader;
use crate::log::object::LogId;
use crate::log::writer::empty_frame;

const MAGIC: [u8; 8] = *b"HLNSTOP1";
const KEY_LEN: usize = 64;

/// The place of a log: its partition, and its number among the logs of that partition, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogPlace {
    pub partition: u32,
    pub epoch: u64,
}

/// Marks the id of a log in a topic. The id is a UUID of version 8, whose other bits are free for the application.
const ID_MARK: [u8; 4] = [b'H', b'T', 0x80, b'L'];

impl LogPlace {
    /// Returns the id of the log at this place.
    pub fn id(self) -> LogId {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&self.partition.to_be_bytes());
        bytes[4..8].copy_from_slice(&ID_MARK);
        bytes[8..].copy_from_slice(&((2 << 62) | self.epoch).to_be_bytes());
        Uuid::from_bytes(bytes)
    }

    /// Returns the place of a log. `None` if the log is not in a topic.
    pub fn of(id: LogId) -> Option<LogPlace> {
        let mut bytes: &[u8] = id.as_bytes();
        let partition = bytes.get_u32();
        let rest = bytes.strip_prefix(&ID_MARK)?;
        let epoch = u64::from_be_bytes(rest.try_into().ok()?) & !(3 << 62);
        Some(LogPlace { partition, epoch })
    }
}

/// Identifies a record: as a part of a frame of a log, or as a fence, which ends all logs of a partition up to an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordKey {
    /// The identity of the store.
    pub store: Uuid,
    pub epoch: u64,
    /// The process that wrote the record.
    pub writer: Uuid,
    /// The part of a frame. `None` if the record is a fence.
    pub part: Option<Part>,
}

/// A part of a frame. Frames are numbered from 1, parts from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Part {
    pub frame: u64,
    pub index: u32,
    pub count: u32,
}

impl RecordKey {
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(KEY_LEN);
        let part = self.part.unwrap_or(Part {
            frame: 0,
            index: 0,
            count: 0,
        });
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(self.store.as_bytes());
        bytes.extend_from_slice(&self.epoch.to_le_bytes());
        bytes.extend_from_slice(&part.frame.to_le_bytes());
        bytes.extend_from_slice(&part.index.to_le_bytes());
        bytes.extend_from_slice(&part.count.to_le_bytes());
        bytes.extend_from_slice(self.writer.as_bytes());
        bytes
    }

    /// Decodes a key. `None` if the record does not belong to a store's log.
    pub fn decode(key: &[u8]) -> Option<RecordKey> {
        let key: &[u8; KEY_LEN] = key.try_into().ok()?;
        let mut rest = key.strip_prefix(&MAGIC)?;
        let store = Uuid::from_slice(rest.get(..16)?).ok()?;
        rest.advance(16);
        let epoch = rest.get_u64_le();
        let (frame, index, count) = (rest.get_u64_le(), rest.get_u32_le(), rest.get_u32_le());
        let part = (count > 0).then_some(Part { frame, index, count });
        let writer = Uuid::from_slice(rest).ok()?;
        Some(RecordKey {
            store,
            epoch,
            writer,
            part,
        })
    }

    /// Returns true if no record after this one belongs to the log of `epoch`.
    pub fn ends(&self, epoch: u64) -> bool {
        match self.part {
            None => self.epoch >= epoch,
            Some(_) => self.epoch > epoch,
        }
    }
}

/// Splits a frame with a finished header into records of at most `part_bytes_max` bytes.
pub(super) fn split(key: RecordKey, number: u64, frame: &[u8], part_bytes_max: usize) -> Vec<TopicRecord> {
    let chunks = frame.chunks(part_bytes_max.max(1));
    let count = chunks.len() as u32;
    let record = |(value, index): (&[u8], u32)| {
        let part = Part {
            frame: number,
            index,
            count,
        };
        let key = RecordKey {
            part: Some(part),
            ..key
        };
        TopicRecord {
            key: key.encode(),
            value: value.to_vec(),
        }
    };
    chunks.zip(0..).map(record).collect()
}

/// Returns a frame without records, which is the beginning of a log.
pub(super) fn beginning(time_ms: i64) -> Vec<u8> {
    let mut frame = empty_frame();
    FrameHeader::finish(&mut frame, 1, time_ms, 1);
    frame
}
