//! Backups of Medusa (`cassandra-medusa`), full and differential.
//!
//! ```text
//! <fqdn>/<backup>/meta/            schema.cql (first), tokenmap.json, manifest.json (last)
//! <fqdn>/<backup>/data/<keyspace>/<table>-<id>/    files of a full backup
//! <fqdn>/data/<keyspace>/<table>-<id>/             files of all differential backups
//! index/backup_index/<backup>/                     copies of the files in meta
//! ```
//!
//! The manifest names the files of a backup, so both kinds are read in the same way. A differential backup shares files with others, and
//! its folder also has files that are not its own.
//!
//! Only the sizes in the manifest are compared. Its MD5s are tags of the object store, which differ from the MD5 of the content for large
//! objects and with keys of KMS. Damage within files is found by the checksums of the SSTables.

mod listed_folder;
mod manifest;

#[cfg(test)]
mod medusa_tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use self::listed_folder::ListedFolder;
use self::manifest::Manifest;
use super::LeftOutReason;
use super::folder_name::TableFolderName;
use super::layout::{Layout, TableFolder};
use super::parallel::in_parallel;
use super::place::{
    SourceFolder, count_data_files, files_if_exists, folder_if_exists, folders_of, read_file, read_schema,
    shown,
};
use crate::error::ImportError;
use crate::system_keyspaces::is_system_keyspace;

const META: &str = "meta";
const MANIFEST: &str = "manifest.json";
const TOKEN_MAP: &str = "tokenmap.json";
/// Folder of the storage that is no node's.
const INDEX: &str = "index";
/// Folder of a node that is no backup.
const DATA: &str = "data";

/// The backup of one node.
struct NodeBackup {
    /// The node's folder.
    folder: Arc<dyn SourceFolder>,
    fqdn: String,
    meta: Arc<dyn SourceFolder>,
}

/// Finds the folders of a backup, of all its nodes. `source` is a storage, or the folder of one node in it.
pub(super) fn read(source: &Arc<dyn SourceFolder>, backup: &str) -> Result<Layout, ImportError> {
    let mut layout = Layout::default();
    for node in nodes(source, backup)? {
        layout.schemas.extend(read_schema(&*node.meta)?);
        let path = node.meta.display_name(MANIFEST);
        let manifest = Manifest::parse(&path, &read_file(&*node.meta, MANIFEST)?, &node.fqdn)?;
        let folders: Vec<_> = manifest.folders.into_iter().collect();
        let listed = in_parallel(&folders, |(place, sizes)| {
            let folder = place
                .iter()
                .fold(Arc::clone(&node.folder), |folder, name| folder.folder(name));
            ListedFolder::check(folder, sizes, &path)
        })?;
        for ((place, _), folder) in folders.iter().zip(listed) {
            layout.add_listed(place, Arc::new(folder), &path)?;
        }
    }
    Ok(layout)
}

/// Finds the nodes of a backup, and refuses a backup that lacks some.
fn nodes(source: &Arc<dyn SourceFolder>, backup: &str) -> Result<Vec<NodeBackup>, ImportError> {
    if let Some(meta) = meta_of(source, backup)? {
        let fqdn = source.path_names().pop().unwrap_or_default();
        let node = NodeBackup {
            folder: Arc::clone(source),
            fqdn,
            meta,
        };
        node.check_finished(backup)?;
        return Ok(vec![node]);
    }
    let mut found = Vec::new();
    for (fqdn, folder) in folders_of(&**source)? {
        if fqdn == INDEX {
            continue;
        }
        if let Some(meta) = meta_of(&folder, backup)? {
            found.push(NodeBackup { folder, fqdn, meta });
        }
    }
    if found.is_empty() {
        return Err(unknown(source, backup)?);
    }
    let mut expected = BTreeSet::new();
    for node in &found {
        node.check_finished(backup)?;
        expected.extend(node.token_map()?);
    }
    let missing: Vec<String> = expected
        .into_iter()
        .filter(|fqdn| found.iter().all(|node| node.fqdn != *fqdn))
        .collect();
    if missing.is_empty() {
        return Ok(found);
    }
    let shown = shown(&**source);
    Err(ImportError::Refused(format!(
        "{shown}: backup '{backup}' lacks the nodes {}, so rows may be missing. Choose a complete backup, or give the folders of its nodes: \
         --from {shown}/<node> for each",
        missing.join(", ")
    )))
}

/// Returns the folder with the backup's metadata. `None` if the node doesn't have the backup.
fn meta_of(node: &Arc<dyn SourceFolder>, backup: &str) -> Result<Option<Arc<dyn SourceFolder>>, ImportError> {
    match folder_if_exists(&**node, backup)? {
        Some(folder) => folder_if_exists(&*folder, META),
        None => Ok(None),
    }
}

/// Returns the error of a backup that no node has.
fn unknown(source: &Arc<dyn SourceFolder>, backup: &str) -> Result<ImportError, ImportError> {
    let shown = shown(&**source);
    let mut known = BTreeSet::new();
    for (fqdn, node) in folders_of(&**source)? {
        for (name, folder) in folders_of(&*node)? {
            if fqdn != INDEX && name != DATA && folder_if_exists(&*folder, META)?.is_some() {
                known.insert(name);
            }
        }
    }
    let known: Vec<String> = known.into_iter().collect();
    Ok(ImportError::Refused(match known.is_empty() {
        true => format!(
            "{shown}: no backups of Medusa are here. Give the storage: the bucket with the prefix, or the base path and the bucket's name, \
             of medusa.ini"
        ),
        false => format!(
            "{shown}: no node has the backup '{backup}'; the backups are {}",
            known.join(", ")
        ),
    }))
}

impl NodeBackup {
    /// Refuses a backup that has begun and not ended: the manifest is written last.
    fn check_finished(&self, backup: &str) -> Result<(), ImportError> {
        if files_if_exists(&*self.meta)?.iter().any(|name| name == MANIFEST) {
            return Ok(());
        }
        Err(ImportError::Refused(format!(
            "{}: the file is missing, so backup '{backup}' of {} has not ended. Wait for its end, or choose another backup",
            self.meta.display_name(MANIFEST),
            self.fqdn
        )))
    }

    /// Returns the nodes that the cluster had. Empty if the backup doesn't say.
    fn token_map(&self) -> Result<Vec<String>, ImportError> {
        if !files_if_exists(&*self.meta)?.iter().any(|name| name == TOKEN_MAP) {
            return Ok(Vec::new());
        }
        let content = read_file(&*self.meta, TOKEN_MAP)?;
        let nodes: BTreeMap<String, serde::de::IgnoredAny> =
            manifest::parse_json(&self.meta.display_name(TOKEN_MAP), &content)?;
        Ok(nodes.into_keys().collect())
    }
}

impl Layout {
    /// Adds a folder of a manifest. `place` is its path below the node's folder.
    fn add_listed(
        &mut self,
        place: &[String],
        folder: Arc<dyn SourceFolder>,
        manifest: &str,
    ) -> Result<(), ImportError> {
        let refused = || {
            let place = place.join("/");
            ImportError::Refused(format!(
                "{manifest}: {place} is no folder of a table (data/<keyspace>/<table>-<id>). Leave its keyspace out of the backup"
            ))
        };
        let (keyspace, table, index) = match place {
            [.., keyspace, table, index] if index.starts_with('.') => {
                (keyspace, table, index.strip_prefix('.'))
            }
            [.., keyspace, table] => (keyspace, table, None),
            _ => return Err(refused()),
        };
        if is_system_keyspace(keyspace) {
            let left_out = (LeftOutReason::SystemKeyspace, keyspace.clone(), folder);
            self.left_out.push(left_out);
            return Ok(());
        }
        let Some(name) = TableFolderName::parse(table) else {
            // Other products keep files without SSTables here, such as the metadata of DSE.
            return match count_data_files(&*folder)? {
                0 => Ok(()),
                _ => Err(refused()),
            };
        };
        if let Some(index) = index {
            let what = format!("{index} of {keyspace}.{}", name.table);
            self.left_out.push((LeftOutReason::Index, what, folder));
            return Ok(());
        }
        self.tables.push(TableFolder {
            folder,
            keyspace: Some(keyspace.clone()),
            table: Some(name.table),
            id: Some(name.id),
        });
        Ok(())
    }
}
