//! Who owns what, in a cluster of nodes that share an object store and nothing else.
//!
//! One *cluster document* says which nodes there are and which of them owns each tablet; it is changed by compare-and-set. Each
//! node keeps a *lease* by rewriting its own *heartbeat* document. All decisions are pure functions; an agent makes them happen through
//! three traits: [`Documents`], [`Clock`] and [`TabletHost`]. `docs/cluster.md` tells the whole story.

#[allow(dead_code)]
mod agent;
mod clock;
mod effects;
mod error;
#[allow(dead_code)]
mod ids;
mod policy;
mod view;

pub use agent::{AgentConfig, AgentHandle, AgentState, LEASE_DEFAULT};
pub use clock::SystemClock;
pub use effects::{Clock, Document, Documents, Expect, Listed, Removal, TabletHost, TabletLoad, TabletSpec};
pub use error::{ClusterError, DocumentError, HostError};
pub use ids::{Epoch, HostId, Incarnation, TabletId, TokenRange, Version};
pub use policy::ReshapeLimits;
pub use view::{ClusterView, NodeInfo, NodeState, NodeStatus, TabletInfo, TabletState};
