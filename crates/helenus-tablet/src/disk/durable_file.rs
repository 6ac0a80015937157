//! Replaces, allocates and syncs files.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use crate::error::StoreError;

/// Replaces a file by rename. With `fsync`, its content and its name are durable on return.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8], fsync: bool) -> Result<(), StoreError> {
    let temporary = path.with_extension("tmp");
    let result = (|| {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        if fsync {
            file.sync_all()?;
        }
        std::fs::rename(&temporary, path)?;
        if fsync && let Some(parent) = path.parent() {
            sync_folder(parent)?;
        }
        Ok(())
    })();
    result.map_err(|error: std::io::Error| {
        let _ = std::fs::remove_file(&temporary);
        StoreError::io("cannot write", path, &error)
    })
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Allocates the blocks of a file, so that a full disk is noticed here and not in the middle of a group commit.
pub(crate) fn allocate(file: &File, len: u64) -> std::io::Result<()> {
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, len) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => file.set_len(len),
        Err(error) => Err(error.into()),
    }
}

/// Returns the error of a required file that is missing.
pub(crate) fn missing(file: &str) -> StoreError {
    StoreError::Corrupt {
        file: file.into(),
        detail: "the file is missing, and it was written: restore it, or the whole folder, from a backup"
            .into(),
    }
}
