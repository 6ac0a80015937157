//! Collects the tables of all sources, and chooses the generation of each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use helenus_sstable::{Listing, list};
use uuid::Uuid;

use super::folder_name::creation_time;
use super::layout::{self, Layout, TableFolder};
use super::parallel::in_parallel;
use super::place::{SourceFolder, count_data_files, folders_of, read_schema, shown};
use super::{FilesOf, LeftOut, LeftOutReason, SourceOptions, Sources, SstableFile, TableFiles, medusa};
use crate::error::ImportError;
use crate::schema::script::{SchemaText, Script};
use crate::table_name::TableName;

/// The SSTables of a table by generation. `None` is the generation of folders whose names have no id.
type Generations = BTreeMap<Option<Uuid>, Vec<SstableFile>>;

pub(super) fn find(options: &SourceOptions) -> Result<Sources, ImportError> {
    let mut sources = Sources::default();
    let mut tables: BTreeMap<TableName, Generations> = BTreeMap::new();
    for source in &options.folders {
        let layout = match &options.files {
            FilesOf::MedusaBackup(backup) => medusa::read(source, backup)?,
            FilesOf::Live => layout::read(source, None)?,
            FilesOf::Snapshot(tag) => layout::read(source, Some(tag))?,
        };
        check_content(&**source, &options.files, &layout)?;
        for schema in &layout.schemas {
            add_schema(&mut sources.schemas, schema);
        }
        leave_out(&mut sources.left_out, &layout)?;
        let contents = in_parallel(&layout.tables, |of| {
            Ok::<_, ImportError>((read_schema(&*of.folder)?, sstables(&of.folder)?))
        })?;
        for (folder, (own, sstables)) in layout.tables.iter().zip(contents) {
            if let Some(schema) = &own {
                add_schema(&mut sources.schemas, schema);
            }
            let name = name_of(folder, own.iter().chain(&layout.schemas))?;
            let generations = tables.entry(name).or_default();
            generations.entry(folder.id).or_default().extend(sstables);
        }
    }
    for (name, generations) in tables {
        let (id, sstables) = newest(&name, generations, &mut sources.left_out)?;
        sources.tables.insert(name, TableFiles { id, sstables });
    }
    sources.left_out.sort();
    Ok(sources)
}

/// Refuses a source without any table, which is usually a wrong path.
fn check_content(source: &dyn SourceFolder, files: &FilesOf, layout: &Layout) -> Result<(), ImportError> {
    if !layout.tables.is_empty() || !layout.left_out.is_empty() || !layout.schemas.is_empty() {
        return Ok(());
    }
    let shown = shown(source);
    Err(ImportError::Refused(match files {
        FilesOf::Snapshot(tag) if layout.without_snapshot > 0 => format!(
            "{shown}: none of {} tables has the snapshot '{tag}'. List snapshots with `nodetool listsnapshots`",
            layout.without_snapshot
        ),
        _ => format!(
            "{shown}: no tables are here. Give a data folder of Cassandra (with <keyspace>/<table>-<id>), or a folder with SSTables and schema.cql"
        ),
    }))
}

fn leave_out(left_out: &mut Vec<LeftOut>, layout: &Layout) -> Result<(), ImportError> {
    for (reason, what, folder) in &layout.left_out {
        let sstables = count_all_data_files(&**folder, 4)?;
        match left_out
            .iter_mut()
            .find(|known| known.reason == *reason && known.what == *what)
        {
            Some(known) => known.sstables += sstables,
            None => left_out.push(LeftOut {
                reason: *reason,
                what: what.clone(),
                sstables,
            }),
        }
    }
    Ok(())
}

/// Counts the Data.db in a folder and the folders within, but not those of snapshots.
fn count_all_data_files(folder: &dyn SourceFolder, depth: usize) -> Result<u64, ImportError> {
    let mut count = count_data_files(folder)?;
    if depth == 0 {
        return Ok(count);
    }
    for (name, within) in folders_of(folder)? {
        if !matches!(&*name, "snapshots" | "backups") {
            count += count_all_data_files(&*within, depth - 1)?;
        }
    }
    Ok(count)
}

fn add_schema(schemas: &mut Vec<SchemaText>, schema: &SchemaText) {
    if schemas.iter().all(|known| known.text != schema.text) {
        schemas.push(schema.clone());
    }
}

/// Returns the name of a folder's table, from the folder or from the first schema.cql that has tables.
fn name_of<'a>(
    folder: &TableFolder,
    schemas: impl Iterator<Item = &'a SchemaText>,
) -> Result<TableName, ImportError> {
    if let (Some(keyspace), Some(table)) = (&folder.keyspace, &folder.table) {
        return Ok(TableName::new(keyspace, table));
    }
    let mut candidates = BTreeSet::new();
    for schema in schemas {
        candidates.extend(Script::parse(schema)?.tables_and_views());
        if !candidates.is_empty() {
            break;
        }
    }
    if candidates.len() > 1
        && let Some(table) = &folder.table
    {
        candidates.retain(|name| name.table == *table);
    }
    let mut candidates = candidates.into_iter();
    match (candidates.next(), candidates.next()) {
        (Some(only), None) => Ok(only),
        _ => Err(ImportError::Refused(format!(
            "{}: the table of these SSTables is unknown. Put a schema.cql with one CREATE TABLE beside them, or name the folder <keyspace>.<table>",
            shown(&*folder.folder)
        ))),
    }
}

/// Lists the SSTables of a folder. Temporary files are no SSTables.
fn sstables(folder: &Arc<dyn SourceFolder>) -> Result<Vec<SstableFile>, ImportError> {
    let Listing {
        sstables,
        refused,
        transaction_logs,
    } = list(&**folder)?;
    let refuse = |error| ImportError::Refused(format!("{}: {error}", shown(&**folder)));
    if let Some(error) = refused.into_iter().next() {
        return Err(refuse(error));
    }
    if let Some(log) = transaction_logs.first() {
        return Err(ImportError::Refused(format!(
            "{}: a flush or compaction is unfinished, so that some SSTables may be incomplete or obsolete. Import a snapshot, or stop \
             Cassandra after `nodetool drain`",
            folder.display_name(log)
        )));
    }
    // A component that is being written ends with this (`Descriptor.TMP_EXT`).
    let is_temporary = |component: &String| component.ends_with(".tmp");
    sstables
        .into_iter()
        .filter(|listed| !listed.components.iter().all(is_temporary))
        .map(|listed| {
            listed.check_complete().map_err(refuse)?;
            Ok(SstableFile {
                folder: Arc::clone(folder),
                descriptor: listed.descriptor,
                data_bytes: listed.data_bytes,
            })
        })
        .collect()
}

/// Chooses the newest generation of a table. Ids are time UUIDs, unless the source makes them from names.
fn newest(
    name: &TableName,
    mut generations: Generations,
    left_out: &mut Vec<LeftOut>,
) -> Result<(Option<Uuid>, Vec<SstableFile>), ImportError> {
    // Copies without an id belong to the only generation that there is.
    if generations.len() == 2
        && let Some(unnamed) = generations.remove(&None)
        && let Some((_, sstables)) = generations.iter_mut().next()
    {
        sstables.extend(unnamed);
    }
    let made = |id: Option<Uuid>| id.and_then(creation_time);
    if generations.len() > 1 && generations.keys().any(|id| made(*id).is_none()) {
        let ids: Vec<String> = generations
            .keys()
            .map(|id| id.map_or_else(|| "without id".to_owned(), |id| id.simple().to_string()))
            .collect();
        return Err(ImportError::Refused(format!(
            "{name}: folders of several generations are here ({}), and their ids don't say which is the newest. Give a source without \
             the folders of dropped tables",
            ids.join(", ")
        )));
    }
    let newest = generations.keys().copied().max_by_key(|id| made(*id)).flatten();
    let mut chosen = Vec::new();
    for (id, sstables) in generations {
        if id == newest {
            chosen = sstables;
        } else if !sstables.is_empty() {
            left_out.push(LeftOut {
                reason: LeftOutReason::OlderGeneration,
                what: format!("{name} {}", id.unwrap_or_default().simple()),
                sstables: sstables.len() as u64,
            });
        }
    }
    Ok((newest, chosen))
}
