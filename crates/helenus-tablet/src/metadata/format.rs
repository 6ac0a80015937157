//! The `FORMAT` file: the version of the format, and the token ranges of the tablets.

use serde::{Deserialize, Serialize};

use super::inventory::{Inventory, InventoryRecord};
use crate::disk::checksummed_json;
use crate::disk::checksummed_json::ChecksummedDocument;
use crate::disk::durable_file::write_atomically;
use crate::error::StoreError;
use crate::log::segment::Folder;
use crate::log::{HighWaterMark, LogPosition};
use crate::metadata::folders::Folders;
use crate::token_range::TokenRange;

/// The newest format of a folder: its documents have checksums, and there is an inventory. Older folders are of format 1.
pub const FORMAT_VERSION: u64 = 3;

/// The only format of a bucket: each process has one log, where each tablet had one before.
pub const BUCKET_FORMAT_VERSION: u64 = 4;

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

impl ChecksummedDocument for Format {
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

    /// Returns a store with these tablets, which ascend and cover the ring.
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

    /// Returns the same store, in a bucket.
    pub fn in_bucket(self) -> Self {
        Format {
            format: BUCKET_FORMAT_VERSION,
            ..self
        }
    }

    /// Returns the same store with its log elsewhere.
    pub fn with_log_store(self, url: String) -> Self {
        Format {
            log_store: Some(url),
            ..self
        }
    }

    /// Returns the same store with its log at that place, or beside its data.
    pub fn with_log_place(self, url: Option<String>) -> Self {
        Format {
            log_store: url,
            ..self
        }
    }

    /// Whether checksums are required, as they are from format 3 on.
    pub fn is_checked(&self) -> bool {
        self.format >= FORMAT_VERSION
    }

    pub fn encode(&self) -> Vec<u8> {
        match self.is_checked() {
            true => checksummed_json::encode(self.clone()),
            false => checksummed_json::plain(self),
        }
    }

    /// Reads the file, of a format up to `newest`; `name` is for errors.
    pub fn decode(bytes: &[u8], name: &str, newest: u64) -> Result<Self, StoreError> {
        let corrupt = |detail: String| StoreError::Corrupt {
            file: name.into(),
            detail,
        };
        // The version first: the other fields may differ in a newer format.
        #[derive(Deserialize)]
        struct Version {
            format: u64,
        }
        let Version { format } = serde_json::from_slice(bytes).map_err(|error| corrupt(error.to_string()))?;
        if format > newest {
            return Err(StoreError::NewerFormat {
                found: format,
                supported: newest,
            });
        }
        let read: Format = checksummed_json::decode(bytes, format >= FORMAT_VERSION).map_err(corrupt)?;
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

impl Folders {
    /// Reads `FORMAT`, or writes it in a new store. A folder with other files and no `FORMAT` is not taken for a store.
    pub fn load_format(&self, tablet_count: usize, fsync: bool) -> Result<Format, StoreError> {
        let path = self.format();
        match std::fs::read(&path) {
            Ok(bytes) => return Format::decode(&bytes, &path.display().to_string(), FORMAT_VERSION),
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
        self.write_format(&format, InventoryRecord::new(), LogPosition::default(), fsync)?;
        Ok(format)
    }

    /// Writes `FORMAT`, and before it what a store of that format must have: so that one that was made in part is none.
    fn write_format(
        &self,
        format: &Format,
        contents: InventoryRecord,
        reached: LogPosition,
        fsync: bool,
    ) -> Result<(Inventory, HighWaterMark), StoreError> {
        let high_water_mark = HighWaterMark::create(&self.log(), reached, fsync)?;
        let inventory = Inventory::create(self, contents, fsync)?;
        write_atomically(&self.format(), &format.encode(), fsync)?;
        Ok((inventory, high_water_mark))
    }

    /// Writes a store of an older format, whose documents are sealed, in the newest one.
    pub fn upgrade(
        &self,
        format: &Format,
        contents: InventoryRecord,
        reached: LogPosition,
        fsync: bool,
    ) -> Result<(Inventory, HighWaterMark), StoreError> {
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
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
