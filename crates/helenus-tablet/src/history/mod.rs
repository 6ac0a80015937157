//! The history of a store: kept parts of its logs, from which the state as of any second of a window can be read.
//!
//! While [`crate::config::StoreConfig::keeps_history`] is set, a part of a log that no tablet needs any more is not lost. It is compressed
//! and written to `history/log/` as a *chunk* ([`chunk`]) before it is deleted ([`archive`]). To read the state as of an earlier time, all
//! tablets are opened at a consistent cut that was pinned before it ([`crate::store::cut`]). Then the operations that the logs of all
//! nodes have after the positions of that cut are added ([`HistoryPosition`]).
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

/// The folder of all history.
pub(crate) const FOLDER: &str = "history";
const LOG_FOLDER: &str = "log";

/// Position of a log at a consistent cut. The cut includes all frames that begin before this position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryPosition {
    /// The log of a folder, or of one process in a bucket.
    pub log: Uuid,
    /// The number of the newest segment or object.
    pub segment: u64,
    /// End of the frames in that segment.
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

    /// Returns a position behind every frame of a log.
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

/// Consecutive segments of a log, and their frames by position.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Segments {
    /// The number of the segment before the first one.
    pub previous: u64,
    pub first: u64,
    pub last: u64,
    pub frames: BTreeMap<LogPosition, Frame>,
}

/// Returns the folder of the chunks of a log. `None` for the folder of the chunks of all logs.
pub(crate) fn log_folder(log: Option<Uuid>) -> Path {
    let folder = Path::from(FOLDER).join(LOG_FOLDER);
    match log {
        Some(log) => folder.join(log.to_string()),
        None => folder,
    }
}
