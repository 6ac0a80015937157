//! The files and folders of a local store, and its lock.
//!
//! ```text
//! FORMAT            the format and the tablets' token ranges, see `format` (JSON, replaced atomically)
//! LOCK              locked by the process that has the store open; holds its process id
//! log/              the node's log, see `crate::log`
//! tablets/<id>/     one SlateDB database for each tablet
//! meta/<name>       small documents of the crates above, see `documents`
//! INVENTORY         files that must exist, see `inventory`
//! ```

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use crate::error::StoreError;

/// The paths of a local store.
#[derive(Debug, Clone)]
pub(crate) struct Folders {
    pub root: PathBuf,
}

impl Folders {
    pub fn log(&self) -> PathBuf {
        self.root.join("log")
    }

    pub fn format(&self) -> PathBuf {
        self.root.join("FORMAT")
    }

    pub fn inventory(&self) -> PathBuf {
        self.root.join("INVENTORY")
    }

    /// Returns the path of a small document.
    pub fn document(&self, name: &str) -> PathBuf {
        self.root.join("meta").join(name)
    }

    /// Returns the names of the small documents.
    pub fn documents(&self) -> Result<BTreeSet<String>, StoreError> {
        let folder = self.root.join("meta");
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
            Err(error) => return Err(StoreError::io("cannot read", &folder, &error)),
        };
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        names
            .collect::<std::io::Result<_>>()
            .map_err(|error| StoreError::io("cannot read", &folder, &error))
    }

    /// Returns the folder of a tablet's manifests.
    pub fn manifests(&self, tablet: u32) -> PathBuf {
        self.root
            .join("tablets")
            .join(tablet.to_string())
            .join("manifest")
    }

    /// Creates the folder and takes its lock, which is held until the returned file is dropped.
    pub fn lock(&self) -> Result<File, StoreError> {
        std::fs::create_dir_all(&self.root)
            .map_err(|error| StoreError::io("cannot create", &self.root, &error))?;
        let path = self.root.join("LOCK");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|error| StoreError::io("cannot open", &path, &error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let _ = file.read_to_string(&mut holder);
                return Err(StoreError::Locked {
                    path: self.root.clone(),
                    holder: match holder.trim() {
                        "" => String::new(),
                        pid => format!(" (process {pid})"),
                    },
                });
            }
            Err(TryLockError::Error(error)) => return Err(StoreError::io("cannot lock", &path, &error)),
        }
        // A failure, such as a full disk, is ignored. The process id only serves error messages.
        let _ = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| write!(file, "{}", std::process::id()));
        Ok(file)
    }

    /// Removes temporary files (`name#1`) that a killed process has left from unfinished uploads.
    pub fn remove_unfinished(&self) {
        fn sweep(folder: &Path, depth: usize) {
            let Ok(entries) = std::fs::read_dir(folder) else {
                return;
            };
            for entry in entries.flatten() {
                let path = entry.path();
                let name = entry.file_name();
                let name = name.to_string_lossy();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    if depth > 0 {
                        sweep(&path, depth - 1);
                    }
                } else if let Some((_, suffix)) = name.rsplit_once('#')
                    && !suffix.is_empty()
                    && suffix.bytes().all(|byte| byte.is_ascii_digit())
                {
                    let _ = std::fs::remove_file(&path);
                }
            }
        }
        sweep(&self.root.join("tablets"), 3);
        sweep(&self.root.join("meta"), 1);
    }
}
