//! The layout of a source: the folders that hold a table's SSTables.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::LeftOutReason;
use super::folder_name::{TableFolderName, is_system_keyspace};
use crate::error::ImportError;

/// The folders of one source.
#[derive(Debug, Default)]
pub struct Layout {
    pub tables: Vec<TableFolder>,
    /// Folders that aren't imported, with the keyspace or index as text.
    pub left_out: Vec<(LeftOutReason, String, PathBuf)>,
    /// A schema.cql that stands above the folders of tables.
    pub schema: Option<PathBuf>,
    /// Number of tables without the snapshot.
    pub without_snapshot: u64,
}

/// A folder with SSTables of one table.
#[derive(Debug)]
pub struct TableFolder {
    pub path: PathBuf,
    /// `None` if only schema.cql has the name.
    pub keyspace: Option<String>,
    /// `None` if only schema.cql has the name.
    pub table: Option<String>,
    pub id: Option<uuid::Uuid>,
}

/// Finds the folders of a source.
pub fn read(source: &Path, snapshot: Option<&str>) -> Result<Layout, ImportError> {
    let mut layout = Layout::default();
    if has_sstables(source)? {
        layout.add_copy(source, None)?;
        return Ok(layout);
    }
    let schema = source.join("schema.cql");
    layout.schema = schema.is_file().then_some(schema);
    for (name, path) in folders(source)? {
        if let Some(parsed) = TableFolderName::parse(&name) {
            let keyspace = file_name(source);
            layout.add_table(&path, &keyspace, parsed, snapshot)?;
        } else if is_system_keyspace(&name) {
            layout.left_out.push((LeftOutReason::SystemKeyspace, name, path));
        } else if has_sstables(&path)? {
            layout.add_copy(&path, Some(&name))?;
        } else {
            for (table, path) in folders(&path)? {
                if let Some(parsed) = TableFolderName::parse(&table) {
                    layout.add_table(&path, &name, parsed, snapshot)?;
                }
            }
        }
    }
    Ok(layout)
}

impl Layout {
    /// Adds a folder `<keyspace>/<table>-<id>` of Cassandra.
    fn add_table(
        &mut self,
        path: &Path,
        keyspace: &str,
        name: TableFolderName,
        snapshot: Option<&str>,
    ) -> Result<(), ImportError> {
        if is_system_keyspace(keyspace) {
            let left_out = (
                LeftOutReason::SystemKeyspace,
                keyspace.to_owned(),
                path.to_owned(),
            );
            self.left_out.push(left_out);
            return Ok(());
        }
        let path = match snapshot {
            Some(tag) => path.join("snapshots").join(tag),
            None => path.to_owned(),
        };
        if !path.is_dir() {
            self.without_snapshot += 1;
            return Ok(());
        }
        self.add_indexes(&path, &format!("{keyspace}.{}", name.table))?;
        self.tables.push(TableFolder {
            path,
            keyspace: Some(keyspace.to_owned()),
            table: Some(name.table),
            id: Some(name.id),
        });
        Ok(())
    }

    /// Adds a folder of copied SSTables. `name` is that of the folder below a source, and `None` for the source itself.
    fn add_copy(&mut self, path: &Path, name: Option<&str>) -> Result<(), ImportError> {
        let place = match name {
            Some(name) => TableFolderName::parse(name).map(|parsed| (None, parsed)),
            None => place_of(path),
        };
        let (mut keyspace, mut table, mut id) = (None, None, None);
        match (place, name) {
            (Some((of, parsed)), _) => {
                keyspace = of;
                table = Some(parsed.table);
                id = Some(parsed.id);
            }
            (None, Some(name)) => match name.split_once('.') {
                Some((of, name)) => {
                    keyspace = Some(of.to_owned());
                    table = Some(name.to_owned());
                }
                None => table = Some(name.to_owned()),
            },
            (None, None) => {}
        }
        self.add_indexes(path, &path.display().to_string())?;
        self.tables.push(TableFolder {
            path: path.to_owned(),
            keyspace,
            table,
            id,
        });
        Ok(())
    }

    /// Notes the folders of indexes within a table's, whose names begin with a dot.
    fn add_indexes(&mut self, path: &Path, table: &str) -> Result<(), ImportError> {
        for (name, path) in folders(path)? {
            if let Some(index) = name.strip_prefix('.') {
                let what = format!("{index} of {table}");
                self.left_out.push((LeftOutReason::Index, what, path));
            }
        }
        Ok(())
    }
}

/// Returns the keyspace and the table of a folder that is a table's own, or one of its snapshots.
fn place_of(path: &Path) -> Option<(Option<String>, TableFolderName)> {
    let path = fs::canonicalize(path).ok()?;
    let own = |folder: &Path| {
        let parsed = TableFolderName::parse(&file_name(folder))?;
        Some((folder.parent().map(file_name), parsed))
    };
    own(&path).or_else(|| {
        let snapshots = path.parent()?;
        (file_name(snapshots) == "snapshots")
            .then(|| own(snapshots.parent()?))
            .flatten()
    })
}

/// Returns true if the folder holds a Data.db of any version.
pub fn has_sstables(path: &Path) -> Result<bool, ImportError> {
    let entries = fs::read_dir(path).map_err(ImportError::io(path))?;
    for entry in entries {
        let name = entry.map_err(ImportError::io(path))?.file_name();
        if name.to_string_lossy().ends_with("-Data.db") {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the folders within a folder, by name. Names that aren't UTF-8 are none of Cassandra's.
fn folders(path: &Path) -> Result<Vec<(String, PathBuf)>, ImportError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(ImportError::io(path))? {
        let entry = entry.map_err(ImportError::io(path))?;
        let name = entry.file_name().into_string();
        if let (Ok(name), true) = (name, entry.path().is_dir()) {
            found.push((name, entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

fn file_name(path: &Path) -> String {
    // A relative path such as `.` has no name of its own.
    let full = match path.file_name() {
        Some(name) => name.to_owned(),
        None => fs::canonicalize(path)
            .ok()
            .and_then(|path| path.file_name().map(OsString::from))
            .unwrap_or_default(),
    };
    full.to_string_lossy().into_owned()
}
