//! CRC.db: checksums of an uncompressed Data.db (`io.util.DataIntegrityMetadata`, `ChecksumWriter`).
//!
//! ```text
//! chunk length (4) | for each chunk: CRC32 (4)
//! ```
//!
//! Compaction flushes its writer once more at the end, so that checksums of nothing may follow.

use bytes::Bytes;

use super::compression_info::CHUNK_BYTES_MAX;
use crate::cursor::Cursor;
use crate::error::{ErrorKind, SstableError};
use crate::file_name::{CRC, DATA};

const CHECKSUM_BYTES: usize = 4;

/// The content of CRC.db.
#[derive(Clone, Debug)]
pub(crate) struct ChunkChecksums {
    pub(crate) chunk_len: usize,
    checksums: Bytes,
}

impl ChunkChecksums {
    /// Decodes the file, which belongs to a Data.db of `data_len` bytes.
    pub(crate) fn decode(file: &Bytes, data_len: u64) -> Result<ChunkChecksums, SstableError> {
        let mut cursor = Cursor::new(file, CRC, 0);
        let chunk_len = cursor.u32("chunk length")? as usize;
        if chunk_len == 0 || chunk_len > CHUNK_BYTES_MAX {
            return Err(cursor.corrupt(format!(
                "chunks have {chunk_len} bytes; 1 to {CHUNK_BYTES_MAX} are expected"
            )));
        }
        let chunks = data_len.div_ceil(chunk_len as u64);
        let checksums = file.slice(CHECKSUM_BYTES..);
        let needed = chunks.saturating_mul(CHECKSUM_BYTES as u64);
        // The CRC32 of nothing is 0.
        let follows = usize::try_from(needed)
            .ok()
            .and_then(|needed| checksums.get(needed..));
        let is_valid = checksums.len().is_multiple_of(CHECKSUM_BYTES)
            && follows.is_some_and(|follows| follows.iter().all(|byte| *byte == 0));
        if !is_valid {
            let found = checksums.len() / CHECKSUM_BYTES;
            let problem =
                format!("{found} checksums exist for {chunks} chunks of Data.db, which has {data_len} bytes");
            return Err(cursor.corrupt(problem));
        }
        Ok(ChunkChecksums { chunk_len, checksums })
    }

    /// Verifies the chunk of that number.
    pub(crate) fn verify(&self, index: usize, chunk: &[u8]) -> Result<(), SstableError> {
        let expected = index
            .checked_mul(CHECKSUM_BYTES)
            .and_then(|start| self.checksums.get(start..)?.first_chunk::<CHECKSUM_BYTES>())
            .map(|bytes| u32::from_be_bytes(*bytes));
        let found = crc32fast::hash(chunk);
        if expected == Some(found) {
            return Ok(());
        }
        let offset = (index as u64).saturating_mul(self.chunk_len as u64);
        let expected = expected.unwrap_or_default();
        let problem = format!("the chunk has CRC32 {found:08x}; CRC.db expects {expected:08x}");
        Err(SstableError::new(ErrorKind::Checksum, DATA, offset, problem))
    }
}
