//! Membership, ownership and placement in a cluster of nodes that share an object store and nothing else.
//!
//! One *cluster document* names the nodes and the owner of each tablet. It is changed by compare-and-set. Each node keeps a *lease* by
//! rewriting its own *heartbeat* document. All decisions are pure functions. An [`Agent`] carries them out through three traits:
//! [`Documents`], [`Clock`] and [`TabletHost`]. `docs/cluster.md` describes the whole design.

mod agent;
mod clock;
mod credentials;
mod decide;
mod document;
mod environment;
mod error;
mod heartbeat;
mod ids;
mod lease_monitor;
mod loads;
mod node;
mod placement;
mod reconcile;
mod reshape_policy;
mod stability;
mod view;

pub use agent::{
    Agent, AgentConfig, AgentCounts, AgentHandle, AgentRequests, AgentState, DocumentVersion, LEASE_DEFAULT,
};
pub use clock::SystemClock;
pub use credentials::Credentials;
pub use document::{NAME as CLUSTER_DOCUMENT, adopt, tablets_in};
pub use environment::{
    Clock, Document, Documents, Expect, Listed, Removal, TabletHost, TabletLoad, TabletSpec,
};
pub use error::{ClusterError, DocumentError, HostError};
pub use heartbeat::is_heartbeat;
pub use helenus_row::TokenRange;
pub use ids::{Epoch, HostId, Incarnation, LeaseTerm, Member, TabletId, Version};
pub use loads::loads;
pub use node::NodeDescription;
pub use reshape_policy::{MERGE_AFTER_DEFAULT, ReshapeLimits};
pub use view::{ClusterView, LostNode, NodeInfo, NodeState, NodeStatus, TabletInfo, TabletState};
