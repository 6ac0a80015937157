//! Room that is put by on the disk: opening a store writes a little, also where a full disk lets it only be read.

use std::fs::{File, remove_file};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::log::segment::allocate;

/// Bytes that are put by: some times what opening a store writes.
const BYTES: u64 = 4 << 20;
/// So many times as much must be free for room to be put by.
const FREE_FACTOR: u64 = 4;

/// A file of the log's folder that is there for its size only.
#[derive(Debug)]
pub(crate) struct Room {
    path: PathBuf,
    is_there: AtomicBool,
}

impl Room {
    pub fn new(log: &Path) -> Room {
        let path = log.join("ROOM");
        Room {
            is_there: AtomicBool::new(path.exists()),
            path,
        }
    }

    /// Bytes that are still to be put by on a disk of that size: never more than a twentieth of it.
    pub fn owed(&self, disk_bytes: u64) -> u64 {
        match self.is_there.load(Ordering::Acquire) {
            true => 0,
            false => BYTES.min(disk_bytes / 20),
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
        if self.is_there.swap(false, Ordering::AcqRel) {
            let _ = remove_file(&self.path);
        }
    }

    /// Puts room by, if there is enough on the disk.
    pub fn put_by(&self, free_bytes: u64) {
        if free_bytes < BYTES * FREE_FACTOR || self.is_there.load(Ordering::Acquire) {
            return;
        }
        let made = File::create(&self.path).and_then(|file| allocate(&file, BYTES));
        match made {
            Ok(()) => self.is_there.store(true, Ordering::Release),
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
        let room = Room::new(folder.path());
        room.put_by(BYTES);
        assert_eq!(len(), 0);
        room.put_by(BYTES * FREE_FACTOR);
        assert_eq!((len(), room.owed(u64::MAX)), (BYTES, 0));
        let room = Room::new(folder.path());
        room.release_if_full(BYTES);
        assert_eq!(len(), BYTES);
        room.release_if_full(BYTES - 1);
        assert_eq!((len(), room.owed(u64::MAX)), (0, BYTES));
        assert_eq!(room.owed(BYTES), BYTES / 20);
    }
}
