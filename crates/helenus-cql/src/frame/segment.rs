//! The segments of v5 (spec v5, section 2.1 and 2.2; Cassandra's `net.FrameEncoder` and `FrameDecoder`).
//!
//! ```text
//! plain:  header 3 bytes | crc24 of it 3 | payload | crc32 of it 4
//!         header, little-endian: length 17 bits, self-contained 1 bit
//! lz4:    header 5 bytes | crc24 of it 3 | payload | crc32 of it 4
//!         header, little-endian: length 17 bits, uncompressed length 17 bits, self-contained 1 bit;
//!         an uncompressed length of 0 says that the payload is not compressed
//! ```
//!
//! A self-contained segment holds whole envelopes. An envelope that does not fit is split over several other segments.

use bytes::{Buf, BufMut, BytesMut};

use super::compression::{lz4_block, lz4_unblock};
use super::envelope::HEADER_LEN;
use crate::error::CqlError;

/// The longest payload of a segment, in bytes.
pub const MAX_PAYLOAD_LEN: usize = (1 << 17) - 1;

const CRC24_INIT: u32 = 0x0087_5060;
const CRC24_POLYNOMIAL: u32 = 0x0197_4F0B;
/// Bytes with which the checksum of a payload starts, so that the sum of zeroes is not zero.
const CRC32_PREFIX: [u8; 4] = [0xFA, 0x2D, 0x55, 0xCA];

/// Returns the checksum of a header of `len` bytes, given as a little-endian number.
pub(crate) fn crc24(mut header: u64, len: usize) -> u32 {
    let mut crc = CRC24_INIT;
    for _ in 0..len {
        crc ^= ((header & 0xff) as u32) << 16;
        header >>= 8;
        for _ in 0..8 {
            crc <<= 1;
            if crc & 0x0100_0000 != 0 {
                crc ^= CRC24_POLYNOMIAL;
            }
        }
    }
    crc
}

/// Returns the checksum of a payload.
pub(crate) fn crc32(payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&CRC32_PREFIX);
    hasher.update(payload);
    hasher.finalize()
}

/// The content of a segment.
#[derive(Debug, PartialEq, Eq)]
pub struct Segment {
    pub payload: BytesMut,
    pub self_contained: bool,
}

/// The compression of a connection's segments, which STARTUP determines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentFormat {
    Plain,
    Lz4,
}

impl SegmentFormat {
    fn header_len(self) -> usize {
        match self {
            SegmentFormat::Plain => 3,
            SegmentFormat::Lz4 => 5,
        }
    }

    /// Takes one segment from the buffer's front. `None` if the segment is incomplete.
    ///
    /// # Errors
    /// A checksum does not match. The connection is unusable then.
    pub fn decode(self, buffer: &mut BytesMut) -> Result<Option<Segment>, CqlError> {
        let header_len = self.header_len();
        let prefix_len = header_len + 3;
        let Some(prefix) = buffer.get(..prefix_len) else {
            return Ok(None);
        };
        let mut rest = prefix;
        let header = rest.get_uint_le(header_len);
        let read_crc = rest.get_uint_le(3) as u32;
        let computed_crc = crc24(header, header_len);
        if read_crc != computed_crc {
            return Err(CqlError::Protocol(format!(
                "invalid, unrecoverable CRC mismatch detected in frame header. Read {read_crc}, Computed {computed_crc}"
            )));
        }
        let mask = MAX_PAYLOAD_LEN as u64;
        let len = (header & mask) as usize;
        let (uncompressed_len, self_contained) = match self {
            SegmentFormat::Plain => (0, header >> 17 & 1 == 1),
            SegmentFormat::Lz4 => ((header >> 17 & mask) as usize, header >> 34 & 1 == 1),
        };
        let total_len = prefix_len + len + 4;
        if buffer.len() < total_len {
            buffer.reserve(total_len - buffer.len());
            return Ok(None);
        }
        buffer.advance(prefix_len);
        let payload = buffer.split_to(len);
        let read_crc = buffer.get_u32_le();
        let computed_crc = crc32(&payload);
        if read_crc != computed_crc {
            return Err(CqlError::Protocol(format!(
                "invalid, unrecoverable CRC mismatch detected in frame body. Read {read_crc}, Computed {computed_crc}"
            )));
        }
        let payload = match uncompressed_len {
            0 => payload,
            len => lz4_unblock(&payload, len, MAX_PAYLOAD_LEN)?,
        };
        Ok(Some(Segment {
            payload,
            self_contained,
        }))
    }

    /// Appends one segment. The payload must not be longer than [`MAX_PAYLOAD_LEN`].
    pub(crate) fn encode(self, payload: &[u8], self_contained: bool, out: &mut BytesMut) {
        debug_assert!(payload.len() <= MAX_PAYLOAD_LEN);
        match self {
            SegmentFormat::Plain => {
                let header = payload.len() as u64 | u64::from(self_contained) << 17;
                put_segment(out, header, 3, payload);
            }
            SegmentFormat::Lz4 => {
                let mut block = BytesMut::new();
                let compressed = lz4_block(payload, &mut block).is_ok() && block.len() < payload.len();
                let flag = u64::from(self_contained) << 34;
                if compressed {
                    let header = block.len() as u64 | (payload.len() as u64) << 17 | flag;
                    put_segment(out, header, 5, &block);
                } else {
                    put_segment(out, payload.len() as u64 | flag, 5, payload);
                }
            }
        }
    }

    /// Appends segments for a run of whole envelopes. A segment holds as many of them as fit. An envelope that is too long for one segment
    /// is split over several.
    pub fn encode_envelopes(self, envelopes: &[u8], out: &mut BytesMut) {
        out.reserve(envelopes.len() + 16 * (1 + envelopes.len() / MAX_PAYLOAD_LEN));
        let mut rest = envelopes;
        while !rest.is_empty() {
            let together = whole_envelopes_len(rest);
            if together > 0 {
                let (payload, after) = rest.split_at(together);
                self.encode(payload, true, out);
                rest = after;
            } else {
                let (envelope, after) = rest.split_at(first_envelope_len(rest));
                for part in envelope.chunks(MAX_PAYLOAD_LEN) {
                    self.encode(part, false, out);
                }
                rest = after;
            }
        }
    }
}

fn put_segment(out: &mut BytesMut, header: u64, header_len: usize, payload: &[u8]) {
    out.reserve(header_len + 3 + payload.len() + 4);
    out.put_uint_le(header, header_len);
    out.put_uint_le(u64::from(crc24(header, header_len)), 3);
    out.put_slice(payload);
    out.put_u32_le(crc32(payload));
}

/// Returns the length of the first envelope. If its header is incomplete, returns the length of all bytes.
fn first_envelope_len(envelopes: &[u8]) -> usize {
    let field = envelopes
        .get(5..HEADER_LEN)
        .and_then(|field| field.try_into().ok());
    let body_len = field.map_or(usize::MAX, |field| u32::from_be_bytes(field) as usize);
    body_len.saturating_add(HEADER_LEN).min(envelopes.len())
}

/// Returns the length of the longest run of whole envelopes that fits into one segment. 0 if the first envelope does not fit.
fn whole_envelopes_len(envelopes: &[u8]) -> usize {
    let mut end = 0;
    while let Some(rest) = envelopes.get(end..).filter(|rest| !rest.is_empty()) {
        let len = first_envelope_len(rest);
        if end + len > MAX_PAYLOAD_LEN {
            break;
        }
        end += len;
    }
    end
}
