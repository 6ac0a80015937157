//! Reads Data.db from front to back, chunk by chunk, and verifies every checksum (`io.util.CompressedChunkReader`).

use std::sync::Arc;

use super::compression_info::CompressionInfo;
use super::crc::ChunkChecksums;
use crate::error::SstableError;
use crate::folder::ComponentFile;

/// Bytes of a piece if no checksums say where chunks end.
const PIECE_BYTES: usize = 64 << 10;

/// The form of Data.db.
#[derive(Clone, Debug)]
enum Form {
    Compressed(Arc<CompressionInfo>),
    /// `None` if there is no CRC.db.
    Plain(Option<Arc<ChunkChecksums>>),
}

/// Reads the data of Data.db.
pub(crate) struct ChunkReader {
    file: Box<dyn ComponentFile>,
    form: Form,
    /// Number of the next chunk.
    next: usize,
    stored: Vec<u8>,
    data: Vec<u8>,
}

impl ChunkReader {
    pub(crate) fn compressed(file: Box<dyn ComponentFile>, info: Arc<CompressionInfo>) -> ChunkReader {
        ChunkReader::new(file, Form::Compressed(info))
    }

    pub(crate) fn plain(file: Box<dyn ComponentFile>, checksums: Option<Arc<ChunkChecksums>>) -> ChunkReader {
        ChunkReader::new(file, Form::Plain(checksums))
    }

    fn new(file: Box<dyn ComponentFile>, form: Form) -> ChunkReader {
        ChunkReader {
            file,
            form,
            next: 0,
            stored: Vec::new(),
            data: Vec::new(),
        }
    }

    /// Returns the data of the next chunk. `None` at the end.
    pub(crate) fn next_chunk(&mut self) -> Result<Option<&[u8]>, SstableError> {
        let index = self.next;
        self.next = self.next.saturating_add(1);
        match self.form.clone() {
            Form::Compressed(info) => {
                let Some(chunk) = info.chunk(index, self.file.size())? else {
                    return Ok(None);
                };
                self.stored.resize(chunk.stored_len, 0);
                read(&mut *self.file, chunk.offset, &mut self.stored)?;
                info.decompress(&chunk, &self.stored, &mut self.data)?;
            }
            Form::Plain(checksums) => {
                let len = checksums
                    .as_ref()
                    .map_or(PIECE_BYTES, |checksums| checksums.chunk_len);
                let offset = (index as u64).saturating_mul(len as u64);
                let rest = self.file.size().saturating_sub(offset);
                let len = usize::try_from(rest).unwrap_or(usize::MAX).min(len);
                if len == 0 {
                    return Ok(None);
                }
                self.data.resize(len, 0);
                read(&mut *self.file, offset, &mut self.data)?;
                if let Some(checksums) = checksums {
                    checksums.verify(index, &self.data)?;
                }
            }
        }
        Ok(Some(&self.data))
    }
}

fn read(file: &mut dyn ComponentFile, offset: u64, buffer: &mut [u8]) -> Result<(), SstableError> {
    file.read_exact_at(offset, buffer).map_err(|error| SstableError {
        offset: Some(offset),
        ..SstableError::io(crate::file_name::DATA, &error)
    })
}
