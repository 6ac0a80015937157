//! When tablets are split and merged.

use std::collections::BTreeMap;

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
    /// With fewer, tablets are split until each node can have its share; they are not merged below it.
    pub tablets_per_node_min: u32,
    /// With more, nothing is split.
    pub tablets_per_node_max: u32,
}

impl Default for ReshapeLimits {
    fn default() -> Self {
        ReshapeLimits {
            split_bytes: 32 << 30,
            split_ops_per_s: 50_000,
            merge_bytes: 4 << 30,
            merge_ops_per_s: 5_000,
            tablets_per_node_min: 4,
            tablets_per_node_max: 64,
        }
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

/// The most urgent step, if there is one and nothing is under way. A cluster is never merged to fewer tablets than it began with.
pub(crate) fn next_reshape(
    document: &ClusterDocument,
    loads: &BTreeMap<TabletId, TabletLoad>,
    limits: &ReshapeLimits,
    initial_tablets: usize,
) -> Option<Wish> {
    let at_rest = |tablet: &TabletRecord| tablet.owner.is_some() && tablet.moving_to.is_none();
    if !document.reshapes.is_empty() || !document.tablets.iter().all(at_rest) {
        return None;
    }
    let load = |tablet: &TabletRecord| loads.get(&tablet.id).copied().unwrap_or_default();
    let node_count = document.nodes.len() as u64;
    let tablet_count = document.tablets.len() as u64;
    let floor = (node_count * u64::from(limits.tablets_per_node_min)).max(initial_tablets as u64);
    if tablet_count < node_count * u64::from(limits.tablets_per_node_min) {
        let widest = document
            .tablets
            .iter()
            .max_by_key(|tablet| (tablet.tokens.width(), load(tablet).bytes));
        return widest.and_then(split);
    }
    if tablet_count < node_count * u64::from(limits.tablets_per_node_max)
        && let Some(tablet) = document
            .tablets
            .iter()
            .filter(|tablet| is_too_big(load(tablet), limits))
            .max_by_key(|tablet| {
                (
                    load(tablet).ops_per_s > limits.split_ops_per_s,
                    load(tablet).bytes,
                )
            })
    {
        return split(tablet);
    }
    if tablet_count <= floor {
        return None;
    }
    // What nobody has reported yet is not known to be small.
    let known = |tablet: &TabletRecord| loads.get(&tablet.id).copied();
    document
        .tablets
        .windows(2)
        .filter_map(|pair| {
            let (left, right) = (known(&pair[0])?, known(&pair[1])?);
            let both = TabletLoad {
                bytes: left.bytes.saturating_add(right.bytes),
                ops_per_s: left.ops_per_s.saturating_add(right.ops_per_s),
            };
            let small = both.bytes < limits.merge_bytes && both.ops_per_s < limits.merge_ops_per_s;
            (small && !is_too_big(both, limits)).then_some((both.bytes, &pair[0], &pair[1]))
        })
        // Those of one owner first, since they need no move.
        .min_by_key(|(bytes, left, right)| (left.owner != right.owner, *bytes))
        .and_then(|(_, left, right)| merge(left, right))
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
