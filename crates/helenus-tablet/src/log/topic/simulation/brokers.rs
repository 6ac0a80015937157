//! A topic whose brokers are reached over a network that delays, loses, repeats and reorders requests.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::Omission;
use super::dice::Dice;
use crate::log::topic::client::{TopicClient, TopicError, TopicRecord};
use crate::log::topic::format::RecordKey;

/// Timeout of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(4);

/// The current behavior of the brokers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    Healthy,
    /// Requests may fail, with or without effect.
    Flaky,
    /// No request arrives.
    Away,
}

/// Outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    /// The request takes effect, and is answered late.
    AnsweredLate,
    /// The request takes effect twice, and the second effect is answered.
    Twice,
    /// The request never arrives.
    Lost,
    /// The request takes effect, but is not answered.
    AnswerLost,
    /// The request fails, and takes effect some time afterwards.
    Late,
}

#[derive(Default)]
struct Partition {
    start: i64,
    records: Vec<TopicRecord>,
}

impl Partition {
    fn end(&self) -> i64 {
        self.start + self.records.len() as i64
    }

    fn append(&mut self, record: TopicRecord) -> i64 {
        self.records.push(record);
        self.end() - 1
    }

    fn fetch(&self, offset: i64, count: usize) -> Result<Vec<(i64, TopicRecord)>, TopicError> {
        if !(self.start..=self.end()).contains(&offset) {
            return Err(TopicError::OutOfRange);
        }
        let found = self.records.iter().skip((offset - self.start) as usize);
        Ok((offset..).zip(found.take(count).cloned()).collect())
    }

    fn delete_before(&mut self, offset: i64) {
        let start = offset.clamp(self.start, self.end());
        self.records.drain(..(start - self.start) as usize);
        self.start = start;
    }
}

/// The simulated brokers.
pub(super) struct Brokers {
    dice: Dice,
    health: Mutex<Health>,
    partitions: Mutex<Vec<Partition>>,
}

impl Brokers {
    pub fn new(dice: Dice, partitions: usize) -> Arc<Brokers> {
        Arc::new(Brokers {
            dice,
            health: Mutex::new(Health::Healthy),
            partitions: Mutex::new((0..partitions).map(|_| Partition::default()).collect()),
        })
    }

    pub fn set_health(&self, health: Health) {
        *self.health.lock() = health;
    }

    fn fate(&self) -> Fate {
        let failures_percent = match *self.health.lock() {
            Health::Healthy => 2,
            Health::Flaky => 40,
            Health::Away => return Fate::Lost,
        };
        let bad = [
            Fate::AnsweredLate,
            Fate::Twice,
            Fate::Lost,
            Fate::AnswerLost,
            Fate::Late,
        ];
        let is_bad = self.dice.chance(failures_percent);
        is_bad
            .then(|| self.dice.pick(&bad))
            .flatten()
            .unwrap_or(Fate::Answered)
    }

    fn delay(&self) -> Duration {
        match *self.health.lock() {
            Health::Flaky if self.dice.chance(20) => self.dice.millis(20..2000),
            _ => self.dice.millis(1..5),
        }
    }

    /// Applies an effect to a partition. The effect does not depend on whether the caller still waits.
    async fn request<T: Send + 'static>(
        self: &Arc<Self>,
        partition: u32,
        effect: impl Fn(&mut Partition) -> T + Send + Sync + 'static,
    ) -> Result<T, TopicError> {
        let (reply, answer) = oneshot::channel();
        let this = self.clone();
        tokio::spawn(async move {
            let fate = this.fate();
            tokio::time::sleep(this.delay()).await;
            let apply = || effect(&mut this.partitions.lock()[partition as usize]);
            let result = match fate {
                Fate::Answered => apply(),
                Fate::AnsweredLate => {
                    let result = apply();
                    this.dice.pause(10..6000).await;
                    result
                }
                Fate::Twice => {
                    apply();
                    this.dice.pause(0..200).await;
                    apply()
                }
                Fate::Lost => return,
                Fate::AnswerLost => {
                    apply();
                    return;
                }
                Fate::Late => {
                    drop(reply);
                    this.dice.pause(10..8000).await;
                    apply();
                    return;
                }
            };
            tokio::time::sleep(this.delay()).await;
            // An error is ignored, because the caller may have stopped waiting.
            let _ = reply.send(result);
        });
        let answer = tokio::time::timeout(REQUEST_TIMEOUT, answer).await;
        answer
            .ok()
            .and_then(Result::ok)
            .ok_or_else(|| TopicError::Failed("no answer".into()))
    }
}

/// The brokers as seen by one process, with the fault that is injected into this process.
pub(super) struct Client {
    pub brokers: Arc<Brokers>,
    pub omission: Option<Omission>,
    /// The offset after the last record of a writer. `None` for other clients.
    pub next_offset: Option<AtomicI64>,
}

#[async_trait]
impl TopicClient for Client {
    async fn partitions(&self) -> Result<u32, TopicError> {
        let count = self.brokers.partitions.lock().len() as u32;
        self.brokers.request(0, move |_| count).await
    }

    async fn produce(&self, partition: u32, record: TopicRecord) -> Result<i64, TopicError> {
        let is_fence = RecordKey::decode(&record.key).is_some_and(|key| key.part.is_none());
        if is_fence && self.omission == Some(Omission::Fence) {
            return Ok(self.bounds(partition).await?.end - 1);
        }
        let append = move |partition: &mut Partition| partition.append(record.clone());
        let offset = self.brokers.request(partition, append).await?;
        match &self.next_offset {
            Some(next) if self.omission == Some(Omission::OffsetCheck) => {
                Ok(next.fetch_add(1, Ordering::Relaxed))
            }
            _ => Ok(offset),
        }
    }

    async fn fetch(&self, partition: u32, offset: i64) -> Result<Vec<(i64, TopicRecord)>, TopicError> {
        // Only a few records are returned, so that readers have to fetch repeatedly.
        let count = self.brokers.dice.range(1..8) as usize;
        let fetched = self
            .brokers
            .request(partition, move |partition| partition.fetch(offset, count));
        let mut records = fetched.await??;
        if self.omission == Some(Omission::EndAtFence) {
            let is_fence =
                |record: &TopicRecord| RecordKey::decode(&record.key).is_some_and(|key| key.part.is_none());
            records
                .iter_mut()
                .filter(|(_, record)| is_fence(record))
                .for_each(|(_, record)| record.key.clear());
        }
        Ok(records)
    }

    async fn bounds(&self, partition: u32) -> Result<Range<i64>, TopicError> {
        let start = self
            .brokers
            .request(partition, |partition| partition.start)
            .await?;
        let end = self
            .brokers
            .request(partition, |partition| partition.end())
            .await?;
        Ok(start..end)
    }

    async fn delete_before(&self, partition: u32, offset: i64) -> Result<(), TopicError> {
        let delete = move |partition: &mut Partition| partition.delete_before(offset);
        self.brokers.request(partition, delete).await
    }
}
