//! Times between two backups of a store that keeps history: their schema, and the files that they need.

use std::collections::BTreeSet;

use helenus_cql::error::CqlError;
use helenus_cql::value::timestamp;
use helenus_tablet::{BackupDocument, BackupHistory, manifest_of};

use super::schema_of;
use crate::engine::history::released::origin_cuts;
use crate::engine::history::timeline::ChangesOfBackups;
use crate::schema::Schema;

/// Returns the history in a backup, or an error message if it has none.
fn history(backup: &BackupDocument) -> Result<&BackupHistory, String> {
    backup.content.history.as_ref().ok_or_else(|| {
        format!(
            "backup {} has no history: it was written without the setting point_in_time_window",
            backup.name
        )
    })
}

/// Returns the schema of the first of some consecutive backups, and the changes from there to the schema of the last one.
fn schema_and_changes(backups: &[BackupDocument]) -> Result<(Schema, ChangesOfBackups), CqlError> {
    let (Some(first), Some(last)) = (backups.first(), backups.last()) else {
        return Err(CqlError::invalid("there is no backup"));
    };
    let of = |backup| history(backup).map_err(CqlError::invalid);
    let mut schema = schema_of(first)?;
    schema.version = of(first)?.schema_version;
    let later = backups.iter().skip(1);
    let changes = later
        .filter_map(|backup| backup.content.history.as_ref())
        .flat_map(|history| &history.schema_changes);
    let changes = ChangesOfBackups::between(schema.version, changes, of(last)?.schema_version)?;
    Ok((schema, changes))
}

/// Returns the schema of a time between the first and the last of some backups.
///
/// # Errors
/// A change is missing, or damaged.
pub(super) fn schema_between(backups: &[BackupDocument], time_ms: i64) -> Result<Schema, CqlError> {
    let (mut schema, changes) = schema_and_changes(backups)?;
    match changes.apply_until(&mut schema, time_ms)? {
        true => Ok(schema),
        false => Err(CqlError::invalid(format!(
            "{} can't be restored: a change of the schema before that time is in no backup",
            timestamp::to_cql_text(time_ms)
        ))),
    }
}

/// Checks that the times between two backups can be restored: no change of the schema and no file of a branch may be missing. Contents of
/// files are not checked.
///
/// # Errors
/// A message that says what is missing.
pub fn check_times(backups: &[BackupDocument; 2]) -> Result<(), String> {
    let [begin, end] = backups;
    if begin.tablets.is_empty() {
        return Err(format!("backup {} has no tablets", begin.name));
    }
    let in_words = |error: CqlError| error.to_string();
    let (mut schema, changes) = schema_and_changes(backups).map_err(in_words)?;
    if !changes.are_complete {
        return Err("a change of the schema is in no backup".to_owned());
    }
    let files = begin.files.iter().chain(&end.files);
    let has: BTreeSet<&str> = files.map(|file| file.path.as_str()).collect();
    let mut missing: Option<String> = None;
    let look = |schema: &Schema| {
        let cuts = origin_cuts(schema);
        let mut tablets = cuts.values().flat_map(|cut| cut.iter());
        let lost = tablets.find(|tablet| !has.contains(manifest_of(tablet).as_str()));
        missing = missing.take().or_else(|| lost.map(manifest_of));
    };
    changes.walk(&mut schema, look).map_err(in_words)?;
    match missing {
        Some(path) => Err(format!("a branch needs {path}, which no backup has")),
        None => Ok(()),
    }
}
