//! The encoding of a chunk of history, and its name. `docs/data-layout.md` describes them.
//!
//! A chunk is a magic number, the CRC-32C of the rest, and a Zstandard frame. The content has little-endian integers: the numbers of the
//! segment before the first one, of the first one and of the last one. Then follows each frame: its segment, its offset there, its time,
//! the length of its records, and the records as in the log ([`crate::log::frame`]).

use std::io::Read;

use bytes::{Buf, Bytes};
use object_store::path::Path;
use uuid::Uuid;

use super::{Frame, Segments, log_folder};
use crate::checksum::crc32c;
use crate::log::{FRAME_LEN_MAX, LogPosition, decode_records, encode_record};

const MAGIC: [u8; 8] = *b"HLNSHIS1";
const HEAD_LEN: usize = 12;
const FRAME_HEAD_LEN: usize = 28;
/// Compression level. Speed matters more than size, because chunks must be written as fast as the log.
const LEVEL: i32 = 1;
/// Maximum bytes of the decompressed content: several segments, each of which may have one large frame.
const CONTENT_LEN_MAX: u64 = 4 * FRAME_LEN_MAX as u64;

/// Parsed name of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChunkName {
    pub first: u64,
    pub last: u64,
    /// Earliest and latest time of the chunk's frames, in ms.
    pub earliest_ms: i64,
    pub latest_ms: i64,
}

impl ChunkName {
    /// Returns the name of a chunk with these segments. Without a frame, the chunk gets the time `now_ms`.
    pub fn of(segments: &Segments, now_ms: i64) -> ChunkName {
        let times = || segments.frames.values().map(|frame| frame.time_ms);
        ChunkName {
            first: segments.first,
            last: segments.last,
            earliest_ms: times().min().unwrap_or(now_ms).max(0),
            latest_ms: times().max().unwrap_or(now_ms).max(0),
        }
    }

    pub fn path(&self, log: Uuid) -> Path {
        log_folder(Some(log)).join(format!(
            "{:020}-{:020}-{:013}-{:013}",
            self.first, self.last, self.earliest_ms, self.latest_ms
        ))
    }

    /// Returns the log that a chunk belongs to. `None` if the path is no chunk's.
    pub fn log(path: &Path) -> Option<Uuid> {
        path.parts().rev().nth(1)?.as_ref().parse().ok()
    }

    pub fn parse(path: &Path) -> Option<ChunkName> {
        let mut parts = path.filename()?.split('-');
        let mut number = || parts.next()?.parse().ok();
        let name = ChunkName {
            first: number()?,
            last: number()?,
            earliest_ms: number()?.try_into().ok()?,
            latest_ms: number()?.try_into().ok()?,
        };
        parts.next().is_none().then_some(name)
    }
}

/// Returns a path that sorts after all chunks that begin before segment `first`, and before all others.
pub(crate) fn path_before(folder: &Path, first: u64) -> Path {
    folder.clone().join(format!("{first:020}"))
}

pub(crate) fn encode(segments: &Segments) -> std::io::Result<Bytes> {
    let mut content = Vec::new();
    for number in [segments.previous, segments.first, segments.last] {
        content.extend_from_slice(&number.to_le_bytes());
    }
    let mut body = Vec::new();
    for (at, frame) in &segments.frames {
        body.clear();
        for record in &frame.records {
            encode_record(record.lsn, &record.ops, &mut body);
        }
        content.extend_from_slice(&at.segment.to_le_bytes());
        content.extend_from_slice(&at.offset.to_le_bytes());
        content.extend_from_slice(&frame.time_ms.to_le_bytes());
        content.extend_from_slice(&(body.len() as u32).to_le_bytes());
        content.extend_from_slice(&body);
    }
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&[0; HEAD_LEN - MAGIC.len()]);
    let mut bytes = zstd_into(bytes, &content)?;
    let sum = crc32c(bytes.get(HEAD_LEN..).unwrap_or_default());
    if let Some(place) = bytes.get_mut(MAGIC.len()..HEAD_LEN) {
        place.copy_from_slice(&sum.to_le_bytes());
    }
    Ok(bytes.into())
}

fn zstd_into(bytes: Vec<u8>, content: &[u8]) -> std::io::Result<Vec<u8>> {
    use std::io::Write;
    let mut encoder = zstd::Encoder::new(bytes, LEVEL)?;
    encoder.write_all(content)?;
    encoder.finish()
}

/// Decodes a chunk. `None` if it is damaged.
pub(crate) fn decode(bytes: &[u8]) -> Option<Segments> {
    let (head, compressed) = bytes.split_at_checked(HEAD_LEN)?;
    let mut sum = head.strip_prefix(&MAGIC)?;
    if sum.get_u32_le() != crc32c(compressed) {
        return None;
    }
    let mut content = Vec::new();
    let decoder = zstd::Decoder::new(compressed).ok()?;
    decoder.take(CONTENT_LEN_MAX).read_to_end(&mut content).ok()?;
    decode_content(content.into())
}

fn decode_content(mut content: Bytes) -> Option<Segments> {
    let mut segments = Segments {
        previous: content.try_get_u64_le().ok()?,
        first: content.try_get_u64_le().ok()?,
        last: content.try_get_u64_le().ok()?,
        ..Segments::default()
    };
    while content.has_remaining() {
        if content.remaining() < FRAME_HEAD_LEN {
            return None;
        }
        let at = LogPosition {
            segment: content.get_u64_le(),
            offset: content.get_u64_le(),
        };
        let time_ms = content.get_i64_le();
        let len = content.get_u32_le() as usize;
        if len > content.remaining() {
            return None;
        }
        let records = decode_records(content.split_to(len))?;
        segments.frames.insert(at, Frame { time_ms, records });
    }
    Some(segments)
}

#[cfg(test)]
#[path = "chunk_tests.rs"]
mod tests;
