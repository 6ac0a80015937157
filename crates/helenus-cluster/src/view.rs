//! A node's view of the cluster: an immutable snapshot, swapped whole.

use std::fmt;
use std::sync::Arc;

use helenus_row::TokenRange;
use serde::{Deserialize, Serialize};

use crate::ids::{Epoch, HostId, Incarnation, Member, TabletId, Version};
use crate::node::NodeDescription;

/// The state of a node's membership in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    Normal,
    /// Hands over its tablets and takes none.
    Leaving,
}

/// A node of the cluster, as the view shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeInfo {
    pub host_id: HostId,
    pub incarnation: Incarnation,
    pub description: NodeDescription,
    pub state: NodeState,
    /// True if the node with this view has recently seen the node's heartbeat change.
    pub alive: bool,
}

impl NodeInfo {
    pub fn member(&self) -> Member {
        Member {
            host_id: self.host_id,
            incarnation: self.incarnation,
        }
    }
}

/// A node whose lease has ended. It owns no tablets any more, and is shown until it comes back or is forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostNode {
    pub host_id: HostId,
    pub description: NodeDescription,
    /// Time of the loss, in milliseconds since 1970.
    pub lost_at_ms: i64,
}

/// The change that a tablet is going through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TabletState {
    Stable,
    /// The owner, which still serves the tablet, is about to hand it over.
    Moving {
        to: HostId,
    },
    Splitting,
    Merging,
}

impl fmt::Display for TabletState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TabletState::Stable => f.write_str("stable"),
            TabletState::Moving { to } => write!(f, "moving to {to}"),
            TabletState::Splitting => f.write_str("splitting"),
            TabletState::Merging => f.write_str("merging"),
        }
    }
}

/// A tablet of the cluster, as the view shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TabletInfo {
    pub id: TabletId,
    pub tokens: TokenRange,
    /// The node that serves the tablet, or is opening it. `None` if no node could take it.
    pub owner: Option<HostId>,
    pub epoch: Epoch,
    pub state: TabletState,
}

/// The line of `nodetool status` for a node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeStatus {
    pub node: NodeInfo,
    pub tablet_count: usize,
    /// The node's share of the ring, from 0 to 1.
    pub owned_share: f64,
}

/// The nodes and tablets of one version of the cluster document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterView {
    version: Version,
    cluster_name: String,
    nodes: Vec<Arc<NodeInfo>>,
    tablets: Vec<TabletInfo>,
    lost: Vec<LostNode>,
}

impl ClusterView {
    /// Creates a view. Tablets may come in any order, and their ranges must not overlap.
    pub fn new(
        version: Version,
        cluster_name: impl Into<String>,
        nodes: Vec<NodeInfo>,
        mut tablets: Vec<TabletInfo>,
    ) -> Self {
        tablets.sort_by_key(|tablet| tablet.tokens);
        ClusterView {
            version,
            cluster_name: cluster_name.into(),
            nodes: nodes.into_iter().map(Arc::new).collect(),
            tablets,
            lost: Vec::new(),
        }
    }

    /// Returns the view with the nodes that were lost.
    pub(crate) fn with_lost(self, lost: Vec<LostNode>) -> Self {
        ClusterView { lost, ..self }
    }

    /// Returns the version of the cluster document. 0 before the node has read it.
    pub fn version(&self) -> Version {
        self.version
    }

    pub fn cluster_name(&self) -> &str {
        &self.cluster_name
    }

    /// Returns the nodes, in the order in which they joined.
    pub fn nodes(&self) -> &[Arc<NodeInfo>] {
        &self.nodes
    }

    /// Returns the nodes whose leases have ended and that have neither come back nor been forgotten, in the order in which they were lost.
    pub fn lost(&self) -> &[LostNode] {
        &self.lost
    }

    pub fn node(&self, host_id: HostId) -> Option<&Arc<NodeInfo>> {
        self.nodes.iter().find(|node| node.host_id == host_id)
    }

    /// Returns the tablets, ordered by range. Together they cover the ring, except in the empty view.
    pub fn tablets(&self) -> &[TabletInfo] {
        &self.tablets
    }

    pub fn tablet_of(&self, token: i64) -> Option<&TabletInfo> {
        let index = self.tablets.partition_point(|tablet| tablet.tokens.last < token);
        self.tablets
            .get(index)
            .filter(|tablet| tablet.tokens.contains(token))
    }

    /// Returns the node that serves the partitions of a token. `None` if the tablet has no owner.
    pub fn owner_of(&self, token: i64) -> Option<&Arc<NodeInfo>> {
        self.node(self.tablet_of(token)?.owner?)
    }

    pub fn tablets_of(&self, host_id: HostId) -> impl Iterator<Item = &TabletInfo> {
        self.tablets
            .iter()
            .filter(move |tablet| tablet.owner == Some(host_id))
    }

    /// Returns the content of `nodetool status`, in the order in which the nodes joined.
    pub fn status(&self) -> Vec<NodeStatus> {
        self.nodes
            .iter()
            .map(|node| NodeStatus {
                node: NodeInfo::clone(node),
                tablet_count: self.tablets_of(node.host_id).count(),
                owned_share: self
                    .tablets_of(node.host_id)
                    .map(|tablet| tablet.tokens.share())
                    .sum(),
            })
            .collect()
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
