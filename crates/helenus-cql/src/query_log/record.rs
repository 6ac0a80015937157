//! Segments and records: lengths and checksums around entries.

use std::fmt;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::entry::Entry;

/// What a segment begins with: a name and the version of the format.
pub const SEGMENT_HEADER: [u8; 8] = *b"HELQLOG\x01";
/// What the name of a segment's file ends with, behind a dot.
pub const SEGMENT_SUFFIX: &str = "fql";
/// The longest payload, in bytes.
pub const RECORD_LEN_MAX: usize = 512 << 20;

/// Length and checksum before a payload.
const FRAME_LEN: usize = 8;

/// Why the bytes of a segment can't be read any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreadableRecord {
    /// The file does not begin with [`SEGMENT_HEADER`].
    NoSegment,
    /// A length that no record has.
    Length,
    /// The bytes are not those that were written.
    Checksum,
}

impl fmt::Display for UnreadableRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UnreadableRecord::NoSegment => "it is no segment of a full query log, or one of another version",
            UnreadableRecord::Length => "a record has an impossible length",
            UnreadableRecord::Checksum => "the checksum of a record is wrong",
        })
    }
}

impl std::error::Error for UnreadableRecord {}

/// Returns the entry as a record; none if it is longer than [`RECORD_LEN_MAX`].
pub fn encode_record(entry: &Entry) -> Option<Bytes> {
    let mut out = BytesMut::with_capacity(256);
    out.put_bytes(0, FRAME_LEN);
    entry.encode(&mut out);
    let payload_len = out.len() - FRAME_LEN;
    if payload_len > RECORD_LEN_MAX {
        return None;
    }
    let (frame, payload) = out.split_at_mut_checked(FRAME_LEN)?;
    let (len, checksum) = frame.split_at_mut_checked(4)?;
    len.copy_from_slice(&(payload_len as u32).to_be_bytes());
    checksum.copy_from_slice(&crc(len, payload).to_be_bytes());
    Some(out.freeze())
}

/// Takes the header of a segment off the front of its bytes; false while they are too few.
///
/// # Errors
/// The bytes are no segment.
pub fn take_header(input: &mut BytesMut) -> Result<bool, UnreadableRecord> {
    let Some(header) = input.get(..SEGMENT_HEADER.len()) else {
        return Ok(false);
    };
    if header != SEGMENT_HEADER {
        return Err(UnreadableRecord::NoSegment);
    }
    input.advance(SEGMENT_HEADER.len());
    Ok(true)
}

/// Takes one record off the front of a segment's bytes and gives its payload; nothing while it is incomplete.
///
/// # Errors
/// The record is damaged; what comes behind it can't be found.
pub fn take_record(input: &mut BytesMut) -> Result<Option<Bytes>, UnreadableRecord> {
    let Some((frame, rest)) = input.split_at_checked(FRAME_LEN) else {
        return Ok(None);
    };
    let (len, mut checksum) = frame.split_at(4);
    let payload_len = (&mut &*len).get_u32() as usize;
    if payload_len > RECORD_LEN_MAX {
        return Err(UnreadableRecord::Length);
    }
    let Some(payload) = rest.get(..payload_len) else {
        return Ok(None);
    };
    if crc(len, payload) != checksum.get_u32() {
        return Err(UnreadableRecord::Checksum);
    }
    input.advance(FRAME_LEN);
    Ok(Some(input.split_to(payload_len).freeze()))
}

fn crc(len: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(len);
    hasher.update(payload);
    hasher.finalize()
}
