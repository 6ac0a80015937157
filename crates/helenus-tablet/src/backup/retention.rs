//! Removes backups that are too old, and then the files that no other backup needs.

use std::collections::BTreeSet;
use std::time::Duration;

use object_store::path::Path;

use super::document::BackupDocument;
use super::location::BackupLocation;
use crate::error::StoreError;

/// Which backups stay: those that both limits let stay, and always the newest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// That many of the newest.
    pub count: Option<usize>,
    /// Those whose moment is no longer ago.
    pub age: Option<Duration>,
}

/// What has been removed.
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

    /// Cuts backups, from old to new, into those that go and those that stay.
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

/// Removes what `keep` lets go at `now_ms`. Call it while no other backup goes to that place.
///
/// # Errors
/// A document can't be read: then nobody knows what it needs, and nothing is removed. Or the place can't be read or written.
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
    // Without its document a backup is none, whatever is left of its files.
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
