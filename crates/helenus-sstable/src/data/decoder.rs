//! The decoder of Data.db, without I/O: bytes go in, in pieces of any length, and events come out.
//!
//! An item is decoded when all of its bytes are there, so memory holds one row and one piece. Values share the memory of their row.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::deletion::DeletionTime;
use super::event::{Event, Partition};
use super::row::{
    END_OF_PARTITION, Flags, HAS_EXTENDED_FLAGS, HAS_SHADOWABLE_DELETION, IS_MARKER, IS_STATIC, read_marker,
    read_row,
};
use crate::clustering::{read_bound_start, skip_values};
use crate::cursor::Cursor;
use crate::error::{ErrorKind, SstableError};
use crate::file_name::DATA;
use crate::statistics::{ColumnKind, SerializationHeader};

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
    /// Bytes that aren't decoded.
    buffer: BytesMut,
    /// Offset of the buffer's first byte.
    offset: u64,
    /// Bytes that the buffer needs before the next try, so that a long row isn't tried with every piece.
    needed: usize,
    is_finished: bool,
}

impl Decoder {
    pub fn new(header: Arc<SerializationHeader>, limits: Limits) -> Decoder {
        Decoder {
            header,
            limits,
            state: State::PartitionStart,
            buffer: BytesMut::new(),
            offset: 0,
            needed: 0,
            is_finished: false,
        }
    }

    /// Appends bytes of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
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
            if self.buffer.is_empty() && self.state == State::PartitionStart && self.is_finished {
                return Ok(Step::End);
            }
            if self.buffer.len() < self.needed && !self.is_finished {
                return Ok(Step::NeedBytes);
            }
            let len = match self.item_len() {
                Ok(len) => len,
                Err(error) if error.needed > 0 && !self.is_finished => {
                    self.needed = error.needed;
                    return Ok(Step::NeedBytes);
                }
                Err(error) => return Err(self.fail(error)),
            };
            self.needed = 0;
            let item = self.buffer.split_to(len).freeze();
            let event = self
                .decode(&item)
                .map_err(|error| self.fail(error.within_item()))?;
            self.offset = self.offset.saturating_add(len as u64);
            if let Some(event) = event {
                return Ok(Step::Event(event));
            }
        }
    }

    fn fail(&mut self, error: SstableError) -> SstableError {
        self.state = State::Failed;
        error
    }

    /// Returns the length of the next item. The error says how many bytes are needed if the buffer has only a part.
    fn item_len(&self) -> Result<usize, SstableError> {
        if self.state == State::PartitionStart {
            let mut cursor = Cursor::new(&self.buffer, DATA, self.offset);
            cursor.short_bytes("partition key")?;
            DeletionTime::read_of_partition(self.header.version, &mut cursor)?;
            return Ok(cursor.consumed());
        }
        let mut cursor = Cursor::limited(&self.buffer, DATA, self.offset, self.limits.row_bytes_max);
        let flags = self.flags(&mut cursor)?;
        if flags.flags & END_OF_PARTITION != 0 {
            return Ok(cursor.consumed());
        }
        if flags.flags & IS_MARKER != 0 {
            let (_, types) = read_bound_start(&mut cursor, &self.header.clustering_types)?;
            skip_values(&mut cursor, types)?;
        } else if flags.kind() == ColumnKind::Regular {
            skip_values(&mut cursor, &self.header.clustering_types)?;
        }
        let len = cursor.vint_len("size of an item")?;
        cursor.take_limited(len, "row or range tombstone marker")?;
        Ok(cursor.consumed())
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

    /// Decodes an item that is complete. `None` if it is an empty static row.
    fn decode(&mut self, item: &Bytes) -> Result<Option<Event>, SstableError> {
        let header = Arc::clone(&self.header);
        let mut cursor = Cursor::new(item, DATA, self.offset);
        if self.state == State::PartitionStart {
            let key = item.slice_ref(cursor.short_bytes("partition key")?);
            let deletion = DeletionTime::read_of_partition(header.version, &mut cursor)?;
            self.state = match header.static_columns.is_empty() {
                true => State::Unfiltered,
                false => State::StaticRow,
            };
            return Ok(Some(Event::Partition(Partition { key, deletion })));
        }
        let flags = self.flags(&mut cursor)?;
        if flags.flags & END_OF_PARTITION != 0 {
            self.state = State::PartitionStart;
            return Ok(Some(Event::PartitionEnd));
        }
        if flags.flags & IS_MARKER != 0 {
            let (kind, types) = read_bound_start(&mut cursor, &header.clustering_types)?;
            let marker = read_marker(item, &mut cursor, &header, kind, types)?;
            return Ok(Some(Event::RangeTombstoneMarker(marker)));
        }
        let row = read_row(item, &mut cursor, &header, flags, self.limits.row_cells_max)?;
        if self.state == State::StaticRow {
            self.state = State::Unfiltered;
            return Ok((!row.is_empty()).then_some(Event::StaticRow(row)));
        }
        Ok(Some(Event::Row(row)))
    }
}

#[cfg(test)]
#[path = "decoder_tests.rs"]
mod tests;
