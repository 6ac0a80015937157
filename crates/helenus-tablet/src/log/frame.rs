//! The bytes of the log: segment headers, frames and records. Golden tests pin them; `docs/data-layout.md` describes them.
//!
//! All integers are little-endian. A segment begins with a header; frames follow without gaps. One frame holds the records of one
//! group commit.

use bytes::{Buf, Bytes};

use crate::checksum::crc32c;
use crate::clock::CommitTime;
use crate::operation::Op;

/// Size of a segment's header; the first frame begins here.
pub const SEGMENT_HEADER_LEN: usize = 64;
/// Size of a frame's header.
pub const FRAME_HEADER_LEN: usize = 40;
/// Version of the log's bytes. In version 1 segments did not tell their size.
pub const LOG_VERSION: u32 = 2;
/// The largest frame that is written or believed.
pub const FRAME_LEN_MAX: usize = 1 << 30;

const SEGMENT_MAGIC: [u8; 8] = *b"HLNSLOG\n";
/// "HLRF" in the file.
const FRAME_MAGIC: u32 = 0x4652_4c48;
const RECORD_HEADER_LEN: usize = 12;
const OP_HEADER_LEN: usize = 16;

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Numbers count up from 1, one a segment.
    pub number: u64,
    /// The segment before this one, 0 for the first one, and where its valid frames end.
    pub previous_number: u64,
    pub previous_end: u64,
    /// The size that the file was made with, and keeps; 0 if the segment is of version 1.
    pub file_len: u64,
}

/// Why bytes are not a segment's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    #[error("the segment header is damaged")]
    Damaged,
    #[error("the log was written by version {0}, this binary understands up to {LOG_VERSION}")]
    MinNewerTimestamp(u32),
}

impl SegmentHeader {
    pub fn encode(&self) -> [u8; SEGMENT_HEADER_LEN] {
        let mut bytes = [0; SEGMENT_HEADER_LEN];
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
        put(0, &SEGMENT_MAGIC);
        put(8, &LOG_VERSION.to_le_bytes());
        put(16, &self.number.to_le_bytes());
        put(24, &self.previous_number.to_le_bytes());
        put(32, &self.previous_end.to_le_bytes());
        put(40, &self.file_len.to_le_bytes());
        let sum = crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        let bytes: &[u8; SEGMENT_HEADER_LEN] = bytes.try_into().map_err(|_| HeaderError::Damaged)?;
        let (body, mut sum) = bytes.split_at(60);
        if !body.starts_with(&SEGMENT_MAGIC) || sum.get_u32_le() != crc32c(body) {
            return Err(HeaderError::Damaged);
        }
        let mut rest = &body[8..];
        let version = rest.get_u32_le();
        if version > LOG_VERSION {
            return Err(HeaderError::MinNewerTimestamp(version));
        }
        rest.advance(4);
        Ok(SegmentHeader {
            number: rest.get_u64_le(),
            previous_number: rest.get_u64_le(),
            previous_end: rest.get_u64_le(),
            // Zeros in version 1.
            file_len: rest.get_u64_le(),
        })
    }
}

/// The header of a frame, which `body_len` bytes of records follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    pub body_len: usize,
    /// The segment that the frame belongs to: a reused file may hold frames of its former life.
    pub segment: u64,
    /// Time of the commit by the store's clock, in ms.
    pub time_ms: i64,
    /// By how much that is ahead of the machine's clock, in ms; 0 in frames of earlier versions.
    pub ahead_ms: u32,
    /// All of the segment before this offset was on disk when the frame was written.
    pub durable_offset: u64,
}

impl FrameHeader {
    /// Fills in the header at the start of `frame`, whose body is complete.
    pub fn finish(frame: &mut [u8], segment: u64, time: impl Into<CommitTime>, durable_offset: u64) {
        let CommitTime { clock_ms, ahead_ms } = time.into();
        let body_len = frame.len().saturating_sub(FRAME_HEADER_LEN) as u32;
        let mut put = |at: usize, part: &[u8]| frame[at..at + part.len()].copy_from_slice(part);
        put(0, &FRAME_MAGIC.to_le_bytes());
        put(8, &body_len.to_le_bytes());
        put(12, &ahead_ms.to_le_bytes());
        put(16, &segment.to_le_bytes());
        put(24, &clock_ms.to_le_bytes());
        put(32, &durable_offset.to_le_bytes());
        let sum = crc32c(&frame[8..]);
        frame[4..8].copy_from_slice(&sum.to_le_bytes());
    }

    /// Returns the frame at the start of `bytes`, if there is a whole and undamaged one of that segment, and its body.
    pub fn decode(bytes: &[u8], segment: u64) -> Option<(Self, &[u8])> {
        let mut rest = bytes.get(..FRAME_HEADER_LEN)?;
        if rest.get_u32_le() != FRAME_MAGIC {
            return None;
        }
        let sum = rest.get_u32_le();
        let body_len = rest.get_u32_le() as usize;
        let ahead_ms = rest.get_u32_le();
        let header = FrameHeader {
            body_len,
            ahead_ms,
            segment: rest.get_u64_le(),
            time_ms: rest.get_i64_le(),
            durable_offset: rest.get_u64_le(),
        };
        if header.segment != segment || body_len > FRAME_LEN_MAX {
            return None;
        }
        let end = FRAME_HEADER_LEN.checked_add(body_len)?;
        if crc32c(bytes.get(8..end)?) != sum {
            return None;
        }
        Some((header, bytes.get(FRAME_HEADER_LEN..end)?))
    }

    /// Time of the commit.
    pub fn time(&self) -> CommitTime {
        CommitTime {
            clock_ms: self.time_ms,
            ahead_ms: self.ahead_ms,
        }
    }

    /// Time of the commit by the machine's clock, in ms.
    pub fn machine_ms(&self) -> i64 {
        self.time().machine_ms()
    }

    /// Whether a frame may begin here, before its checksum is looked at.
    pub fn may_begin(bytes: &[u8]) -> bool {
        bytes.starts_with(&FRAME_MAGIC.to_le_bytes())
    }
}

/// One write: its number and its operations, in the order in which they were given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub lsn: u64,
    pub ops: Vec<Op>,
}

/// How many bytes a record of `ops` takes.
pub fn record_len(ops: &[Op]) -> usize {
    ops.iter()
        .map(|op| OP_HEADER_LEN + op.key.len() + op.operand.len())
        .fold(RECORD_HEADER_LEN, usize::saturating_add)
}

/// Appends a record to a frame's body.
pub fn encode_record(lsn: u64, ops: &[Op], body: &mut Vec<u8>) {
    body.reserve(record_len(ops));
    body.extend_from_slice(&lsn.to_le_bytes());
    body.extend_from_slice(&(ops.len() as u32).to_le_bytes());
    for op in ops {
        body.extend_from_slice(&op.token.to_le_bytes());
        body.extend_from_slice(&(op.key.len() as u32).to_le_bytes());
        body.extend_from_slice(&(op.operand.len() as u32).to_le_bytes());
        body.extend_from_slice(&op.key);
        body.extend_from_slice(&op.operand);
    }
}

/// Reads the records of a frame's body; `None` if it is malformed, which its checksum makes a defect of the writer.
pub fn decode_records(mut body: Bytes) -> Option<Vec<Record>> {
    let mut records = Vec::new();
    while body.has_remaining() {
        if body.remaining() < RECORD_HEADER_LEN {
            return None;
        }
        let lsn = body.get_u64_le();
        let count = body.get_u32_le() as usize;
        if count > body.remaining() / OP_HEADER_LEN {
            return None;
        }
        let mut ops = Vec::with_capacity(count);
        for _ in 0..count {
            if body.remaining() < OP_HEADER_LEN {
                return None;
            }
            let token = body.get_i64_le();
            let key_len = body.get_u32_le() as usize;
            let operand_len = body.get_u32_le() as usize;
            if body.remaining() < key_len.checked_add(operand_len)? {
                return None;
            }
            ops.push(Op {
                token,
                key: body.split_to(key_len),
                operand: body.split_to(operand_len),
            });
        }
        records.push(Record { lsn, ops });
    }
    Some(records)
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
