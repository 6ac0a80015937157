//! Transitions by which tablets change owners.
//!
//! A planned hand-over has four steps: `begin_move` (by any node), the owner closes the tablet, `finish_move` (by the owner), and the new
//! owner opens it. A tablet is taken from its owner only by the owner itself, or by a node that has ended the owner's lease. So no two
//! nodes serve one tablet at a time.

use super::{ClusterDocument, TabletRecord};
use crate::error::ClusterError;
use crate::ids::{Epoch, HostId, TabletId};

impl TabletRecord {
    pub(super) fn give(&mut self, owner: Option<HostId>) {
        self.owner = owner;
        self.epoch += 1;
        self.moving_to = None;
    }
}

impl ClusterDocument {
    /// Assigns a tablet without an owner to a node.
    pub fn assign(&mut self, id: TabletId, owner: HostId) -> Result<(), ClusterError> {
        self.check_accepts(owner)?;
        let tablet = self.tablet_mut(id)?;
        if let Some(current) = tablet.owner {
            return Err(ClusterError::Refused(format!(
                "tablet {id} belongs to node {current}"
            )));
        }
        tablet.give(Some(owner));
        Ok(())
    }

    /// Plans that the tablet's owner hands it to `to`. A move in progress gets the new target.
    pub fn begin_move(&mut self, id: TabletId, to: HostId) -> Result<(), ClusterError> {
        self.check_accepts(to)?;
        if self.reshape_of(id).is_some() {
            return Err(ClusterError::Refused(format!(
                "tablet {id} is being split or merged"
            )));
        }
        let tablet = self.tablet_mut(id)?;
        match tablet.owner {
            None => Err(ClusterError::Refused(format!("tablet {id} has no owner yet"))),
            Some(owner) if owner == to => Err(ClusterError::Refused(format!(
                "tablet {id} belongs to node {to} already"
            ))),
            Some(_) => {
                tablet.moving_to = Some(to);
                Ok(())
            }
        }
    }

    /// Finishes a move after the owner has closed the tablet at this epoch: the target becomes the owner.
    pub fn finish_move(&mut self, id: TabletId, epoch: Epoch) -> Result<(), ClusterError> {
        let tablet = self.tablet_mut(id)?;
        match tablet.moving_to {
            Some(to) if tablet.epoch == epoch => {
                tablet.give(Some(to));
                Ok(())
            }
            _ => Err(ClusterError::Refused(format!(
                "tablet {id} does not move at epoch {epoch}"
            ))),
        }
    }

    /// Leaves a tablet without an owner, after its owner has closed it at this epoch. For an owner that leaves and has no other node to
    /// hand over to.
    pub fn unassign(&mut self, id: TabletId, epoch: Epoch) -> Result<(), ClusterError> {
        if self.reshape_of(id).is_some() {
            return Err(ClusterError::Refused(format!(
                "tablet {id} is being split or merged"
            )));
        }
        let tablet = self.tablet_mut(id)?;
        if tablet.epoch != epoch {
            return Err(ClusterError::Refused(format!(
                "tablet {id} is not at epoch {epoch}"
            )));
        }
        tablet.give(None);
        Ok(())
    }

    fn check_accepts(&self, host_id: HostId) -> Result<(), ClusterError> {
        match self.node(host_id) {
            None => Err(ClusterError::UnknownNode(host_id)),
            Some(_) if !self.accepts(host_id) => {
                Err(ClusterError::Refused(format!("node {host_id} is leaving")))
            }
            Some(_) => Ok(()),
        }
    }
}
