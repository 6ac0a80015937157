//! The segment files of the log.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::frame::{SEGMENT_HEADER_LEN, SegmentHeader};
use super::ledger::SegmentInfo;
use crate::disk::durable_file::allocate;
use crate::disk::durable_file::sync_folder;
use crate::disk::incremental_delete::FileDeleter;
use crate::error::StoreError;

/// Bytes of a block of the file system. Frames are padded to whole blocks, so that a write never waits for a block to be read from the
/// disk.
pub(crate) const BLOCK: usize = 4096;

/// Bytes of a spare file that are written at once.
const SPARE_STRIDE: usize = 256 << 10;

/// The segment being written.
pub(crate) struct ActiveSegment {
    pub number: u64,
    pub file: File,
    pub path: PathBuf,
    /// Offset of the next frame. Everything before it is on disk.
    pub offset: u64,
    pub capacity: u64,
}

/// The folder of the log.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    pub path: PathBuf,
    pub segment_bytes: u64,
    pub fsync: bool,
    pub deleter: FileDeleter,
}

impl Folder {
    pub fn segment_path(&self, number: u64) -> PathBuf {
        segment_path(&self.path, number)
    }

    /// Returns the numbers of the existing segments, in order.
    pub fn list(path: &Path) -> Result<Vec<u64>, StoreError> {
        numbers(path, ".log")
    }

    /// Returns the highest segment number among the spare files. 0 if there are none.
    pub fn newest_spare(path: &Path) -> Result<u64, StoreError> {
        Ok(numbers(path, ".spare")?.last().copied().unwrap_or(0))
    }

    /// Returns the spare files, which wait to be reused.
    pub fn spares(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(&self.path) else {
            return Vec::new();
        };
        entries
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().ends_with(".spare"))
            .filter(|entry| {
                entry
                    .metadata()
                    .is_ok_and(|data| data.len() == self.segment_bytes)
            })
            .map(|entry| entry.path())
            .collect()
    }

    /// Creates a segment with space for a frame of `frame_len` bytes. Its name appears only once its header is on disk.
    pub fn create(&self, header: SegmentHeader, frame_len: usize) -> Result<ActiveSegment, StoreError> {
        let path = self.segment_path(header.number);
        self.try_create(&path, header, frame_len)
            .map_err(|error| StoreError::io("cannot create", &path, &error))
    }

    fn try_create(
        &self,
        path: &Path,
        header: SegmentHeader,
        frame_len: usize,
    ) -> std::io::Result<ActiveSegment> {
        let needed = (SEGMENT_HEADER_LEN + frame_len).next_multiple_of(BLOCK) as u64;
        let capacity = self.segment_bytes.max(needed);
        let temporary = self.path.join("next.tmp");
        let spare = self.spares().pop().filter(|_| capacity == self.segment_bytes);
        let reused = match spare {
            Some(spare) => std::fs::rename(spare, &temporary).is_ok(),
            None => false,
        };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(!reused)
            .open(&temporary)?;
        if !reused {
            allocate(&file, capacity).inspect_err(|_| {
                let _ = std::fs::remove_file(&temporary);
            })?;
        }
        let mut block = vec![0; BLOCK];
        let header = SegmentHeader {
            file_len: capacity,
            ..header
        };
        block[..SEGMENT_HEADER_LEN].copy_from_slice(&header.encode());
        file.write_all_at(&block, 0)?;
        if self.fsync {
            file.sync_all()?;
        }
        std::fs::rename(&temporary, path)?;
        if self.fsync {
            sync_folder(&self.path)?;
        }
        Ok(ActiveSegment {
            number: header.number,
            file,
            path: path.to_path_buf(),
            offset: SEGMENT_HEADER_LEN as u64,
            capacity,
        })
    }

    /// Removes a segment that is no longer needed from the log. Its file is kept for reuse if there are fewer than `spare_max` spare files.
    pub fn retire(&self, segment: &SegmentInfo, spare_max: usize) -> std::io::Result<()> {
        let path = self.segment_path(segment.number);
        let fits = std::fs::metadata(&path).is_ok_and(|data| data.len() == self.segment_bytes);
        if fits && self.spares().len() < spare_max {
            std::fs::rename(&path, self.path.join(format!("{:016x}.spare", segment.number)))?;
        } else {
            self.deleter.delete(&path)?;
        }
        Ok(())
    }

    /// Deletes `count` of the spare files.
    pub fn give_back(&self, count: usize) -> std::io::Result<()> {
        self.spares()
            .iter()
            .take(count)
            .try_for_each(|spare| self.deleter.delete(spare))
    }

    /// Creates a spare file of zeros if there is none, so that the log thread need not wait for one. The file is written in short steps
    /// that take at most half of the disk's time. The log's syncs wait for other writes to the disk.
    #[allow(clippy::disallowed_methods, reason = "the local disk is not simulated")]
    pub fn prepare_spare(&self, number: u64) -> std::io::Result<()> {
        if !self.spares().is_empty() {
            return Ok(());
        }
        let temporary = self.path.join("spare.tmp");
        let file = File::create(&temporary)?;
        let zeros = vec![0; SPARE_STRIDE];
        let mut offset = 0;
        let result = (|| {
            while offset < self.segment_bytes {
                let len = (self.segment_bytes - offset).min(zeros.len() as u64) as usize;
                file.write_all_at(zeros.get(..len).unwrap_or_default(), offset)?;
                offset += len as u64;
                if self.fsync {
                    let started = Instant::now();
                    file.sync_data()?;
                    std::thread::sleep(started.elapsed());
                }
            }
            if self.fsync {
                file.sync_all()?;
            }
            std::fs::rename(&temporary, self.path.join(format!("{number:016x}.spare")))
        })();
        if result.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        result
    }

    /// Removes segments before `first`, which were retired.
    pub fn remove_before(path: &Path, first: u64) -> Result<(), StoreError> {
        for number in Folder::list(path)?.into_iter().filter(|number| *number < first) {
            let path = segment_path(path, number);
            std::fs::remove_file(&path).map_err(|error| StoreError::io("cannot remove", &path, &error))?;
        }
        Ok(())
    }

    /// Removes the spare files, to free space on a full disk.
    pub fn drop_spares(&self) {
        for spare in self.spares() {
            let _ = std::fs::remove_file(spare);
        }
    }
}

pub(super) fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:016x}.log"))
}

/// Returns the numbers in the names of the files with that ending, in order.
fn numbers(path: &Path, ending: &str) -> Result<Vec<u64>, StoreError> {
    let fail = |error| StoreError::io("cannot read", path, &error);
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(path).map_err(fail)? {
        let name = entry.map_err(fail)?.file_name();
        let name = name.to_string_lossy();
        if let Some(digits) = name.strip_suffix(ending)
            && digits.len() == 16
            && let Ok(number) = u64::from_str_radix(digits, 16)
        {
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}
