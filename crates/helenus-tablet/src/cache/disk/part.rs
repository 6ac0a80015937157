//! The parts into which SSTables are divided, and the arithmetic of their positions.

use std::io::{Read, Write};
use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use foyer::{Code, Error};

/// Bytes of each part of an SSTable except the last. A block of a few KiB lies in one part, seldom in two. On disk, a part and its metadata
/// take whole pages of 4 KiB; the 256 bytes are reserved for the metadata.
pub(super) const PART_BYTES: u64 = (32 << 10) - 256;
/// Maximum length of a path. A longer one is a sign of damage.
const PATH_BYTES_MAX: u32 = 4 << 10;

/// One part of one SSTable of the store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PartKey {
    /// The path of the SSTable in the store.
    pub object: Arc<str>,
    pub index: u32,
}

impl Code for PartKey {
    fn encode(&self, writer: &mut impl Write) -> foyer::Result<()> {
        let len = u32::try_from(self.object.len()).unwrap_or(u32::MAX);
        let written = writer
            .write_all(&self.index.to_le_bytes())
            .and_then(|()| writer.write_all(&len.to_le_bytes()))
            .and_then(|()| writer.write_all(self.object.as_bytes()));
        written.map_err(Error::io_error)
    }

    fn decode(reader: &mut impl Read) -> foyer::Result<Self> {
        let mut number = || {
            let mut bytes = [0; 4];
            reader.read_exact(&mut bytes).map_err(Error::io_error)?;
            foyer::Result::Ok(u32::from_le_bytes(bytes))
        };
        let (index, len) = (number()?, number()?);
        let mut path = vec![0; len.min(PATH_BYTES_MAX) as usize];
        reader.read_exact(&mut path).map_err(Error::io_error)?;
        let path = String::from_utf8_lossy(&path);
        Ok(PartKey {
            object: path.as_ref().into(),
            index,
        })
    }

    fn estimated_size(&self) -> usize {
        2 * size_of::<u32>() + self.object.len()
    }
}

/// Returns the parts that overlap a range of bytes.
pub(super) fn parts_of(range: &Range<u64>) -> Range<u32> {
    let number = |index: u64| u32::try_from(index).unwrap_or(u32::MAX);
    number(range.start / PART_BYTES)..number(range.end.div_ceil(PART_BYTES))
}

/// Returns the range of bytes of parts. The last part of an SSTable may be shorter.
pub(super) fn bytes_of(parts: Range<u32>) -> Range<u64> {
    u64::from(parts.start) * PART_BYTES..u64::from(parts.end) * PART_BYTES
}

/// Returns the runs of neighbouring parts that were not found.
pub(super) fn missing_runs(first: u32, found: &[Option<Bytes>]) -> Vec<Range<u32>> {
    let mut runs: Vec<Range<u32>> = Vec::new();
    for (index, part) in (first..).zip(found) {
        if part.is_some() {
            continue;
        }
        match runs.last_mut() {
            Some(run) if run.end == index => run.end += 1,
            _ => runs.push(index..index + 1),
        }
    }
    runs
}

/// Returns the complete parts among bytes of an SSTable that begin at `start`. `is_end` says that the SSTable ends with these bytes.
pub(super) fn whole_parts(
    object: &Arc<str>,
    start: u64,
    bytes: &Bytes,
    is_end: bool,
) -> Vec<(PartKey, Bytes)> {
    let key = |index| PartKey {
        object: object.clone(),
        index,
    };
    let end = start + bytes.len() as u64;
    let slice = |part: Range<u64>| bytes.slice((part.start - start) as usize..(part.end - start) as usize);
    parts_of(&(start..end))
        .map(|index| (index, bytes_of(index..index + 1)))
        .filter(|(_, part)| part.start >= start && (part.end <= end || is_end))
        .map(|(index, part)| (key(index), slice(part.start..part.end.min(end))))
        .collect()
}

/// Joins ordered pieces of an SSTable, each with its position, and returns the bytes within `range`. The result ends at the first gap.
pub(super) fn join(pieces: &[(u64, Bytes)], range: &Range<u64>) -> Bytes {
    let within = |(start, bytes): &(u64, Bytes)| {
        let end = start + bytes.len() as u64;
        let (from, to) = (range.start.max(*start), range.end.min(end));
        (from < to).then(|| (from, bytes.slice((from - start) as usize..(to - start) as usize)))
    };
    let mut pieces = pieces.iter().filter_map(within);
    let Some((mut next, first)) = pieces
        .next()
        .map(|(from, bytes)| (from + bytes.len() as u64, bytes))
    else {
        return Bytes::new();
    };
    if next == range.end {
        return first;
    }
    let mut joined = BytesMut::with_capacity((range.end - range.start) as usize);
    joined.extend_from_slice(&first);
    for (from, bytes) in pieces {
        if from != next {
            break;
        }
        next += bytes.len() as u64;
        joined.extend_from_slice(&bytes);
    }
    joined.freeze()
}
