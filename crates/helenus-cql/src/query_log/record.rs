//! Segments and records: lengths and checksums around entries.

use std::fmt;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::entry::Entry;

/// The first bytes of a segment: a name and the version of the format.
pub const SEGMENT_HEADER: [u8; 8] = *b"HELQLOG\x01";
/// The extension of a segment's file name, without the dot.
pub const SEGMENT_SUFFIX: &str = "fql";
/// Maximum length of a payload, in bytes.
pub const RECORD_LEN_MAX: usize = 512 << 20;

/// Bytes of length and checksum before a payload.
const FRAME_LEN: usize = 8;

/// The reason why the rest of a segment can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreadableRecord {
    /// The file does not begin with [`SEGMENT_HEADER`].
    NoSegment,
    /// The length is not that of a record.
    Length,
    /// The checksum does not match: the bytes have changed since they were written.
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

/// Returns the entry as a record. `None` if it is longer than [`RECORD_LEN_MAX`].
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

/// Takes the header from the front of a segment's bytes. Returns false if the bytes are too few.
///
/// # Errors
/// The bytes are not a segment.
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

/// Takes one record from the front of a segment's bytes, and returns its payload. `None` if the record is incomplete.
///
/// # Errors
/// The record is damaged, and the next one can't be found.
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
