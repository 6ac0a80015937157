//! The log of a node in a bucket: one object for each group commit, below `logs/<id>/`.
//!
//! Each process begins a log of its own, so an object has one writer. Objects are numbered without gaps and written by put-if-absent, one after
//! the other. Whoever takes over a tablet makes sure first that the former owner can acknowledge nothing more: it puts a *fence* at the next
//! number, and reads what lies before it. The PUT of the former owner is refused from then on.
//!
//! ```text
//! logs/<id>/00000000000000000001   the beginning: an object without records
//! logs/<id>/00000000000000000002   a group commit
//! logs/<id>/00000000000000000003   the fence
//! ```
//!
//! An object names the oldest object that was still needed when it was written. Older ones are deleted only after that, so a missing object is
//! told from one that was deleted in order. The fence stays for good: a writer that slept must not find its next number free.

mod appender;
mod format;
mod newest;
mod recovery;

pub(crate) use appender::{ObjectAppender, begin};
pub(crate) use format::{Group, is_log_object, log_folder, log_path};
pub(crate) use newest::NewestGroups;
pub(crate) use recovery::{FencedLog, LogObjects, fence, is_fence, numbers, read, read_some};

/// Names a log.
pub(crate) type LogId = uuid::Uuid;

#[cfg(test)]
#[path = "object_tests.rs"]
mod tests;
