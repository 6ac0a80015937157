//! The document of a backup.

use std::collections::BTreeMap;

use chrono::DateTime;
use helenus_row::TokenRange;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::disk::checksummed_json::{self, ChecksummedDocument};
use crate::history::HistoryPosition;
use crate::tablet::pin::PinnedTablet;

/// Format of the documents. Raised by every change that an older binary could not read.
pub(crate) const FORMAT: u32 = 1;
const NAME_LEN_MAX: usize = 128;

/// Document of a backup: everything that a restore needs besides the files themselves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackupDocument {
    pub format: u32,
    pub name: String,
    /// The store that was backed up.
    pub store_id: Uuid,
    #[serde(flatten)]
    pub content: BackupContent,
    pub tablets: Vec<BackupTablet>,
    /// The backup's files, sorted by path, without duplicates.
    pub files: Vec<BackupFile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}

/// Content of a backup besides the tablets and their files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackupContent {
    /// The version of the binary that wrote the backup.
    pub version: String,
    /// Time of the cut, in milliseconds since the Unix epoch.
    pub taken_ms: i64,
    /// A timestamp later than every write timestamp that the store had assigned, in microseconds.
    pub clock_us: i64,
    /// The settings of the node that wrote the backup, where they differ from the defaults. Secrets are left out.
    pub settings: BTreeMap<String, String>,
    /// The numbers of all tables that have, or had at any time, partition headers.
    pub header_tables: Vec<u32>,
    /// Keyspaces, tables with their numbers, and roles, in the format of a base of the schema.
    pub schema: serde_json::Value,
    /// Data for restores to times between the previous backup and this one. `None` if the store keeps no history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<BackupHistory>,
}

/// Data for restores to times between the previous backup and this one. The logs of that time are among the backup's files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackupHistory {
    /// Positions of the logs at the cut of the backup.
    pub positions: Vec<HistoryPosition>,
    /// The version of the schema at the cut.
    pub schema_version: Uuid,
    /// The changes of the schema within the history window, in the order of time. Changes that earlier backups list are included.
    pub schema_changes: Vec<BackupSchemaChange>,
}

/// A change of the schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackupSchemaChange {
    /// Time of the change, in milliseconds since the Unix epoch.
    pub time_ms: i64,
    /// The version of the schema after the change.
    pub version: Uuid,
    /// The change, in the format of the store's history.
    pub change: serde_json::Value,
}

/// A tablet as of the cut of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupTablet {
    pub id: u32,
    pub tokens: TokenRange,
    /// The number of the manifest that lists its SSTables.
    pub manifest: u64,
    /// The checkpoint that pinned the files in the store. The smallest checkpoint of a cut names the file with the operations of its
    /// unfinished batches.
    pub checkpoint: Uuid,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BackupFile {
    /// Path below the backup location.
    pub path: String,
    pub bytes: u64,
    /// SHA-256 of the whole file, in hexadecimal digits.
    pub sha256: String,
}

impl From<&PinnedTablet> for BackupTablet {
    fn from(pinned: &PinnedTablet) -> BackupTablet {
        BackupTablet {
            id: pinned.id,
            tokens: pinned.tokens,
            manifest: pinned.manifest,
            checkpoint: pinned.checkpoint,
        }
    }
}

impl From<&BackupTablet> for PinnedTablet {
    fn from(tablet: &BackupTablet) -> PinnedTablet {
        PinnedTablet {
            id: tablet.id,
            tokens: tablet.tokens,
            manifest: tablet.manifest,
            checkpoint: tablet.checkpoint,
        }
    }
}

impl ChecksummedDocument for BackupDocument {
    fn checksum(&mut self) -> &mut Option<String> {
        &mut self.checksum
    }
}

impl BackupDocument {
    pub(crate) fn new(
        name: &str,
        store_id: Uuid,
        content: BackupContent,
        tablets: &[PinnedTablet],
        mut files: Vec<BackupFile>,
    ) -> BackupDocument {
        files.sort_unstable();
        files.dedup();
        BackupDocument {
            format: FORMAT,
            name: name.to_owned(),
            store_id,
            content,
            tablets: tablets.iter().map(BackupTablet::from).collect(),
            files,
            checksum: None,
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        checksummed_json::encode(self.clone())
    }

    /// Decodes a document.
    ///
    /// # Errors
    /// A description, if a newer binary wrote the document or if it is damaged.
    pub(crate) fn decode(bytes: &[u8]) -> Result<BackupDocument, String> {
        check_format(bytes)?;
        checksummed_json::decode(bytes, true)
    }

    /// Returns the total bytes of the backup's files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// Refuses a document of a newer format, which may lack fields that this binary needs.
///
/// # Errors
/// A description of the problem.
pub(super) fn check_format(bytes: &[u8]) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let Format { format } = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    match format <= FORMAT {
        true => Ok(()),
        false => Err(format!(
            "it was written in format {format}, and this binary understands up to {FORMAT}: use a newer helenus"
        )),
    }
}

/// Returns the default name of a backup: the time of its cut, to the second.
pub fn backup_name(taken_ms: i64) -> String {
    let time = DateTime::from_timestamp_millis(taken_ms).unwrap_or_default();
    time.format("%Y%m%dT%H%M%SZ").to_string()
}

/// Checks that a name is valid for a backup.
///
/// # Errors
/// A description of the allowed names.
pub fn check_backup_name(name: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match !name.is_empty()
        && name.len() <= NAME_LEN_MAX
        && !name.starts_with('.')
        && name.bytes().all(is_plain)
    {
        true => Ok(()),
        false => Err(format!(
            "{name:?} is no name of a backup: letters, digits, - _ and . are, up to {NAME_LEN_MAX} of them, and no . at the beginning"
        )),
    }
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
