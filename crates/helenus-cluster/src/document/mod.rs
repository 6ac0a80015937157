//! The cluster document: the nodes of the cluster, and the owner of each tablet.
//!
//! The document is one JSON object, replaced as a whole by compare-and-set. Transitions ([`membership`], [`moves`], [`reshape`]) change a
//! document, or refuse and leave it unchanged. The result is always valid ([`validate`]). A transition of several steps keeps its progress
//! in the document, so that any node that reads it can continue or undo the transition.

mod membership;
mod moves;
mod reshape;
mod restore;
mod validate;

use std::sync::Arc;

use helenus_row::TokenRange;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::credentials::Credentials;
use crate::environment::TabletSpec;
use crate::error::ClusterError;
use crate::ids::{Epoch, HostId, Incarnation, Member, TabletId, Version};
use crate::node::NodeDescription;
use crate::view::{ClusterView, LostNode, NodeInfo, NodeState, TabletInfo, TabletState};

pub use restore::adopt;

/// The document's name. The names of heartbeats begin with it, so that one listing shows all of them.
pub const NAME: &str = "cluster";

/// Format number. It is raised if an older binary could not understand the document, or would lose fields that it does not know. Format 2
/// added `store` and `credentials`.
pub(crate) const FORMAT: u64 = 2;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClusterDocument {
    pub format: u64,
    pub cluster_name: String,
    /// The identity of the document's store. `None` until a node that knows of identities writes the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<Uuid>,
    /// The number of the next tablet that is created.
    pub next_tablet: u32,
    /// The nodes, in the order in which they joined.
    pub nodes: Vec<NodeRecord>,
    /// The tablets, ordered by tokens. Together they cover the ring.
    pub tablets: Vec<TabletRecord>,
    /// Splits and merges in progress.
    pub reshapes: Vec<Reshape>,
    /// Tablets that were split, merged or given up unfinished, and whose data may still exist.
    pub retired: Vec<TabletId>,
    /// Nodes whose leases have ended and that have not come back, for display. An older binary drops them, which is harmless.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LostRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeRecord {
    pub host_id: HostId,
    pub incarnation: Incarnation,
    #[serde(flatten)]
    pub description: NodeDescription,
    /// Time for which the node may serve after a renewal, in ms.
    pub lease_ms: u64,
    pub joined_at_ms: i64,
    pub state: NodeState,
    /// The credentials needed to communicate with the node. `None` if they are not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
}

/// A node that was expelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LostRecord {
    pub host_id: HostId,
    #[serde(flatten)]
    pub description: NodeDescription,
    /// Time of the expulsion, in milliseconds since 1970 by the clock of the node that expelled it.
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
    /// Number that is raised whenever the owner changes.
    pub epoch: Epoch,
    /// The node that gets the tablet after the owner has closed it. `None` if the tablet does not move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moving_to: Option<HostId>,
}

/// A split (one parent, two children) or a merge (several parents, one child). The parents' owner creates the children.
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
    /// Returns a cluster without nodes, whose tablets have no owners yet.
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

    /// Returns true if the tablet's number was used and the tablet no longer exists. Numbers are never used again, so its data can be
    /// deleted.
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

    /// Returns true if the node is in the cluster and may be given tablets.
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

    /// Returns the split or merge of which the tablet is a parent. `None` if there is none.
    pub fn reshape_of(&self, id: TabletId) -> Option<&Reshape> {
        self.reshapes.iter().find(|reshape| reshape.parents.contains(&id))
    }

    /// Returns the view for the rest of the node. `alive` judges each node.
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

/// Returns the tablets in a cluster document of this store, by their tokens. For processes that take no part in the cluster.
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

/// Returns one line of JSON. Encoding cannot fail, because all maps have string keys.
pub(crate) fn encode(document: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(document).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Reads a document that has a format number. `name` is for errors.
pub(crate) fn decode<T: for<'de> Deserialize<'de>>(
    bytes: &[u8],
    name: &'static str,
    supported: u64,
) -> Result<T, ClusterError> {
    // The format is read first, because the rest may look different in a newer one.
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
