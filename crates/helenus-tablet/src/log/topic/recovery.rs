//! Fences the log of another process, reads it, and deletes frames that are not needed.

use uuid::Uuid;

use super::TopicLogs;
use super::client::TopicRecord;
use super::format::{LogPlace, RecordKey};
use super::read::{LogReader, corrupt, group, read_until, retried};
use crate::error::StoreError;
use crate::log::object::{FencedLog, LogObjects};

impl TopicLogs {
    /// Reads the log at that place from the records of the partition before offset `until`.
    async fn read_log(&self, place: LogPlace, until: i64) -> Result<LogReader, StoreError> {
        let mut reader = LogReader::new(self.store_identity, place.epoch);
        let take = |offset, record: &TopicRecord| reader.take(offset, record);
        read_until(self.client.as_ref(), place.partition, until, take).await?;
        Ok(reader)
    }

    async fn read_all(&self, place: LogPlace) -> Result<LogReader, StoreError> {
        let end = retried(|| self.client.bounds(place.partition)).await?.end;
        self.read_log(place, end).await
    }

    /// Returns true if nothing can be appended to the log any more.
    pub(super) async fn has_ended(&self, place: LogPlace) -> Result<bool, StoreError> {
        Ok(self.read_all(place).await?.end.is_some())
    }

    /// Fences a log, so that nothing more can be appended to it.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the partition has neither a frame of the log nor a later log.
    pub async fn fence(&self, place: LogPlace) -> Result<FencedLog, StoreError> {
        let mut found = self.read_all(place).await?;
        if found.end.is_none() {
            let key = RecordKey {
                store: self.store_identity,
                epoch: place.epoch,
                writer: Uuid::new_v4(),
                part: None,
            };
            let fence = TopicRecord {
                key: key.encode(),
                value: Vec::new(),
            };
            let offset = retried(|| self.client.produce(place.partition, fence.clone())).await?;
            found = self.read_log(place, offset + 1).await?;
        }
        // The last frame is kept until the partition has another log, so its number is known.
        match found.frames.last() {
            Some(last) => Ok(FencedLog {
                id: place.id(),
                end: last.number + 1,
            }),
            None if found.is_succeeded => Ok(FencedLog {
                id: place.id(),
                end: 1,
            }),
            None => Err(corrupt(place, 1, "the log is missing")),
        }
    }

    /// Returns the groups of a log from frame `from` to frame `up_to`. Groups that are not needed any more may be missing.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if a needed group is missing or damaged.
    pub async fn read(&self, place: LogPlace, from: u64, up_to: u64) -> Result<LogObjects, StoreError> {
        if up_to < from {
            return Ok(Vec::new());
        }
        let found = self.read_all(place).await?;
        if let Some(part) = found.gap {
            return Err(corrupt(
                place,
                part.frame,
                "a record before one of this frame is missing",
            ));
        }
        let wanted = found
            .frames
            .into_iter()
            .filter(|frame| (from..=up_to).contains(&frame.number));
        let groups: LogObjects = wanted
            .map(|frame| group(place, frame))
            .collect::<Result<_, _>>()?;
        let missing = |frame| Err(corrupt(place, frame, "the frame is missing"));
        // Frames have no gaps, so it suffices that the last frame exists, and the oldest one that was needed when the last one was written.
        match (groups.first(), groups.last()) {
            (Some((first, _)), Some((last, newest))) => match () {
                () if *last < up_to => missing(up_to),
                () if *first > newest.first.max(from) => missing(newest.first.max(from)),
                () => Ok(groups),
            },
            _ => missing(up_to),
        }
    }

    /// Deletes the frames before the last one, if the log has ended.
    pub async fn delete_fenced(&self, place: LogPlace) -> Result<(), StoreError> {
        let bounds = retried(|| self.client.bounds(place.partition)).await?;
        // Two records are always kept: the last frame and the fence.
        if bounds.end - bounds.start <= 2 {
            return Ok(());
        }
        let found = self.read_log(place, bounds.end).await?;
        match (found.end, found.frames.last()) {
            (Some(_), Some(last)) if last.offset > bounds.start => {
                let deleted = self.client.delete_before(place.partition, last.offset).await;
                deleted.map_err(StoreError::from)
            }
            _ => Ok(()),
        }
    }

    /// Deletes all records of the claimed partitions. Called when no tablet needs any.
    pub async fn delete_all(&self) -> Result<(), StoreError> {
        for place in self.newest_logs().await? {
            let end = retried(|| self.client.bounds(place.partition)).await?.end;
            retried(|| self.client.delete_before(place.partition, end)).await?;
        }
        Ok(())
    }

    /// Returns the newest logs of partitions that have ended, and have more records than must be kept. The caller must check afterwards
    /// which of them are needed: a log may become needed until it ends.
    pub async fn ended_logs(&self) -> Result<Vec<LogPlace>, StoreError> {
        let mut ended = Vec::new();
        for place in self.newest_logs().await? {
            let bounds = retried(|| self.client.bounds(place.partition)).await?;
            if bounds.end - bounds.start <= 2 {
                continue;
            }
            // The last record is usually the fence. If a late record follows the fence, which is rare, the log is cleaned up by the next
            // claim of its partition.
            let last = self.client.fetch(place.partition, bounds.end - 1).await?;
            let key = last
                .first()
                .and_then(|(_, record)| RecordKey::decode(&record.key));
            if key.is_some_and(|key| key.store == self.store_identity && key.ends(place.epoch)) {
                ended.push(place);
            }
        }
        Ok(ended)
    }
}
