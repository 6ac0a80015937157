//! The error of an import.

use std::io;

use helenus_row::{KeyError, RowError};
use helenus_sstable::SstableError;
use thiserror::Error;

/// The error of reading sources, with the file and the remedy in its text.
#[derive(Debug, Error)]
pub enum ImportError {
    #[error(transparent)]
    Sstable(#[from] SstableError),
    /// A file or folder can't be read.
    #[error("{path}: {error}. Check the path and its permissions.")]
    Io { path: String, error: io::Error },
    /// The sources contain something that can't be imported, in words.
    #[error("{0}")]
    Refused(String),
}

impl ImportError {
    pub(crate) fn io(path: String) -> impl FnOnce(io::Error) -> ImportError {
        move |error| ImportError::Io { path, error }
    }
}

/// Returns the error of a value that can't be part of a key.
pub(crate) fn refused_key(file: &str, what: &str, error: &KeyError) -> ImportError {
    ImportError::Refused(format!(
        "{file}: {what}: {error}. Run `nodetool scrub` on the source, or leave this table out"
    ))
}

/// Returns the error of a row that can't be merged.
pub(crate) fn refused_row(file: &str, error: &RowError) -> ImportError {
    ImportError::Refused(format!(
        "{file}: a row can't be merged: {error}. The versions of a column may differ in their types: rewrite the table with \
         `nodetool upgradesstables -a`"
    ))
}
