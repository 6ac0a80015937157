//! A folder of which a manifest names the files.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use helenus_sstable::{ComponentFile, Folder};

use crate::error::ImportError;
use crate::source::place::{SourceFolder, files_if_exists};

/// Files that Cassandra rewrites under the same name. Differential backups overwrite them, so earlier manifests have other sizes.
const REWRITTEN: [&str; 2] = ["-Statistics.db", "-Summary.db"];

/// A folder without the files that a manifest lacks.
#[derive(Debug)]
pub(super) struct ListedFolder {
    folder: Arc<dyn SourceFolder>,
    names: BTreeSet<String>,
}

impl ListedFolder {
    /// Compares a folder with the sizes of its files in a manifest. `manifest` is the path of that.
    pub(super) fn check(
        folder: Arc<dyn SourceFolder>,
        sizes: &BTreeMap<String, u64>,
        manifest: &str,
    ) -> Result<ListedFolder, ImportError> {
        let found: BTreeSet<String> = files_if_exists(&*folder)?.into_iter().collect();
        for (name, size) in sizes {
            let shown = folder.display_name(name);
            if !found.contains(name) {
                return Err(ImportError::Refused(format!(
                    "{shown}: the file is missing, and {manifest} lists it with {size} bytes. Copy it again, or choose another backup"
                )));
            }
            if REWRITTEN.iter().any(|ending| name.ends_with(ending)) {
                continue;
            }
            let found = folder.open(name).map_err(ImportError::io(shown.clone()))?.size();
            if found != *size {
                return Err(ImportError::Refused(format!(
                    "{shown}: the file has {found} bytes, and {manifest} lists it with {size}. Copy it again, or choose another backup"
                )));
            }
        }
        Ok(ListedFolder {
            folder,
            names: sizes.keys().cloned().collect(),
        })
    }
}

impl Folder for ListedFolder {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.names.iter().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn ComponentFile>> {
        match self.names.contains(name) {
            true => self.folder.open(name),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn display_name(&self, name: &str) -> String {
        self.folder.display_name(name)
    }
}

impl SourceFolder for ListedFolder {
    /// Returns none: a manifest lists the folders of indexes apart.
    fn folders(&self) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn folder(&self, name: &str) -> Arc<dyn SourceFolder> {
        self.folder.folder(name)
    }

    fn path_names(&self) -> Vec<String> {
        self.folder.path_names()
    }
}
