//! For how long the cluster has been calm: merges wait for that, since what they do is undone by the next split.
//!
//! A pair of neighbours is merged only after no node has come, gone, wavered or left for a while, and both have been small together for as
//! long. Only the node that tends the cluster keeps count, and only in memory: one that takes over begins anew.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::document::ClusterDocument;
use crate::effects::TabletLoad;
use crate::ids::{HostId, Member, TabletId};
use crate::policy::ReshapeLimits;
use crate::view::NodeState;

/// Neighbours, in token order.
type Pair = (TabletId, TabletId);

#[derive(Debug, Default)]
pub(crate) struct Calm {
    members: BTreeSet<Member>,
    /// Since when the members have been the same, with none that leaves or is silent.
    unchanged_since: Option<Duration>,
    small_since: BTreeMap<Pair, Duration>,
}

impl Calm {
    /// Takes in how things are now.
    pub fn observe(
        &mut self,
        now: Duration,
        document: &ClusterDocument,
        suspected: &BTreeSet<HostId>,
        loads: &BTreeMap<TabletId, TabletLoad>,
        limits: &ReshapeLimits,
    ) {
        let members: BTreeSet<_> = document.nodes.iter().map(|node| node.member()).collect();
        let wavers =
            !suspected.is_empty() || document.nodes.iter().any(|node| node.state != NodeState::Normal);
        if wavers || members != self.members {
            self.unchanged_since = None;
        }
        if !wavers {
            self.unchanged_since.get_or_insert(now);
        }
        self.members = members;
        let before = std::mem::take(&mut self.small_since);
        for pair in document.tablets.windows(2) {
            let pair = (pair[0].id, pair[1].id);
            let since = before.get(&pair).copied();
            let since = match limits.are_small(pair, loads) {
                Some(true) => since.or(Some(now)),
                Some(false) => None,
                // One that has just moved is not told of for a moment.
                None => since,
            };
            self.small_since.extend(since.map(|since| (pair, since)));
        }
    }

    /// Takes in what is split and merged: should that fail, it is not tried again at once.
    pub fn learn(&mut self, document: &ClusterDocument) {
        let is_touched = |id: TabletId| document.reshape_of(id).is_some();
        self.small_since
            .retain(|(left, right), _| !is_touched(*left) && !is_touched(*right));
    }

    /// Whether these neighbours have been small for long, in a cluster that was calm for as long.
    pub fn allows_merge(&self, now: Duration, pair: Pair, limits: &ReshapeLimits) -> bool {
        let is_long = |since: &Duration| now.saturating_sub(*since) >= limits.merge_after;
        self.unchanged_since.as_ref().is_some_and(is_long) && self.small_since.get(&pair).is_some_and(is_long)
    }

    /// The pairs of which that is true, by the first of each.
    pub fn mergeable(&self, now: Duration, limits: &ReshapeLimits) -> BTreeSet<TabletId> {
        let pairs = self.small_since.keys();
        pairs
            .filter(|pair| self.allows_merge(now, **pair, limits))
            .map(|(left, _)| *left)
            .collect()
    }
}

#[cfg(test)]
#[path = "calm_tests.rs"]
mod tests;
