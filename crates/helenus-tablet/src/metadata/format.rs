//! The `FORMAT` file: the version of the format, and the token ranges of the tablets.

use helenus_row::TokenRange;
use serde::{Deserialize, Serialize};

use super::inventory::{Inventory, InventoryRecord};
use crate::disk::checksummed_json;
use crate::disk::checksummed_json::ChecksummedDocument;
use crate::disk::durable_file::write_atomically;
use crate::error::StoreError;
use crate::log::segment::Folder;
use crate::log::{HighWaterMark, LogPosition};
use crate::metadata::folders::Folders;

/// The newest format of a folder. Its documents have checksums, and there is an inventory. Folders of format 1 are upgraded.
pub const FORMAT_VERSION: u64 = 3;

/// The only supported format of a bucket. In it each process has one log; in earlier ones, each tablet had one.
pub const BUCKET_FORMAT_VERSION: u64 = 4;

/// A tablet in the `FORMAT` file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TabletEntry {
    pub id: u32,
    #[serde(flatten)]
    pub tokens: TokenRange,
}

/// Content of the `FORMAT` file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Format {
    pub format: u64,
    pub store_id: uuid::Uuid,
    pub written_by: String,
    /// Location of the log. `None` if it lies beside the data. Exists since format 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_store: Option<String>,
    /// The tablets, in the order of tokens. Together they cover the ring without overlap.
    pub tablets: Vec<TabletEntry>,
    /// Checksum of the other fields. Exists since format 3.
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

    /// Returns the format of a new store with these tablets, which must ascend and cover the ring.
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

    /// Converts to the format of a store in a bucket.
    pub fn in_bucket(self) -> Self {
        Format {
            format: BUCKET_FORMAT_VERSION,
            ..self
        }
    }

    /// Sets the location of a separate log.
    pub fn with_log_store(self, url: String) -> Self {
        Format {
            log_store: Some(url),
            ..self
        }
    }

    /// Sets the location of the log. `None` if it lies beside the data.
    pub fn with_log_place(self, url: Option<String>) -> Self {
        Format {
            log_store: url,
            ..self
        }
    }

    /// Returns true if checksums are required, as they are since format 3.
    pub fn is_checked(&self) -> bool {
        self.format >= FORMAT_VERSION
    }

    pub fn encode(&self) -> Vec<u8> {
        match self.is_checked() {
            true => checksummed_json::encode(self.clone()),
            false => checksummed_json::plain(self),
        }
    }

    /// Decodes the file. Formats newer than `newest` are refused. `name` is the file's name in errors.
    pub fn decode(bytes: &[u8], name: &str, newest: u64) -> Result<Self, StoreError> {
        let corrupt = |detail: String| StoreError::Corrupt {
            file: name.into(),
            detail,
        };
        // The version is decoded first, because other fields may differ in a newer format.
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
    /// Reads `FORMAT`, or creates a new store. A folder that has data but no `FORMAT` is refused.
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

    /// Writes `FORMAT`, after the other files that a store of that format must have. So a partly created store is not taken for one.
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

    /// Upgrades a store of an older format to the newest one. Its documents must be sealed already.
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
