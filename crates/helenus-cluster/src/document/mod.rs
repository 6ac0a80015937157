//! The cluster document: which nodes there are, and which of them owns each tablet.
//!
//! It is one JSON object, replaced whole by compare-and-set. Transitions ([`membership`], [`moves`], [`reshape`]) take a document to the next one and
//! leave it as it was when they refuse; whatever they leave is valid ([`validate`]). A transition that takes several steps keeps where it
//! stands in the document, so that whoever finds it can go on or go back.

mod membership;
mod moves;
mod reshape;
mod restore;
mod validate;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::credentials::Credentials;
use crate::environment::TabletSpec;
use crate::error::ClusterError;
use crate::ids::{Epoch, HostId, Incarnation, Member, TabletId, TokenRange, Version};
use crate::node::NodeDescription;
use crate::view::{ClusterView, LostNode, NodeInfo, NodeState, TabletInfo, TabletState};

pub use restore::adopt;

/// The document's name. Heartbeats' names begin with it, so that one listing shows them all.
pub const NAME: &str = "cluster";

/// Raised when an older binary could not understand the document, or would lose what it does not know: since 2 there are `store` and
/// `credentials`.
pub(crate) const FORMAT: u64 = 2;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClusterDocument {
    pub format: u64,
    pub cluster_name: String,
    /// The store that it is of; none before a node that knows of identities has written it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<Uuid>,
    /// The number of the next tablet to be made.
    pub next_tablet: u32,
    /// In the order in which they joined.
    pub nodes: Vec<NodeRecord>,
    /// Ordered by tokens; together they cover the ring.
    pub tablets: Vec<TabletRecord>,
    /// Splits and merges under way.
    pub reshapes: Vec<Reshape>,
    /// Tablets that were split, merged or given up half made, whose data may still be there.
    pub retired: Vec<TabletId>,
    /// Nodes whose leases have ended and that have not come back, for people to see. An older binary loses them, which harms nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LostRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeRecord {
    pub host_id: HostId,
    pub incarnation: Incarnation,
    #[serde(flatten)]
    pub description: NodeDescription,
    /// How long it may serve after a renewal.
    pub lease_ms: u64,
    pub joined_at_ms: i64,
    pub state: NodeState,
    /// What it takes to speak to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
}

/// A node that was expelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LostRecord {
    pub host_id: HostId,
    #[serde(flatten)]
    pub description: NodeDescription,
    /// Milliseconds since 1970, by the clock of the node that expelled it.
    pub lost_at_ms: i64,
}

impl NodeRecord {
    pub fn member(&self) -> Member {
        Member {
            host_id: self.host_id,
            incarnation: self.incarnation,
        }
    }

    fn info(&self, alive: bool) -> NodeInfo {
        NodeInfo {
            host_id: self.host_id,
            incarnation: self.incarnation,
            description: self.description.clone(),
            state: self.state,
            alive,
        }
    }
}

impl LostRecord {
    fn info(&self) -> LostNode {
        LostNode {
            host_id: self.host_id,
            description: self.description.clone(),
            lost_at_ms: self.lost_at_ms,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TabletRecord {
    pub id: TabletId,
    pub tokens: TokenRange,
    pub owner: Option<HostId>,
    /// Raised whenever the owner changes.
    pub epoch: Epoch,
    /// The node that takes it once the owner has let go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moving_to: Option<HostId>,
}

/// A split (one parent, two children) or a merge (several parents, one child). The parents' owner makes the children.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reshape {
    pub parents: Vec<TabletId>,
    pub children: Vec<ChildRecord>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChildRecord {
    pub id: TabletId,
    pub tokens: TokenRange,
}

impl ClusterDocument {
    /// Returns a cluster without nodes, whose tablets nobody owns yet.
    pub fn create(cluster_name: &str, tablets: &[TabletSpec]) -> Self {
        let tablets: Vec<_> = tablets
            .iter()
            .map(|&TabletSpec { id, tokens }| TabletRecord {
                id,
                tokens,
                owner: None,
                epoch: 0,
                moving_to: None,
            })
            .collect();
        ClusterDocument {
            format: FORMAT,
            cluster_name: cluster_name.into(),
            store: None,
            next_tablet: tablets.iter().map(|tablet| tablet.id.0).max().unwrap_or(0) + 1,
            nodes: Vec::new(),
            tablets,
            reshapes: Vec::new(),
            retired: Vec::new(),
            lost: Vec::new(),
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// Refuses a document that belongs to another store than the one that is open.
    pub fn check_store(&self, opened: Option<Uuid>) -> Result<(), ClusterError> {
        match (self.store, opened) {
            (Some(found), Some(opened)) if found != opened => Err(ClusterError::WrongStore { found, opened }),
            _ => Ok(()),
        }
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, ClusterError> {
        let document: ClusterDocument = decode(bytes, "cluster", FORMAT)?;
        document.validate()?;
        Ok(document)
    }

    /// Whether the tablet's number was given away and is no tablet's any more, for good: numbers are never used again. Its data is to be gone.
    pub fn is_past(&self, id: TabletId) -> bool {
        let is_child = |reshape: &Reshape| reshape.children.iter().any(|child| child.id == id);
        id.0 < self.next_tablet
            && !self.tablets.iter().any(|tablet| tablet.id == id)
            && !self.reshapes.iter().any(is_child)
            && !self.retired.contains(&id)
    }

    pub fn node(&self, host_id: HostId) -> Option<&NodeRecord> {
        self.nodes.iter().find(|node| node.host_id == host_id)
    }

    pub fn has(&self, member: Member) -> bool {
        self.node(member.host_id)
            .is_some_and(|node| node.incarnation == member.incarnation)
    }

    /// Whether the node is there and may be given tablets.
    pub fn accepts(&self, host_id: HostId) -> bool {
        self.node(host_id)
            .is_some_and(|node| node.state == NodeState::Normal)
    }

    pub fn tablet(&self, id: TabletId) -> Result<&TabletRecord, ClusterError> {
        self.tablets
            .iter()
            .find(|tablet| tablet.id == id)
            .ok_or(ClusterError::UnknownTablet(id))
    }

    fn tablet_mut(&mut self, id: TabletId) -> Result<&mut TabletRecord, ClusterError> {
        self.tablets
            .iter_mut()
            .find(|tablet| tablet.id == id)
            .ok_or(ClusterError::UnknownTablet(id))
    }

    pub fn tablets_of(&self, host_id: HostId) -> impl Iterator<Item = &TabletRecord> {
        self.tablets
            .iter()
            .filter(move |tablet| tablet.owner == Some(host_id))
    }

    /// Returns the split or merge that the tablet is a parent of.
    pub fn reshape_of(&self, id: TabletId) -> Option<&Reshape> {
        self.reshapes.iter().find(|reshape| reshape.parents.contains(&id))
    }

    /// What the rest of the node sees; `alive` judges each node.
    pub fn view(&self, version: Version, alive: impl Fn(&NodeRecord) -> bool) -> Arc<ClusterView> {
        let nodes = self.nodes.iter().map(|node| node.info(alive(node))).collect();
        let tablets = self
            .tablets
            .iter()
            .map(|tablet| self.tablet_info(tablet))
            .collect();
        let lost = self.lost.iter().map(LostRecord::info).collect();
        Arc::new(ClusterView::new(version, &self.cluster_name, nodes, tablets).with_lost(lost))
    }

    fn tablet_info(&self, tablet: &TabletRecord) -> TabletInfo {
        let state = match (tablet.moving_to, self.reshape_of(tablet.id)) {
            (Some(to), _) => TabletState::Moving { to },
            (None, Some(reshape)) if reshape.parents.len() == 1 => TabletState::Splitting,
            (None, Some(_)) => TabletState::Merging,
            (None, None) => TabletState::Stable,
        };
        TabletInfo {
            id: tablet.id,
            tokens: tablet.tokens,
            owner: tablet.owner,
            epoch: tablet.epoch,
            state,
        }
    }
}

/// Returns the tablets of a cluster document of that store, by their tokens, as processes need them that take no part in the cluster.
///
/// # Errors
/// The document is damaged, of a newer format, or of another store.
pub fn tablets_in(bytes: &[u8], store: Uuid) -> Result<Vec<TabletSpec>, ClusterError> {
    let document = ClusterDocument::decode(bytes)?;
    document.check_store(Some(store))?;
    let spec = |tablet: &TabletRecord| TabletSpec {
        id: tablet.id,
        tokens: tablet.tokens,
    };
    Ok(document.tablets.iter().map(spec).collect())
}

/// Returns one line of JSON. What is encoded here has string keys only, which can't fail.
pub(crate) fn encode(document: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(document).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Reads a document that says its format; `name` is for errors.
pub(crate) fn decode<T: for<'de> Deserialize<'de>>(
    bytes: &[u8],
    name: &'static str,
    supported: u64,
) -> Result<T, ClusterError> {
    // The format first: what follows it may look different in a newer one.
    #[derive(Deserialize)]
    struct Format {
        format: u64,
    }
    let corrupt = |error: serde_json::Error| ClusterError::Corrupt {
        document: name,
        detail: error.to_string(),
    };
    let Format { format } = serde_json::from_slice(bytes).map_err(corrupt)?;
    if format > supported {
        return Err(ClusterError::NewerFormat {
            document: name,
            found: format,
            supported,
        });
    }
    serde_json::from_slice(bytes).map_err(corrupt)
}

#[cfg(test)]
#[path = "document_tests.rs"]
pub(crate) mod tests;
