//! Errors of the store. Each kind stands for one reaction of the caller.

use std::path::PathBuf;
use std::sync::Arc;

use crate::data_model::DataModelError;

/// An error of the storage layer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The disk has no space for this write. Reads continue, and writes succeed again once there is space. Usually nothing of the write was
    /// applied. If the disk became full after the write was in the log, the whole write takes effect later.
    #[error("the disk that holds the data is full: {0}")]
    DiskFull(String),
    /// Stored bytes fail their checksum or cannot be parsed. Only operations on this file are affected.
    #[error("corrupt file {file}: {detail}")]
    Corrupt { file: String, detail: String },
    /// Another process has this store open.
    #[error("the store at {} is in use by another process{holder}", path.display())]
    Locked { path: PathBuf, holder: String },
    /// The store was written by a newer version of Helenus.
    #[error(
        "this store was written by format {found}, this binary understands up to {supported}: upgrade Helenus to open it"
    )]
    NewerFormat { found: u64, supported: u64 },
    #[error(
        "this bucket was written by format {found}, which kept a log for each tablet, and this binary understands format {supported} alone: export \
         its tables with the version that wrote them (cqlsh's COPY TO, dsbulk unload), and import them into another prefix"
    )]
    OlderFormat { found: u64, supported: u64 },
    /// Another writer has taken over the tablet. Nothing of the write was applied.
    #[error("another writer has taken over this tablet")]
    Fenced,
    /// This node does not own the tablet of that token. Nothing was done. A local store never returns this error, because it has all
    /// tablets.
    #[error("this node does not serve the tablet of token {0}")]
    NotOwned(i64),
    /// A write was begun but not confirmed. The write may take effect now, later or never, but never partly.
    #[error("the outcome of the write is unknown: {0}")]
    Unknown(String),
    /// The write was not begun, because other writes waited for the object store until its deadline.
    #[error("the write was not started within {0} ms: the object store is slower than the rate of writes")]
    Overloaded(u64),
    /// A read timed out, because the object store did not answer.
    #[error("the object store did not answer a read within {0} ms")]
    ReadTimeout(u64),
    /// A file is missing because the owner of its tablet has replaced and deleted it. Its rows are in newer files.
    #[error("a file was replaced and deleted while it was read: {0}")]
    FileGone(String),
    /// The store was opened read-only.
    #[error("the store is read-only here")]
    ReadOnly,
    /// The tablets could not be pinned. Nothing was changed.
    #[error("the tablets could not be pinned: {0}")]
    NotPinned(String),
    /// The store is closed or closing.
    #[error("the store is closed")]
    Closed,
    /// A setting is wrong.
    #[error("{0}")]
    InvalidConfig(String),
    /// Another process has changed a metadata document since it was read.
    #[error("the document {0} was changed since it was read")]
    MetaConflict(String),
    /// A batch is larger than the maximum size of a log record.
    #[error("a write of {size} bytes is over the limit of {limit} bytes")]
    TooLarge { size: usize, limit: usize },
    /// A read of the history needs more operations from the logs than its reader may hold in memory.
    #[error("the logs have more than {limit} bytes for that time")]
    HistoryTooLarge { limit: u64 },
    /// A clock was set back, so the logs have this span of time twice.
    #[error("the clock of a node was set back: the times from {from_ms} to {to_ms} ms are in its log twice")]
    HistoryUncertain { from_ms: i64, to_ms: i64 },
    /// A read or write failed for another reason. A later try may succeed.
    #[error("storage is unavailable: {0}")]
    Unavailable(String),
}

impl From<DataModelError> for StoreError {
    fn from(error: DataModelError) -> Self {
        StoreError::Corrupt {
            file: "row".into(),
            detail: error.0,
        }
    }
}

impl StoreError {
    /// Maps an I/O error on `path`. A full disk becomes [`StoreError::DiskFull`].
    pub(crate) fn io(what: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        let text = format!("{what} {}: {error}", path.display());
        if is_no_space(error) {
            StoreError::DiskFull(text)
        } else {
            StoreError::Unavailable(text)
        }
    }
}

/// Returns true if an I/O error means that the disk or the user's quota is full.
pub(crate) fn is_no_space(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded
    )
}

/// Returns true if `error` or one of its sources is an I/O error that means a full disk.
pub(crate) fn has_no_space(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            if is_no_space(io) {
                return true;
            }
            // The wrapped error is examined separately, because `io::Error::source` skips it.
            if let Some(inner) = io.get_ref() {
                return has_no_space(inner);
            }
        }
        next = error.source();
    }
    false
}

/// Returns true if an error of SlateDB means that an object does not exist.
pub(crate) fn is_not_found(error: &slatedb::Error) -> bool {
    use object_store::Error;
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        let shared = error.downcast_ref::<Arc<Error>>().map(|shared| shared.as_ref());
        if let Some(Error::NotFound { .. }) = error.downcast_ref::<Error>().or(shared) {
            return true;
        }
        next = error.source();
    }
    false
}

/// Returns the messages of an error and its sources as one sentence.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let more = source.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        next = source.source();
    }
    text
}

/// Maps an error of SlateDB to the caller's reaction.
pub(crate) fn from_slatedb(error: &slatedb::Error) -> StoreError {
    use slatedb::{CloseReason, ErrorKind};
    let text = chain(error);
    if has_no_space(error) {
        return StoreError::DiskFull(text);
    }
    match error.kind() {
        ErrorKind::Closed(CloseReason::Fenced) => StoreError::Fenced,
        ErrorKind::Closed(CloseReason::Clean) => StoreError::Closed,
        ErrorKind::Data => StoreError::Corrupt {
            file: file_in(&text),
            detail: text,
        },
        _ => StoreError::Unavailable(text),
    }
}

/// Returns the path of an SSTable, manifest or list of compactions in an error's text. Returns `unknown` if there is none.
fn file_in(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '(' | ')' | ',' | '`'))
        .map(|word| word.trim_end_matches([':', '.', ';']))
        .find(|word| word.ends_with(".sst") || word.ends_with(".manifest") || word.ends_with(".compactions"))
        .unwrap_or("unknown")
        .to_string()
}
