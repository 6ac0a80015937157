//! Appends frames to a partition.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::Mutex;

use super::claim::BegunLog;
use super::client::{TopicClient, TopicError, TopicRecord};
use super::format::{LogPlace, Part, RecordKey, split};
use crate::clock::StoreClock;
use crate::error::StoreError;
use crate::log::frame::FrameHeader;
use crate::log::ledger::{Ledger, SegmentInfo};
use crate::log::writer::LogAppender;

/// Timeout after which a record is sent again.
const PRODUCE_TIMEOUT: Duration = Duration::from_secs(5);
/// Limits of the pause before a record is sent again. The pause doubles after each failure.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Divisor of the last group's duration. The quotient is the maximum time that a group waits for the writers just answered.
const FOLLOWER_WAIT_PART: u32 = 4;
/// Maximum bytes of a part of a frame. Brokers accept a MiB by default.
const PART_BYTES_MAX: usize = 1_000_000;
/// Size to which parts are shortened at most, for a broker that accepts less.
const PART_BYTES_MIN: usize = 4096;

/// The offset of the first record of each frame of a log.
pub(crate) type FrameOffsets = Mutex<BTreeMap<u64, i64>>;

/// Appends groups to this process's own log.
pub(crate) struct TopicAppender {
    pub client: Arc<dyn TopicClient>,
    pub place: LogPlace,
    /// Key of this log's records.
    pub key: RecordKey,
    /// The number of the next frame.
    pub next_frame: u64,
    /// Offset before which all records of the partition are accounted for.
    pub next_offset: i64,
    pub offsets: Arc<FrameOffsets>,
    pub ledger: Arc<Ledger>,
    pub clock: Arc<StoreClock>,
    pub interval: Duration,
    /// True if the log shall end without waiting for the brokers.
    pub is_abandoned: Arc<AtomicBool>,
    pub part_bytes_max: usize,
    /// True if nothing more may be appended, because the partition may have a part of a frame.
    pub is_ended: bool,
}

/// Reason why a record is not known to be in the log.
enum Refusal {
    TooLarge,
    /// The record is not in the log, and no later one will be.
    Fenced,
    /// The record may be in the log. Nothing more is appended.
    Unknown(String),
}

/// Content of the partition between the records that are accounted for and a record that was appended.
enum Between {
    /// No relevant record.
    Nothing,
    /// An earlier try of the same record, at this offset.
    Attempt(i64),
    Fence,
    /// Missing records, which have been deleted.
    Deleted,
}

#[async_trait]
impl LogAppender for TopicAppender {
    async fn append(&mut self, frame: &mut Vec<u8>) -> Result<u64, StoreError> {
        self.append_group(frame).await
    }

    fn follower_wait(&self, took: Duration) -> Duration {
        took / FOLLOWER_WAIT_PART
    }

    fn interval(&self) -> Duration {
        self.interval
    }
}

impl TopicAppender {
    /// Returns the appender of a log that has begun, and adds the log's beginning to the ledger. Groups have no minimum interval.
    pub fn new(
        client: Arc<dyn TopicClient>,
        begun: &BegunLog,
        ledger: Arc<Ledger>,
        clock: Arc<StoreClock>,
    ) -> TopicAppender {
        ledger.begin_segment(SegmentInfo::new(1, begun.bytes));
        TopicAppender {
            client,
            place: begun.place,
            key: begun.key,
            next_frame: 2,
            next_offset: begun.offset + 1,
            offsets: Arc::new(Mutex::new(BTreeMap::from([(1, begun.first)]))),
            ledger,
            clock,
            interval: Duration::ZERO,
            is_abandoned: Arc::default(),
            part_bytes_max: PART_BYTES_MAX,
            is_ended: false,
        }
    }

    /// Returns the number of the oldest frame that is still needed.
    fn first(&self) -> u64 {
        let segments = self.ledger.segments.lock();
        segments.first().map_or(self.next_frame, |segment| segment.number)
    }

    /// Appends a frame; see [`LogAppender::append`].
    pub(super) async fn append_group(&mut self, frame: &mut [u8]) -> Result<u64, StoreError> {
        if self.is_ended {
            return Err(StoreError::Fenced);
        }
        let number = self.next_frame;
        FrameHeader::finish(frame, number, self.clock.now_ms(), self.first());
        let bytes = frame.len() as u64;
        let began = Instant::now();
        let appended = self.append_frame(number, frame).await;
        appended.inspect_err(|_| self.is_ended = true)?;
        self.next_frame += 1;
        self.ledger.add_segment(number, bytes, began.elapsed());
        Ok(bytes)
    }

    /// Appends all parts of a frame.
    async fn append_frame(&mut self, number: u64, frame: &[u8]) -> Result<(), StoreError> {
        'again: loop {
            for (record, index) in split(self.key, number, frame, self.part_bytes_max)
                .into_iter()
                .zip(0..)
            {
                match self.append_record(&record).await {
                    Ok(offset) => {
                        self.offsets.lock().entry(number).or_insert(offset);
                    }
                    // The first part is at least as long as the others, so no part of the frame has been appended.
                    Err(Refusal::TooLarge) if index == 0 && self.part_bytes_max > PART_BYTES_MIN => {
                        self.part_bytes_max = self.part_bytes_max.min(frame.len()).div_ceil(2);
                        continue 'again;
                    }
                    Err(Refusal::TooLarge) => {
                        return Err(StoreError::Unknown(
                            "the broker refuses the log's records as too large".into(),
                        ));
                    }
                    Err(Refusal::Fenced) => return Err(StoreError::Fenced),
                    Err(Refusal::Unknown(why)) => return Err(StoreError::Unknown(why)),
                }
            }
            return Ok(());
        }
    }

    /// Appends a record until it is known to be in the log, or never to be. Returns its offset.
    async fn append_record(&mut self, record: &TopicRecord) -> Result<i64, Refusal> {
        let mut pause = PAUSE_MIN;
        let mut failures = 0;
        loop {
            let produced = tokio::time::timeout(
                PRODUCE_TIMEOUT,
                self.client.produce(self.place.partition, record.clone()),
            );
            let failed = match produced.await {
                Ok(Ok(offset)) => match self.account_for(offset, record).await {
                    Ok(offset) => {
                        if failures > 0 {
                            tracing::info!(failures, "the brokers take the log again");
                        }
                        return Ok(offset);
                    }
                    Err(refusal) => return Err(refusal),
                },
                Ok(Err(TopicError::TooLarge)) => return Err(Refusal::TooLarge),
                Ok(Err(error)) => StoreError::from(error).to_string(),
                Err(_) => format!("no answer within {} s", PRODUCE_TIMEOUT.as_secs()),
            };
            self.give_up_if_abandoned(&failed, failures)?;
            failures += 1;
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    fn give_up_if_abandoned(&self, error: &str, failures: u32) -> Result<(), Refusal> {
        self.ledger.counters.failures.fetch_add(1, Ordering::Relaxed);
        if failures == 0 {
            tracing::warn!(partition = self.place.partition, %error, "the brokers do not take the log; writes wait");
        }
        match self.is_abandoned.load(Ordering::Acquire) {
            true => Err(Refusal::Unknown(error.to_owned())),
            false => Ok(()),
        }
    }

    /// Checks the records before one that was appended at `offset`. That record is in the log unless a fence is among them. Returns the
    /// offset of the record's first try.
    async fn account_for(&mut self, offset: i64, record: &TopicRecord) -> Result<i64, Refusal> {
        if offset < self.next_offset {
            tracing::error!(
                partition = self.place.partition,
                offset,
                expected = self.next_offset,
                "the log's topic has lost records that its brokers had confirmed; this log ends here"
            );
            return Err(Refusal::Fenced);
        }
        let mut failures = 0;
        while offset > self.next_offset {
            match self.look_between(offset, record).await {
                Ok(Between::Nothing) => break,
                Ok(Between::Attempt(there)) => {
                    self.next_offset = there + 1;
                    return Ok(there);
                }
                Ok(Between::Fence) => return Err(Refusal::Fenced),
                Ok(Between::Deleted) => {
                    return Err(Refusal::Unknown(
                        "the log was fenced, and has been deleted since".into(),
                    ));
                }
                Err(error) => {
                    self.give_up_if_abandoned(&StoreError::from(error).to_string(), failures)?;
                    failures += 1;
                    tokio::time::sleep(PAUSE_MIN).await;
                }
            }
        }
        self.next_offset = offset + 1;
        Ok(offset)
    }

    /// Reads the records before `until` that are not accounted for, and classifies them.
    async fn look_between(&self, until: i64, record: &TopicRecord) -> Result<Between, TopicError> {
        let partition = self.place.partition;
        let mut next = self.next_offset;
        while next < until {
            if self.client.bounds(partition).await?.start > next {
                return Ok(Between::Deleted);
            }
            let fetched = tokio::time::timeout(PRODUCE_TIMEOUT, self.client.fetch(partition, next));
            let fetched = fetched
                .await
                .unwrap_or_else(|_| Err(TopicError::Failed("no answer to a fetch".into())))?;
            if fetched.is_empty() {
                return Err(TopicError::Failed(format!(
                    "the record at offset {next} is not readable yet"
                )));
            }
            for (offset, found) in fetched.into_iter().take_while(|(offset, _)| *offset < until) {
                next = offset + 1;
                if found == *record {
                    return Ok(Between::Attempt(offset));
                }
                if self.is_fence(&found, record) {
                    return Ok(Between::Fence);
                }
            }
        }
        Ok(Between::Nothing)
    }

    /// Returns true if a record of the partition ends this log. Records of older logs do not, nor do earlier tries of this log's records.
    fn is_fence(&self, found: &TopicRecord, appended: &TopicRecord) -> bool {
        let Some(key) = RecordKey::decode(&found.key) else {
            return false;
        };
        let part = |record: &TopicRecord| -> Option<Part> { RecordKey::decode(&record.key)?.part };
        let is_own = key.epoch == self.key.epoch && key.writer == self.key.writer;
        match () {
            () if key.store != self.key.store || key.ends(self.place.epoch) => true,
            () if key.epoch < self.place.epoch => false,
            () => !is_own || part(found) > part(appended),
        }
    }
}
