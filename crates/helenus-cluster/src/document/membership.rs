//! Transitions by which nodes join and leave.

use super::{ClusterDocument, LostRecord, NodeRecord};
use crate::error::ClusterError;
use crate::ids::{HostId, Member};
use crate::view::NodeState;

impl ClusterDocument {
    /// Adds a node, which replaces a lost one with the same id or address. If another incarnation of the node is in the document, the new
    /// one replaces it and keeps its tablets. The caller must know then that the lease of the old one has ended.
    pub fn join(&mut self, node: NodeRecord) {
        let host_id = node.host_id;
        let replaces = |lost: &LostRecord| {
            lost.host_id == host_id || lost.description.rpc_address == node.description.rpc_address
        };
        self.lost.retain(|lost| !replaces(lost));
        if self.node(host_id).is_some() {
            self.undo_reshapes_of(host_id);
            for tablet in &mut self.tablets {
                if tablet.owner == Some(host_id) {
                    tablet.epoch += 1;
                }
            }
            self.nodes.retain(|other| other.host_id != host_id);
        }
        self.nodes.push(node);
    }

    /// Removes a node whose lease has ended. Its tablets have no owner until they are assigned.
    pub fn expel(&mut self, member: Member) -> Result<(), ClusterError> {
        self.check_member(member)?;
        self.undo_reshapes_of(member.host_id);
        for tablet in &mut self.tablets {
            if tablet.owner == Some(member.host_id) {
                tablet.give(None);
            }
        }
        self.remove(member.host_id);
        Ok(())
    }

    /// Removes a node as [`ClusterDocument::expel`] does, and records it as lost at that time, in milliseconds since 1970.
    pub fn lose(&mut self, member: Member, now_ms: i64) -> Result<(), ClusterError> {
        let lost = self.node(member.host_id).map(|node| LostRecord {
            host_id: node.host_id,
            description: node.description.clone(),
            lost_at_ms: now_ms,
        });
        self.expel(member)?;
        self.lost.retain(|other| other.host_id != member.host_id);
        self.lost.extend(lost);
        Ok(())
    }

    /// Forgets a lost node.
    pub fn forget_lost(&mut self, host_id: HostId) -> Result<(), ClusterError> {
        if self.node(host_id).is_some() {
            return Err(ClusterError::Refused(format!(
                "node {host_id} is in the cluster: drain it, or stop it and wait until its lease has ended"
            )));
        }
        let before = self.lost.len();
        self.lost.retain(|lost| lost.host_id != host_id);
        match self.lost.len() < before {
            true => Ok(()),
            false => Err(ClusterError::UnknownNode(host_id)),
        }
    }

    /// Forgets the nodes that were lost before this time, in milliseconds since 1970.
    pub fn forget_lost_before(&mut self, time_ms: i64) {
        self.lost.retain(|lost| lost.lost_at_ms >= time_ms);
    }

    /// Marks a node as leaving: it takes no more tablets. Moves to it are cancelled.
    pub fn begin_leaving(&mut self, member: Member) -> Result<(), ClusterError> {
        self.check_member(member)?;
        for node in &mut self.nodes {
            if node.host_id == member.host_id {
                node.state = NodeState::Leaving;
            }
        }
        self.call_off_moves_to(member.host_id);
        Ok(())
    }

    /// Removes a node that has handed over all of its tablets.
    pub fn leave(&mut self, member: Member) -> Result<(), ClusterError> {
        self.check_member(member)?;
        if let Some(tablet) = self.tablets_of(member.host_id).next() {
            return Err(ClusterError::Refused(format!(
                "node {} still owns tablet {}",
                member.host_id, tablet.id
            )));
        }
        self.remove(member.host_id);
        Ok(())
    }

    fn check_member(&self, member: Member) -> Result<(), ClusterError> {
        match self.has(member) {
            true => Ok(()),
            false => Err(ClusterError::UnknownNode(member.host_id)),
        }
    }

    fn remove(&mut self, host_id: HostId) {
        self.call_off_moves_to(host_id);
        self.nodes.retain(|node| node.host_id != host_id);
    }

    fn call_off_moves_to(&mut self, host_id: HostId) {
        for tablet in &mut self.tablets {
            tablet.moving_to.take_if(|to| *to == host_id);
        }
    }
}
