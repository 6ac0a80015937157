//! The decoder of Data.db, without I/O: bytes go in, in pieces of any length, and events come out.
//!
//! An item is decoded when all of its bytes are there, so memory holds one row and one piece. Values share the memory of their piece.

use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};

use super::deletion::DeletionTime;
use super::event::{Event, Partition};
use super::row::{
    END_OF_PARTITION, Flags, HAS_EXTENDED_FLAGS, HAS_SHADOWABLE_DELETION, IS_MARKER, IS_STATIC, read_marker,
    read_row,
};
use crate::cursor::Cursor;
use crate::error::{ErrorKind, SstableError};
use crate::file_name::DATA;
use crate::statistics::SerializationHeader;

/// Limits of a row. A row over a limit is refused, because it would have to be in memory as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum bytes of a row, with all of its cells. The default is 256 MiB, Cassandra's `max_value_size`.
    pub row_bytes_max: usize,
    /// Maximum number of cells of a row. The default is 4 Mi: a decoded cell takes some 120 bytes beside its value.
    pub row_cells_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            row_bytes_max: 256 << 20,
            row_cells_max: 4 << 20,
        }
    }
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Event(Event),
    /// More bytes are needed: call [`Decoder::push`] or [`Decoder::finish`].
    NeedBytes,
    /// All partitions are decoded.
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    PartitionStart,
    StaticRow,
    /// Rows and markers.
    Unfiltered,
    Failed,
}

/// Decodes the bytes of Data.db, after decompression.
#[derive(Debug)]
pub struct Decoder {
    header: Arc<SerializationHeader>,
    limits: Limits,
    state: State,
    /// Bytes that are decoded next. Values are slices of them.
    block: Bytes,
    /// Bytes that follow the block.
    pending: BytesMut,
    /// Offset of the block's first byte.
    offset: u64,
    /// Bytes that the next item needs before the next try, so that a long row isn't tried with every piece. 0 if unknown.
    needed: usize,
    is_finished: bool,
}

impl Decoder {
    pub fn new(header: Arc<SerializationHeader>, limits: Limits) -> Decoder {
        Decoder {
            header,
            limits,
            state: State::PartitionStart,
            block: Bytes::new(),
            pending: BytesMut::new(),
            offset: 0,
            needed: 0,
            is_finished: false,
        }
    }

    /// Appends bytes of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// Notes that the file has no more bytes.
    pub fn finish(&mut self) {
        self.is_finished = true;
    }

    /// Returns the offset of the next item in the decompressed data.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Decodes the next item.
    ///
    /// # Errors
    /// If the bytes are corrupt or end inside a partition, or a row exceeds a limit. The decoder can't be used afterwards.
    pub fn step(&mut self) -> Result<Step, SstableError> {
        loop {
            if self.state == State::Failed {
                let problem = "the decoder has failed before";
                return Err(SstableError::new(ErrorKind::Corrupt, DATA, self.offset, problem));
            }
            if self.block.is_empty() {
                if self.pending.is_empty() && self.is_finished && self.state == State::PartitionStart {
                    return Ok(Step::End);
                }
                if !self.refill() {
                    return Ok(Step::NeedBytes);
                }
            }
            match self.decode() {
                Ok(decoded) => {
                    self.needed = 0;
                    self.block.advance(decoded.len);
                    self.offset = self.offset.saturating_add(decoded.len as u64);
                    self.state = decoded.state;
                    if let Some(event) = decoded.event {
                        return Ok(Step::Event(event));
                    }
                }
                Err(error) if error.needed > 0 && !(self.is_finished && self.pending.is_empty()) => {
                    self.needed = error.needed;
                    if !self.refill() {
                        return Ok(Step::NeedBytes);
                    }
                }
                Err(error) => return Err(self.fail(error)),
            }
        }
    }

    /// Makes the block longer by the bytes that follow it. Returns false if the next item needs more bytes than there are. All bytes are
    /// pending then, so that a long row is collected without copying it again.
    fn refill(&mut self) -> bool {
        if !self.block.is_empty() {
            let follows = std::mem::take(&mut self.pending);
            self.pending.reserve(self.block.len() + follows.len());
            self.pending.extend_from_slice(&self.block);
            self.pending.extend_from_slice(&follows);
            self.block = Bytes::new();
        }
        if self.pending.len() < self.needed.max(1) && !self.is_finished {
            return false;
        }
        self.block = self.pending.split().freeze();
        true
    }

    fn fail(&mut self, error: SstableError) -> SstableError {
        self.state = State::Failed;
        error
    }

    /// Reads the flags of a row or marker, and refuses those that Cassandra doesn't write in this place.
    fn flags(&self, cursor: &mut Cursor<'_>) -> Result<Flags, SstableError> {
        let place = cursor.clone();
        let flags = cursor.u8("flags of a row")?;
        let extended = match flags & HAS_EXTENDED_FLAGS {
            0 => 0,
            _ => cursor.u8("extended flags of a row")?,
        };
        let is_end = flags & END_OF_PARTITION != 0;
        let is_marker = flags & IS_MARKER != 0;
        let is_static = extended & IS_STATIC != 0;
        let is_valid = (!is_end || flags == END_OF_PARTITION)
            && (!is_marker || flags == IS_MARKER)
            && extended & !(IS_STATIC | HAS_SHADOWABLE_DELETION) == 0
            && is_static == (self.state == State::StaticRow);
        if !is_valid {
            let expected = match self.state {
                State::StaticRow => "a static row",
                _ => "a row, a range tombstone marker or the end of the partition",
            };
            let problem = format!("the flags {flags:#04x} {extended:#04x} are found; {expected} is expected");
            return Err(place.corrupt(problem));
        }
        Ok(Flags { flags, extended })
    }

    /// Decodes the item at the start of the block. The error says how many bytes are needed if the block has only a part of it.
    fn decode(&self) -> Result<Decoded, SstableError> {
        let (header, source) = (&*self.header, &self.block);
        if self.state == State::PartitionStart {
            let mut cursor = Cursor::new(source, DATA, self.offset);
            let key = source.slice_ref(cursor.short_bytes("partition key")?);
            let deletion = DeletionTime::read_of_partition(header.version, &mut cursor)?;
            let state = match header.static_columns.is_empty() {
                true => State::Unfiltered,
                false => State::StaticRow,
            };
            let event = Event::Partition(Partition { key, deletion });
            return Ok(Decoded::new(&cursor, state, Some(event)));
        }
        let mut cursor = Cursor::limited(source, DATA, self.offset, self.limits.row_bytes_max);
        let flags = self.flags(&mut cursor)?;
        if flags.flags & END_OF_PARTITION != 0 {
            return Ok(Decoded::new(
                &cursor,
                State::PartitionStart,
                Some(Event::PartitionEnd),
            ));
        }
        if flags.flags & IS_MARKER != 0 {
            let marker = read_marker(source, &mut cursor, header)?;
            return Ok(Decoded::new(
                &cursor,
                self.state,
                Some(Event::RangeTombstoneMarker(marker)),
            ));
        }
        let row = read_row(source, &mut cursor, header, flags, self.limits.row_cells_max)?;
        Ok(match self.state {
            State::StaticRow => {
                let event = (!row.is_empty()).then_some(Event::StaticRow(row));
                Decoded::new(&cursor, State::Unfiltered, event)
            }
            state => Decoded::new(&cursor, state, Some(Event::Row(row))),
        })
    }
}

/// A decoded item.
struct Decoded {
    len: usize,
    /// State after the item.
    state: State,
    /// `None` if the item is an empty static row.
    event: Option<Event>,
}

impl Decoded {
    fn new(cursor: &Cursor<'_>, state: State, event: Option<Event>) -> Decoded {
        Decoded {
            len: cursor.consumed(),
            state,
            event,
        }
    }
}

#[cfg(test)]
#[path = "decoder_tests.rs"]
mod tests;
