//! The layout of a source: the folders that hold a table's SSTables.

use std::sync::Arc;

use super::LeftOutReason;
use super::folder_name::TableFolderName;
use super::place::{SourceFolder, count_data_files, folder_if_exists, folders_of, read_schema, shown};
use crate::error::ImportError;
use crate::schema::script::SchemaText;
use crate::system_keyspaces::is_system_keyspace;

/// The folders of one source.
#[derive(Debug, Default)]
pub struct Layout {
    pub tables: Vec<TableFolder>,
    /// Folders that aren't imported, with the keyspace or index as text.
    pub left_out: Vec<(LeftOutReason, String, Arc<dyn SourceFolder>)>,
    /// Files schema.cql that stand above the folders of tables.
    pub schemas: Vec<SchemaText>,
    /// Number of tables without the snapshot.
    pub without_snapshot: u64,
}

/// A folder with SSTables of one table.
#[derive(Debug)]
pub struct TableFolder {
    pub folder: Arc<dyn SourceFolder>,
    /// `None` if only schema.cql has the name.
    pub keyspace: Option<String>,
    /// `None` if only schema.cql has the name.
    pub table: Option<String>,
    pub id: Option<uuid::Uuid>,
}

/// Finds the folders of a source.
pub fn read(source: &Arc<dyn SourceFolder>, snapshot: Option<&str>) -> Result<Layout, ImportError> {
    let mut layout = Layout::default();
    if count_data_files(&**source)? > 0 {
        layout.add_copy(source, None)?;
        return Ok(layout);
    }
    layout.schemas.extend(read_schema(&**source)?);
    for (name, folder) in folders_of(&**source)? {
        if let Some(parsed) = TableFolderName::parse(&name) {
            let keyspace = source.path_names().pop().unwrap_or_default();
            layout.add_table(&folder, &keyspace, parsed, snapshot)?;
        } else if is_system_keyspace(&name) {
            layout
                .left_out
                .push((LeftOutReason::SystemKeyspace, name, folder));
        } else if count_data_files(&*folder)? > 0 {
            layout.add_copy(&folder, Some(&name))?;
        } else {
            for (table, folder) in folders_of(&*folder)? {
                if let Some(parsed) = TableFolderName::parse(&table) {
                    layout.add_table(&folder, &name, parsed, snapshot)?;
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
        folder: &Arc<dyn SourceFolder>,
        keyspace: &str,
        name: TableFolderName,
        snapshot: Option<&str>,
    ) -> Result<(), ImportError> {
        if is_system_keyspace(keyspace) {
            let left_out = (
                LeftOutReason::SystemKeyspace,
                keyspace.to_owned(),
                Arc::clone(folder),
            );
            self.left_out.push(left_out);
            return Ok(());
        }
        let folder = match snapshot {
            Some(tag) => match folder_if_exists(&*folder.folder("snapshots"), tag)? {
                Some(snapshot) => snapshot,
                None => {
                    self.without_snapshot += 1;
                    return Ok(());
                }
            },
            None => Arc::clone(folder),
        };
        self.add_indexes(&*folder, &format!("{keyspace}.{}", name.table))?;
        self.tables.push(TableFolder {
            folder,
            keyspace: Some(keyspace.to_owned()),
            table: Some(name.table),
            id: Some(name.id),
        });
        Ok(())
    }

    /// Adds a folder of copied SSTables. `name` is that of the folder below a source, and `None` for the source itself.
    fn add_copy(&mut self, folder: &Arc<dyn SourceFolder>, name: Option<&str>) -> Result<(), ImportError> {
        let place = match name {
            Some(name) => TableFolderName::parse(name).map(|parsed| (None, parsed)),
            None => place_of(&folder.path_names()),
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
        self.add_indexes(&**folder, &shown(&**folder))?;
        self.tables.push(TableFolder {
            folder: Arc::clone(folder),
            keyspace,
            table,
            id,
        });
        Ok(())
    }

    /// Notes the folders of indexes within a table's, whose names begin with a dot.
    fn add_indexes(&mut self, folder: &dyn SourceFolder, table: &str) -> Result<(), ImportError> {
        for (name, folder) in folders_of(folder)? {
            if let Some(index) = name.strip_prefix('.') {
                let what = format!("{index} of {table}");
                self.left_out.push((LeftOutReason::Index, what, folder));
            }
        }
        Ok(())
    }
}

/// Returns the keyspace and the table of a folder that is a table's own, or one of its snapshots. `names` are those of its path.
fn place_of(names: &[String]) -> Option<(Option<String>, TableFolderName)> {
    let own = |names: &[String]| {
        let (name, above) = names.split_last()?;
        Some((above.last().cloned(), TableFolderName::parse(name)?))
    };
    own(names).or_else(|| match names {
        [table @ .., snapshots, _] if snapshots == "snapshots" => own(table),
        _ => None,
    })
}
