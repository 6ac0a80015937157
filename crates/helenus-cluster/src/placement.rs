//! Assigns tablets to nodes: a pure function, with few moves.
//!
//! Each tablet has a weight: the sum of its shares of the cluster's tablets, bytes and operations. Bytes and operations weigh less while
//! there are few. A tablet without an owner goes to the node with the least weight, the heaviest tablet first. A [`MovePolicy`] defines
//! which nodes may also be given tablets of other nodes, so that an event moves only the necessary tablets.

use std::collections::BTreeMap;

use crate::environment::TabletLoad;
use crate::ids::{HostId, TabletId};

/// A node that may be given tablets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlacementNode {
    pub host_id: HostId,
    pub rack: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlacementTablet {
    pub id: TabletId,
    /// The owner. The tablet needs a new one if this is `None`, or a node that may not be given tablets.
    pub owner: Option<HostId>,
    pub weight: u64,
    /// True if the tablet must stay with its owner, since it is being moved, split or merged.
    pub pinned: bool,
}

/// The tablets that may move besides those that need a new owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MovePolicy {
    /// No other tablets move.
    Settle,
    /// Tablets move from all other nodes to this newcomer, up to its share.
    Fill(HostId),
    /// Tablets move from nodes with more weight to nodes with less, until these differ by less than this part of the mean.
    Balance { tolerance_percent: u64 },
}

/// A tablet's next owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Assignment {
    pub tablet: TabletId,
    pub owner: HostId,
}

/// Returns the changes of owners that `intent` requires. Empty if there are no nodes.
pub(crate) fn place(
    nodes: &[PlacementNode],
    tablets: &[PlacementTablet],
    intent: MovePolicy,
) -> Vec<Assignment> {
    let mut plan = Plan::new(nodes, tablets);
    plan.settle();
    match intent {
        MovePolicy::Settle => {}
        MovePolicy::Fill(newcomer) => plan.fill(newcomer),
        MovePolicy::Balance { tolerance_percent } => plan.balance(tolerance_percent),
    }
    plan.changes()
}

/// Returns the weights of tablets. Each of the three figures contributes at most [`WEIGHT_SUM`] in total.
pub(crate) fn weights(
    tablets: &[TabletId],
    loads: &BTreeMap<TabletId, TabletLoad>,
) -> BTreeMap<TabletId, u64> {
    let load = |id: &TabletId| loads.get(id).copied().unwrap_or_default();
    let bytes_sum: u64 = tablets
        .iter()
        .map(|id| load(id).bytes)
        .fold(0, u64::saturating_add);
    let ops_sum: u64 = tablets
        .iter()
        .map(|id| load(id).ops_per_s)
        .fold(0, u64::saturating_add);
    let (bytes_sum, ops_sum) = (bytes_sum.max(NOTABLE_BYTES), ops_sum.max(NOTABLE_OPS_PER_S));
    let part = |figure: u64, sum: u64| u128::from(figure) * u128::from(WEIGHT_SUM) / u128::from(sum.max(1));
    tablets
        .iter()
        .map(|id| {
            let shares = part(1, tablets.len() as u64)
                + part(load(id).bytes, bytes_sum)
                + part(load(id).ops_per_s, ops_sum);
            (*id, shares as u64)
        })
        .collect()
}

const WEIGHT_SUM: u64 = 1 << 40;
/// Totals below which bytes and operations of the cluster weigh less. Otherwise a few random requests would move tablets.
const NOTABLE_BYTES: u64 = 16 << 30;
const NOTABLE_OPS_PER_S: u64 = 10_000;

struct Slot<'a> {
    node: &'a PlacementNode,
    weight: u64,
    tablet_count: usize,
}

struct Plan<'a> {
    slots: Vec<Slot<'a>>,
    tablets: &'a [PlacementTablet],
    /// The slot of each tablet, by its index in `tablets`.
    slot_of: Vec<Option<usize>>,
}

impl<'a> Plan<'a> {
    fn new(nodes: &'a [PlacementNode], tablets: &'a [PlacementTablet]) -> Self {
        let mut slots: Vec<_> = nodes
            .iter()
            .map(|node| Slot {
                node,
                weight: 0,
                tablet_count: 0,
            })
            .collect();
        let mut slot_of = Vec::new();
        for tablet in tablets {
            let slot = tablet
                .owner
                .and_then(|owner| slots.iter().position(|slot| slot.node.host_id == owner));
            if let Some(index) = slot {
                slots[index].weight += tablet.weight;
                slots[index].tablet_count += 1;
            }
            slot_of.push(slot);
        }
        Plan {
            slots,
            tablets,
            slot_of,
        }
    }

    fn settle(&mut self) {
        let mut homeless: Vec<_> = (0..self.tablets.len())
            .filter(|index| self.slot_of[*index].is_none() && !self.tablets[*index].pinned)
            .collect();
        homeless.sort_by_key(|index| {
            (
                std::cmp::Reverse(self.tablets[*index].weight),
                self.tablets[*index].id,
            )
        });
        for tablet in homeless {
            if let Some(slot) = self.lightest() {
                self.put(tablet, slot);
            }
        }
    }

    fn fill(&mut self, newcomer: HostId) {
        let Some(to) = self.slots.iter().position(|slot| slot.node.host_id == newcomer) else {
            return;
        };
        let mean = self.mean();
        while let Some(tablet) = self.best_for(to, mean) {
            self.put(tablet, to);
        }
    }

    /// Returns the tablet that brings the newcomer closest to the mean, from the node with the most weight.
    fn best_for(&self, to: usize, mean: u64) -> Option<usize> {
        let room = mean.saturating_sub(self.slots[to].weight);
        let mut givers: Vec<_> = (0..self.slots.len()).filter(|slot| *slot != to).collect();
        givers.sort_by_key(|slot| {
            std::cmp::Reverse((self.slots[*slot].weight, self.slots[*slot].tablet_count))
        });
        givers.into_iter().find_map(|giver| {
            let excess = self.slots[giver].weight.saturating_sub(mean);
            let wanted = excess.min(room).max(1);
            // The newcomer may exceed the mean by as much as it would lack without the tablet. The giver must also keep more weight than
            // the newcomer had.
            self.movable(giver)
                .filter(|(_, weight)| {
                    *weight <= room * 2 && self.slots[to].weight + weight < self.slots[giver].weight
                })
                .min_by_key(|(tablet, weight)| (weight.abs_diff(wanted), self.tablets[*tablet].id))
                .map(|(tablet, _)| tablet)
        })
    }

    fn balance(&mut self, tolerance_percent: u64) {
        let tolerance = (u128::from(self.mean()) * u128::from(tolerance_percent) / 100) as u64;
        while let (Some(from), Some(to)) = (self.heaviest(), self.lightest()) {
            let gap = self.slots[from].weight - self.slots[to].weight;
            if gap <= tolerance {
                return;
            }
            // A tablet of half the gap would make the two equal. One as heavy as the gap would only swap them. One almost as heavy would
            // move back after a small change of the loads.
            let best = self
                .movable(from)
                .filter(|(_, weight)| *weight > 0 && *weight <= gap / 3 * 2)
                .min_by_key(|(tablet, weight)| (weight.abs_diff(gap / 2), self.tablets[*tablet].id));
            match best {
                Some((tablet, _)) => self.put(tablet, to),
                None => return,
            }
        }
    }

    fn movable(&self, slot: usize) -> impl Iterator<Item = (usize, u64)> {
        (0..self.tablets.len())
            .filter(move |index| self.slot_of[*index] == Some(slot) && !self.tablets[*index].pinned)
            .map(|index| (index, self.tablets[index].weight))
    }

    fn put(&mut self, tablet: usize, slot: usize) {
        let weight = self.tablets[tablet].weight;
        if let Some(from) = self.slot_of[tablet].replace(slot) {
            self.slots[from].weight -= weight;
            self.slots[from].tablet_count -= 1;
        }
        self.slots[slot].weight += weight;
        self.slots[slot].tablet_count += 1;
    }

    fn mean(&self) -> u64 {
        let sum: u64 = self.slots.iter().map(|slot| slot.weight).sum();
        sum / (self.slots.len() as u64).max(1)
    }

    /// Returns the node with the least weight. Among equals, returns one in the rack with the least weight, because then the loss of a rack
    /// costs less.
    fn lightest(&self) -> Option<usize> {
        let rack_weight = |rack: &str| -> u64 {
            let in_rack = self.slots.iter().filter(|slot| slot.node.rack == rack);
            in_rack.map(|slot| slot.weight).sum()
        };
        (0..self.slots.len()).min_by_key(|index| {
            let slot = &self.slots[*index];
            (
                slot.weight,
                slot.tablet_count,
                rack_weight(&slot.node.rack),
                slot.node.host_id,
            )
        })
    }

    fn heaviest(&self) -> Option<usize> {
        (0..self.slots.len()).max_by_key(|index| {
            let slot = &self.slots[*index];
            (slot.weight, slot.tablet_count, slot.node.host_id)
        })
    }

    fn changes(&self) -> Vec<Assignment> {
        let placed = self
            .tablets
            .iter()
            .zip(&self.slot_of)
            .filter_map(|(tablet, slot)| {
                let owner = self.slots[(*slot)?].node.host_id;
                (tablet.owner != Some(owner)).then_some(Assignment {
                    tablet: tablet.id,
                    owner,
                })
            });
        placed.collect()
    }
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
