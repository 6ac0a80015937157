//! Errors, worded for operators.

use thiserror::Error;
use uuid::Uuid;

use crate::ids::{HostId, TabletId};

/// The reason for which a document operation failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DocumentError {
    /// The document is not at the expected version. Nothing was written.
    #[error("the document was changed by someone else")]
    Conflict,
    /// The store did not answer, or answered with an error. A write may have taken effect, or may yet do so.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
}

/// The reason for which a [`TabletHost`](crate::TabletHost) could not execute a call.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HostError {
    /// A failure after which another attempt may succeed.
    #[error("{0}")]
    Failed(String),
    /// A call that this host cannot execute at all.
    #[error("not supported: {0}")]
    Unsupported(String),
}

/// The reason for which a document was refused, or a change of the cluster is not possible.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ClusterError {
    #[error(
        "the {document} document has format {found}, and this version of Helenus understands formats up to {supported}: \
         upgrade this node first"
    )]
    NewerFormat {
        document: &'static str,
        found: u64,
        supported: u64,
    },
    #[error("the {document} document can't be read: {detail}")]
    Corrupt { document: &'static str, detail: String },
    #[error("the store belongs to cluster {found:?}, and this node is configured for cluster {configured:?}")]
    WrongCluster { found: String, configured: String },
    #[error(
        "the cluster document is that of store {found}, and lies in store {opened}: it was copied there, or written by a node of that store. \
         If this store was made of a copy, run with no node on it:  helenus adopt --store URL"
    )]
    WrongStore { found: Uuid, opened: Uuid },
    /// This node would join the cluster without being able to communicate with the other nodes.
    #[error("no communication is possible with node {node} at {address}: {why}")]
    NoCredentials {
        node: String,
        address: String,
        why: String,
    },
    #[error("there is no node {0} in the cluster")]
    UnknownNode(HostId),
    #[error("there is no tablet {0}")]
    UnknownTablet(TabletId),
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The agent was stopped before it could execute the request.
    #[error("this node's cluster agent has stopped")]
    Stopped,
}
