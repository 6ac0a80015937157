//! A reserved file that is deleted when the disk is full. Opening a store writes a little, so its space lets a store on a full disk be
//! opened for reads.

use std::fs::{File, remove_file};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::disk::durable_file::allocate;

/// Bytes of the reserve: several times the bytes that are written when a store is opened.
const BYTES: u64 = 4 << 20;
/// Free bytes that the disk must have for the reserve to be created, as a multiple of its size.
const FREE_FACTOR: u64 = 4;

/// A file in the log's folder that exists only to reserve space.
#[derive(Debug)]
pub(crate) struct DiskReserve {
    path: PathBuf,
    exists: AtomicBool,
}

impl DiskReserve {
    pub fn new(log: &Path) -> DiskReserve {
        let path = log.join("ROOM");
        DiskReserve {
            exists: AtomicBool::new(path.exists()),
            path,
        }
    }

    /// Returns the bytes that are still to be reserved on a disk of that size, at most a twentieth of it. 0 if the reserve exists.
    pub fn owed(&self, disk_bytes: u64) -> u64 {
        match self.exists.load(Ordering::Acquire) {
            true => 0,
            false => BYTES.min(disk_bytes / 20),
        }
    }

    /// Deletes the reserve if the disk has fewer free bytes than it holds.
    pub fn release_if_full(&self, free_bytes: u64) {
        if free_bytes < BYTES {
            self.release();
        }
    }

    /// Deletes the reserve.
    pub fn release(&self) {
        if self.exists.swap(false, Ordering::AcqRel) {
            let _ = remove_file(&self.path);
        }
    }

    /// Creates the reserve, if the disk has enough free bytes.
    pub fn reserve(&self, free_bytes: u64) {
        if free_bytes < BYTES * FREE_FACTOR || self.exists.load(Ordering::Acquire) {
            return;
        }
        let made = File::create(&self.path).and_then(|file| allocate(&file, BYTES));
        match made {
            Ok(()) => self.exists.store(true, Ordering::Release),
            Err(error) => {
                tracing::debug!(%error, "no disk space could be reserved");
                let _ = remove_file(&self.path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserve_grows_with_free_space_and_is_released_if_full() {
        let folder = tempfile::tempdir().unwrap();
        let len = || std::fs::metadata(folder.path().join("ROOM")).map_or(0, |data| data.len());
        let room = DiskReserve::new(folder.path());
        room.reserve(BYTES);
        assert_eq!(len(), 0);
        room.reserve(BYTES * FREE_FACTOR);
        assert_eq!((len(), room.owed(u64::MAX)), (BYTES, 0));
        let room = DiskReserve::new(folder.path());
        room.release_if_full(BYTES);
        assert_eq!(len(), BYTES);
        room.release_if_full(BYTES - 1);
        assert_eq!((len(), room.owed(u64::MAX)), (0, BYTES));
        assert_eq!(room.owed(BYTES), BYTES / 20);
    }
}
