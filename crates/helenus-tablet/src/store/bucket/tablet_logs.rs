//! Which logs hold records of a tablet that are in no SSTable: a small document beside the tablet, changed by compare-and-set.
//!
//! A node names its log there before it serves the tablet, and removes it when it has flushed and closed the tablet. Its next owner fences each log
//! that is named and was not closed, and reads it; the document keeps the name until the records are in SSTables. So the records are found also if
//! several owners in a row die before their first flush.

use std::sync::Arc;

use object_store::ObjectStore;
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::log::object::LogId;
use crate::metadata::documents::{Meta, MetaExpect};
use crate::metadata::slatedb_layout::tablet_path;

const NAME: &str = "LOGS";

/// Objects of a log that may hold records of a tablet. A log has several spans if the tablet was another process's in between.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogSpan {
    pub log: LogId,
    pub first: u64,
    /// `None` while the owner of the log may add some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
}

/// The content of the document, oldest log first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    logs: Vec<LogSpan>,
}

/// The document of one tablet, as it was read or written last.
pub(super) struct TabletLogs {
    meta: Meta,
    version: u64,
    pub logs: Vec<LogSpan>,
}

impl TabletLogs {
    /// Reads the document; one that is not there names no log.
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

    /// Replaces the logs that are named.
    ///
    /// # Errors
    /// [`StoreError::MetaConflict`] if another process has done so since.
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

    /// Deletes the document of a tablet that is deleted.
    pub async fn delete(store: &Arc<dyn ObjectStore>, tablet: u32) -> Result<(), StoreError> {
        Meta::new(store.clone(), tablet_path(tablet), None)
            .delete(NAME)
            .await
    }
}

/// Returns the logs of a tablet that is opened, whose further records go to the process's own log: `newest` is the last object of that.
///
/// Records are replayed in the order of the spans. If others have had the tablet since this process, their records come in between, and the log gets
/// another span behind theirs.
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
        // Closed unflushed and opened again, by the same process and by another one.
        let closed = vec![span(one, 5, Some(9))];
        assert_eq!(with_own(closed.clone(), one, 20), [span(one, 5, None)]);
        let there = with_own(closed, other, 3);
        assert_eq!(there, [span(one, 5, Some(9)), span(other, 4, None)]);
        // Back at the first one: what it writes now is later than what the other has written.
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
