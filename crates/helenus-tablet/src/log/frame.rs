//! The encoding of the log: segment headers, frames and records. Golden tests fix the bytes; `docs/data-layout.md` describes them.
//!
//! All integers are little-endian. A segment begins with a header; frames follow without gaps. One frame holds the records of one group
//! commit.

use bytes::{Buf, Bytes};

use crate::checksum::crc32c;
use crate::clock::CommitTime;
use crate::operation::Op;

/// Bytes of a segment's header. The first frame begins here.
pub const SEGMENT_HEADER_LEN: usize = 64;
/// Bytes of a frame's header.
pub const FRAME_HEADER_LEN: usize = 40;
/// Version of the log's encoding. Segments of version 1 do not record their file size.
pub const LOG_VERSION: u32 = 2;
/// Maximum bytes of a frame. A longer one is a sign of damage.
pub const FRAME_LEN_MAX: usize = 1 << 30;

const SEGMENT_MAGIC: [u8; 8] = *b"HLNSLOG\n";
/// Reads "HLRF" in the file.
const FRAME_MAGIC: u32 = 0x4652_4c48;
const RECORD_HEADER_LEN: usize = 12;
const OP_HEADER_LEN: usize = 16;

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Number of the segment. Segments are numbered from 1.
    pub number: u64,
    /// The number of the previous segment (0 if this is the first one), and the end of its valid frames.
    pub previous_number: u64,
    pub previous_end: u64,
    /// Bytes of the file, fixed when it was created. 0 in a segment of version 1.
    pub file_len: u64,
}

/// Reason why bytes are not a valid segment header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    #[error("the segment header is damaged")]
    Damaged,
    #[error("the log was written by version {0}, this binary understands up to {LOG_VERSION}")]
    NewerVersion(u32),
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
            return Err(HeaderError::NewerVersion(version));
        }
        rest.advance(4);
        Ok(SegmentHeader {
            number: rest.get_u64_le(),
            previous_number: rest.get_u64_le(),
            previous_end: rest.get_u64_le(),
            // The field is 0 in version 1.
            file_len: rest.get_u64_le(),
        })
    }
}

/// The header of a frame. `body_len` bytes of records follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    pub body_len: usize,
    /// The segment that the frame belongs to. A reused file may still hold frames of an earlier segment.
    pub segment: u64,
    /// Time of the commit by the store's clock, in ms.
    pub time_ms: i64,
    /// Lead of the store's clock over the machine's clock, in ms. 0 in frames of earlier versions.
    pub ahead_ms: u32,
    /// Offset before which the whole segment was on disk when the frame was written.
    pub durable_offset: u64,
}

impl FrameHeader {
    /// Fills in the header at the start of `frame`, whose body must be complete.
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

    /// Decodes the frame at the start of `bytes` and returns its body too. `None` if there is no complete, undamaged frame of that segment.
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

    /// Returns the time of the commit.
    pub fn time(&self) -> CommitTime {
        CommitTime {
            clock_ms: self.time_ms,
            ahead_ms: self.ahead_ms,
        }
    }

    /// Returns the time of the commit by the machine's clock, in ms.
    pub fn machine_ms(&self) -> i64 {
        self.time().machine_ms()
    }

    /// Returns true if `bytes` begin with a frame's magic. The checksum is not verified.
    pub fn may_begin(bytes: &[u8]) -> bool {
        bytes.starts_with(&FRAME_MAGIC.to_le_bytes())
    }
}

/// A write: its number, and its operations in the order in which the client gave them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub lsn: u64,
    pub ops: Vec<Op>,
}

/// Returns the bytes of a record with these operations.
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

/// Decodes the records of a frame's body. `None` if it is malformed. The frame's checksum was right, so this means a defect of the writer.
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
