//! The requests to a replicated topic that the log needs. Tests have a topic in memory behind it.

use std::ops::Range;

use async_trait::async_trait;

use crate::error::StoreError;

/// A record to be appended, or one that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopicRecord {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TopicError {
    /// The broker takes no records of that size. Nothing was appended.
    TooLarge,
    /// There are no records at that offset any more, or not yet.
    OutOfRange,
    /// Anything else. A record that was to be appended may be there, now or later.
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
    /// Returns the number of its partitions.
    async fn partitions(&self) -> Result<u32, TopicError>;

    /// Appends a record, and waits until all replicas in sync have it; its offset. A request that has failed, or was dropped, may append it later.
    async fn produce(&self, partition: u32, record: TopicRecord) -> Result<i64, TopicError>;

    /// Records from that offset on that all replicas in sync have, with their offsets, ascending. None if there are none yet.
    async fn fetch(&self, partition: u32, offset: i64) -> Result<Vec<(i64, TopicRecord)>, TopicError>;

    /// Returns the offset of the oldest record, and the one after the newest that all replicas in sync have.
    async fn bounds(&self, partition: u32) -> Result<Range<i64>, TopicError>;

    /// Deletes the records before that offset.
    async fn delete_before(&self, partition: u32, offset: i64) -> Result<(), TopicError>;
}
