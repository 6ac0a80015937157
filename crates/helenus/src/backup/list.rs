//! `helenus backup list`: lists the backups in a place, or the content of one.

use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

use helenus_query::engine::backups::tables_of_backup;
use helenus_tablet::{BackupDocument, BackupLocation};

use super::runtime;
use crate::nodetool::output::{columns, file_size};

/// Lists backups. Documents that cannot be read are named on the error output.
pub(super) fn run(location: &BackupLocation, name: Option<&str>) -> anyhow::Result<ExitCode> {
    runtime()?.block_on(async {
        if let Some(name) = name {
            print!("{}", details(&location.find(Some(name)).await?)?);
            return Ok(ExitCode::SUCCESS);
        }
        let listed = location.list().await?;
        for (path, why) in &listed.unreadable {
            eprintln!("{path} can't be read: {why}");
        }
        match listed.documents.is_empty() {
            true => println!("There are no backups in {location}"),
            false => print!("{}", page(&listed.documents)),
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn page(backups: &[BackupDocument]) -> String {
    let mut cells = vec![["Name", "Time", "Version", "Files", "Size", "Keyspaces"].map(str::to_owned)];
    cells.extend(backups.iter().map(|backup| {
        let keyspaces =
            tables_of_backup(backup).map(|tables| tables.into_keys().collect::<Vec<_>>().join(" "));
        [
            backup.name.clone(),
            time(backup),
            backup.content.version.clone(),
            backup.files.len().to_string(),
            file_size(backup.bytes()),
            keyspaces.unwrap_or_else(|error| error.to_string()),
        ]
    }));
    columns(&cells)
}

fn details(backup: &BackupDocument) -> anyhow::Result<String> {
    let mut lines = vec![
        format!("Backup {} of store {}", backup.name, backup.store_id),
        format!("Time      {}", time(backup)),
        format!("Version   {}", backup.content.version),
        format!("Files     {}, {}", backup.files.len(), file_size(backup.bytes())),
    ];
    for (keyspace, tables) in tables_of_backup(backup)? {
        lines.push(format!("Keyspace  {keyspace}: {}", tables.join(" ")));
    }
    let settings = backup.content.settings.iter();
    lines.extend(settings.map(|(name, value)| format!("Setting   {name} = {value}")));
    Ok(lines.join("\n") + "\n")
}

fn time(backup: &BackupDocument) -> String {
    let taken = Duration::from_millis(u64::try_from(backup.content.taken_ms).unwrap_or_default());
    // A time too large for a date is shown as 1970.
    let time = UNIX_EPOCH.checked_add(taken).unwrap_or(UNIX_EPOCH);
    humantime::format_rfc3339_seconds(time).to_string()
}
