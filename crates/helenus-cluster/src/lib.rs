//! Who owns what, in a cluster of nodes that share an object store and nothing else.
//!
//! One *cluster document* says which nodes there are and which of them owns each tablet; it is changed by compare-and-set. Each
//! node keeps a *lease* by rewriting its own *heartbeat* document. All decisions are pure functions; an [`Agent`] makes them happen through
//! three traits: [`Documents`], [`Clock`] and [`TabletHost`]. `docs/cluster.md` tells the whole story.

mod agent;
mod calm;
mod clock;
mod credentials;
mod decide;
mod document;
mod effects;
mod error;
mod heartbeat;
mod ids;
mod placement;
mod policy;
mod reconcile;
mod view;
mod watch;

pub use agent::{Agent, AgentConfig, AgentCounts, AgentHandle, AgentState, LEASE_DEFAULT, Mailbox, Written};
pub use clock::SystemClock;
pub use credentials::Credentials;
pub use document::{NAME as CLUSTER_DOCUMENT, adopt};
pub use effects::{Clock, Document, Documents, Expect, Listed, Removal, TabletHost, TabletLoad, TabletSpec};
pub use error::{ClusterError, DocumentError, HostError};
pub use ids::{Epoch, HostId, Incarnation, LeaseTerm, TabletId, TokenRange, Version};
pub use policy::{MERGE_AFTER_DEFAULT, ReshapeLimits};
pub use view::{ClusterView, NodeInfo, NodeState, NodeStatus, TabletInfo, TabletState};
