//! Measures how long the cluster has been stable. Merges wait for that, because otherwise the next split could undo them.
//!
//! A pair of neighbours is merged only after no node has joined, left, been expelled or been suspected for a while, and both tablets have
//! been small for as long. Only the leading node measures this, and only in memory: a new leader begins again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::document::ClusterDocument;
use crate::environment::TabletLoad;
use crate::ids::{HostId, Member, TabletId};
use crate::reshape_policy::ReshapeLimits;
use crate::view::NodeState;

/// Two neighbours, in token order.
type Pair = (TabletId, TabletId);

#[derive(Debug, Default)]
pub(crate) struct StabilityTracker {
    members: BTreeSet<Member>,
    /// Time since which the members have been the same, with none leaving or suspected. `None` while that is not so.
    unchanged_since: Option<Duration>,
    small_since: BTreeMap<Pair, Duration>,
}

impl StabilityTracker {
    /// Records the current state of the cluster.
    pub fn observe(
        &mut self,
        now: Duration,
        document: &ClusterDocument,
        suspected: &BTreeSet<HostId>,
        loads: &BTreeMap<TabletId, TabletLoad>,
        limits: &ReshapeLimits,
    ) {
        let members: BTreeSet<_> = document.nodes.iter().map(|node| node.member()).collect();
        let is_unstable =
            !suspected.is_empty() || document.nodes.iter().any(|node| node.state != NodeState::Normal);
        if is_unstable || members != self.members {
            self.unchanged_since = None;
        }
        if !is_unstable {
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
                // The loads of a tablet that has just moved are unknown for a moment.
                None => since,
            };
            self.small_since.extend(since.map(|since| (pair, since)));
        }
    }

    /// Resets the times of tablets that are being split or merged. If that fails, it is not tried again at once.
    pub fn reset_reshaped(&mut self, document: &ClusterDocument) {
        let is_touched = |id: TabletId| document.reshape_of(id).is_some();
        self.small_since
            .retain(|(left, right), _| !is_touched(*left) && !is_touched(*right));
    }

    /// Returns true if these neighbours have been small for long, in a cluster that was stable for as long.
    pub fn allows_merge(&self, now: Duration, pair: Pair, limits: &ReshapeLimits) -> bool {
        let is_long = |since: &Duration| now.saturating_sub(*since) >= limits.merge_after;
        self.unchanged_since.as_ref().is_some_and(is_long) && self.small_since.get(&pair).is_some_and(is_long)
    }

    /// Returns the pairs that may be merged, by the first tablet of each.
    pub fn mergeable(&self, now: Duration, limits: &ReshapeLimits) -> BTreeSet<TabletId> {
        let pairs = self.small_since.keys();
        pairs
            .filter(|pair| self.allows_merge(now, **pair, limits))
            .map(|(left, _)| *left)
            .collect()
    }
}

#[cfg(test)]
#[path = "stability_tests.rs"]
mod tests;
