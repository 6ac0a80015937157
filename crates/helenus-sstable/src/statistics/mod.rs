//! Statistics.db: a table of contents, and up to four parts with checksums (`io.sstable.metadata.MetadataSerializer`, `MetadataType`).
//!
//! ```text
//! number of parts (4) | checksum (4) | for each part: type (4) offset (4) | checksum (4) | for each part: bytes, checksum (4)
//! ```
//!
//! Checksums exist since `na`. That of the table of contents also covers the number of parts.

mod encoding;
mod header;
mod summary;

pub use encoding::{EncodingStats, NO_DELETION_TIME_S};
pub(crate) use encoding::{local_deletion_of_i32, local_deletion_of_u32};
pub use header::{Column, ColumnKind, SerializationHeader};
pub use summary::{CoveredClusterings, Summary};

use bytes::Bytes;

use crate::cursor::Cursor;
use crate::error::{ErrorKind, SstableError};
use crate::file_name::STATISTICS;
use crate::version::Version;

/// Maximum length of Statistics.db. Genuine ones have some KiB; those with very many columns have some MiB.
pub const STATISTICS_BYTES_MAX: u64 = 16 << 20;

/// Parts by the numbers of their types.
const VALIDATION: u32 = 0;
const STATS: u32 = 2;
const HEADER: u32 = 3;
const TYPES: u32 = 4;

/// The content of Statistics.db.
#[derive(Clone, Debug)]
pub struct Statistics {
    version: Version,
    /// Name of the partitioner's class, for example `org.apache.cassandra.dht.Murmur3Partitioner`.
    pub partitioner: String,
    pub header: SerializationHeader,
    /// The part with minima, maxima and histograms, with its offset. `None` if the file lacks it.
    summary: Option<(Bytes, u64)>,
}

impl Statistics {
    /// Decodes the whole file, and verifies all checksums.
    ///
    /// # Errors
    /// If the file is cut, corrupt or lacks a part that reading needs.
    pub fn decode(version: Version, file: &Bytes) -> Result<Statistics, SstableError> {
        let mut validation = None;
        let mut header = None;
        let mut summary = None;
        for part in parts(version, file)? {
            let place = match part.kind {
                VALIDATION => &mut validation,
                HEADER => &mut header,
                STATS => &mut summary,
                _ => continue,
            };
            *place = Some((part.bytes, part.offset));
        }
        let lacks = |part: &str| {
            let problem = format!("the file has no {part} part, which every SSTable since 3.0 has");
            SstableError::new(ErrorKind::Corrupt, STATISTICS, None, problem)
        };
        let (validation, start) = validation.ok_or_else(|| lacks("validation"))?;
        let partitioner = Cursor::new(&validation, STATISTICS, start)
            .utf("partitioner")
            .map_err(SstableError::within_item)?;
        let (header, start) = header.ok_or_else(|| lacks("serialization header"))?;
        Ok(Statistics {
            version,
            partitioner: partitioner.to_owned(),
            header: SerializationHeader::decode_at(version, &header, start)?,
            summary,
        })
    }

    /// Decodes minima, maxima and other facts of the whole SSTable. Reading the rows doesn't need them. `None` if the file lacks them.
    ///
    /// # Errors
    /// If the part is corrupt.
    pub fn summary(&self) -> Result<Option<Summary>, SstableError> {
        self.summary
            .as_ref()
            .map(|(bytes, start)| Summary::decode(self.version, bytes, *start, &self.header))
            .transpose()
    }
}

struct Part {
    kind: u32,
    offset: u64,
    bytes: Bytes,
}

fn parts(version: Version, file: &Bytes) -> Result<Vec<Part>, SstableError> {
    let mut cursor = Cursor::new(file, STATISTICS, 0);
    let has_checksums = version.has_metadata_checksum();
    let count = cursor.u32("number of parts")?;
    if count == 0 || count > TYPES {
        return Err(cursor.corrupt(format!(
            "the file claims to have {count} parts; 1 to {TYPES} are expected"
        )));
    }
    if has_checksums {
        check(&mut cursor, &[&count.to_be_bytes()])?;
    }
    let entries_start = cursor.consumed();
    let mut entries = Vec::new();
    for _ in 0..count {
        entries.push((cursor.u32("type of a part")?, cursor.u32("offset of a part")?));
    }
    if has_checksums {
        let covered = file.get(entries_start..cursor.consumed()).unwrap_or_default();
        check(&mut cursor, &[&count.to_be_bytes(), covered])?;
    }
    let ends = entries
        .iter()
        .skip(1)
        .map(|(_, offset)| *offset as usize)
        .chain([file.len()]);
    let mut parts = Vec::new();
    for ((kind, offset), end) in entries.iter().zip(ends) {
        let start = *offset as usize;
        let content_end = if has_checksums {
            end.checked_sub(4)
        } else {
            Some(end)
        };
        let range = content_end
            .filter(|content_end| start >= cursor.consumed() && start <= *content_end && end <= file.len());
        let Some(content_end) = range else {
            let len = file.len();
            let problem = format!("part {kind} claims bytes {start} to {end} of a file of {len} bytes");
            return Err(cursor.error(ErrorKind::Truncated, problem));
        };
        let bytes = file.slice(start..content_end);
        if has_checksums {
            let mut checksum = Cursor::new(
                file.get(content_end..end).unwrap_or_default(),
                STATISTICS,
                content_end as u64,
            );
            check(&mut checksum, &[&bytes])?;
        }
        parts.push(Part {
            kind: *kind,
            offset: u64::from(*offset),
            bytes,
        });
    }
    Ok(parts)
}

/// Reads a checksum and compares it with that of the covered bytes.
fn check(cursor: &mut Cursor<'_>, covered: &[&[u8]]) -> Result<(), SstableError> {
    let place = cursor.clone();
    let expected = cursor.u32("checksum")?;
    let mut hasher = crc32fast::Hasher::new();
    for bytes in covered {
        hasher.update(bytes);
    }
    let found = hasher.finalize();
    if found == expected {
        return Ok(());
    }
    let problem =
        format!("the bytes before this checksum have CRC32 {found:08x}; {expected:08x} is expected");
    Err(place.error(ErrorKind::Checksum, problem))
}

#[cfg(test)]
#[path = "statistics_tests.rs"]
mod tests;
