//! An SSTable that is open for reading, from its first partition to its last.

use std::sync::Arc;

use bytes::Bytes;

use crate::data::{Decoder, Event, Limits, Step};
use crate::error::{ErrorKind, SstableError};
use crate::file_name::{COMPRESSION_INFO, CRC, DATA, DIGEST, Descriptor, STATISTICS};
use crate::folder::{ComponentFile, Folder};
use crate::listing::read_small;
use crate::statistics::{Column, STATISTICS_BYTES_MAX, SerializationHeader, Statistics};
use crate::storage::{ChunkChecksums, ChunkReader, CompressionInfo};

/// Bytes that are read at once for the digest.
const DIGEST_PIECE_BYTES: u64 = 1 << 20;

/// An open SSTable. Opening reads all components but Data.db.
pub struct SsTable {
    folder: Arc<dyn Folder + Send + Sync>,
    descriptor: Descriptor,
    statistics: Statistics,
    header: Arc<SerializationHeader>,
    /// `None` if Data.db isn't compressed.
    compression: Option<Arc<CompressionInfo>>,
    /// `None` if Data.db is compressed, or CRC.db doesn't exist.
    checksums: Option<Arc<ChunkChecksums>>,
    data_len: u64,
}

impl SsTable {
    /// Opens an SSTable.
    ///
    /// # Errors
    /// If Data.db or Statistics.db is missing, or a component is corrupt or can't be read.
    pub fn open(
        folder: Arc<dyn Folder + Send + Sync>,
        descriptor: &Descriptor,
    ) -> Result<SsTable, SstableError> {
        let version = descriptor.version;
        let statistics = component(&*folder, descriptor, STATISTICS, STATISTICS_BYTES_MAX)?;
        let statistics = statistics
            .ok_or_else(|| missing(&*folder, descriptor, STATISTICS))
            .and_then(|file| Statistics::decode(version, &file))
            .map_err(|error| located(&*folder, descriptor, error))?;
        let file_len = open_data(&*folder, descriptor)?.size();
        let compression = component(
            &*folder,
            descriptor,
            COMPRESSION_INFO,
            crate::storage::COMPRESSION_INFO_BYTES_MAX,
        )?
        .map(|file| CompressionInfo::decode(version, &file))
        .transpose()
        .map_err(|error| located(&*folder, descriptor, error))?;
        let checksums = match compression {
            Some(_) => None,
            None => component(
                &*folder,
                descriptor,
                CRC,
                crate::storage::COMPRESSION_INFO_BYTES_MAX,
            )?
            .map(|file| ChunkChecksums::decode(&file, file_len))
            .transpose()
            .map_err(|error| located(&*folder, descriptor, error))?,
        };
        Ok(SsTable {
            header: Arc::new(statistics.header.clone()),
            descriptor: descriptor.clone(),
            statistics,
            data_len: compression.as_ref().map_or(file_len, |info| info.data_len),
            compression: compression.map(Arc::new),
            checksums: checksums.map(Arc::new),
            folder,
        })
    }

    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Returns the types and columns that events refer to.
    pub fn header(&self) -> &Arc<SerializationHeader> {
        &self.header
    }

    /// Returns the compression. `None` if Data.db isn't compressed.
    pub fn compression(&self) -> Option<&CompressionInfo> {
        self.compression.as_deref()
    }

    /// Returns the number of bytes in Data.db after decompression.
    pub fn data_len(&self) -> u64 {
        self.data_len
    }

    /// Marks columns as frozen (see [`SerializationHeader::freeze_columns`]).
    pub fn freeze_columns(&mut self, is_frozen: impl Fn(&Column) -> bool) {
        Arc::make_mut(&mut self.header).freeze_columns(is_frozen);
    }

    /// Reads the events from the first partition on. Storage may fetch the first bytes at once, before the first event is requested.
    ///
    /// # Errors
    /// If Data.db can't be opened.
    pub fn events(&self, limits: Limits) -> Result<Events, SstableError> {
        let mut file = open_data(&*self.folder, &self.descriptor)?;
        file.read_ahead();
        let chunks = match &self.compression {
            Some(info) => ChunkReader::compressed(file, Arc::clone(info)),
            None => ChunkReader::plain(file, self.checksums.clone()),
        };
        Ok(Events {
            decoder: Decoder::new(Arc::clone(&self.header), limits),
            chunks,
            file: self.folder.display_name(&self.descriptor.file_name(DATA)),
            is_over: false,
        })
    }

    /// Reads all of Data.db and compares its CRC32 with Digest.crc32. Returns false if there is no digest. [`SsTable::events`] verifies the
    /// checksums of chunks anyway; the digest also covers what an uncompressed SSTable without CRC.db contains.
    ///
    /// # Errors
    /// If the digest differs, or a file can't be read.
    pub fn verify_digest(&self) -> Result<bool, SstableError> {
        let Some(digest) = component(&*self.folder, &self.descriptor, DIGEST, 64)? else {
            return Ok(false);
        };
        let text = String::from_utf8_lossy(&digest);
        let expected: u32 = text.trim().parse().map_err(|_| {
            let problem = format!(
                "the digest is '{}'; a number up to 4294967295 is expected",
                text.trim()
            );
            let error = SstableError::new(ErrorKind::Corrupt, DIGEST, None, problem);
            located(&*self.folder, &self.descriptor, error)
        })?;
        let mut file = open_data(&*self.folder, &self.descriptor)?;
        let name = self.folder.display_name(&self.descriptor.file_name(DATA));
        let mut hasher = crc32fast::Hasher::new();
        let (mut offset, size) = (0, file.size());
        let mut buffer = Vec::new();
        while offset < size {
            let len = DIGEST_PIECE_BYTES.min(size - offset);
            buffer.resize(usize::try_from(len).unwrap_or(0), 0);
            file.read_exact_at(offset, &mut buffer)
                .map_err(|error| SstableError::io(&name, &error))?;
            hasher.update(&buffer);
            offset += len;
        }
        match hasher.finalize() {
            found if found == expected => Ok(true),
            found => {
                let problem = format!("the file has CRC32 {found}; {DIGEST} expects {expected}");
                Err(SstableError::new(ErrorKind::Checksum, name, None, problem))
            }
        }
    }
}

/// The events of an SSTable. The iterator ends after its first error.
pub struct Events {
    decoder: Decoder,
    chunks: ChunkReader,
    /// Name of Data.db, for errors.
    file: String,
    is_over: bool,
}

impl Events {
    /// Returns the offset of the next event in the decompressed data, for showing progress.
    pub fn offset(&self) -> u64 {
        self.decoder.offset()
    }

    fn advance(&mut self) -> Result<Option<Event>, SstableError> {
        loop {
            match self.decoder.step()? {
                Step::Event(event) => return Ok(Some(event)),
                Step::End => return Ok(None),
                Step::NeedBytes => match self.chunks.next_chunk()? {
                    Some(chunk) => self.decoder.push(chunk),
                    None => self.decoder.finish(),
                },
            }
        }
    }
}

impl Iterator for Events {
    type Item = Result<Event, SstableError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let result = self.advance().map_err(|error| error.in_file(&self.file));
        self.is_over = !matches!(result, Ok(Some(_)));
        result.transpose()
    }
}

/// Reads a component. `None` if it doesn't exist.
fn component(
    folder: &dyn Folder,
    descriptor: &Descriptor,
    component: &str,
    bytes_max: u64,
) -> Result<Option<Bytes>, SstableError> {
    match read_small(folder, &descriptor.file_name(component), bytes_max) {
        Ok(content) => Ok(Some(Bytes::from(content))),
        Err(error) if error.kind == ErrorKind::Missing => Ok(None),
        Err(error) => Err(error),
    }
}

fn open_data(folder: &dyn Folder, descriptor: &Descriptor) -> Result<Box<dyn ComponentFile>, SstableError> {
    let name = descriptor.file_name(DATA);
    let opened = folder.open(&name);
    opened.map_err(|error| SstableError::io(&folder.display_name(&name), &error))
}

fn missing(folder: &dyn Folder, descriptor: &Descriptor, component: &str) -> SstableError {
    let name = folder.display_name(&descriptor.file_name(component));
    SstableError::new(ErrorKind::Missing, name, None, "the component doesn't exist")
}

/// Replaces the component of an error by the name of its file.
fn located(folder: &dyn Folder, descriptor: &Descriptor, error: SstableError) -> SstableError {
    if error.kind == ErrorKind::Missing {
        return error;
    }
    let name = folder.display_name(&descriptor.file_name(&error.file));
    error.in_file(&name)
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
