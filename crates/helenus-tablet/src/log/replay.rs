//! Reads the log back when a store is opened.

use std::path::Path;

use bytes::Bytes;

use super::LogPosition;
use super::frame::{
    FRAME_HEADER_LEN, FrameHeader, HeaderError, Record, SEGMENT_HEADER_LEN, SegmentHeader, decode_records,
};
use super::ledger::SegmentInfo;
use super::segment::{Folder, segment_path};
use crate::clock::CommitTime;
use crate::disk::durable_file::missing;
use crate::error::StoreError;

/// Parts of the log that must exist.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ExpectedLog {
    /// The oldest segment that must exist. Earlier ones were retired.
    pub first: u64,
    /// Position that the log has reached at least.
    pub reached: LogPosition,
}

/// Result of a replay.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    pub segments: Vec<SegmentInfo>,
    /// The number of the newest segment and the end of its valid frames. Zeros if there was never a segment. The number of a spare file
    /// counts too: no number is used twice, so that frames of a file's earlier use can be distinguished.
    pub newest: (u64, u64),
    pub last_lsn: u64,
    pub records: u64,
}

/// Replays all records in order to `sink`, and stops at its first error. A torn frame at the end of the newest segment was never
/// acknowledged and is ignored. Any other damage, and any gap in the expected log, is an error that names the file and the offset.
pub(crate) fn replay(
    folder: &Path,
    expected: ExpectedLog,
    tablet_of: &dyn Fn(i64) -> Option<u32>,
    sink: &mut dyn FnMut(CommitTime, Record) -> Result<(), StoreError>,
) -> Result<Replayed, StoreError> {
    let ExpectedLog { first, reached } = expected;
    // Spare files have the numbers of retired segments, and of later ones if they were prepared. So they count only in stores without an
    // inventory.
    let retired = match first.checked_sub(1) {
        Some(retired) => retired,
        None => Folder::newest_spare(folder)?,
    };
    let mut replayed = Replayed {
        newest: (retired.max(reached.segment), 0),
        ..Replayed::default()
    };
    let mut numbers = Folder::list(folder)?;
    numbers.retain(|number| *number >= first);
    check_all_there(folder, expected, &numbers)?;
    let mut headers = Vec::with_capacity(numbers.len());
    for &number in &numbers {
        headers.push(read_header(folder, number)?);
    }
    for (index, header) in headers.iter().enumerate() {
        let path = segment_path(folder, header.number);
        if let Some(previous) = index.checked_sub(1).and_then(|previous| headers.get(previous))
            && header.previous_number != previous.number
        {
            return Err(corrupt(
                &path,
                0,
                &format!("segment {} before it is missing", header.previous_number),
            ));
        }
        let mut segment = SegmentReader {
            bytes: Bytes::from(
                std::fs::read(&path).map_err(|error| StoreError::io("cannot read", &path, &error))?,
            ),
            path: &path,
            number: header.number,
            end: headers.get(index + 1).map(|next| next.previous_end),
            kept: if header.number == reached.segment {
                reached.offset
            } else {
                0
            },
            offset: SEGMENT_HEADER_LEN as u64,
        };
        segment.check_len(header.file_len)?;
        let mut info = SegmentInfo::new(header.number, 0);
        while let Some((frame, records)) = segment.next(replayed.last_lsn)? {
            for record in records {
                if record.lsn <= replayed.last_lsn {
                    return Err(corrupt(
                        &path,
                        segment.offset,
                        "records before this offset are out of order",
                    ));
                }
                replayed.last_lsn = record.lsn;
                replayed.records += 1;
                for op in &record.ops {
                    if let Some(tablet) = tablet_of(op.token) {
                        info.add(tablet, record.lsn);
                    }
                }
                sink(frame.time(), record)?;
            }
        }
        replayed.newest = (header.number, segment.offset);
        info.bytes = segment.offset;
        info.active = false;
        replayed.segments.push(info);
    }
    Ok(replayed)
}

/// Reads a segment: its frames up to offset `end`, each with its position, its time and its records.
///
/// # Errors
/// The segment is missing, or one of these frames is damaged.
pub(crate) fn read_segment(folder: &Path, number: u64, end: u64) -> Result<SegmentFrames, StoreError> {
    let header = read_header(folder, number)?;
    let path = segment_path(folder, number);
    let bytes = std::fs::read(&path).map_err(|error| StoreError::io("cannot read", &path, &error))?;
    let mut segment = SegmentReader {
        bytes: bytes.into(),
        path: &path,
        number,
        end: Some(end),
        kept: 0,
        offset: SEGMENT_HEADER_LEN as u64,
    };
    let mut read = SegmentFrames {
        previous: header.previous_number,
        frames: Vec::new(),
    };
    loop {
        let at = LogPosition {
            segment: number,
            offset: segment.offset,
        };
        match segment.next(0)? {
            Some((frame, records)) => read.frames.push((at, frame.machine_ms(), records)),
            None => return Ok(read),
        }
    }
}

/// The frames of a segment.
pub(crate) struct SegmentFrames {
    /// The number of the previous segment.
    pub previous: u64,
    pub frames: Vec<(LogPosition, i64, Vec<Record>)>,
}

/// Checks that all expected segments exist. Earlier versions left out a number if there was a prepared spare file and no segment. The next
/// segment then follows one without frames.
fn check_all_there(folder: &Path, expected: ExpectedLog, numbers: &[u64]) -> Result<(), StoreError> {
    let mut there = numbers.iter().copied().peekable();
    let first = match numbers.first() {
        Some(&oldest) if read_header(folder, oldest)?.previous_end == 0 => oldest,
        _ => expected.first.max(1),
    };
    for number in first..=expected.reached.segment {
        if there.next_if_eq(&number).is_none() {
            return Err(missing(&segment_path(folder, number).display().to_string()));
        }
    }
    Ok(())
}

fn corrupt(path: &Path, offset: u64, detail: &str) -> StoreError {
    StoreError::Corrupt {
        file: path.display().to_string(),
        detail: format!("at offset {offset}: {detail}"),
    }
}

fn read_header(folder: &Path, number: u64) -> Result<SegmentHeader, StoreError> {
    use std::os::unix::fs::FileExt;
    let path = segment_path(folder, number);
    let mut bytes = [0; SEGMENT_HEADER_LEN];
    std::fs::File::open(&path)
        .and_then(|file| file.read_exact_at(&mut bytes, 0))
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => corrupt(&path, 0, "the segment header is cut off"),
            _ => StoreError::io("cannot read", &path, &error),
        })?;
    let header = SegmentHeader::decode(&bytes).map_err(|error| match error {
        HeaderError::Damaged => corrupt(&path, 0, "the segment header is damaged"),
        HeaderError::NewerVersion(found) => StoreError::NewerFormat {
            found: u64::from(found),
            supported: u64::from(super::LOG_VERSION),
        },
    })?;
    if header.number != number {
        return Err(corrupt(
            &path,
            0,
            &format!("the header belongs to segment {}", header.number),
        ));
    }
    Ok(header)
}

struct SegmentReader<'a> {
    bytes: Bytes,
    path: &'a Path,
    number: u64,
    /// End of the valid frames, as recorded in the next segment. `None` for the newest segment.
    end: Option<u64>,
    /// Offset before which the segment is known to have been on disk.
    kept: u64,
    offset: u64,
}

impl SegmentReader<'_> {
    /// Checks that the file has at least `made` bytes, with which it was created.
    fn check_len(&self, made: u64) -> Result<(), StoreError> {
        let len = self.bytes.len() as u64;
        match len < made {
            true => Err(corrupt(
                self.path,
                len,
                &format!("the file is cut off, it had {made} bytes"),
            )),
            false => Ok(()),
        }
    }

    /// Returns the next frame. `None` at the end of the segment. In the newest segment, a frame with records up to `last_lsn` is one of an
    /// earlier use of the file.
    fn next(&mut self, last_lsn: u64) -> Result<Option<(FrameHeader, Vec<Record>)>, StoreError> {
        if self.end.is_some_and(|end| self.offset >= end) {
            return Ok(None);
        }
        let rest = self.bytes.get(self.offset as usize..).unwrap_or_default();
        let Some((header, body)) = FrameHeader::decode(rest, self.number) else {
            return match self.end {
                Some(_) => Err(corrupt(self.path, self.offset, "a frame is damaged")),
                None => self.torn_tail(last_lsn),
            };
        };
        let records = decode_records(self.bytes.slice_ref(body))
            .ok_or_else(|| corrupt(self.path, self.offset, "a record is malformed"))?;
        if self.end.is_none() && !is_newer(&records, last_lsn) {
            return self.torn_tail(last_lsn);
        }
        self.offset += (FRAME_HEADER_LEN + header.body_len) as u64;
        Ok(Some((header, records)))
    }

    /// Returns `None` because the newest segment ends here. An error if a later frame records that this offset was already on disk. A later
    /// frame whose records are not newer than `last_lsn` is ignored: it is of an earlier use of the file, because early stores of 0.1
    /// reused the numbers of segments.
    fn torn_tail(&self, last_lsn: u64) -> Result<Option<(FrameHeader, Vec<Record>)>, StoreError> {
        if self.offset < self.kept {
            let detail = format!("a frame is damaged, and those up to {} were on disk", self.kept);
            return Err(corrupt(self.path, self.offset, &detail));
        }
        let start = self.offset as usize + 1;
        for at in start..self.bytes.len().saturating_sub(FRAME_HEADER_LEN) {
            let Some(rest) = self.bytes.get(at..) else { break };
            if FrameHeader::may_begin(rest)
                && let Some((header, body)) = FrameHeader::decode(rest, self.number)
                && header.durable_offset > self.offset
                && decode_records(self.bytes.slice_ref(body))
                    .is_none_or(|records| is_newer(&records, last_lsn))
            {
                return Err(corrupt(
                    self.path,
                    self.offset,
                    "a frame is damaged, and intact ones follow",
                ));
            }
        }
        Ok(None)
    }
}

fn is_newer(records: &[Record], last_lsn: u64) -> bool {
    records.first().is_none_or(|record| record.lsn > last_lsn)
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
