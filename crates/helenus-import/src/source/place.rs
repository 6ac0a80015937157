//! Folders of sources: in the file system, or in another storage that a caller implements.

use std::fmt::Debug;
use std::fs;
use std::io;
use std::path::Component;
use std::sync::Arc;

use helenus_sstable::{Folder, LocalFolder};

use crate::error::ImportError;
use crate::schema::script::SchemaText;

const SCHEMA: &str = "schema.cql";

/// A folder with SSTables, a schema, or other folders. Clones of an `Arc` may share what was listed.
pub trait SourceFolder: Folder + Debug + Send + Sync {
    /// Returns the names of the folders directly within, in any order.
    ///
    /// # Errors
    /// The storage's.
    fn folders(&self) -> io::Result<Vec<String>>;

    /// Returns a folder within, which may not exist.
    fn folder(&self, name: &str) -> Arc<dyn SourceFolder>;

    /// Returns the names of the folder and of those above it, outermost first.
    fn path_names(&self) -> Vec<String>;
}

impl SourceFolder for LocalFolder {
    fn folders(&self) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.path())? {
            let entry = entry?;
            // Names that aren't UTF-8 are none of Cassandra's.
            if let (Ok(name), true) = (entry.file_name().into_string(), entry.path().is_dir()) {
                found.push(name);
            }
        }
        Ok(found)
    }

    fn folder(&self, name: &str) -> Arc<dyn SourceFolder> {
        Arc::new(LocalFolder::new(self.path().join(name)))
    }

    fn path_names(&self) -> Vec<String> {
        // A relative path such as `.` has no names of its own.
        let full = fs::canonicalize(self.path()).unwrap_or_else(|_| self.path().to_owned());
        let names = full.components().filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        });
        names.collect()
    }
}

/// Returns the folder's name for messages.
pub(super) fn shown(folder: &dyn SourceFolder) -> String {
    folder.display_name("")
}

/// Returns the folders directly within a folder, by name.
pub(super) fn folders_of(
    folder: &dyn SourceFolder,
) -> Result<Vec<(String, Arc<dyn SourceFolder>)>, ImportError> {
    let mut names = folder.folders().map_err(ImportError::io(shown(folder)))?;
    names.sort();
    Ok(names
        .into_iter()
        .map(|name| {
            let found = folder.folder(&name);
            (name, found)
        })
        .collect())
}

/// Returns the names of a folder's files. A folder that doesn't exist has none.
pub(super) fn files_if_exists(folder: &dyn SourceFolder) -> Result<Vec<String>, ImportError> {
    match folder.names() {
        Err(error) if is_absent(&error) => Ok(Vec::new()),
        found => found.map_err(ImportError::io(shown(folder))),
    }
}

/// Returns a folder within a folder. `None` if it doesn't exist.
pub(super) fn folder_if_exists(
    folder: &dyn SourceFolder,
    name: &str,
) -> Result<Option<Arc<dyn SourceFolder>>, ImportError> {
    let found = match folder.folders() {
        Err(error) if is_absent(&error) => Vec::new(),
        found => found.map_err(ImportError::io(shown(folder)))?,
    };
    Ok(found
        .iter()
        .any(|known| known == name)
        .then(|| folder.folder(name)))
}

/// Returns the number of Data.db in a folder.
pub(super) fn count_data_files(folder: &dyn SourceFolder) -> Result<u64, ImportError> {
    let names = folder.names().map_err(ImportError::io(shown(folder)))?;
    Ok(names.iter().filter(|name| name.ends_with("-Data.db")).count() as u64)
}

/// Reads a file in whole.
pub(super) fn read_file(folder: &dyn SourceFolder, name: &str) -> Result<Vec<u8>, ImportError> {
    let read = || {
        let mut file = folder.open(name)?;
        let len = usize::try_from(file.size()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let mut content = vec![0; len];
        file.read_exact_at(0, &mut content)?;
        Ok(content)
    };
    read().map_err(ImportError::io(folder.display_name(name)))
}

/// Reads the schema.cql of a folder. `None` if it has none.
pub(super) fn read_schema(folder: &dyn SourceFolder) -> Result<Option<SchemaText>, ImportError> {
    let names = folder.names().map_err(ImportError::io(shown(folder)))?;
    if !names.iter().any(|name| name == SCHEMA) {
        return Ok(None);
    }
    let path = folder.display_name(SCHEMA);
    let text = String::from_utf8(read_file(folder, SCHEMA)?)
        .map_err(|error| ImportError::Refused(format!("{path} isn't UTF-8: {error}. Copy the file again")))?;
    Ok(Some(SchemaText { path, text }))
}

/// Returns true for the error of a folder that doesn't exist.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
