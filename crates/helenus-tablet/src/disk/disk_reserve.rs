//! Room that is put by on the disk: opening a store writes a little, also where a full disk lets it only be read.

use std::fs::{File, remove_file};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::disk::durable_file::allocate;

/// Bytes that are put by: some times what opening a store writes.
const BYTES: u64 = 4 << 20;
/// So many times as much must be free for room to be put by.
const FREE_FACTOR: u64 = 4;

/// A file of the log's folder that is there for its size only.
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

    /// Gives the room back if the disk has less than that otherwise.
    pub fn release_if_full(&self, free_bytes: u64) {
        if free_bytes < BYTES {
            self.release();
        }
    }

    /// Gives the room back.
    pub fn release(&self) {
        if self.exists.swap(false, Ordering::AcqRel) {
            let _ = remove_file(&self.path);
        }
    }

    /// Puts room by, if there is enough on the disk.
    pub fn reserve(&self, free_bytes: u64) {
        if free_bytes < BYTES * FREE_FACTOR || self.exists.load(Ordering::Acquire) {
            return;
        }
        let made = File::create(&self.path).and_then(|file| allocate(&file, BYTES));
        match made {
            Ok(()) => self.exists.store(true, Ordering::Release),
            Err(error) => {
                tracing::debug!(%error, "no room could be put by");
                let _ = remove_file(&self.path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_put_by_while_there_is_plenty_and_given_back_when_there_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let len = || std::fs::metadata(folder.path().join("ROOM")).map_or(0, |data| data.len());
        let room = DiskReserve::new(folder.path());
        room.reserve(BYTES);
        assert_eq!(len(), 0);
        room.reserve(BYTES * FREE_FACTOR);
        assert_eq!(len(), BYTES);
        let room = DiskReserve::new(folder.path());
        room.release_if_full(BYTES);
        assert_eq!(len(), BYTES);
        room.release_if_full(BYTES - 1);
        assert_eq!(len(), 0);
    }
}
