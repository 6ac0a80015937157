//! Transitions by which tablets are split and merged.
//!
//! `begin_*` assigns numbers to the children. The parents' owner stops serving the parents and creates the children, and `finish_reshape`
//! replaces the parents by them. If an owner fails or is expelled before that, the parents are still whole. `undo_reshape` then retires the
//! children's numbers, so that unfinished children of one attempt are never mistaken for those of another.

use helenus_row::TokenRange;

use super::{ChildRecord, ClusterDocument, Reshape, TabletRecord};
use crate::error::ClusterError;
use crate::ids::{HostId, TabletId};

impl ClusterDocument {
    /// Plans to split a tablet before token `at`.
    pub fn begin_split(&mut self, id: TabletId, at: i64) -> Result<(), ClusterError> {
        self.check_at_rest(id)?;
        let tablet = self.tablet(id)?;
        let Some(halves) = tablet.tokens.split_at(at) else {
            return Err(ClusterError::Refused(format!(
                "tablet {id} of range {} can't be cut before token {at}",
                tablet.tokens
            )));
        };
        let children = halves.map(|tokens| self.new_child(tokens)).to_vec();
        self.reshapes.push(Reshape {
            parents: vec![id],
            children,
        });
        Ok(())
    }

    /// Plans to merge `left` and the next tablet in token order.
    pub fn begin_merge(&mut self, left: TabletId) -> Result<(), ClusterError> {
        self.check_at_rest(left)?;
        let index = self.tablets.iter().position(|tablet| tablet.id == left);
        let next = index.and_then(|index| self.tablets.get(index + 1));
        let Some((right, last, owner)) = next.map(|tablet| (tablet.id, tablet.tokens.last, tablet.owner))
        else {
            return Err(ClusterError::Refused(format!(
                "tablet {left} is the last of the ring"
            )));
        };
        self.check_at_rest(right)?;
        let tablet = self.tablet(left)?;
        if tablet.owner != owner {
            return Err(ClusterError::Refused(format!(
                "tablets {left} and {right} have different owners"
            )));
        }
        let first = tablet.tokens.first;
        let child = self.new_child(TokenRange { first, last });
        self.reshapes.push(Reshape {
            parents: vec![left, right],
            children: vec![child],
        });
        Ok(())
    }

    /// Replaces the parents by the children, with the same owner. The children exist and the parents are closed.
    pub fn finish_reshape(&mut self, parent: TabletId) -> Result<(), ClusterError> {
        let reshape = self.take_reshape(parent)?;
        let mut owner = None;
        let mut epoch = 0;
        for tablet in &self.tablets {
            if reshape.parents.contains(&tablet.id) {
                owner = tablet.owner;
                epoch = epoch.max(tablet.epoch);
            }
        }
        self.tablets
            .retain(|tablet| !reshape.parents.contains(&tablet.id));
        self.tablets
            .extend(reshape.children.iter().map(|child| TabletRecord {
                id: child.id,
                tokens: child.tokens,
                owner,
                epoch: epoch + 1,
                moving_to: None,
            }));
        self.tablets.sort_by_key(|tablet| tablet.tokens);
        self.retired.extend(reshape.parents);
        Ok(())
    }

    /// Gives up a split or merge. The parents stay.
    pub fn undo_reshape(&mut self, parent: TabletId) -> Result<(), ClusterError> {
        let reshape = self.take_reshape(parent)?;
        self.retired.extend(reshape.children.iter().map(|child| child.id));
        Ok(())
    }

    pub(super) fn undo_reshapes_of(&mut self, host_id: HostId) {
        let parents: Vec<_> = self.tablets_of(host_id).map(|tablet| tablet.id).collect();
        for parent in parents {
            // Most tablets are not being reshaped.
            let _ = self.undo_reshape(parent);
        }
    }

    /// Forgets a retired tablet, whose data is deleted for good.
    pub fn forget_retired(&mut self, id: TabletId) {
        self.retired.retain(|retired| *retired != id);
    }

    fn take_reshape(&mut self, parent: TabletId) -> Result<Reshape, ClusterError> {
        let index = self
            .reshapes
            .iter()
            .position(|reshape| reshape.parents.contains(&parent));
        match index {
            Some(index) => Ok(self.reshapes.remove(index)),
            None => Err(ClusterError::Refused(format!(
                "tablet {parent} is not being split or merged"
            ))),
        }
    }

    fn new_child(&mut self, tokens: TokenRange) -> ChildRecord {
        let id = TabletId(self.next_tablet);
        self.next_tablet += 1;
        ChildRecord { id, tokens }
    }

    fn check_at_rest(&self, id: TabletId) -> Result<(), ClusterError> {
        let tablet = self.tablet(id)?;
        if tablet.owner.is_none() {
            return Err(ClusterError::Refused(format!("tablet {id} has no owner yet")));
        }
        if tablet.moving_to.is_some() || self.reshape_of(id).is_some() {
            return Err(ClusterError::Refused(format!(
                "tablet {id} is being moved, split or merged"
            )));
        }
        Ok(())
    }
}
