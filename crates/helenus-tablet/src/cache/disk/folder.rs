//! The folder of the disk cache:
//!
//! ```text
//! LOCK        locked by the process that has the cache open
//! CACHE       version, identity of the store, size of a block
//! blocks/     one file for each block, as foyer names them
//! ```

use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use uuid::Uuid;

use super::space;
use super::space::DiskSpace;

/// Version of the layout of parts and keys. A cache of another version is emptied.
const VERSION: u32 = 1;
/// Beginning of the names of foyer's files. The number of the block follows.
const BLOCK_PREFIX: &str = "foyer-storage-direct-fs-";

/// The folder of the cache, locked for this process.
#[derive(Debug, Clone)]
pub(super) struct CacheFolder {
    path: PathBuf,
    lock: Arc<File>,
}

impl CacheFolder {
    /// Creates the folder and takes its lock.
    ///
    /// # Errors
    /// Another process holds the lock.
    pub fn lock(path: &Path) -> io::Result<CacheFolder> {
        std::fs::create_dir_all(path)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join("LOCK"))?;
        match lock.try_lock() {
            Ok(()) => Ok(CacheFolder {
                path: path.to_owned(),
                lock: Arc::new(lock),
            }),
            Err(TryLockError::WouldBlock) => Err(io::Error::other(
                "another process uses this folder; give each node a cache_dir of its own",
            )),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Releases the lock of the folder.
    pub fn unlock(&self) {
        // If this fails, the lock is released when the file is closed.
        let _ = self.lock.unlock();
    }

    fn blocks(&self) -> PathBuf {
        self.path.join("blocks")
    }

    /// Prepares the folder for a cache of `wanted` bytes. The cache is emptied if it belongs to another store or layout, or if the size of
    /// its blocks does not suit. Returns the size of its blocks.
    pub fn prepare(&self, identity: Uuid, wanted: u64) -> io::Result<u64> {
        let path = self.path.join("CACHE");
        let owner = format!("helenus disk cache {VERSION} store {identity} block ");
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        let found = found
            .strip_prefix(&owner)
            .and_then(|size| size.trim().parse().ok());
        if let Some(block_bytes) = found.filter(|block_bytes| space::is_of_use(wanted, *block_bytes)) {
            return Ok(block_bytes);
        }
        match std::fs::remove_dir_all(self.blocks()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let block_bytes = space::block_bytes(wanted);
        std::fs::write(path, format!("{owner}{block_bytes}\n"))?;
        Ok(block_bytes)
    }

    /// Deletes the blocks from number `count` on. Returns the folder of the blocks.
    pub fn keep_blocks(&self, count: u64) -> io::Result<PathBuf> {
        let folder = self.blocks();
        std::fs::create_dir_all(&folder)?;
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(BLOCK_PREFIX));
            if number
                .and_then(|number| number.parse::<u64>().ok())
                .is_some_and(|number| number < count)
            {
                continue;
            }
            // The file is truncated first. Otherwise a process that still has the file open would keep its space allocated.
            File::options().write(true).open(entry.path())?.set_len(0)?;
            std::fs::remove_file(entry.path())?;
        }
        Ok(folder)
    }

    /// Returns the bytes that the blocks take on disk.
    pub fn used_bytes(&self) -> u64 {
        let entries = std::fs::read_dir(self.blocks()).into_iter().flatten().flatten();
        let on_disk = entries.filter_map(|entry| Some(entry.metadata().ok()?.blocks() * 512));
        on_disk.sum()
    }

    pub fn space(&self) -> io::Result<DiskSpace> {
        DiskSpace::of(&self.path)
    }
}

impl fmt::Display for CacheFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}
