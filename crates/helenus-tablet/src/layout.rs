//! The folders of a local store, its `FORMAT` file, its lock, and the map of its tablets.
//!
//! ```text
//! FORMAT            what wrote the store, and its tablets' token ranges (JSON, replaced atomically)
//! LOCK              held by the process that has the store open; holds its process id
//! log/              the node's log, see `log`
//! tablets/<id>/     one SlateDB database a tablet
//! meta/<name>       small documents of the floors above, see `meta`
//! INVENTORY         what must be there, see `inventory`
//! ```

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::checked::{self, Checked};
use crate::error::StoreError;
use crate::inventory::{Contents, Inventory};
use crate::log::segment::Folder;
use crate::log::{End, Reached};

/// The newest store format that this code reads: that of stores whose documents have checksums and which have, in a folder, an inventory.
/// Older stores are of format 2 if their log lies apart, and of format 1 if not.
pub const FORMAT_VERSION: u64 = 3;

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
    /// Where the log lies, if not beside the data. From format 2 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_store: Option<String>,
    /// Ordered by tokens; together they cover the ring without overlap.
    pub tablets: Vec<TabletEntry>,
    /// From format 3 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}

impl Checked for Format {
    fn checksum(&mut self) -> &mut Option<String> {
        &mut self.checksum
    }
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
            format: FORMAT_VERSION,
            store_id: uuid::Uuid::new_v4(),
            written_by: concat!("helenus ", env!("CARGO_PKG_VERSION")).into(),
            log_store: None,
            tablets: tablets
                .into_iter()
                .map(|(id, tokens)| TabletEntry { id, tokens })
                .collect(),
            checksum: None,
        }
    }

    /// The same store with its log elsewhere.
    pub fn with_log_store(self, url: String) -> Self {
        Format {
            log_store: Some(url),
            ..self
        }
    }

    /// Whether what has a checksum since format 3 must have one.
    pub fn is_checked(&self) -> bool {
        self.format >= FORMAT_VERSION
    }

    pub fn encode(&self) -> Vec<u8> {
        match self.is_checked() {
            true => checked::encode(self.clone()),
            false => checked::plain(self),
        }
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
        let read: Format = checked::decode(bytes, format >= FORMAT_VERSION).map_err(corrupt)?;
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

    pub fn inventory(&self) -> PathBuf {
        self.root.join("INVENTORY")
    }

    /// Where a small document lies.
    pub fn document(&self, name: &str) -> PathBuf {
        self.root.join("meta").join(name)
    }

    /// The names of the small documents.
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

    /// Where a tablet's manifests lie.
    pub fn manifests(&self, tablet: u32) -> PathBuf {
        self.root
            .join("tablets")
            .join(tablet.to_string())
            .join("manifest")
    }

    /// Makes the folder and takes its lock, which lasts as long as the file that is returned.
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
        let log = self.log();
        if self.root.join("tablets").exists() || log.exists() && !Folder::list(&log)?.is_empty() {
            return Err(StoreError::Corrupt {
                file: path.display().to_string(),
                detail: "the file is missing, yet the folder holds data".into(),
            });
        }
        std::fs::create_dir_all(&log).map_err(|error| StoreError::io("cannot create", &log, &error))?;
        let format = Format::new(uuid::Uuid::new_v4(), tablet_count);
        self.write_format(&format, Contents::new(), Reached::default(), fsync)?;
        Ok(format)
    }

    /// Writes `FORMAT`, and before it what a store of that format must have: so that one that was made in part is none.
    fn write_format(
        &self,
        format: &Format,
        contents: Contents,
        reached: Reached,
        fsync: bool,
    ) -> Result<(Inventory, End), StoreError> {
        let end = End::create(&self.log(), reached, fsync)?;
        let inventory = Inventory::create(self, contents, fsync)?;
        write_atomically(&self.format(), &format.encode(), fsync)?;
        Ok((inventory, end))
    }

    /// Writes a store of an older format, whose documents are sealed, in the newest one.
    pub fn upgrade(
        &self,
        format: &Format,
        contents: Contents,
        reached: Reached,
        fsync: bool,
    ) -> Result<(Inventory, End), StoreError> {
        let newest = Format {
            format: FORMAT_VERSION,
            ..format.clone()
        };
        let upgraded = self.write_format(&newest, contents, reached, fsync)?;
        tracing::info!(
            before = format.format,
            now = FORMAT_VERSION,
            "the store's format is a newer one now"
        );
        Ok(upgraded)
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
