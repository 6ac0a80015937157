//! The traits through which the agent reaches the world: documents, time, and a host for tablets. A simulator implements all three.

use std::time::Duration;

use async_trait::async_trait;

use crate::error::{DocumentError, HostError};
use crate::ids::{Epoch, TabletId, TokenRange, Version};

/// A document as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub version: Version,
    pub content: Vec<u8>,
}

/// What must hold for a document to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    Absent,
    Version(Version),
}

/// One entry of a listing, or what was found under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    /// Anything that differs after every write of the document, such as an ETag.
    pub stamp: String,
}

/// Small documents, whole, durable and linearizable, changed by compare-and-set; listings are linearizable too.
///
/// Names have letters, digits, `.` and `-`, and at most 100 bytes. The agent gives up on a call that takes long; the call's effect may
/// come later all the same.
#[async_trait]
pub trait Documents: Send + Sync {
    async fn get(&self, name: &str) -> Result<Option<Document>, DocumentError>;

    /// Writes the document if `expect` holds, and returns its new version, which is greater than the one before.
    async fn put(&self, name: &str, content: &[u8], expect: Expect) -> Result<Version, DocumentError>;

    /// Returns the documents whose names begin with `prefix`, in any order.
    async fn list(&self, prefix: &str) -> Result<Vec<Listed>, DocumentError>;

    /// Those of the named documents that exist, in any order, with the same stamps as in a listing. In an object store a request for each name,
    /// of the kind that costs a twelfth of a listing.
    async fn stamps(&self, names: &[String]) -> Result<Vec<Listed>, DocumentError>;

    /// Deletes the document; one that is not there is no error.
    async fn delete(&self, name: &str) -> Result<(), DocumentError>;
}

/// Time, as one node has it.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Never goes back, and also counts the time that the process or the machine was stopped. Its origin means nothing.
    fn monotonic(&self) -> Duration;

    /// Returns milliseconds since 1970; for people only.
    fn wall_ms(&self) -> i64;

    async fn sleep(&self, duration: Duration);
}

/// A tablet that a cluster begins with, or that a split or a merge is to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TabletSpec {
    pub id: TabletId,
    pub tokens: TokenRange,
}

impl TabletSpec {
    /// So many tablets of equal size, numbered from 1: the whole ring.
    pub fn ring(tablet_count: u32) -> Vec<TabletSpec> {
        TokenRange::split_ring(tablet_count)
            .into_iter()
            .zip(1..)
            .map(|(tokens, id)| TabletSpec {
                id: TabletId(id),
                tokens,
            })
            .collect()
    }
}

/// What a tablet costs its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TabletLoad {
    pub bytes: u64,
    pub ops_per_s: u64,
}

/// Whether a retired tablet's data is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    Gone,
    /// Other tablets read from it. It is asked again later.
    StillNeeded,
}

/// What opens and serves tablets on this node.
///
/// The host answers for a tablet that it has open only while [`AgentHandle::may_serve_since`](crate::AgentHandle::may_serve_since) says so, asked
/// when the answer is ready and not before. A host that finds an open tablet fenced closes it and calls
/// [`AgentHandle::tablet_lost`](crate::AgentHandle::tablet_lost).
///
/// Any future may be dropped before it is done. [`TabletHost::abandon`] is then called before the tablet's next call.
#[async_trait]
pub trait TabletHost: Send + Sync {
    /// Opens the tablet for reads and writes, and fences whoever had it open before.
    async fn open(&self, tablet: TabletId, tokens: TokenRange, epoch: Epoch) -> Result<(), HostError>;

    /// Flushes the tablet so that its next owner has little to replay, and closes it. Flush while still serving, so that the
    /// pause is short. After an error the agent calls this again or abandons the tablet.
    async fn close(&self, tablet: TabletId) -> Result<(), HostError>;

    /// Stops serving the tablet and forgets it, whatever state it is in, without waiting for the store. It may not be open at all.
    async fn abandon(&self, tablet: TabletId);

    /// Makes two tablets of an open one: flushes it, stops serving it, and makes the children, durably. They are opened later by
    /// [`TabletHost::open`]. After an error the parent is open as before; what there is of the children stays until
    /// [`TabletHost::remove`].
    async fn split(&self, parent: TabletId, children: [TabletSpec; 2]) -> Result<(), HostError>;

    /// Makes one tablet of open neighbours, in token order; otherwise as [`TabletHost::split`].
    async fn merge(&self, parents: &[TabletId], child: TabletSpec) -> Result<(), HostError>;

    /// Returns the tablets of which the store holds anything.
    async fn stored(&self) -> Result<Vec<TabletId>, HostError>;

    /// Deletes what is left of a tablet that was split, merged, or given up half made. It may be gone already.
    async fn remove(&self, tablet: TabletId) -> Result<Removal, HostError>;

    /// Returns the load of the tablets that are open here.
    fn load(&self) -> Vec<(TabletId, TabletLoad)>;
}
