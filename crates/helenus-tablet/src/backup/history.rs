//! The logs in backups, which allow a restore to any time between two backups.

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

/// The folder of the newest frames of logs, which were in no chunk when a backup was written.
const NEWEST: &str = "newest";

/// Returns the path of part number `at` of a log's newest frames in a backup.
pub(super) fn newest_path(backup: &str, log: Uuid, at: usize) -> Path {
    let folder = Path::from(history::FOLDER).join(NEWEST);
    folder.join(backup).join(log.to_string()).join(format!("{at:06}"))
}

/// Returns the log that a file of a backup belongs to. `None` if the file is no part of a log.
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
    /// Returns the operations on the given tables from the logs in backups. The operations begin at `positions` and were committed no later
    /// than `until_ms`.
    ///
    /// # Errors
    /// A part is missing or damaged. [`StoreError::HistoryUncertain`] if the clock of a log's node showed that time twice.
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

/// Reads the parts of a log that lie in backups.
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
    // Parts may overlap. If two begin at the same segment, the longer one contains the shorter one.
    parts.sort_by_key(|part| (part.first, part.last, part.frames.len()));
    let mut of_log = SpanOps::new(span);
    for part in parts {
        of_log.add(part, wants)?;
    }
    Ok(of_log)
}

/// Checks that the logs in a backup cover all the time since the previous backup, without a clock that was set back.
///
/// # Errors
/// A description of the missing segments or of the uncertain times.
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
        // The last object of a closed log is a fence, which the history does not keep.
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
