//! Frames of the protocol between nodes. After the handshake, both sides of a connection send frames only.
//!
//! A frame is a header of 14 bytes and a body. Numbers are little-endian.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | length of the body, at most [`MESSAGE_BYTES_MAX`] |
//! | 4 | 1 | kind ([`Kind`]) |
//! | 5 | 1 | flags ([`flags`]) |
//! | 6 | 4 | id of the request, 0 in a ping or pong |
//! | 10 | 4 | milliseconds for which the caller waits for the answer, 0 in frames other than requests |
//!
//! A receiver skips a frame of an unknown kind whose highest bit is set, and closes the connection after any other unknown kind.

use std::fmt;

use bytes::buf::Limit;
use bytes::{BufMut, Bytes, BytesMut};

use super::PROTOCOL_MIN;

/// Maximum bytes of a body: a page of rows with room to spare.
pub const MESSAGE_BYTES_MAX: usize = 512 << 20;
/// Bytes of a header.
pub const HEADER_LEN: usize = 14;
/// Bytes of a body above which the body is read into a buffer of its own.
const LARGE_BODY_LEN: usize = 64 << 10;
/// Maximum bytes that are allocated for a large body before they have been received.
const LARGE_READ_LEN: usize = 4 << 20;
/// Bit of a kind that a receiver may skip if it does not know the kind.
const SKIPPABLE: u8 = 0x80;

/// Flags of frames.
pub mod flags {
    /// An answer that further answers of the same scan follow.
    pub const MORE: u8 = 1;
    /// A failure of a request that was not executed. It may be sent to another node, or again.
    pub const UNDONE: u8 = 1;
    /// A failure of a request that this node will never execute, because it is not of the caller's cluster.
    pub const REFUSED: u8 = 2;
}

/// Kinds of frames, with their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Requests the node's clocks and its store.
    Greet = 1,
    /// Announces a version of the cluster document.
    Tell = 2,
    /// Announces that a tablet, which is to be the node's, was closed.
    Release = 3,
    /// Removes stale index entries of the node's rows.
    RemoveStale = 4,
    /// Freezes the node's tablets and holds its log for a consistent cut.
    Hold = 5,
    /// Releases the held log, and pins the frozen tablets.
    Pin = 6,
    /// Loads the documents, if the node's are older.
    Load = 7,
    /// Executes a statement.
    Execute = 16,
    /// Reads a part of an aggregate.
    Part = 17,
    /// Reads rows by key.
    Get = 18,
    /// Writes merge operands.
    Write = 19,
    /// Searches posting lists.
    SearchLists = 20,
    /// Begins a scan. The node answers that the scan has begun, and sends two chunks.
    Scan = 21,
    /// Takes a step of a transaction over partitions of several nodes. Since version 8 of the protocol.
    Transact = 22,
    /// Requests one more chunk of a scan.
    Next = 32,
    /// Ends a request whose answer the caller does not need any more.
    GiveUp = 33,
    Ping = 34,
    /// The answer to a request. Its body depends on the kind of the request.
    Answer = 64,
    /// The reason why a request has no answer, as text.
    Failure = 65,
    Pong = 66,
}

/// All kinds.
const KINDS: [Kind; 20] = [
    Kind::Greet,
    Kind::Tell,
    Kind::Release,
    Kind::RemoveStale,
    Kind::Hold,
    Kind::Pin,
    Kind::Load,
    Kind::Execute,
    Kind::Part,
    Kind::Get,
    Kind::Write,
    Kind::SearchLists,
    Kind::Scan,
    Kind::Transact,
    Kind::Next,
    Kind::GiveUp,
    Kind::Ping,
    Kind::Answer,
    Kind::Failure,
    Kind::Pong,
];

impl Kind {
    fn number(self) -> u8 {
        self as u8
    }

    /// Returns the oldest version of the protocol that has the kind.
    pub(super) fn protocol_min(self) -> u32 {
        match self {
            Kind::Transact => 8,
            _ => PROTOCOL_MIN,
        }
    }

    /// Returns the kind with a number. `None` if this version does not know the number.
    fn of_number(number: u8) -> Option<Kind> {
        KINDS.into_iter().find(|kind| kind.number() == number)
    }
}

/// The header of a frame, without the length of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub kind: Kind,
    pub flags: u8,
    pub id: u32,
    pub timeout_ms: u32,
}

impl Header {
    /// Returns the header of a frame that is not a request.
    pub fn new(kind: Kind, id: u32) -> Header {
        Header {
            kind,
            flags: 0,
            id,
            timeout_ms: 0,
        }
    }

    /// Appends the header of a frame with a body of `len` bytes.
    pub fn encode(&self, len: usize, out: &mut BytesMut) {
        // A longer body is refused by the receiver, whatever length its header has.
        out.put_u32_le(u32::try_from(len).unwrap_or(u32::MAX));
        out.put_u8(self.kind.number());
        out.put_u8(self.flags);
        out.put_u32_le(self.id);
        out.put_u32_le(self.timeout_ms);
    }
}

/// A received frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub header: Header,
    /// A part of the read buffer, which is not copied.
    pub body: Bytes,
}

/// The reason why received bytes are not frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// The length in the header.
    TooLong(u32),
    /// The number of a kind that must not be skipped.
    UnknownKind(u8),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::TooLong(len) => {
                write!(
                    f,
                    "a frame has a body of {len} bytes; the maximum is {MESSAGE_BYTES_MAX}"
                )
            }
            FrameError::UnknownKind(number) => {
                write!(
                    f,
                    "a frame is of kind {number}, which this version of Helenus does not know"
                )
            }
        }
    }
}

/// A header that was read, and whose body is incomplete.
#[derive(Clone, Copy, Debug)]
struct Begun {
    /// `None` if the frame is skipped.
    header: Option<Header>,
    len: usize,
}

/// Divides received bytes into frames.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    /// The received bytes, without the header in `begun`.
    buffer: BytesMut,
    begun: Option<Begun>,
}

impl FrameDecoder {
    /// Returns the next complete frame. `None` if more bytes must be read.
    ///
    /// # Errors
    /// The bytes are not frames. The connection must be closed.
    pub fn decode(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            let Some(begun) = self.begin()? else {
                return Ok(None);
            };
            if self.buffer.len() < begun.len {
                return Ok(None);
            }
            self.begun = None;
            let body = self.buffer.split_to(begun.len).freeze();
            if let Some(header) = begun.header {
                return Ok(Some(Frame { header, body }));
            }
        }
    }

    /// Returns the buffer into which the next bytes are to be read, with a limit of about `len` bytes.
    pub fn room(&mut self, len: usize) -> Limit<&mut BytesMut> {
        let len = match self.begun {
            // A large body's own buffer takes no bytes beyond the body.
            Some(begun) if begun.len > LARGE_BODY_LEN => begun
                .len
                .saturating_sub(self.buffer.len())
                .clamp(1, LARGE_READ_LEN),
            _ => len,
        };
        self.buffer.reserve(len);
        (&mut self.buffer).limit(len)
    }

    /// Returns the header of the next frame. `None` if it is incomplete.
    fn begin(&mut self) -> Result<Option<Begun>, FrameError> {
        if self.begun.is_some() {
            return Ok(self.begun);
        }
        let Some((bytes, _)) = self.buffer.split_first_chunk::<HEADER_LEN>() else {
            return Ok(None);
        };
        let begun = decode_header(bytes)?;
        let _ = self.buffer.split_to(HEADER_LEN);
        self.begun = Some(begun);
        if begun.len > LARGE_BODY_LEN && self.buffer.len() < begun.len {
            let mut own = BytesMut::with_capacity(begun.len.min(LARGE_READ_LEN));
            own.extend_from_slice(&self.buffer);
            self.buffer = own;
        }
        Ok(self.begun)
    }
}

fn decode_header(bytes: &[u8; HEADER_LEN]) -> Result<Begun, FrameError> {
    let [l0, l1, l2, l3, number, flags, i0, i1, i2, i3, t0, t1, t2, t3] = *bytes;
    let len = u32::from_le_bytes([l0, l1, l2, l3]);
    if len as usize > MESSAGE_BYTES_MAX {
        return Err(FrameError::TooLong(len));
    }
    let header = Kind::of_number(number).map(|kind| Header {
        kind,
        flags,
        id: u32::from_le_bytes([i0, i1, i2, i3]),
        timeout_ms: u32::from_le_bytes([t0, t1, t2, t3]),
    });
    if header.is_none() && number & SKIPPABLE == 0 {
        return Err(FrameError::UnknownKind(number));
    }
    Ok(Begun {
        header,
        len: len as usize,
    })
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
