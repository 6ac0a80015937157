//! The log of a node in a replicated topic: one partition for each process, a record for each group commit.
//!
//! A process claims a partition by put-if-absent of the partition's next *epoch* in the bucket ([`claim`]). It is the partition's only
//! writer until another process fences it. A process that takes over a tablet appends a *fence*, a record that ends all epochs up to a
//! given one, and reads up to it. Records of an ended epoch behind the fence are not part of the log, no matter when they arrive.
//!
//! ```text
//! offset 40   epoch 7  frame 1  part 1 of 1   the beginning: a frame without records
//! offset 41   epoch 7  frame 2  part 1 of 1   a group commit
//! offset 42   epoch 7  frame 2  part 1 of 1   the same, sent again while the answer was unknown: not read
//! offset 43   fence of epoch 7
//! offset 44   epoch 7  frame 3  part 1 of 1   arrived late: not part of the log, and not acknowledged
//! offset 45   epoch 8  frame 1  part 1 of 1   the next log of the partition
//! ```
//!
//! A record is acknowledged only if all records between it and the previous one of this log are known ([`appender`]). Either its offset is
//! the next one, or the records in between are read, and none of them is a fence. So a fenced writer notices that with its next record,
//! without relying on a clock. A frame that is too long for the broker is split into several records. It is part of the log when all of
//! them are there.
//!
//! Frames that all tablets have flushed are deleted from the front of the partition. A partition is claimed again only when no tablet needs
//! its former log. So a partition never holds records of two logs that are needed.

mod admin;
mod appender;
mod broker;
mod claim;
mod client;
mod describe_configs;
mod format;
pub(crate) mod kafka;
mod producer;
mod read;
mod recovery;
mod requirements;

use std::sync::Arc;

use object_store::ObjectStore;
use uuid::Uuid;

pub(crate) use appender::{FrameOffsets, TopicAppender};
pub(crate) use claim::BegunLog;
pub(crate) use client::TopicClient;
#[cfg(test)]
use client::TopicRecord;
pub(crate) use format::LogPlace;

/// The logs of a store in a topic.
pub(crate) struct TopicLogs {
    pub client: Arc<dyn TopicClient>,
    /// The identity of the store, which no copy shares.
    pub store_identity: Uuid,
    /// The bucket in which partitions are claimed.
    pub bucket: Arc<dyn ObjectStore>,
}

#[cfg(test)]
mod fake;
#[cfg(test)]
mod simulation;
#[cfg(test)]
#[path = "topic_tests.rs"]
mod tests;
