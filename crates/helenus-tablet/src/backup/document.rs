//! The document of a backup.

use std::collections::BTreeMap;

use chrono::DateTime;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::disk::checksummed_json::{self, ChecksummedDocument};
use crate::history::HistoryPosition;
use crate::tablet::pin::PinnedTablet;
use crate::token_range::TokenRange;

/// Raised when an older binary could not read a backup.
pub(crate) const FORMAT: u32 = 1;
const NAME_LEN_MAX: usize = 128;

/// What a backup has: everything of a store that a restore needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackupDocument {
    pub format: u32,
    pub name: String,
    /// The store that it is of.
    pub store_id: Uuid,
    #[serde(flatten)]
    pub content: BackupContent,
    pub tablets: Vec<BackupTablet>,
    /// By path, each once.
    pub files: Vec<BackupFile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}

/// What a backup has beside the files of the tablets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackupContent {
    /// The version of the binary that wrote it.
    pub version: String,
    /// The moment that it is of, in milliseconds since the Unix epoch.
    pub taken_ms: i64,
    /// Beyond every write timestamp that the store had given, in microseconds.
    pub clock_us: i64,
    /// The settings of the node that wrote it, where they differ from the defaults; secrets are not among them.
    pub settings: BTreeMap<String, String>,
    /// The numbers of the tables that have ever had partition headers.
    pub header_tables: Vec<u32>,
    /// Keyspaces, tables with their numbers, and roles, as a base of the schema has them.
    pub schema: serde_json::Value,
    /// What leads from this backup and the one before to the times between them, of a store that keeps its past.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<BackupHistory>,
}

/// How times before a backup, and after the one before it, are reached; the logs of that time are among its files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackupHistory {
    /// How far the logs were at the moment of the backup.
    pub positions: Vec<HistoryPosition>,
    /// The version of the schema.
    pub schema_version: Uuid,
    /// The changes of the schema within the window, in the order of time; those of earlier backups among them.
    pub schema_changes: Vec<BackupSchemaChange>,
}

/// A change of the schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackupSchemaChange {
    /// When it was made, in milliseconds since the Unix epoch.
    pub time_ms: i64,
    /// The version of the schema from then on.
    pub version: Uuid,
    /// The change as the history of the store has it.
    pub change: serde_json::Value,
}

/// A tablet as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupTablet {
    pub id: u32,
    pub tokens: TokenRange,
    /// The number of the manifest that lists its SSTables.
    pub manifest: u64,
    /// What held the files in the store. The least of a moment's names what its unfinished batches came to.
    pub checkpoint: Uuid,
}

/// A file of a backup.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BackupFile {
    /// Below the location of the backups.
    pub path: String,
    pub bytes: u64,
    /// Of all its bytes, in hexadecimal digits.
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

    /// Reads a document.
    ///
    /// # Errors
    /// In words: a newer binary has written it, or it is damaged.
    pub(crate) fn decode(bytes: &[u8]) -> Result<BackupDocument, String> {
        check_format(bytes)?;
        checksummed_json::decode(bytes, true)
    }

    /// Returns the bytes of all its files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// Refuses a document of a newer format, which may lack what this binary looks for.
///
/// # Errors
/// In words.
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

/// Returns the name of a backup that is given none: the moment, to the second.
pub fn backup_name(taken_ms: i64) -> String {
    let time = DateTime::from_timestamp_millis(taken_ms).unwrap_or_default();
    time.format("%Y%m%dT%H%M%SZ").to_string()
}

/// Refuses what is no name of a backup.
///
/// # Errors
/// In words.
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
