//! The envelope: a header of nine bytes, then the body (spec v5, section 2; Cassandra's `transport.Envelope`).
//!
//! ```text
//! version and direction u8 | flags u8 | stream i16 | opcode u8 | length of the body i32
//! ```

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::opcode::{Direction, Opcode};
use super::version::ProtocolVersion;
use crate::error::CqlError;

/// Length in bytes of a header.
pub const HEADER_LEN: usize = 9;

/// The longest body that the protocol allows, in bytes.
pub const MAX_BODY_LEN: usize = 256 * 1024 * 1024;

const RESERVE_LEN_MAX: usize = 1024 * 1024;

/// Maximum bytes of a body that shares its memory with the bytes behind it. A longer body would keep too much memory in use.
const SHARED_LEN_MAX: usize = 128 * 1024;

const RESPONSE_BIT: u8 = 0x80;

impl Direction {
    fn name(self) -> &'static str {
        match self {
            Direction::Request => "REQUEST",
            Direction::Response => "RESPONSE",
        }
    }
}

/// The flags of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    pub const COMPRESSED: Flags = Flags(0x01);
    pub const TRACING: Flags = Flags(0x02);
    pub const CUSTOM_PAYLOAD: Flags = Flags(0x04);
    pub const WARNING: Flags = Flags(0x08);
    pub const USE_BETA: Flags = Flags(0x10);

    pub fn contains(self, flag: Flags) -> bool {
        self.0 & flag.0 == flag.0
    }

    #[must_use]
    pub fn with(self, flag: Flags) -> Flags {
        Flags(self.0 | flag.0)
    }

    #[must_use]
    pub fn without(self, flag: Flags) -> Flags {
        Flags(self.0 & !flag.0)
    }
}

/// The header of an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub version: ProtocolVersion,
    pub flags: Flags,
    /// Number that links a response to its request. Negative for events, which the server sends without a request.
    pub stream: i16,
    pub opcode: Opcode,
}

/// A header and its body. The body is compressed only if the header's flag says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub header: Header,
    pub body: Bytes,
}

/// An error for bytes that are not a valid envelope, with the data for the response to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvelopeError {
    /// The version of the response.
    pub version: ProtocolVersion,
    /// The stream of the response. 0 if the header could not be read.
    pub stream: i16,
    pub error: CqlError,
    /// Length of the refused envelope in bytes, behind which the next one begins. `None` if it is unknown, and then the connection is
    /// unusable.
    pub len: Option<usize>,
    /// True if the client offered a version that drivers try first. This is not a fault, since the client may offer another version.
    pub is_negotiation: bool,
}

impl EnvelopeError {
    /// Returns an error after which nothing more can be read.
    pub(super) fn last(version: ProtocolVersion, stream: i16, error: CqlError) -> EnvelopeError {
        EnvelopeError {
            version,
            stream,
            error,
            len: None,
            is_negotiation: false,
        }
    }

    /// Returns the refusal of a version.
    fn of_version(version: ProtocolVersion, number: u8, message: String) -> EnvelopeError {
        EnvelopeError {
            is_negotiation: ProtocolVersion::is_offered_by_drivers(number),
            ..EnvelopeError::last(version, 0, CqlError::Protocol(message))
        }
    }
}

/// Returns the header at the buffer's front, and the length of the body behind it. `None` if the header is incomplete.
pub(crate) fn decode_header(
    buffer: &[u8],
    direction: Direction,
    max_body_len: usize,
) -> Result<Option<(Header, usize)>, EnvelopeError> {
    let Some(&first) = buffer.first() else {
        return Ok(None);
    };
    let number = first & !RESPONSE_BIT;
    let last = |version, stream, message: String| {
        Err(EnvelopeError::last(version, stream, CqlError::Protocol(message)))
    };
    let Some(version) = ProtocolVersion::from_number(number) else {
        let worded_in = ProtocolVersion::of_refusal(number);
        let message = ProtocolVersion::refusal(number);
        return Err(EnvelopeError::of_version(worded_in, number, message));
    };
    let mut rest = match buffer.get(1..HEADER_LEN) {
        Some(rest) => rest,
        None => return Ok(None),
    };
    let flags = Flags(rest.get_u8());
    let stream = rest.get_i16();
    if version.is_beta() && !flags.contains(Flags::USE_BETA) {
        let message = format!("Beta version of the protocol used ({version}), but USE_BETA flag is unset");
        return Err(EnvelopeError::of_version(version, number, message));
    }
    let code = rest.get_u8();
    let claimed_len = rest.get_i32();
    let Ok(body_len) = usize::try_from(claimed_len) else {
        let message = format!("Invalid value for envelope header body length field: {claimed_len}");
        return last(version, stream, message);
    };
    let refuse = |error| {
        Err(EnvelopeError {
            version,
            stream,
            error,
            len: Some(HEADER_LEN + body_len),
            is_negotiation: false,
        })
    };
    let Some(opcode) = Opcode::from_code(code) else {
        return refuse(CqlError::Protocol(format!("Unknown opcode {code}")));
    };
    let sent = if first & RESPONSE_BIT == 0 {
        Direction::Request
    } else {
        Direction::Response
    };
    if sent != direction || opcode.direction() != sent {
        let expected = opcode.direction().name();
        let name = opcode.name();
        let got = sent.name();
        return refuse(CqlError::Protocol(format!(
            "Wrong protocol direction (expected {expected}, got {got}) for opcode {code} ({name})"
        )));
    }
    if body_len > max_body_len {
        return refuse(CqlError::Invalid(match version.is_segmented() {
            true => {
                format!(
                    "CQL Message of size {body_len} bytes exceeds allowed maximum of {max_body_len} bytes"
                )
            }
            false => {
                let len = HEADER_LEN + body_len;
                format!("Request is too big: length {len} exceeds maximum allowed length {max_body_len}.")
            }
        }));
    }
    let header = Header {
        version,
        flags,
        stream,
        opcode,
    };
    Ok(Some((header, body_len)))
}

/// Takes one envelope from the buffer's front. `None` if the envelope is incomplete.
pub(crate) fn decode_envelope(
    buffer: &mut BytesMut,
    direction: Direction,
    max_body_len: usize,
) -> Result<Option<Envelope>, EnvelopeError> {
    let Some((header, body_len)) = decode_header(buffer, direction, max_body_len)? else {
        return Ok(None);
    };
    if buffer.len() < HEADER_LEN + body_len {
        // A declared length alone does not allocate much memory. The buffer grows as bytes arrive.
        buffer.reserve((HEADER_LEN + body_len - buffer.len()).min(RESERVE_LEN_MAX));
        return Ok(None);
    }
    buffer.advance(HEADER_LEN);
    let body = buffer.split_to(body_len).freeze();
    if body_len > SHARED_LEN_MAX {
        *buffer = BytesMut::from(buffer.as_ref());
    }
    Ok(Some(Envelope { header, body }))
}

/// Appends a header without the body's length, and returns the position of the envelope.
pub(crate) fn begin_envelope(out: &mut BytesMut, header: Header) -> usize {
    let start = out.len();
    let bit = match header.opcode.direction() {
        Direction::Request => 0,
        Direction::Response => RESPONSE_BIT,
    };
    out.put_u8(header.version.number() | bit);
    out.put_u8(header.flags.0);
    out.put_i16(header.stream);
    out.put_u8(header.opcode as u8);
    out.put_i32(0);
    start
}

/// Sets the length of the body, which is everything after the header at `start`.
pub(crate) fn end_envelope(out: &mut BytesMut, start: usize) {
    let body_len = out.len().saturating_sub(start + HEADER_LEN);
    let len = u32::try_from(body_len).unwrap_or(u32::MAX).to_be_bytes();
    if let Some(field) = out.get_mut(start + 5..start + HEADER_LEN) {
        field.copy_from_slice(&len);
    }
}
