//! Decides when tablets are split and merged.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::document::{ClusterDocument, TabletRecord};
use crate::environment::TabletLoad;
use crate::ids::{HostId, TabletId};

/// The sizes and numbers between which tablets are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReshapeLimits {
    /// Bytes, and operations per second, above which a tablet is split.
    pub split_bytes: u64,
    pub split_ops_per_s: u64,
    /// Bytes, and operations per second, below which two neighbours together are merged.
    pub merge_bytes: u64,
    pub merge_ops_per_s: u64,
    /// Time for which neighbours must have been so small, and no node have joined or left, before they are merged.
    pub merge_after: Duration,
    /// Number of tablets per node below which tablets are split, until each node can have its share. Tablets are not merged below the
    /// number that one more node would need.
    pub tablets_per_node_min: u32,
    /// Number of tablets per node above which no tablet is split.
    pub tablets_per_node_max: u32,
}

/// Default time before a merge. It is longer than nodes are away for upgrades, or until machines are replaced.
pub const MERGE_AFTER_DEFAULT: Duration = Duration::from_secs(600);
/// Divisor of the limits for splits. A merged tablet stays below the quotient, whatever the limits for merges are.
const MERGE_PART: u64 = 4;

impl Default for ReshapeLimits {
    fn default() -> Self {
        ReshapeLimits {
            split_bytes: 32 << 30,
            split_ops_per_s: 50_000,
            merge_bytes: 4 << 30,
            merge_ops_per_s: 5_000,
            merge_after: MERGE_AFTER_DEFAULT,
            tablets_per_node_min: 4,
            tablets_per_node_max: 64,
        }
    }
}

impl ReshapeLimits {
    /// Returns true if the merge of two tablets would be far from being split again. `None` if their loads are not known.
    pub(crate) fn are_small(
        &self,
        (left, right): (TabletId, TabletId),
        loads: &BTreeMap<TabletId, TabletLoad>,
    ) -> Option<bool> {
        let (left, right) = (loads.get(&left)?, loads.get(&right)?);
        let bytes = left.bytes.saturating_add(right.bytes);
        let ops_per_s = left.ops_per_s.saturating_add(right.ops_per_s);
        let bytes_max = self.merge_bytes.min(self.split_bytes / MERGE_PART);
        let ops_max = self.merge_ops_per_s.min(self.split_ops_per_s / MERGE_PART);
        Some(bytes < bytes_max && ops_per_s < ops_max)
    }

    /// Returns the number of tablets above which some may be merged. A cluster is never merged to fewer tablets than it began with.
    fn merged_count_min(&self, node_count: u64, initial_tablets: usize) -> u64 {
        ((node_count + 1) * u64::from(self.tablets_per_node_min)).max(initial_tablets as u64)
    }
}

/// The next step towards the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReshapeStep {
    Split {
        tablet: TabletId,
        at: i64,
    },
    /// Merge a tablet with the next one in token order.
    Merge {
        left: TabletId,
    },
    /// Move a tablet to its neighbour's owner, to be merged there.
    Colocate {
        tablet: TabletId,
        to: HostId,
    },
}

/// Returns true if a split, a merge or a move is in progress, or a tablet has no owner.
pub(crate) fn is_busy(document: &ClusterDocument) -> bool {
    let at_rest = |tablet: &TabletRecord| tablet.owner.is_some() && tablet.moving_to.is_none();
    !document.reshapes.is_empty() || !document.tablets.iter().all(at_rest)
}

/// The inputs for the choice of the next step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReshapeInput<'a> {
    pub document: &'a ClusterDocument,
    pub loads: &'a BTreeMap<TabletId, TabletLoad>,
    /// Tablets that, together with the next one, have been small for long in a stable cluster.
    pub mergeable: &'a BTreeSet<TabletId>,
    pub limits: &'a ReshapeLimits,
    /// Number of tablets with which the cluster began.
    pub initial_tablets: usize,
}

impl ReshapeInput<'_> {
    /// Returns the most urgent step. `None` if there is none, or if something is in progress.
    pub fn next(&self) -> Option<ReshapeStep> {
        if is_busy(self.document) {
            return None;
        }
        self.next_split().or_else(|| self.next_merge())
    }

    fn load(&self, tablet: &TabletRecord) -> TabletLoad {
        self.loads.get(&tablet.id).copied().unwrap_or_default()
    }

    fn next_split(&self) -> Option<ReshapeStep> {
        let limits = self.limits;
        let tablets = &self.document.tablets;
        let node_count = self.document.nodes.len() as u64;
        let tablet_count = tablets.len() as u64;
        if tablet_count < node_count * u64::from(limits.tablets_per_node_min) {
            let widest = tablets
                .iter()
                .max_by_key(|tablet| (tablet.tokens.width(), self.load(tablet).bytes));
            return widest.and_then(split);
        }
        if tablet_count >= node_count * u64::from(limits.tablets_per_node_max) {
            return None;
        }
        let too_big = tablets
            .iter()
            .filter(|tablet| is_too_big(self.load(tablet), limits));
        too_big
            .max_by_key(|tablet| {
                let load = self.load(tablet);
                (load.ops_per_s > limits.split_ops_per_s, load.bytes)
            })
            .and_then(split)
    }

    /// Returns the merge of the smallest neighbours that may be merged and are small by their current loads. `None` if there are none.
    fn next_merge(&self) -> Option<ReshapeStep> {
        if !self.may_merge() {
            return None;
        }
        let bytes = |tablet: &TabletRecord| self.load(tablet).bytes;
        let are_small = |left, right| self.limits.are_small((left, right), self.loads) == Some(true);
        let pairs = self
            .document
            .tablets
            .windows(2)
            .filter(|pair| self.mergeable.contains(&pair[0].id) && are_small(pair[0].id, pair[1].id));
        pairs
            // Neighbours with one owner come first, since they need no move.
            .min_by_key(|pair| (pair[0].owner != pair[1].owner, bytes(&pair[0]) + bytes(&pair[1])))
            .and_then(|pair| merge(&pair[0], &pair[1]))
    }

    /// Returns true if some neighbours are to be merged, now or when their loads are known again. Tablets are not balanced then, because
    /// that would separate the neighbours.
    pub fn may_merge(&self) -> bool {
        let node_count = self.document.nodes.len() as u64;
        let count_min = self.limits.merged_count_min(node_count, self.initial_tablets);
        !self.mergeable.is_empty() && self.document.tablets.len() as u64 > count_min
    }
}

fn is_too_big(load: TabletLoad, limits: &ReshapeLimits) -> bool {
    load.bytes > limits.split_bytes || load.ops_per_s > limits.split_ops_per_s
}

/// Returns the split of a tablet in the middle of its range. Partitions' tokens are evenly distributed, so this halves the tablet, unless
/// one partition makes up all of it.
fn split(tablet: &TabletRecord) -> Option<ReshapeStep> {
    Some(ReshapeStep::Split {
        tablet: tablet.id,
        at: tablet.tokens.middle()?,
    })
}

fn merge(left: &TabletRecord, right: &TabletRecord) -> Option<ReshapeStep> {
    if left.owner == right.owner {
        return Some(ReshapeStep::Merge { left: left.id });
    }
    Some(ReshapeStep::Colocate {
        tablet: right.id,
        to: left.owner?,
    })
}

#[cfg(test)]
#[path = "reshape_policy_tests.rs"]
mod tests;
