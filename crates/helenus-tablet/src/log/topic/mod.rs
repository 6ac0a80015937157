//! The log of a node in a replicated topic: one partition for each process, a record for each group commit.
//!
//! A process claims a partition by put-if-absent of the partition's next *epoch* in the bucket ([`claim`]), and is its only writer until somebody
//! fences it. Whoever takes over a tablet appends a *fence*, a record that ends all epochs up to one, and reads to it: what lies behind it from an
//! epoch that it ends is not part of the log, however late it arrives.
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
//! A record is acknowledged only if all records between it and the last one of this log are known ([`appender`]): the offset that the broker
//! answers is the next one, or those in between are read, and none is a fence. So a writer that was fenced finds out with its next record, and
//! no clock is involved. A frame that is longer than a broker takes is several records, and counts when all of them are there.
//!
//! What all tablets have flushed is deleted from the front of the partition. A partition is claimed again only when no tablet needs the log
//! before, so a partition never holds records of two logs that are needed.

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
    /// Where partitions are claimed.
    pub bucket: Arc<dyn ObjectStore>,
}

#[cfg(test)]
mod fake;
#[cfg(test)]
mod simulation;
#[cfg(test)]
#[path = "topic_tests.rs"]
mod tests;
