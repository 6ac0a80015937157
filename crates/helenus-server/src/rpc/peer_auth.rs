//! Mutual authentication of nodes at the start of a connection. The caller claims which node connects to which, and for which store. Both
//! sides prove that they know the cluster's secret ([`super::handshake`]).
//!
//! A store and its copy have the same secret and know the same addresses. So a connection is accepted only
//!
//! - with this store's identity,
//! - from a node, in its present incarnation, that this store's own cluster document shows or has shown. An incarnation is random and
//!   belongs to one cluster. So no connection from a node of a copy is accepted, even if the copy has the same identity,
//! - by the node, in its present incarnation, that the caller means. A copy knows the addresses of the store's nodes, and another node may
//!   listen there.
//!
//! The accepting node checks the last two again whenever requests arrive.

use std::sync::Arc;
use std::time::Duration;

use helenus_cluster::{AgentHandle, HostId, Member, NodeInfo};
use uuid::Uuid;

use super::failure::{Reason, Refusal};
use super::refusal_log::RefusalLog;
use super::secret::Secret;

/// This node, as other nodes see it.
#[derive(Clone)]
pub struct LocalIdentity {
    /// Identity of the store that this node has open.
    pub store: Uuid,
    pub host_id: HostId,
    pub name: String,
    pub agent: AgentHandle,
}

impl LocalIdentity {
    /// Returns this node in its present incarnation. `None` before it begins to join.
    pub(super) fn member(&self) -> Option<Member> {
        Some(Member {
            host_id: self.host_id,
            incarnation: self.agent.incarnation()?,
        })
    }
}

/// The claim of a connecting node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PeerClaim {
    pub store: Uuid,
    pub from: Member,
    pub to: Member,
    /// The caller's name, escaped once it has been received.
    pub name: String,
}

/// Accepts connections that are meant for this node and come from nodes of its cluster.
#[derive(Clone)]
pub(super) struct PeerGuard {
    pub secret: Secret,
    pub own: LocalIdentity,
    pub refusals: Arc<RefusalLog>,
}

impl PeerGuard {
    /// Checks the claim of a caller that knows the secret.
    ///
    /// # Errors
    /// The claim is of another store, not for this node, or from a node that is not a member.
    pub fn check(&self, claim: &PeerClaim) -> Result<(), Refusal> {
        let PeerClaim {
            store,
            from,
            to,
            name,
        } = claim;
        if *store != self.own.store {
            let seen = format!("store {store}");
            if self.refusals.should_log(from.host_id.0, &seen, Duration::ZERO) {
                tracing::warn!(node = name, host_id = %from.host_id, %store, here = %self.own.store,
                    "a node of another store was refused: one of the two was made of a copy of the other, or has an address of it");
            }
            return Err(not_member(format!(
                "node {:?} is of store {}, and {name:?}, which has called it, of store {store}",
                self.own.name, self.own.store
            )));
        }
        self.check_meant(*to)?;
        self.check_member(*from, name)
    }

    /// Checks that this node is still the one that a caller means.
    pub fn check_meant(&self, to: Member) -> Result<(), Refusal> {
        if self.own.member() == Some(to) {
            return Ok(());
        }
        Err(not_member(format!(
            "the node at this address is {:?}, and not, or no longer, the called node",
            self.own.name
        )))
    }

    /// Refuses callers that are not in the cluster document. The agent reads the document again, because the caller may have just joined.
    /// The caller is expected to call again.
    pub fn check_member(&self, from: Member, name: &str) -> Result<(), Refusal> {
        if self.own.agent.has_seen(from.host_id, from.incarnation) {
            return Ok(());
        }
        self.own.agent.refresh();
        if self
            .refusals
            .should_log(from.host_id.0, "not a member", RefusalLog::JOIN_GRACE)
        {
            tracing::warn!(node = name, host_id = %from.host_id, store = %self.own.store,
                "a node was refused that is not in the cluster document of this store: it has a copy of the store open, or was expelled");
        }
        Err(not_member(format!(
            "node {name:?} is not in the cluster document that node {:?} has of store {}: it has a copy of that store open, or was expelled, or \
             has just come",
            self.own.name, self.own.store
        )))
    }

    /// Returns the refusal of a caller without the secret, and logs it. The text reveals nothing about the cluster.
    pub fn stranger(&self, name: &str) -> Refusal {
        // All such refusals share one id, so that they cause one line a minute, whatever ids the callers invent.
        if self.refusals.should_log(Uuid::nil(), "secret", Duration::ZERO) {
            tracing::warn!(
                node = name,
                "a call to the port for other nodes was refused: its sender has another cluster_secret, or none"
            );
        }
        Refusal::new(Reason::Stranger, "this port is for the nodes of a cluster")
    }
}

fn not_member(text: String) -> Refusal {
    Refusal::new(Reason::NotMember, text)
}

/// The proof of this node's identity to one other node.
pub(super) struct PeerCredentials {
    pub secret: Secret,
    own: LocalIdentity,
    /// This node when the credentials were made. `None` if it had not begun to join.
    from: Option<Member>,
    to: Member,
}

impl PeerCredentials {
    pub fn new(secret: Secret, own: LocalIdentity, to: &NodeInfo) -> PeerCredentials {
        PeerCredentials {
            secret,
            from: own.member(),
            own,
            to: to.member(),
        }
    }

    /// Returns true if the credentials are for this node in this incarnation, and this node is still in the incarnation that they are of.
    pub fn is_for(&self, node: &NodeInfo) -> bool {
        self.to == node.member() && self.from == self.own.member()
    }

    /// Returns the claim. `None` if this node has not begun to join.
    pub fn claim(&self) -> Option<PeerClaim> {
        Some(PeerClaim {
            store: self.own.store,
            from: self.from?,
            to: self.to,
            name: self.own.name.clone(),
        })
    }
}

#[cfg(test)]
#[path = "peer_auth_tests.rs"]
pub(super) mod tests;
