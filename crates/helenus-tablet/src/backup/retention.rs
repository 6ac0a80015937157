//! Removes backups beyond the retention limits, and then the files that no remaining backup needs.

use std::collections::BTreeSet;
use std::time::Duration;

use object_store::path::Path;

use super::document::BackupDocument;
use super::location::BackupLocation;
use crate::error::StoreError;

/// Retention limits. A backup is kept if both limits allow it. The newest one is always kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Number of newest backups to keep. `None` for no limit.
    pub count: Option<usize>,
    /// Maximum age of a backup. `None` for no limit.
    pub age: Option<Duration>,
}

/// Backups and files that were removed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Removed {
    pub backups: Vec<String>,
    pub files: u64,
    pub bytes: u64,
}

impl Keep {
    fn is_everything(self) -> bool {
        self == Keep::default()
    }

    /// Splits backups, from old to new, into those to remove and those to keep.
    fn divide(self, documents: &[BackupDocument], now_ms: i64) -> (&[BackupDocument], &[BackupDocument]) {
        let newest = documents.len().saturating_sub(1);
        let over = documents.len().saturating_sub(self.count.unwrap_or(usize::MAX));
        let age_ms = self
            .age
            .map_or(i64::MAX, |age| i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
        let expired = documents.partition_point(|of| now_ms.saturating_sub(of.content.taken_ms) > age_ms);
        documents.split_at(over.max(expired).min(newest))
    }
}

/// Removes backups beyond the limits of `keep` at `now_ms`, and files that no remaining backup needs. No other backup may be running in
/// that location.
///
/// # Errors
/// A document can't be read. Then nothing is removed, because the files that this backup needs are unknown. Or the location can't be read
/// or written.
pub(super) async fn retain(
    location: &BackupLocation,
    keep: Keep,
    now_ms: i64,
) -> Result<Removed, StoreError> {
    let mut removed = Removed::default();
    if keep.is_everything() {
        return Ok(removed);
    }
    let listed = location.list().await?;
    if let Some((path, why)) = listed.unreadable.first() {
        return Err(StoreError::Corrupt {
            file: path.clone(),
            detail: why.clone(),
        });
    }
    let (gone, kept) = keep.divide(&listed.documents, now_ms);
    // A backup without its document does not exist, even if its files are still there.
    for document in gone {
        location.delete_document(&document.name).await?;
        removed.backups.push(document.name.clone());
    }
    let needed = kept.iter().flat_map(|document| &document.files);
    let needed: BTreeSet<&str> = needed.map(|file| file.path.as_str()).collect();
    for (path, bytes) in location.files().await? {
        if !needed.contains(path.as_str()) {
            location.delete(&Path::from(path.as_str())).await?;
            removed.files += 1;
            removed.bytes += bytes;
        }
    }
    Ok(removed)
}

#[cfg(test)]
#[path = "retention_tests.rs"]
mod tests;
