//! The traits through which the agent uses its environment: documents, time, and a host for tablets. A simulator implements all three.

use std::time::Duration;

use async_trait::async_trait;
use helenus_row::TokenRange;

use crate::error::{DocumentError, HostError};
use crate::ids::{Epoch, TabletId, Version};

/// A document as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub version: Version,
    pub content: Vec<u8>,
}

/// The condition under which a document is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    Absent,
    Version(Version),
}

/// One entry of a listing, or of a request by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    /// Any value that differs after every write of the document, such as an ETag.
    pub stamp: String,
}

/// Small documents, read and written as a whole, durable and linearizable, changed by compare-and-set. Listings are linearizable too.
///
/// Names have letters, digits, `.` and `-`, and at most 100 bytes. The agent gives up on a call that takes long, and the call may still
/// take effect later.
#[async_trait]
pub trait Documents: Send + Sync {
    async fn get(&self, name: &str) -> Result<Option<Document>, DocumentError>;

    /// Writes the document if `expect` holds, and returns its new version, which is greater than the one before.
    async fn put(&self, name: &str, content: &[u8], expect: Expect) -> Result<Version, DocumentError>;

    /// Returns the documents whose names begin with `prefix`, in any order.
    async fn list(&self, prefix: &str) -> Result<Vec<Listed>, DocumentError>;

    /// Returns the entries of those named documents that exist, in any order, with the same stamps as in a listing. In an object store this
    /// is a request for each name, which costs a twelfth of a listing.
    async fn stamps(&self, names: &[String]) -> Result<Vec<Listed>, DocumentError>;

    /// Deletes the document. A document that does not exist is no error.
    async fn delete(&self, name: &str) -> Result<(), DocumentError>;
}

/// Time as one node measures it.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Returns a time that never goes back and also counts while the process or the machine is stopped. Its origin has no meaning.
    fn monotonic(&self) -> Duration;

    /// Returns milliseconds since 1970, for display only.
    fn wall_ms(&self) -> i64;

    async fn sleep(&self, duration: Duration);
}

/// A tablet with which a cluster begins, or that a split or a merge is to create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TabletSpec {
    pub id: TabletId,
    pub tokens: TokenRange,
}

impl TabletSpec {
    /// Returns `tablet_count` tablets of equal size that cover the ring, numbered from 1.
    pub fn ring(tablet_count: u32) -> Vec<TabletSpec> {
        TokenRange::split_ring(tablet_count as usize)
            .into_iter()
            .zip(1..)
            .map(|(tokens, id)| TabletSpec {
                id: TabletId(id),
                tokens,
            })
            .collect()
    }
}

/// The load of a tablet on its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TabletLoad {
    pub bytes: u64,
    pub ops_per_s: u64,
}

/// The outcome of a removal of a retired tablet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    Gone,
    /// Other tablets still read the data. The removal is requested again later.
    StillNeeded,
}

/// Opens and serves tablets on this node.
///
/// The host answers for an open tablet only if [`AgentHandle::may_serve_since`](crate::AgentHandle::may_serve_since) returns true when the
/// answer is ready, not before. A host that finds an open tablet fenced closes it and calls
/// [`AgentHandle::tablet_lost`](crate::AgentHandle::tablet_lost).
///
/// Any future may be dropped before it is done. [`TabletHost::abandon`] is then called before the tablet's next call.
#[async_trait]
pub trait TabletHost: Send + Sync {
    /// Opens the tablet for reads and writes, and fences the process that had it open before.
    async fn open(&self, tablet: TabletId, tokens: TokenRange, epoch: Epoch) -> Result<(), HostError>;

    /// Flushes the tablet so that its next owner has little to replay, and closes it. The tablet should be served during the flush, so that
    /// the pause is short. After an error the agent calls this again or abandons the tablet.
    async fn close(&self, tablet: TabletId) -> Result<(), HostError>;

    /// Stops serving the tablet and forgets it, whatever its state, without waiting for the store. The tablet may not be open at all.
    async fn abandon(&self, tablet: TabletId);

    /// Splits an open tablet in two: flushes it, stops serving it, and creates the children, durably. They are opened later by
    /// [`TabletHost::open`]. After an error the parent is open as before, unless it could not be opened again ([`TabletHost::is_open`]). Parts
    /// of the children stay until [`TabletHost::remove`].
    async fn split(&self, parent: TabletId, children: [TabletSpec; 2]) -> Result<(), HostError>;

    /// Merges open neighbours, in token order, into one tablet. Otherwise like [`TabletHost::split`].
    async fn merge(&self, parents: &[TabletId], child: TabletSpec) -> Result<(), HostError>;

    /// Returns true if the tablet is open.
    fn is_open(&self, tablet: TabletId) -> bool;

    /// Returns the tablets of which the store has any data.
    async fn stored(&self) -> Result<Vec<TabletId>, HostError>;

    /// Deletes the rest of a tablet that was split, merged, or given up unfinished. The tablet may be deleted already.
    async fn remove(&self, tablet: TabletId) -> Result<Removal, HostError>;

    /// Returns the loads of the tablets that are open here.
    fn load(&self) -> Vec<(TabletId, TabletLoad)>;
}
