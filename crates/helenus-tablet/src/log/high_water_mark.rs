//! The durable high-water mark of the log (`log/END`). The mark shows during replay whether the newest segment was deleted or truncated.
//!
//! The file has two slots in separate sectors, which are written alternately; the greater one is valid. A write never syncs the file. So
//! after a power failure the mark may be behind the log, but never ahead of it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytes::Buf;
use parking_lot::Mutex;

use crate::checksum::crc32c;
use crate::disk::durable_file::missing;
use crate::error::StoreError;

const MAGIC: [u8; 8] = *b"HLNSEND\n";
const SLOT_LEN: usize = 28;
/// Offset of the second slot.
const STRIDE: usize = 512;
const FILE_LEN: usize = 2 * STRIDE;

/// A position in the log: a segment, and an offset in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogPosition {
    pub segment: u64,
    pub offset: u64,
}

impl LogPosition {
    fn encode(self) -> [u8; SLOT_LEN] {
        let mut bytes = [0; SLOT_LEN];
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
        put(0, &MAGIC);
        put(8, &self.segment.to_le_bytes());
        put(16, &self.offset.to_le_bytes());
        let sum = crc32c(&bytes[..24]);
        bytes[24..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (body, mut sum) = bytes.get(..SLOT_LEN)?.split_at(24);
        let mut rest = body.strip_prefix(&MAGIC)?;
        (sum.get_u32_le() == crc32c(body)).then(|| LogPosition {
            segment: rest.get_u64_le(),
            offset: rest.get_u64_le(),
        })
    }
}

/// The open file `END`.
#[derive(Debug)]
pub(crate) struct HighWaterMark {
    file: File,
    path: PathBuf,
    /// The last written position, and the slot that has it.
    last: Mutex<(LogPosition, usize)>,
}

impl HighWaterMark {
    fn path(folder: &Path) -> PathBuf {
        folder.join("END")
    }

    /// Creates the file. With `fsync`, it is durable on return.
    pub fn create(folder: &Path, reached: LogPosition, fsync: bool) -> Result<HighWaterMark, StoreError> {
        let path = HighWaterMark::path(folder);
        let mut bytes = vec![0; FILE_LEN];
        for slot in [0, STRIDE] {
            bytes[slot..slot + SLOT_LEN].copy_from_slice(&reached.encode());
        }
        crate::disk::durable_file::write_atomically(&path, &bytes, fsync)?;
        HighWaterMark::open(folder)
    }

    /// Opens the file, which must exist.
    pub fn open(folder: &Path) -> Result<HighWaterMark, StoreError> {
        let path = HighWaterMark::path(folder);
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => missing(&path.display().to_string()),
            _ => StoreError::io("cannot open", &path, &error),
        };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .map_err(failed)?;
        let bytes = std::fs::read(&path).map_err(failed)?;
        let slots = [0, STRIDE].map(|slot| bytes.get(slot..).and_then(LogPosition::decode));
        let last = slots
            .into_iter()
            .zip(0..)
            .filter_map(|(found, slot)| Some((found?, slot)));
        let last = last.max().ok_or_else(|| StoreError::Corrupt {
            file: path.display().to_string(),
            detail: "the file does not match its checksums".into(),
        })?;
        Ok(HighWaterMark {
            file,
            last: Mutex::new(last),
            path,
        })
    }

    pub fn reached(&self) -> LogPosition {
        self.last.lock().0
    }

    /// Writes the position up to which the log is on disk, if it is further than before. A failure is only logged, because nothing depends
    /// on this write.
    pub fn note(&self, reached: LogPosition) {
        let mut last = self.last.lock();
        if reached <= last.0 {
            return;
        }
        let slot = 1 - last.1;
        match self.file.write_all_at(&reached.encode(), (slot * STRIDE) as u64) {
            Ok(()) => *last = (reached, slot),
            Err(error) => {
                tracing::debug!(path = %self.path.display(), %error, "the log's end could not be noted")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REACHED: LogPosition = LogPosition {
        segment: 5,
        offset: 4200,
    };

    #[test]
    fn slot_bytes() {
        let hex: String = REACHED
            .encode()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(hex, "484c4e53454e440a050000000000000068100000000000001dd31208");
    }

    #[test]
    fn the_furthest_intact_slot_counts() {
        let folder = tempfile::tempdir().unwrap();
        let end = HighWaterMark::create(folder.path(), REACHED, false).unwrap();
        let further = LogPosition {
            offset: 5000,
            ..REACHED
        };
        end.note(further);
        end.note(REACHED);
        assert_eq!(HighWaterMark::open(folder.path()).unwrap().reached(), further);
        // If the newer slot is torn, the other one is valid.
        let path = HighWaterMark::path(folder.path());
        let mut bytes = std::fs::read(&path).unwrap();
        let slot = if LogPosition::decode(&bytes) == Some(further) {
            0
        } else {
            STRIDE
        };
        bytes[slot + 17] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(HighWaterMark::open(folder.path()).unwrap().reached(), REACHED);
        bytes[STRIDE - slot + 9] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let text = HighWaterMark::open(folder.path()).unwrap_err().to_string();
        assert!(text.contains("log/END") || text.contains("/END"), "{text}");
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(
            HighWaterMark::open(folder.path()),
            Err(StoreError::Corrupt { .. })
        ));
    }
}
