//! The logs in backups, by which times between two of them are restored.

use std::collections::{BTreeMap, BTreeSet};

use object_store::path::Path;
use uuid::Uuid;

use super::document::BackupDocument;
use super::location::BackupLocation;
use crate::boxed;
use crate::error::StoreError;
use crate::history::span::{Span, SpanOps};
use crate::history::{self, HistoryPosition, Segments, archive};
use crate::operation::Op;
use crate::store::Store;

/// The folder of parts of logs that were in no chunk when a backup was written.
const NEWEST: &str = "newest";

/// The path of such a part.
pub(super) fn newest_path(backup: &str, log: Uuid, at: usize) -> Path {
    let folder = Path::from(history::FOLDER).join(NEWEST);
    folder.join(backup).join(log.to_string()).join(format!("{at:06}"))
}

/// The log that a file of a backup is of, if it is of one.
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
    /// A part is missing or damaged.
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
            let span = Span::new(log, positions, until_ms);
            let mut parts: Vec<Segments> = Vec::new();
            for path in paths {
                parts.push(archive::read(location.objects.as_ref(), &Path::from(path)).await?);
            }
            // Of two that begin alike, the one that ends later has what the other has.
            parts.sort_by_key(|part| (part.first, part.last, part.frames.len()));
            let mut of_log = SpanOps::new(&span);
            for part in parts {
                of_log.add(part, &wants)?;
            }
            ops.extend(of_log.found);
        }
        Ok(ops)
    }
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
