//! The error of reading an SSTable: the file, the offset, the problem and the remedy.

use std::borrow::Cow;
use std::fmt;
use std::io;

/// The class of an error, which determines the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A format, version, compressor or type that this crate can't read.
    Unsupported,
    /// A component that is needed and doesn't exist.
    Missing,
    /// The file ends inside a field.
    Truncated,
    /// The file holds bytes that Cassandra doesn't write.
    Corrupt,
    /// A checksum doesn't match the bytes that it covers.
    Checksum,
    /// An item exceeds a limit of the reader.
    Limit,
    /// The storage failed.
    Io,
}

impl ErrorKind {
    /// Returns the remedy, as a sentence.
    fn remedy(self) -> &'static str {
        match self {
            ErrorKind::Unsupported => {
                "Rewrite the table with `nodetool upgradesstables -a` on Cassandra 4.1 or 5.0, and take a new snapshot"
            }
            ErrorKind::Missing => "Copy all components of the SSTable, or take a new snapshot",
            ErrorKind::Truncated => "Copy the file again, and compare its length with that of the source",
            ErrorKind::Corrupt | ErrorKind::Checksum => {
                "Copy the file again; if the source is damaged too, run `nodetool scrub` or use another replica"
            }
            ErrorKind::Limit => "Raise the limit if the item is genuine; otherwise the file is corrupt",
            ErrorKind::Io => "Check the storage and try again",
        }
    }
}

/// The error of reading one file of an SSTable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SstableError {
    /// Name of the file or, from a decoder of bytes, of the component.
    pub file: String,
    /// Offset in the file. In a compressed Data.db, the offset in the decompressed data, unless the problem names a chunk. `None` if the
    /// problem has no place.
    pub offset: Option<u64>,
    pub kind: ErrorKind,
    /// The problem and the expectation, without a full stop.
    pub problem: Cow<'static, str>,
    /// Bytes that the item needs from its start, if more bytes may solve the problem. 0 otherwise.
    pub(crate) needed: usize,
}

impl SstableError {
    pub(crate) fn new(
        kind: ErrorKind,
        file: impl Into<String>,
        offset: impl Into<Option<u64>>,
        problem: impl Into<Cow<'static, str>>,
    ) -> SstableError {
        SstableError {
            file: file.into(),
            offset: offset.into(),
            kind,
            problem: problem.into(),
            needed: 0,
        }
    }

    /// Wraps an error of the storage.
    pub(crate) fn io(file: &str, error: &io::Error) -> SstableError {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => ErrorKind::Missing,
            io::ErrorKind::UnexpectedEof => ErrorKind::Truncated,
            _ => ErrorKind::Io,
        };
        SstableError::new(kind, file, None, error.to_string())
    }

    /// Replaces the name of the component by that of the file.
    #[must_use]
    pub(crate) fn in_file(mut self, file: &str) -> SstableError {
        file.clone_into(&mut self.file);
        self
    }

    /// Returns the error of an item whose own length field contradicts its content. More bytes can't solve it.
    #[must_use]
    pub(crate) fn within_item(mut self) -> SstableError {
        if self.needed > 0 {
            self.needed = 0;
            self.kind = ErrorKind::Corrupt;
        }
        self
    }
}

impl fmt::Display for SstableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(offset) = self.offset {
            write!(f, " at byte {offset}")?;
        }
        write!(f, ": {}. {}.", self.problem, self.kind.remedy())
    }
}

impl std::error::Error for SstableError {}
