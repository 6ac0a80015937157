//! The identifiers of nodes and tablets.

use std::fmt;

use rand::RngCore;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The id of a node. It survives restarts, and changes only if the operator makes it another node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostId(pub Uuid);

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One membership of a node in the cluster, from joining until it leaves or is expelled. An incarnation is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Incarnation(pub Uuid);

impl Incarnation {
    pub fn random(rng: &mut dyn RngCore) -> Self {
        let mut bytes = [0; 16];
        rng.fill_bytes(&mut bytes);
        Incarnation(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A node in one of its incarnations: the holder of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    pub host_id: HostId,
    pub incarnation: Incarnation,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (incarnation {})", self.host_id, self.incarnation)
    }
}

/// The number of a tablet. Numbers are never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TabletId(pub u32);

impl fmt::Display for TabletId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Number of the changes of a tablet's owner, from 1.
pub type Epoch = u64;

/// Number of the changes of a document, from 1.
pub type Version = u64;

/// One of the node's stays in the cluster, by its number in this process. The lease of a later stay does not cover reads of an earlier one,
/// because other nodes may have owned the tablets in between.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeaseTerm(pub(crate) u64);
