//! When tablets are split and merged.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::document::{ClusterDocument, TabletRecord};
use crate::effects::TabletLoad;
use crate::ids::{HostId, TabletId};

/// The sizes between which tablets are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReshapeLimits {
    /// A tablet with more is split.
    pub split_bytes: u64,
    pub split_ops_per_s: u64,
    /// Neighbours that have less together are merged.
    pub merge_bytes: u64,
    pub merge_ops_per_s: u64,
    /// They are merged after they have been so small, and no node has come or gone, for so long.
    pub merge_after: Duration,
    /// With fewer, tablets are split until each node can have its share; they are not merged below what one more node would need.
    pub tablets_per_node_min: u32,
    /// With more, nothing is split.
    pub tablets_per_node_max: u32,
}

/// Longer than nodes are away to be upgraded, or machines to be replaced.
pub const MERGE_AFTER_DEFAULT: Duration = Duration::from_secs(600);
/// What a merge makes is at most this part of what would be split, whatever the limits are.
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
    /// Whether what a merge of these would make is far from being split again; `None` if their loads are not known.
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

    /// With more tablets some may be merged. A cluster is never merged to fewer than it began with.
    fn merged_count_min(&self, node_count: u64, initial_tablets: usize) -> u64 {
        ((node_count + 1) * u64::from(self.tablets_per_node_min)).max(initial_tablets as u64)
    }
}

/// The next step towards the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    Split {
        tablet: TabletId,
        at: i64,
    },
    /// With the next one in token order.
    Merge {
        left: TabletId,
    },
    /// Bring a tablet to its neighbour's owner, to be merged there.
    Gather {
        tablet: TabletId,
        to: HostId,
    },
}

/// Whether a split, a merge or a move is under way, or a tablet without an owner.
fn is_busy(document: &ClusterDocument) -> bool {
    let at_rest = |tablet: &TabletRecord| tablet.owner.is_some() && tablet.moving_to.is_none();
    !document.reshapes.is_empty() || !document.tablets.iter().all(at_rest)
}

/// The most urgent step, if there is one and nothing is under way.
pub(crate) fn next_reshape(
    document: &ClusterDocument,
    loads: &BTreeMap<TabletId, TabletLoad>,
    mergeable: &BTreeSet<TabletId>,
    limits: &ReshapeLimits,
    initial_tablets: usize,
) -> Option<Wish> {
    if is_busy(document) {
        return None;
    }
    next_split(document, loads, limits)
        .or_else(|| next_merge(document, loads, mergeable, limits, initial_tablets))
}

fn next_split(
    document: &ClusterDocument,
    loads: &BTreeMap<TabletId, TabletLoad>,
    limits: &ReshapeLimits,
) -> Option<Wish> {
    let load = |tablet: &TabletRecord| loads.get(&tablet.id).copied().unwrap_or_default();
    let node_count = document.nodes.len() as u64;
    let tablet_count = document.tablets.len() as u64;
    if tablet_count < node_count * u64::from(limits.tablets_per_node_min) {
        let widest = document
            .tablets
            .iter()
            .max_by_key(|tablet| (tablet.tokens.width(), load(tablet).bytes));
        return widest.and_then(split);
    }
    if tablet_count >= node_count * u64::from(limits.tablets_per_node_max) {
        return None;
    }
    let too_big = document
        .tablets
        .iter()
        .filter(|tablet| is_too_big(load(tablet), limits));
    too_big
        .max_by_key(|tablet| {
            (
                load(tablet).ops_per_s > limits.split_ops_per_s,
                load(tablet).bytes,
            )
        })
        .and_then(split)
}

/// The neighbours that may be merged and are small by what is known just now.
fn next_merge(
    document: &ClusterDocument,
    loads: &BTreeMap<TabletId, TabletLoad>,
    mergeable: &BTreeSet<TabletId>,
    limits: &ReshapeLimits,
    initial_tablets: usize,
) -> Option<Wish> {
    if !may_merge(document, mergeable, limits, initial_tablets) {
        return None;
    }
    let bytes = |tablet: &TabletRecord| loads.get(&tablet.id).map_or(0, |load| load.bytes);
    let pairs = document.tablets.windows(2).filter(|pair| {
        mergeable.contains(&pair[0].id) && limits.are_small((pair[0].id, pair[1].id), loads) == Some(true)
    });
    pairs
        // Those of one owner first, since they need no move.
        .min_by_key(|pair| (pair[0].owner != pair[1].owner, bytes(&pair[0]) + bytes(&pair[1])))
        .and_then(|pair| merge(&pair[0], &pair[1]))
}

/// Whether some neighbours are to be merged, now or when their loads are known again. Nothing is balanced then: it would part them.
pub(crate) fn may_merge(
    document: &ClusterDocument,
    mergeable: &BTreeSet<TabletId>,
    limits: &ReshapeLimits,
    initial_tablets: usize,
) -> bool {
    let count_min = limits.merged_count_min(document.nodes.len() as u64, initial_tablets);
    !mergeable.is_empty() && document.tablets.len() as u64 > count_min
}

fn is_too_big(load: TabletLoad, limits: &ReshapeLimits) -> bool {
    load.bytes > limits.split_bytes || load.ops_per_s > limits.split_ops_per_s
}

/// Partitions' tokens are spread evenly, so the middle of the range halves a tablet, unless one partition makes all of it.
fn split(tablet: &TabletRecord) -> Option<Wish> {
    Some(Wish::Split {
        tablet: tablet.id,
        at: tablet.tokens.middle()?,
    })
}

fn merge(left: &TabletRecord, right: &TabletRecord) -> Option<Wish> {
    if left.owner == right.owner {
        return Some(Wish::Merge { left: left.id });
    }
    Some(Wish::Gather {
        tablet: right.id,
        to: left.owner?,
    })
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
