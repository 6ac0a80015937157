//! The names of the logs that have records of a tablet which are in no SSTable. They are in a small document beside the tablet, changed by
//! compare-and-set.
//!
//! A node names its log there before it serves the tablet, and removes the name after it has flushed and closed the tablet. The next owner
//! fences each named log that was not closed, and reads it. The document keeps the name until the records are in SSTables. So the records
//! are found even if several owners in a row die before their first flush.

use std::sync::Arc;

use object_store::ObjectStore;
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::log::object::LogId;
use crate::metadata::documents::{Meta, MetaExpect};
use crate::metadata::slatedb_layout::tablet_path;

const NAME: &str = "LOGS";

/// Objects of a log that may have records of a tablet. A log has several spans if another process owned the tablet in between.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogSpan {
    pub log: LogId,
    pub first: u64,
    /// The last object. `None` while the owner of the log may add more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
}

/// The content of the document, oldest log first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    logs: Vec<LogSpan>,
}

/// The document of one tablet, as last read or written.
pub(super) struct TabletLogs {
    meta: Meta,
    version: u64,
    pub logs: Vec<LogSpan>,
}

impl TabletLogs {
    /// Reads the document. A missing document names no log.
    pub async fn read(store: &Arc<dyn ObjectStore>, tablet: u32) -> Result<TabletLogs, StoreError> {
        let meta = Meta::new(store.clone(), tablet_path(tablet), None);
        let found = meta.get(NAME).await?;
        let (version, logs) = match found {
            None => (0, Vec::new()),
            Some(document) => {
                let content: Content =
                    serde_json::from_slice(&document.content).map_err(|error| StoreError::Corrupt {
                        file: format!("tablets/{tablet}/meta/{NAME}"),
                        detail: error.to_string(),
                    })?;
                (document.version, content.logs)
            }
        };
        Ok(TabletLogs { meta, version, logs })
    }

    /// Replaces the named logs.
    ///
    /// # Errors
    /// [`StoreError::MetaConflict`] if another process has changed the document since.
    pub async fn write(&mut self, logs: Vec<LogSpan>) -> Result<(), StoreError> {
        if self.logs == logs && self.version > 0 {
            return Ok(());
        }
        let expect = match self.version {
            0 => MetaExpect::Absent,
            version => MetaExpect::Version(version),
        };
        let content = Content { logs };
        let bytes =
            serde_json::to_vec(&content).map_err(|error| StoreError::Unavailable(error.to_string()))?;
        self.version = self.meta.put(NAME, &bytes, expect).await?;
        self.logs = content.logs;
        Ok(())
    }

    /// Deletes the document of a tablet that is being deleted.
    pub async fn delete(store: &Arc<dyn ObjectStore>, tablet: u32) -> Result<(), StoreError> {
        Meta::new(store.clone(), tablet_path(tablet), None)
            .delete(NAME)
            .await
    }
}

/// Returns the logs of a tablet that is being opened, with the process's own log `own` for further records. `newest` is the last object of
/// that log.
///
/// Records are replayed in the order of the spans. If other processes have owned the tablet since this one, their records come in between,
/// and the log gets another span after theirs.
pub(super) fn with_own(mut spans: Vec<LogSpan>, own: LogId, newest: u64) -> Vec<LogSpan> {
    match spans.last_mut() {
        Some(span) if span.log == own => span.last = None,
        _ => spans.push(LogSpan {
            log: own,
            first: newest + 1,
            last: None,
        }),
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_stand_in_the_order_in_which_owners_have_written() {
        let [one, other] = [1, 2].map(LogId::from_u128);
        let span = |log, first, last| LogSpan { log, first, last };
        let begun = with_own(Vec::new(), one, 4);
        assert_eq!(begun, [span(one, 5, None)]);
        // The tablet was closed unflushed and is opened again, by the same process and by another one.
        let closed = vec![span(one, 5, Some(9))];
        assert_eq!(with_own(closed.clone(), one, 20), [span(one, 5, None)]);
        let there = with_own(closed, other, 3);
        assert_eq!(there, [span(one, 5, Some(9)), span(other, 4, None)]);
        // The tablet returns to the first process: its new records are later than those of the other process.
        let back = with_own(vec![span(one, 5, Some(9)), span(other, 4, Some(7))], one, 20);
        assert_eq!(
            back,
            [
                span(one, 5, Some(9)),
                span(other, 4, Some(7)),
                span(one, 21, None)
            ]
        );
    }
}
