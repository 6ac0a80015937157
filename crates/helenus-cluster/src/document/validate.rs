//! The invariants of a cluster document.

use std::collections::BTreeSet;

use helenus_row::TokenRange;

use super::{ClusterDocument, Reshape};
use crate::error::ClusterError;
use crate::ids::TabletId;

impl ClusterDocument {
    /// Checks the invariants that deserialization does not.
    pub fn validate(&self) -> Result<(), ClusterError> {
        self.check_nodes()
            .and_then(|()| self.check_ring())
            .and_then(|()| self.check_owners())
            .and_then(|()| self.check_numbers())
            .and_then(|()| {
                self.reshapes
                    .iter()
                    .try_for_each(|reshape| self.check_reshape(reshape))
            })
            .map_err(|detail| ClusterError::Corrupt {
                document: "cluster",
                detail,
            })
    }

    fn check_nodes(&self) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        match self.nodes.iter().find(|node| !seen.insert(node.host_id)) {
            Some(node) => Err(format!("node {} is there twice", node.host_id)),
            None => Ok(()),
        }
    }

    fn check_ring(&self) -> Result<(), String> {
        let ranges: Vec<_> = self.tablets.iter().map(|tablet| tablet.tokens).collect();
        check_cover(&ranges, TokenRange::RING)
            .map_err(|detail| format!("the tablets do not cover the ring: {detail}"))
    }

    fn check_owners(&self) -> Result<(), String> {
        for tablet in &self.tablets {
            for host_id in tablet.owner.iter().chain(&tablet.moving_to) {
                if self.node(*host_id).is_none() {
                    return Err(format!(
                        "tablet {} names node {host_id}, which is not there",
                        tablet.id
                    ));
                }
            }
            if tablet.moving_to.is_some() && (tablet.owner.is_none() || tablet.owner == tablet.moving_to) {
                return Err(format!(
                    "tablet {} has a move without an owner, or to its own owner",
                    tablet.id
                ));
            }
        }
        Ok(())
    }

    /// Checks that every tablet, child and retired tablet has a unique number that was assigned before.
    fn check_numbers(&self) -> Result<(), String> {
        let children = self.reshapes.iter().flat_map(|reshape| &reshape.children);
        let all = self
            .tablets
            .iter()
            .map(|tablet| tablet.id)
            .chain(children.map(|child| child.id))
            .chain(self.retired.iter().copied());
        let mut seen = BTreeSet::new();
        for id in all {
            if id == TabletId(0) || id.0 >= self.next_tablet {
                return Err(format!("tablet {id} has a number that was never given out"));
            }
            if !seen.insert(id) {
                return Err(format!("tablet {id} is there twice"));
            }
        }
        Ok(())
    }

    fn check_reshape(&self, reshape: &Reshape) -> Result<(), String> {
        let first = reshape.parents.first().ok_or("a split or merge of nothing")?;
        if !matches!((reshape.parents.len(), reshape.children.len()), (1, 2) | (2.., 1)) {
            return Err(format!(
                "tablet {first} is neither split in two nor merged into one"
            ));
        }
        let mut parents = Vec::new();
        for id in &reshape.parents {
            parents.push(self.tablet(*id).map_err(|error| error.to_string())?);
        }
        if parents[0].owner.is_none() || parents.iter().any(|parent| parent.owner != parents[0].owner) {
            return Err(format!(
                "tablet {first} is reshaped and has no owner, or not one only"
            ));
        }
        if parents.iter().any(|parent| parent.moving_to.is_some()) {
            return Err(format!("tablet {first} moves while it is reshaped"));
        }
        let used = |id| {
            self.reshapes
                .iter()
                .filter(|other| other.parents.contains(id))
                .count()
        };
        if reshape.parents.iter().any(|id| used(id) != 1) {
            return Err(format!("tablet {first} is reshaped twice"));
        }
        let whole = TokenRange {
            first: parents[0].tokens.first,
            last: parents[parents.len() - 1].tokens.last,
        };
        let before: Vec<_> = parents.iter().map(|parent| parent.tokens).collect();
        let after: Vec<_> = reshape.children.iter().map(|child| child.tokens).collect();
        check_cover(&before, whole)
            .and_then(|()| check_cover(&after, whole))
            .map_err(|detail| format!("the reshape of tablet {first} changes the ring: {detail}"))
    }
}

/// Checks that `ranges`, in order, cover `whole` exactly.
fn check_cover(ranges: &[TokenRange], whole: TokenRange) -> Result<(), String> {
    let mut next = Some(whole.first);
    for range in ranges {
        if next != Some(range.first) || range.last < range.first {
            return Err(format!("{range} does not follow the range before it"));
        }
        next = range.last.checked_add(1);
    }
    match ranges.last() {
        Some(range) if range.last == whole.last => Ok(()),
        _ => Err(format!("it does not end at {}", whole.last)),
    }
}
