//! The logs in backups, by which times between two of them are restored.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, SecondsFormat};
use object_store::path::Path;
use uuid::Uuid;

use super::document::{BackupDocument, BackupHistory};
use super::location::BackupLocation;
use crate::boxed;
use crate::error::StoreError;
use crate::history::span::{HistoryUntil, Span, SpanOps};
use crate::history::{self, HistoryPosition, Segments, archive};
use crate::operation::Op;
use crate::store::Store;

/// The folder of parts of logs that were in no chunk when a backup was written.
const NEWEST: &str = "newest";

/// Returns the path of such a part.
pub(super) fn newest_path(backup: &str, log: Uuid, at: usize) -> Path {
    let folder = Path::from(history::FOLDER).join(NEWEST);
    folder.join(backup).join(log.to_string()).join(format!("{at:06}"))
}

/// Returns the log that a file of a backup is of, if it is of one.
fn log_of(path: &str) -> Option<Uuid> {
    let mut parts = path.split('/');
    let is_history = parts.next()? == history::FOLDER;
    let log = match parts.next()? {
        NEWEST => parts.nth(1)?,
        _ => parts.next()?,
    };
    log.parse().ok().filter(|_| is_history)
}

impl Store {
    /// What the logs in backups have of some tables that is not before these positions and was committed up to that time.
    ///
    /// # Errors
    /// A part is missing or damaged; or a log has that time twice ([`StoreError::PastUncertain`]).
    #[boxed]
    pub async fn ops_of_backups(
        &self,
        location: &BackupLocation,
        backups: &[BackupDocument],
        positions: &[HistoryPosition],
        until_ms: i64,
        tables: &BTreeSet<u32>,
    ) -> Result<Vec<Op>, StoreError> {
        let model = self.files()?.databases.model;
        let wants = |op: &Op| tables.contains(&model.table_of(&op.key));
        let mut files: BTreeMap<Uuid, BTreeSet<&str>> = BTreeMap::new();
        for file in backups.iter().flat_map(|backup| &backup.files) {
            if let Some(log) = log_of(&file.path) {
                files.entry(log).or_default().insert(&file.path);
            }
        }
        let mut ops = Vec::new();
        for (log, paths) in files {
            let span = Span::new(log, positions, &HistoryUntil::time(until_ms));
            ops.extend(read_log(location, paths, &span, &wants).await?.found);
        }
        Ok(ops)
    }
}

/// Reads the parts of a log that backups have.
async fn read_log<'s>(
    location: &BackupLocation,
    paths: BTreeSet<&str>,
    span: &'s Span,
    wants: &impl Fn(&Op) -> bool,
) -> Result<SpanOps<'s>, StoreError> {
    let mut parts: Vec<Segments> = Vec::new();
    for path in paths {
        parts.push(archive::read(location.objects.as_ref(), &Path::from(path)).await?);
    }
    // Of two that begin alike, the one that ends later has what the other has.
    parts.sort_by_key(|part| (part.first, part.last, part.frames.len()));
    let mut of_log = SpanOps::new(span);
    for part in parts {
        of_log.add(part, wants)?;
    }
    Ok(of_log)
}

/// Says what the logs of a backup lack of the time since the one before, or why a part of that time is uncertain.
///
/// # Errors
/// In words.
pub(super) async fn check_logs(
    location: &BackupLocation,
    before: &BackupHistory,
    backup: &BackupDocument,
    history: &BackupHistory,
) -> Result<(), String> {
    let mut files: BTreeMap<Uuid, BTreeSet<&str>> = BTreeMap::new();
    for file in &backup.files {
        if let Some(log) = log_of(&file.path) {
            files.entry(log).or_default().insert(&file.path);
        }
    }
    for position in &history.positions {
        files.entry(position.log).or_default();
    }
    for (log, paths) in files {
        let span = Span::new(log, &before.positions, &HistoryUntil::time(i64::MAX));
        let read = read_log(location, paths, &span, &|_| false).await;
        let read = read.map_err(|error| error.to_string())?;
        let position = history.positions.iter().find(|position| position.log == log);
        // The last object of a log that has ended is a fence, which is not kept.
        if let Some(end) = position
            && end.segment != u64::MAX
            && read.reached() + 1 < end.segment
        {
            return Err(format!(
                "segments {} to {} of log {log} are in no backup",
                read.reached() + 1,
                end.segment
            ));
        }
        if let Some((from_ms, to_ms)) = read.steps_back.first() {
            let [from, to] = [from_ms, to_ms].map(|time_ms| {
                let time = DateTime::from_timestamp_millis(*time_ms).unwrap_or_default();
                time.to_rfc3339_opts(SecondsFormat::Millis, true)
            });
            return Err(format!(
                "the clock of a node was set back, so that the times from {from} to {to} are uncertain"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_log_are_known_by_their_paths() {
        let log = Uuid::from_u128(7);
        assert_eq!(log_of(newest_path("monday", log, 3).as_ref()), Some(log));
        assert_eq!(
            log_of(history::log_folder(Some(log)).join("1-2-3-4").as_ref()),
            Some(log)
        );
        assert_eq!(log_of("tablets/1/compacted/a.sst"), None);
        assert_eq!(log_of("history/bases/1"), None);
    }
}
