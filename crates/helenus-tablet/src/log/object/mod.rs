//! The log of a node in a bucket: one object for each group commit, below `logs/<id>/`.
//!
//! Each process begins its own log, so each log has one writer. Objects are numbered without gaps and written sequentially by
//! put-if-absent. A node that takes over a tablet first ensures that the former owner can acknowledge nothing more. For that it puts a
//! *fence* at the next number, and reads the objects before it. From then on, the PUT of the former owner is refused.
//!
//! ```text
//! logs/<id>/00000000000000000001   the beginning: an object without records
//! logs/<id>/00000000000000000002   a group commit
//! logs/<id>/00000000000000000003   the fence
//! ```
//!
//! An object names the oldest object that was still needed when it was written. Older objects are deleted only after that, so a lost object
//! can be distinguished from one that was deleted in order. The fence is never deleted: otherwise a writer that was suspended could find
//! its next number free.

mod appender;
mod format;
mod newest;
mod recovery;

pub(crate) use appender::{ObjectAppender, begin};
pub(crate) use format::{Group, is_log_object, log_folder, log_path, swept_path};
pub(crate) use newest::NewestGroups;
pub(crate) use recovery::{FencedLog, LogObjects, fence, is_fence, numbers, read, read_some};

/// The id of a log.
pub(crate) type LogId = uuid::Uuid;

#[cfg(test)]
#[path = "object_tests.rs"]
mod tests;
