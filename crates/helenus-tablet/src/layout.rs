//! The folders of a local store, its `FORMAT` file, its lock, and the map of its tablets.
//!
//! ```text
//! FORMAT            what wrote the store, and its tablets' token ranges (JSON, replaced atomically)
//! LOCK              held by the process that has the store open; holds its process id
//! log/              the node's log, see `log`
//! tablets/<id>/     one SlateDB database a tablet
//! meta/<name>       small documents of the floors above, see `meta`
//! ```

use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::StoreError;

/// The newest store format that this code reads: that of stores whose log lies apart.
pub const FORMAT_VERSION: u64 = 2;
/// What all other stores are written in.
const FORMAT_PLAIN: u64 = 1;

/// A closed range of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRange {
    pub first: i64,
    pub last: i64,
}

impl TokenRange {
    pub fn contains(&self, token: i64) -> bool {
        (self.first..=self.last).contains(&token)
    }

    /// Cuts the whole ring into `count` ranges of equal size.
    pub fn split_ring(count: usize) -> Vec<TokenRange> {
        let count = count.max(1) as i128;
        let width = (1i128 << 64) / count;
        let start = |index: i128| i128::from(i64::MIN) + width * index;
        (0..count)
            .map(|index| TokenRange {
                first: start(index) as i64,
                last: if index + 1 == count {
                    i64::MAX
                } else {
                    (start(index + 1) - 1) as i64
                },
            })
            .collect()
    }
}

/// One tablet in the `FORMAT` file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TabletEntry {
    pub id: u32,
    #[serde(flatten)]
    pub tokens: TokenRange,
}

/// The `FORMAT` file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Format {
    pub format: u64,
    pub store_id: uuid::Uuid,
    pub written_by: String,
    /// Where the log lies, if not beside the data. Format 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_store: Option<String>,
    /// Ordered by tokens; together they cover the ring without overlap.
    pub tablets: Vec<TabletEntry>,
}

impl Format {
    pub fn new(store_id: uuid::Uuid, tablet_count: usize) -> Self {
        let ranges = TokenRange::split_ring(tablet_count).into_iter();
        Format {
            store_id,
            ..Format::of(ranges.zip(1..).map(|(tokens, id)| (id, tokens)))
        }
    }

    /// A store with these tablets, which ascend and cover the ring.
    pub fn of(tablets: impl IntoIterator<Item = (u32, TokenRange)>) -> Self {
        Format {
            format: FORMAT_PLAIN,
            store_id: uuid::Uuid::new_v4(),
            written_by: concat!("helenus ", env!("CARGO_PKG_VERSION")).into(),
            log_store: None,
            tablets: tablets
                .into_iter()
                .map(|(id, tokens)| TabletEntry { id, tokens })
                .collect(),
        }
    }

    /// The same store with its log elsewhere.
    pub fn with_log_store(self, url: String) -> Self {
        Format {
            format: FORMAT_VERSION,
            log_store: Some(url),
            ..self
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// Reads the file; `name` is for errors.
    pub fn decode(bytes: &[u8], name: &str) -> Result<Self, StoreError> {
        let corrupt = |detail: String| StoreError::Corrupt {
            file: name.into(),
            detail,
        };
        // The version first: what follows it may look different in a newer format.
        #[derive(Deserialize)]
        struct Version {
            format: u64,
        }
        let Version { format } = serde_json::from_slice(bytes).map_err(|error| corrupt(error.to_string()))?;
        if format > FORMAT_VERSION {
            return Err(StoreError::NewerFormat {
                found: format,
                supported: FORMAT_VERSION,
            });
        }
        let read: Format = serde_json::from_slice(bytes).map_err(|error| corrupt(error.to_string()))?;
        let mut next = Some(i64::MIN);
        for tablet in &read.tablets {
            if next != Some(tablet.tokens.first) || tablet.tokens.last < tablet.tokens.first {
                return Err(corrupt(format!(
                    "the token range of tablet {} does not follow the one before",
                    tablet.id
                )));
            }
            next = tablet.tokens.last.checked_add(1);
        }
        if next.is_some() {
            return Err(corrupt("the tablets do not cover the ring".into()));
        }
        Ok(read)
    }
}

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

    /// Makes the folder and takes its lock, which lasts as long as the file that is returned.
    pub fn lock(&self) -> Result<File, StoreError> {
        std::fs::create_dir_all(&self.root)
            .map_err(|error| StoreError::io("cannot create", &self.root, &error))?;
        keep_private(&self.root);
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
        // The process id is there to be read by people only: a disk without room for it is no reason to refuse.
        let _ = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| write!(file, "{}", std::process::id()));
        Ok(file)
    }

    /// Reads `FORMAT`, or writes it in a new store. A folder with other files and no `FORMAT` is not taken for a store.
    pub fn load_format(&self, tablet_count: usize, fsync: bool) -> Result<Format, StoreError> {
        let path = self.format();
        match std::fs::read(&path) {
            Ok(bytes) => return Format::decode(&bytes, &path.display().to_string()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(StoreError::io("cannot read", &path, &error)),
        }
        if self.log().exists() || self.root.join("tablets").exists() {
            return Err(StoreError::Corrupt {
                file: path.display().to_string(),
                detail: "the file is missing, yet the folder holds data".into(),
            });
        }
        let format = Format::new(uuid::Uuid::new_v4(), tablet_count);
        write_atomically(&path, &format.encode(), fsync)?;
        Ok(format)
    }

    /// Removes what unfinished uploads of a killed process left behind (`name#1`).
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

/// Takes a store's folder from all but its owner. One that belongs to someone else is left as it is.
fn keep_private(folder: &Path) {
    let made = std::fs::metadata(folder).and_then(|found| match found.permissions().mode() & 0o077 {
        0 => Ok(()),
        _ => std::fs::set_permissions(folder, Permissions::from_mode(0o700)),
    });
    if let Err(error) = made {
        tracing::warn!(folder = %folder.display(), %error, "others than its owner can look into the folder of the store");
    }
}

/// Replaces a file by rename, with the bytes and the name on disk before it returns.
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

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
