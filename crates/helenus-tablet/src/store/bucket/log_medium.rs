//! The two kinds of logs of a store in a bucket: objects in a bucket, and records of a topic.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use object_store::{ObjectStoreExt, PutPayload};

use super::Remote;
use super::node_log::OwnLog;
use crate::bucket::subfolders::subfolders;
use crate::error::{StoreError, chain};
use crate::log::object::{
    self, FencedLog, LogId, LogObjects, NewestGroups, ObjectAppender, log_folder, log_path, swept_path,
};
use crate::log::topic::{BegunLog, FrameOffsets, LogPlace, TopicAppender, TopicLogs};
use crate::log::writer::LogAppender;
use crate::store::Store;
use crate::tablet::NodeLog;

/// Maximum number of attempts to find a free partition. Other nodes may take the same one at the same time.
const BEGIN_ATTEMPTS: u32 = 8;

/// A log that was begun, for the log thread.
pub(super) struct Begun {
    pub id: LogId,
    pub appender: Box<dyn LogAppender>,
    /// Groups that are still to be written to the history. `None` if no history is kept, and for a log in a topic.
    pub newest: Option<Arc<NewestGroups>>,
    /// The offsets of groups of a log in a topic. Empty for other logs.
    pub offsets: Arc<FrameOffsets>,
}

impl Remote {
    /// Returns the topic of a log and its place there. `None` if the log is in a bucket.
    fn in_topic(&self, id: LogId) -> Result<Option<(&TopicLogs, LogPlace)>, StoreError> {
        match (&self.topic, LogPlace::of(id)) {
            (Some(topic), Some(place)) => Ok(Some((topic, place))),
            (None, None) => Ok(None),
            (topic, _) => Err(StoreError::Corrupt {
                file: format!("logs/{id}"),
                detail: match topic {
                    Some(_) => "a tablet names a log outside of the log's topic".into(),
                    None => "a tablet names a log in a topic".into(),
                },
            }),
        }
    }

    pub(super) async fn begin_appending(
        &self,
        store: &Store,
        log: &Arc<NodeLog>,
        is_abandoned: Arc<AtomicBool>,
    ) -> Result<Begun, StoreError> {
        let clock = &self.databases.clock;
        let interval = self.databases.config.log_interval;
        let Some(topic) = &self.topic else {
            let id = uuid::Uuid::new_v4();
            object::begin(self.log_store(), id, clock, &log.ledger).await?;
            let keeps_history = self.databases.config.keeps_history;
            let newest = keeps_history.then(Arc::<NewestGroups>::default);
            let appender = Box::new(ObjectAppender {
                store: self.log_store().clone(),
                id,
                next: 2,
                ledger: log.ledger.clone(),
                clock: clock.clone(),
                interval,
                newest: newest.clone(),
                is_abandoned,
            });
            return Ok(Begun {
                id,
                appender,
                newest,
                offsets: Arc::default(),
            });
        };
        let begun = self.begin_in_topic(store, topic).await?;
        let appender = TopicAppender::new(topic.client.clone(), &begun, log.ledger.clone(), clock.clone());
        Ok(Begun {
            id: begun.place.id(),
            offsets: appender.offsets.clone(),
            newest: None,
            appender: Box::new(TopicAppender {
                interval,
                is_abandoned,
                ..appender
            }),
        })
    }

    /// Begins a log in a partition of which no tablet needs a log.
    async fn begin_in_topic(&self, store: &Store, topic: &TopicLogs) -> Result<BegunLog, StoreError> {
        for _ in 0..BEGIN_ATTEMPTS {
            let needed = self.needed_logs(store).await?;
            let begun = topic.begin(&needed, self.databases.clock.now_ms()).await?;
            // The beginning of this log ends the previous one of the partition. Until then, a tablet may have named that log and written to
            // it, so the check is repeated.
            let needed = self.needed_logs(store).await?;
            if !needs_partition(&needed, begun.place.partition) {
                topic.delete_former(&begun).await;
                return Ok(begun);
            }
        }
        Err(StoreError::Unavailable(
            "no partition of the log's topic stays free".into(),
        ))
    }

    pub(super) async fn fence(&self, id: LogId) -> Result<FencedLog, StoreError> {
        match self.in_topic(id)? {
            Some((topic, place)) => topic.fence(place).await,
            None => object::fence(self.log_store(), id, self.databases.clock.now_ms()).await,
        }
    }

    pub(super) async fn read_log(&self, id: LogId, from: u64, up_to: u64) -> Result<LogObjects, StoreError> {
        match self.in_topic(id)? {
            Some((topic, place)) => topic.read(place, from, up_to).await,
            None => object::read(self.log_store(), id, from, up_to).await,
        }
    }

    /// Reads the groups of a fenced log up to `last`. A swept log has none that any tablet needs. Its own process can still name it for a
    /// tablet, if it has not noticed the fence.
    pub(super) async fn read_fenced(&self, id: LogId, last: u64) -> Result<LogObjects, StoreError> {
        match self.read_log(id, 1, last).await {
            Err(StoreError::Corrupt { .. }) if self.is_swept(id).await? => Ok(LogObjects::new()),
            read => read,
        }
    }

    async fn is_swept(&self, id: LogId) -> Result<bool, StoreError> {
        if self.in_topic(id)?.is_some() {
            return Ok(false);
        }
        match self.log_store().head(&swept_path(id)).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(StoreError::Unavailable(chain(&error))),
        }
    }

    /// Deletes groups of this process's log that are not needed. All earlier ones must be unneeded too.
    pub(super) async fn trim_log(&self, own: &OwnLog, numbers: Range<u64>) -> Result<(), StoreError> {
        let Some((topic, place)) = self.in_topic(own.id)? else {
            self.archive_objects(own.id, own.archived.missing(numbers.clone()))
                .await?;
            let paths = numbers.map(|number| log_path(own.id, number));
            return self.delete_objects(paths.collect()).await;
        };
        let kept = own.offsets.lock().get(&numbers.end).copied();
        let Some(offset) = kept else { return Ok(()) };
        topic.client.delete_before(place.partition, offset).await?;
        let mut offsets = own.offsets.lock();
        *offsets = offsets.split_off(&numbers.end);
        Ok(())
    }

    /// Returns the logs of other processes that are fenced and still have groups.
    pub(super) async fn ended_logs(&self, own: LogId) -> Result<Vec<LogId>, StoreError> {
        if let Some(topic) = &self.topic {
            let ended = topic.ended_logs().await?.into_iter().map(LogPlace::id);
            return Ok(ended.filter(|id| *id != own).collect());
        }
        let mut ended = Vec::new();
        let others: Vec<LogId> = subfolders(self.log_store().as_ref(), &log_folder(None)).await?;
        for id in others.into_iter().filter(|id| *id != own) {
            if !self.fenced_objects(id).await?.is_empty() {
                ended.push(id);
            }
        }
        Ok(ended)
    }

    /// Deletes the groups before the fence of a log that no tablet needs, if the log is fenced.
    pub(super) async fn delete_fenced(&self, id: LogId) -> Result<(), StoreError> {
        match self.in_topic(id)? {
            Some((topic, place)) => topic.delete_fenced(place).await,
            None => {
                let numbers = self.fenced_objects(id).await?;
                self.archive_objects(id, numbers.clone()).await?;
                if !numbers.is_empty() {
                    let marked = self.log_store().put(&swept_path(id), PutPayload::new()).await;
                    marked.map_err(|error| StoreError::Unavailable(chain(&error)))?;
                }
                let paths = numbers.into_iter().map(|number| log_path(id, number));
                self.delete_objects(paths.collect()).await
            }
        }
    }
}

/// Returns true if a log of a partition is needed.
fn needs_partition(needed: &BTreeSet<LogId>, partition: u32) -> bool {
    let mut places = needed.iter().copied().filter_map(LogPlace::of);
    places.any(|place| place.partition == partition)
}
