//! Copies objects of the logs in a bucket to the history ([`crate::history`]).

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};

use super::Remote;
use super::node_log::OwnLog;
use crate::bucket::subfolders::subfolders;
use crate::error::StoreError;
use crate::history::{HistoryPosition, Segments, archive};
use crate::log::LogPosition;
use crate::log::object::{LogId, LogObjects, log_folder, numbers, read_some};
use crate::store::history::segments_of;

/// Maximum number of objects in a chunk.
const CHUNK_OBJECTS: usize = 1024;
/// Maximum number of logs that are listed at the same time.
const LISTS: usize = 16;

/// Bytes, and age, from which the newest groups are taken from memory and written to the history.
const NEWEST_BYTES: usize = 4 << 20;
const NEWEST_AGE: Duration = Duration::from_secs(5);

impl Remote {
    /// Writes the groups that were appended last to the history, if they are large or old enough.
    pub(super) async fn archive_newest(&self, own: &OwnLog) -> Result<(), StoreError> {
        let Some(newest) = &own.newest else {
            return Ok(());
        };
        let groups = newest.take(NEWEST_BYTES, NEWEST_AGE);
        let numbers: Vec<u64> = groups.iter().map(|(number, _)| *number).collect();
        // If this fails, the groups are read from the bucket before they are deleted there.
        if let Some(segments) = segments_of(groups) {
            let now_ms = self.databases.clock.now_ms();
            archive::write(&self.store, own.id, segments, now_ms).await?;
            own.archived.add(numbers.into_iter());
        }
        Ok(())
    }

    /// Returns the logs of all processes, including those that have ended.
    pub(crate) async fn all_logs(&self) -> Result<Vec<LogId>, StoreError> {
        subfolders(self.log_store().as_ref(), &log_folder(None)).await
    }

    /// Returns the numbers of a log's objects.
    pub(crate) async fn log_numbers(&self, log: LogId) -> Result<Vec<u64>, StoreError> {
        numbers(self.log_store().as_ref(), log).await
    }

    /// Returns the position of the end of each log.
    pub(crate) async fn log_positions(&self) -> Result<Vec<HistoryPosition>, StoreError> {
        let position = |log| async move {
            let newest = self.log_numbers(log).await?.last().copied();
            let at = LogPosition {
                segment: newest.unwrap_or_default(),
                offset: u64::MAX,
            };
            Ok(HistoryPosition::new(log, at))
        };
        let listing: Vec<_> = self.all_logs().await?.into_iter().map(position).collect();
        futures::stream::iter(listing)
            .buffer_unordered(LISTS)
            .try_collect()
            .await
    }

    /// Reads these objects of a log. `None` if none of them has groups.
    pub(crate) async fn read_for_history(
        &self,
        log: LogId,
        numbers: Vec<u64>,
    ) -> Result<Option<Segments>, StoreError> {
        let groups: LogObjects = read_some(self.log_store(), log, numbers).await?;
        Ok(segments_of(groups))
    }

    /// Writes objects of a log to the history, if it is kept. Must be called before they are deleted.
    pub(super) async fn archive_objects(&self, log: LogId, numbers: Vec<u64>) -> Result<(), StoreError> {
        if !self.databases.config.keeps_history {
            return Ok(());
        }
        for numbers in numbers.chunks(CHUNK_OBJECTS) {
            if let Some(segments) = self.read_for_history(log, numbers.to_vec()).await? {
                let now_ms = self.databases.clock.now_ms();
                archive::write(&self.store, log, segments, now_ms).await?;
            }
        }
        Ok(())
    }
}
