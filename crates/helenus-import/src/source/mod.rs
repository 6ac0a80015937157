//! The SSTables and schemas in folders, by table.
//!
//! A source is a data folder of Cassandra, whose tables lie at `<keyspace>/<table>-<id>`, or the folder of one keyspace. It may also be a copy
//! of SSTables with schema.cql, directly or one level down for each table. With a snapshot's name, only the snapshots of that name are read.
//! With a backup's name, the source is the storage of Medusa.
//!
//! - `place`: the trait of folders, and those of the file system;
//! - `layout`: the folders of Cassandra and copies;
//! - `medusa`: the folders of a backup of Medusa;
//! - `collect`: the tables of all sources;
//! - `parallel`: work that waits for the storage.

mod collect;
mod folder_name;
mod layout;
mod medusa;
mod parallel;
mod place;

#[cfg(test)]
mod source_tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use helenus_cql::types::CqlType;
use helenus_sstable::{Descriptor, SsTable};
use uuid::Uuid;

use self::parallel::in_parallel;
pub use self::place::SourceFolder;

use crate::error::ImportError;
use crate::schema::missing_types::{missing_types, statements_of};
use crate::schema::script::SchemaText;
use crate::table_name::TableName;

/// Places to read.
#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// The folders, in any order.
    pub folders: Vec<Arc<dyn SourceFolder>>,
    pub files: FilesOf,
}

/// The files of the folders to read.
#[derive(Clone, Debug)]
pub enum FilesOf {
    /// All SSTables of data folders or copies.
    Live,
    /// The snapshots of this name in data folders.
    Snapshot(String),
    /// The backup of this name in storages of Medusa.
    MedusaBackup(String),
}

/// Everything that was found.
#[derive(Debug, Default)]
pub struct Sources {
    pub tables: BTreeMap<TableName, TableFiles>,
    /// The texts of all schema.cql, without duplicates.
    pub schemas: Vec<SchemaText>,
    pub left_out: Vec<LeftOut>,
}

/// The SSTables of a table in all sources.
#[derive(Clone, Debug, Default)]
pub struct TableFiles {
    /// The id of the table's generation. `None` if the folders' names have none.
    pub id: Option<Uuid>,
    pub sstables: Vec<SstableFile>,
}

/// The open SSTables of a table.
#[derive(Default)]
pub struct OpenFiles {
    pub sstables: Vec<SsTable>,
    /// The file of each.
    pub files: Vec<SstableFile>,
    /// Number of SSTables that are not open, because all that they hold is older.
    pub older: usize,
}

/// An SSTable that is complete and in a version that can be read.
#[derive(Clone, Debug)]
pub struct SstableFile {
    pub folder: Arc<dyn SourceFolder>,
    pub descriptor: Descriptor,
    /// Bytes of Data.db.
    pub data_bytes: u64,
}

/// Something that isn't imported, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    pub reason: LeftOutReason,
    /// A keyspace, a table or a folder.
    pub what: String,
    /// Number of SSTables.
    pub sstables: u64,
}

/// Reason for which something isn't imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOutReason {
    /// A keyspace of Cassandra itself.
    SystemKeyspace,
    /// The files of an index, which is built again.
    Index,
    /// The files of a view, which is built again.
    View,
    /// An older generation of a table that was dropped and created again.
    OlderGeneration,
}

impl LeftOutReason {
    /// Returns the reason in words.
    pub fn words(self) -> &'static str {
        match self {
            LeftOutReason::SystemKeyspace => "keyspace of Cassandra itself",
            LeftOutReason::Index => "index, which is built here",
            LeftOutReason::View => "view, which is built here",
            LeftOutReason::OlderGeneration => "files of a table before it was dropped and created again",
        }
    }
}

impl Sources {
    /// Finds all SSTables and schemas.
    ///
    /// # Errors
    /// If a folder can't be read or has nothing to import, or the generation of a table is unclear. An SSTable that is incomplete or in a
    /// version that can't be read is an error too.
    pub fn find(options: &SourceOptions) -> Result<Sources, ImportError> {
        collect::find(options)
    }

    /// Adds the user types that no schema.cql has to the schemas. They are read in the SSTables of their keyspaces.
    ///
    /// # Errors
    /// If a statement isn't CQL, or an SSTable of such a keyspace can't be opened.
    pub fn add_missing_types(&mut self) -> Result<(), ImportError> {
        let missing = missing_types(&self.schemas)?;
        let mut types = Vec::new();
        for (name, files) in &self.tables {
            if missing.iter().any(|(keyspace, _)| *keyspace == name.keyspace) {
                for file in &files.sstables {
                    types.extend(file.types()?);
                }
            }
        }
        self.schemas.extend(statements_of(&missing, types.iter()));
        Ok(())
    }

    /// Moves a table's files to those that are left out, because the table is a view.
    pub fn leave_out_view(&mut self, view: &TableName) {
        if let Some(files) = self.tables.remove(view) {
            self.left_out.push(LeftOut {
                reason: LeftOutReason::View,
                what: view.to_string(),
                sstables: files.sstables.len() as u64,
            });
        }
    }
}

impl TableFiles {
    /// Returns the bytes of all Data.db.
    pub fn bytes(&self) -> u64 {
        self.sstables.iter().map(|file| file.data_bytes).sum()
    }

    /// Opens all SSTables but those whose newest write or deletion is older than `since_us`. `None` for all.
    ///
    /// # Errors
    /// If a component is missing or corrupt, or the partitioner isn't Murmur3.
    pub fn open(&self, since_us: Option<i64>) -> Result<OpenFiles, ImportError> {
        let opened = in_parallel(&self.sstables, |file| {
            let sstable = file.open()?;
            // Statistics without a summary don't say.
            let newest_us = match since_us {
                Some(_) => sstable
                    .statistics()
                    .summary()?
                    .map(|summary| summary.max_timestamp_us),
                None => None,
            };
            let is_older = newest_us
                .zip(since_us)
                .is_some_and(|(newest_us, since_us)| newest_us < since_us);
            Ok::<_, ImportError>((!is_older).then_some(sstable))
        })?;
        let mut open = OpenFiles::default();
        for (file, sstable) in self.sstables.iter().zip(opened) {
            match sstable {
                Some(sstable) => {
                    open.sstables.push(sstable);
                    open.files.push(file.clone());
                }
                None => open.older += 1,
            }
        }
        Ok(open)
    }
}

impl SstableFile {
    /// Opens the SSTable.
    ///
    /// # Errors
    /// As [`TableFiles::open`].
    pub fn open(&self) -> Result<SsTable, ImportError> {
        let sstable = SsTable::open(self.folder.clone(), &self.descriptor)?;
        let partitioner = &sstable.statistics().partitioner;
        if partitioner.rsplit('.').next() == Some("Murmur3Partitioner") {
            return Ok(sstable);
        }
        Err(ImportError::Refused(format!(
            "{}: the partitioner is {partitioner}; only Murmur3Partitioner can be imported. Copy the rows by DSBulk instead",
            self.path()
        )))
    }

    /// Returns the types of the key and of all columns.
    fn types(&self) -> Result<Vec<CqlType>, ImportError> {
        let sstable = self.open()?;
        let header = &sstable.statistics().header;
        let columns = header.static_columns.iter().chain(&header.regular_columns);
        let columns = columns.map(|column| &column.column_type);
        let keys = [&header.key_type].into_iter().chain(&header.clustering_types);
        Ok(keys.chain(columns).map(|of| of.ty.clone()).collect())
    }

    /// Returns the path of Data.db for messages.
    pub fn path(&self) -> String {
        self.folder.display_name(&self.descriptor.file_name("Data.db"))
    }
}
