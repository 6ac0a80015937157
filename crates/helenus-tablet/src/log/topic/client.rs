//! The requests to a replicated topic that the log needs. Tests implement them with a topic in memory.

use std::ops::Range;

use async_trait::async_trait;

use crate::error::StoreError;

/// A record of a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopicRecord {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

/// Error of a request to the brokers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TopicError {
    /// The broker accepts no records of that size. Nothing was appended.
    TooLarge,
    /// The records at that offset are deleted, or do not exist yet.
    OutOfRange,
    /// Any other error. A record that was sent may still be appended.
    Failed(String),
}

impl From<TopicError> for StoreError {
    fn from(error: TopicError) -> StoreError {
        StoreError::Unavailable(match error {
            TopicError::TooLarge => "the broker takes no records of that size".to_owned(),
            TopicError::OutOfRange => "the topic has no records at that offset".to_owned(),
            TopicError::Failed(detail) => format!("the log's brokers: {detail}"),
        })
    }
}

/// A topic whose partitions are replicated logs.
#[async_trait]
pub(crate) trait TopicClient: Send + Sync + 'static {
    /// Returns the number of partitions.
    async fn partitions(&self) -> Result<u32, TopicError>;

    /// Appends a record, and waits until all replicas in sync have it. Returns its offset. A request that has failed or was dropped may
    /// still append the record later.
    async fn produce(&self, partition: u32, record: TopicRecord) -> Result<i64, TopicError>;

    /// Returns records from `offset` on that all replicas in sync have, with their offsets, ascending. Empty if there are none yet.
    async fn fetch(&self, partition: u32, offset: i64) -> Result<Vec<(i64, TopicRecord)>, TopicError>;

    /// Returns the offset of the oldest record, and the offset after the newest one that all replicas in sync have.
    async fn bounds(&self, partition: u32) -> Result<Range<i64>, TopicError>;

    /// Deletes the records before `offset`.
    async fn delete_before(&self, partition: u32, offset: i64) -> Result<(), TopicError>;
}
