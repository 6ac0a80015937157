//! CompressionInfo.db: the compressor, and the places of the chunks in Data.db (`io.compress.CompressionMetadata`).
//!
//! ```text
//! class (UTF) | number of options (4) | for each option: name (UTF) value (UTF) | chunk length (4)
//! | [maximum compressed length (4), since na] | length of the data (8) | number of chunks (4) | offsets (8 each)
//! ```
//!
//! A chunk ends where the next one begins. Its last 4 bytes are its CRC32. Compaction flushes its writer once more at the end, so that chunks
//! without data may follow the last one (`CompressedSequentialWriter.flushData`, `SSTableRewriter`).

use bytes::Bytes;

use super::compressor::Compressor;
use crate::cursor::Cursor;
use crate::error::{ErrorKind, SstableError};
use crate::file_name::{COMPRESSION_INFO, DATA};
use crate::version::Version;

/// Maximum length of the file, which is in memory as a whole: 1 TiB of data in chunks of 16 KiB.
pub(crate) const COMPRESSION_INFO_BYTES_MAX: u64 = (512 << 20) + (1 << 16);

/// Maximum decompressed length of a chunk. The default of Cassandra is 16 KiB, and before 4.0 64 KiB.
pub(crate) const CHUNK_BYTES_MAX: usize = 64 << 20;

const CHECKSUM_BYTES: u64 = 4;
const OFFSET_BYTES: usize = 8;

/// The place of a chunk in Data.db.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub offset: u64,
    /// Bytes in the file, with the checksum.
    pub stored_len: usize,
    /// Bytes of data, after decompression. 0 for chunks after the last data.
    pub data_len: usize,
}

/// The content of CompressionInfo.db.
#[derive(Clone, Debug)]
pub struct CompressionInfo {
    pub compressor: Compressor,
    /// Bytes of data in each chunk but the last one.
    pub chunk_len: usize,
    /// Chunks with at least this number of bytes are stored uncompressed. `usize::MAX` if none are, and before `na`.
    pub max_compressed_len: usize,
    /// Bytes of data in total.
    pub data_len: u64,
    /// Offsets of the chunks, 8 bytes each.
    offsets: Bytes,
}

impl CompressionInfo {
    /// Decodes the whole file.
    ///
    /// # Errors
    /// If the file is cut or corrupt, or its compressor is unknown.
    pub fn decode(version: Version, file: &Bytes) -> Result<CompressionInfo, SstableError> {
        let mut cursor = Cursor::new(file, COMPRESSION_INFO, 0);
        let compressor = read_compressor(&mut cursor)?;
        for _ in 0..cursor.u32("number of options")? {
            cursor.utf("name of an option")?;
            cursor.utf("value of an option")?;
        }
        let place = cursor.clone();
        let chunk_len = cursor.u32("chunk length")? as usize;
        if !chunk_len.is_power_of_two() || chunk_len > CHUNK_BYTES_MAX {
            let problem =
                format!("chunks have {chunk_len} bytes; a power of two up to {CHUNK_BYTES_MAX} is expected");
            return Err(place.corrupt(problem));
        }
        let max_compressed_len = match version.has_max_compressed_length() {
            true => read_max_compressed_len(&mut cursor)?,
            false => usize::MAX,
        };
        let place = cursor.clone();
        let data_len = cursor.i64("length of the data")?;
        let count = cursor.u32("number of chunks")?;
        let expected = u64::try_from(data_len)
            .ok()
            .filter(|len| *len > 0)
            .map(|len| len.div_ceil(chunk_len as u64));
        if expected.is_none_or(|expected| u64::from(count) < expected) {
            let problem = format!("{data_len} bytes of data have only {count} chunks of {chunk_len} bytes");
            return Err(place.corrupt(problem));
        }
        let offsets = cursor.take((count as usize).saturating_mul(OFFSET_BYTES), "offsets of chunks")?;
        if !cursor.is_empty() {
            return Err(cursor.corrupt("bytes follow the offsets of the chunks; none are expected"));
        }
        Ok(CompressionInfo {
            compressor,
            chunk_len,
            max_compressed_len,
            data_len: data_len.unsigned_abs(),
            offsets: file.slice_ref(offsets),
        })
    }

    /// Returns the number of chunks, with those that have no data.
    pub fn chunks(&self) -> usize {
        self.offsets.len() / OFFSET_BYTES
    }

    fn offset(&self, index: usize) -> Option<u64> {
        let start = index.checked_mul(OFFSET_BYTES)?;
        let bytes = self.offsets.get(start..)?.first_chunk::<OFFSET_BYTES>()?;
        Some(u64::from_be_bytes(*bytes))
    }

    /// Returns the place of a chunk in a Data.db of `file_len` bytes. `None` after the last chunk.
    ///
    /// # Errors
    /// If the chunk is not within the file, or its length is not that of a chunk.
    pub fn chunk(&self, index: usize, file_len: u64) -> Result<Option<Chunk>, SstableError> {
        let Some(offset) = self.offset(index) else {
            return Ok(None);
        };
        let end = self.offset(index + 1).unwrap_or(file_len);
        let data_start = (index as u64).saturating_mul(self.chunk_len as u64);
        let rest = usize::try_from(self.data_len.saturating_sub(data_start)).unwrap_or(usize::MAX);
        let data_len = rest.min(self.chunk_len);
        // Incompressible data grows: by a sixth with Snappy, by less with the others.
        let stored_max = (self.chunk_len as u64).saturating_mul(2) + 1024;
        let stored_min = CHECKSUM_BYTES + u64::from(data_len > 0);
        let stored = end
            .checked_sub(offset)
            .filter(|len| (stored_min..=stored_max).contains(len) && end <= file_len)
            .and_then(|len| usize::try_from(len).ok());
        match stored {
            Some(stored_len) => Ok(Some(Chunk {
                offset,
                stored_len,
                data_len,
            })),
            None => {
                let problem = format!(
                    "chunk {index} claims bytes {offset} to {end} of a Data.db of {file_len} bytes; {stored_min} to {stored_max} bytes within the file are expected"
                );
                let kind = if end > file_len || offset > file_len {
                    ErrorKind::Truncated
                } else {
                    ErrorKind::Corrupt
                };
                Err(SstableError::new(kind, DATA, offset, problem))
            }
        }
    }

    /// Verifies a chunk's checksum and decompresses the chunk. `stored` has the bytes in the file, with the checksum.
    ///
    /// # Errors
    /// If the checksum or the decompressed length is wrong.
    pub fn decompress(&self, chunk: &Chunk, stored: &[u8], out: &mut Vec<u8>) -> Result<(), SstableError> {
        let error = |kind, problem: String| {
            let problem = format!("the chunk at byte {} of the file: {problem}", chunk.offset);
            SstableError::new(kind, DATA, None, problem)
        };
        let Some((content, checksum)) = stored.split_last_chunk::<4>() else {
            return Err(error(ErrorKind::Truncated, "it has no checksum".to_owned()));
        };
        let (found, expected) = (crc32fast::hash(content), u32::from_be_bytes(*checksum));
        if found != expected {
            let problem = format!("its CRC32 is {found:08x}; {expected:08x} is expected");
            return Err(error(ErrorKind::Checksum, problem));
        }
        out.clear();
        if chunk.data_len == 0 {
            return Ok(());
        }
        if content.len() >= self.max_compressed_len {
            // The last chunk is padded with zeros up to the maximum compressed length (`CompressedSequentialWriter.flushData`).
            let data = content.get(..chunk.data_len).ok_or_else(|| {
                let problem = format!(
                    "it is stored uncompressed and has {} bytes; {} are expected",
                    content.len(),
                    chunk.data_len
                );
                error(ErrorKind::Corrupt, problem)
            })?;
            out.extend_from_slice(data);
            return Ok(());
        }
        out.resize(chunk.data_len, 0);
        self.compressor
            .decompress(content, out)
            .map_err(|problem| error(ErrorKind::Corrupt, problem))
    }
}

fn read_compressor(cursor: &mut Cursor<'_>) -> Result<Compressor, SstableError> {
    let place = cursor.clone();
    let class = cursor.utf("class of the compressor")?;
    Compressor::from_class(class).ok_or_else(|| {
        let problem = format!(
            "the compressor '{class}' is unknown; LZ4Compressor, SnappyCompressor, DeflateCompressor, ZstdCompressor and NoopCompressor can be read"
        );
        place.error(ErrorKind::Unsupported, problem)
    })
}

fn read_max_compressed_len(cursor: &mut Cursor<'_>) -> Result<usize, SstableError> {
    let place = cursor.clone();
    match cursor.i32("maximum compressed length")? {
        i32::MAX => Ok(usize::MAX),
        len => usize::try_from(len)
            .map_err(|_| place.corrupt(format!("the maximum compressed length {len} is negative"))),
    }
}

#[cfg(test)]
#[path = "compression_info_tests.rs"]
mod tests;
