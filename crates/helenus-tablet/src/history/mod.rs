//! The history of a store: the log of former times, from which any second of a window can be read again.
//!
//! While [`crate::config::StoreConfig::keeps_history`] is set, a part of a log that no tablet needs any more is written to `history/log/` before it
//! is deleted ([`archive`]), compressed, as a *chunk* ([`chunk`]). A state of the past is a moment of all tablets that was pinned
//! before it ([`crate::store::moment`]), with what the logs of all nodes have from the positions of that moment on ([`HistoryPosition`]).
//!
//! ```text
//! history/log/<log id>/<first>-<last>-<earliest ms>-<latest ms>   segments of a log, or objects of one, whole
//! history/<other>                                                  documents of the crates above
//! ```

pub(crate) mod archive;
pub(crate) mod chunk;
pub(crate) mod span;

use std::collections::BTreeMap;

use object_store::path::Path;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::log::{LogPosition, Record};

/// The folder of everything that is kept of the past.
pub(crate) const FOLDER: &str = "history";
const LOG_FOLDER: &str = "log";

/// How far a log had come at a moment: the frames that begin before that place are in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryPosition {
    /// The log of a folder, or of one process in a bucket.
    pub log: Uuid,
    /// The number of the newest segment, or object.
    pub segment: u64,
    /// Where its frames end.
    pub offset: u64,
}

impl HistoryPosition {
    pub(crate) fn new(log: Uuid, at: LogPosition) -> HistoryPosition {
        HistoryPosition {
            log,
            segment: at.segment,
            offset: at.offset,
        }
    }

    /// Behind all that a log can have.
    pub(crate) fn end(log: Uuid) -> HistoryPosition {
        HistoryPosition {
            log,
            segment: u64::MAX,
            offset: u64::MAX,
        }
    }

    pub(crate) fn at(&self) -> LogPosition {
        LogPosition {
            segment: self.segment,
            offset: self.offset,
        }
    }
}

/// A group commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Time of the commit by the machine's clock, in ms.
    pub time_ms: i64,
    pub records: Vec<Record>,
}

/// Some consecutive segments of a log, with the places of their frames.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Segments {
    /// The segment before the first one.
    pub previous: u64,
    pub first: u64,
    pub last: u64,
    pub frames: BTreeMap<LogPosition, Frame>,
}

/// Returns the folder of the chunks of all logs, or of one.
pub(crate) fn log_folder(log: Option<Uuid>) -> Path {
    let folder = Path::from(FOLDER).join(LOG_FOLDER);
    match log {
        Some(log) => folder.join(log.to_string()),
        None => folder,
    }
}
