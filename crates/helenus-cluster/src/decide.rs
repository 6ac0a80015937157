//! The changes that a node makes to the cluster document: a pure function of the document and of the node's knowledge.
//!
//! Every node runs it, and the first to write wins. The other nodes then find nothing left to do. Inputs stay true until the document shows
//! that they were applied, so after a write with an unknown outcome the same decision is made again.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::document::{ClusterDocument, FORMAT, NodeRecord};
use crate::environment::{TabletLoad, TabletSpec};
use crate::error::ClusterError;
use crate::ids::{Epoch, HostId, Member, TabletId};
use crate::placement::{MovePolicy, PlacementNode, PlacementTablet, place, weights};
use crate::reshape_policy::{ReshapeInput, ReshapeLimits, ReshapeStep, is_busy};

/// Difference of nodes' loads, in percent of their mean, from which tablets are moved to balance them.
const BALANCE_TOLERANCE_PERCENT: u64 = 25;
/// Maximum number of moves that one round of balancing begins.
const BALANCE_MOVES_MAX: usize = 4;
/// Time for which a lost node is shown, in ms, unless it is forgotten before.
pub(crate) const LOST_SHOWN_MS: i64 = 24 * 3600 * 1000;

/// The knowledge with which a node decides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecisionInput<'a> {
    pub cluster_name: &'a str,
    pub store: Option<Uuid>,
    pub initial_tablets: &'a [TabletSpec],
    pub limits: &'a ReshapeLimits,
    /// This node's record, with which it would join.
    pub me: &'a NodeRecord,
    /// True if the document has shown this node in this incarnation before.
    pub joined: bool,
    pub draining: bool,
    /// Members whose leases have ended.
    pub dead: &'a BTreeSet<Member>,
    /// Nodes that have been quiet for a while and should be given no tablets.
    pub suspected: &'a BTreeSet<HostId>,
    /// Tablets that this node has closed to hand over, with the epochs at which it owned them.
    pub closed: &'a BTreeMap<TabletId, Epoch>,
    /// Outcomes of this node's splits and merges by first child: true if done, false if failed.
    pub reshaped: &'a BTreeMap<TabletId, bool>,
    /// Retired tablets whose data is deleted.
    pub removed: &'a BTreeSet<TabletId>,
    pub loads: &'a BTreeMap<TabletId, TabletLoad>,
    /// Tablets that, together with the next one, have been small for long in a stable cluster.
    pub mergeable: &'a BTreeSet<TabletId>,
    /// True if it is time to balance, split and merge, provided that this node leads.
    pub rebalance_due: bool,
    /// Milliseconds since 1970.
    pub now_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    Keep,
    Write(Box<ClusterDocument>),
    /// This node cannot join yet. The text is the reason.
    Wait(String),
    /// This node cannot join as long as that member is there, because the two could not communicate.
    IncompatibleMember(Member, ClusterError),
    /// This node was expelled.
    Expelled,
    /// This node wanted to leave, and is out.
    Left,
}

/// Decides what to do with the document. `None` is a document that does not exist yet.
pub(crate) fn decide(
    document: Option<&ClusterDocument>,
    input: &DecisionInput,
) -> Result<Decision, ClusterError> {
    if let Some(document) = document
        && document.cluster_name != input.cluster_name
    {
        return Err(ClusterError::WrongCluster {
            found: document.cluster_name.clone(),
            configured: input.cluster_name.into(),
        });
    }
    document.map_or(Ok(()), |document| document.check_store(input.store))?;
    let present = document.is_some_and(|document| document.has(input.me.member()));
    if !present && input.draining {
        return Ok(Decision::Left);
    }
    if !present && input.joined {
        return Ok(Decision::Expelled);
    }
    let mut next = match document {
        Some(document) => document.clone(),
        None => ClusterDocument::create(input.cluster_name, input.initial_tablets),
    };
    if !present && let Some((member, error)) = incompatible_member(&next, input) {
        return Ok(Decision::IncompatibleMember(member, error));
    }
    if !present && let Some(obstacle) = obstacle(&next, input) {
        return Ok(Decision::Wait(obstacle));
    }
    next.format = FORMAT;
    next.store = input.store;
    change(&mut next, input, !present)?;
    match document {
        Some(document) if *document == next => Ok(Decision::Keep),
        _ => {
            next.validate()?;
            Ok(Decision::Write(Box::new(next)))
        }
    }
}

/// Returns the reason for which this node cannot join: its previous incarnation may still serve. `None` if it can join.
fn obstacle(document: &ClusterDocument, input: &DecisionInput) -> Option<String> {
    let previous = document.node(input.me.host_id)?;
    (!input.dead.contains(&previous.member())).then(|| {
        format!(
            "host id {} is in the cluster at {}: waiting for its lease to end",
            previous.host_id, previous.description.rpc_address
        )
    })
}

/// Returns a node that may be alive, and the reason for which this node could not communicate with it. `None` if there is none.
fn incompatible_member(document: &ClusterDocument, input: &DecisionInput) -> Option<(Member, ClusterError)> {
    let mine = input.me.credentials.as_ref()?;
    let mut others = document
        .nodes
        .iter()
        .filter(|node| node.host_id != input.me.host_id && !input.dead.contains(&node.member()));
    others.find_map(|node| {
        let error = ClusterError::NoCredentials {
            node: node.description.name.clone(),
            address: node.description.rpc_address.clone(),
            why: mine.differ(node.credentials.as_ref())?.to_owned(),
        };
        Some((node.member(), error))
    })
}

fn change(document: &mut ClusterDocument, input: &DecisionInput, joins: bool) -> Result<(), ClusterError> {
    let me = input.me.member();
    let is_previous_incarnation = |member: &Member| joins && member.host_id == me.host_id;
    for member in input.dead {
        if document.has(*member) && !is_previous_incarnation(member) {
            document.lose(*member, input.now_ms)?;
        }
    }
    document.forget_lost_before(input.now_ms.saturating_sub(LOST_SHOWN_MS));
    if joins {
        document.join(input.me.clone());
    }
    if input.draining && document.accepts(me.host_id) {
        document.begin_leaving(me)?;
    }
    hand_over(document, input)?;
    finish_reshapes(document, input)?;
    for tablet in input.removed {
        document.forget_retired(*tablet);
    }
    rearrange(document, input, joins)?;
    if leads(document, input) && input.rebalance_due {
        reshape(document, input)?;
    }
    let owns_nothing = document.tablets_of(me.host_id).next().is_none();
    if input.draining && owns_nothing {
        document.leave(me)?;
    }
    Ok(())
}

/// Hands over the tablets that this node has closed.
fn hand_over(document: &mut ClusterDocument, input: &DecisionInput) -> Result<(), ClusterError> {
    for (id, epoch) in input.closed {
        let Ok(tablet) = document.tablet(*id) else {
            continue;
        };
        if tablet.owner != Some(input.me.host_id) || tablet.epoch != *epoch {
            continue;
        }
        match tablet.moving_to {
            Some(to) if document.accepts(to) => document.finish_move(*id, *epoch)?,
            None if must_release_tablets(document, input.me.host_id)
                && document.reshape_of(*id).is_none() =>
            {
                document.unassign(*id, *epoch)?
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns true if the node leaves and there is no other node to take its tablets. It then closes them, and they stay without an owner
/// until a node joins.
pub(crate) fn must_release_tablets(document: &ClusterDocument, host_id: HostId) -> bool {
    document.node(host_id).is_some()
        && !document.accepts(host_id)
        && !document.nodes.iter().any(|node| document.accepts(node.host_id))
}

fn finish_reshapes(document: &mut ClusterDocument, input: &DecisionInput) -> Result<(), ClusterError> {
    for reshape in document.reshapes.clone() {
        let outcome = input.reshaped.get(&reshape.children[0].id);
        match outcome {
            Some(true) => document.finish_reshape(reshape.parents[0])?,
            Some(false) => document.undo_reshape(reshape.parents[0])?,
            None => {}
        }
    }
    Ok(())
}

/// Finds owners for tablets without one and for those of leaving nodes. Gives this node its share if it joins, and balances if it leads.
fn rearrange(document: &mut ClusterDocument, input: &DecisionInput, joins: bool) -> Result<(), ClusterError> {
    let calm = input.suspected.is_empty() && !is_busy(document);
    let merges = reshaping(document, input).may_merge();
    let balances = input.rebalance_due && calm && !merges && leads(document, input);
    let intent = match () {
        () if joins => MovePolicy::Fill(input.me.host_id),
        () if balances => MovePolicy::Balance {
            tolerance_percent: BALANCE_TOLERANCE_PERCENT,
        },
        () => MovePolicy::Settle,
    };
    let mut placed = place(
        &candidates(document, input),
        &placement_tablets(document, input),
        intent,
    );
    if balances {
        placed.truncate(BALANCE_MOVES_MAX);
    }
    for change in placed {
        match document.tablet(change.tablet)?.owner {
            None => document.assign(change.tablet, change.owner)?,
            Some(_) => document.begin_move(change.tablet, change.owner)?,
        }
    }
    Ok(())
}

/// Returns the nodes that may be given tablets: those that are not suspected, or all if all are.
fn candidates(document: &ClusterDocument, input: &DecisionInput) -> Vec<PlacementNode> {
    let of = |with_suspected: bool| -> Vec<_> {
        document
            .nodes
            .iter()
            .filter(|node| document.accepts(node.host_id))
            .filter(|node| with_suspected || !input.suspected.contains(&node.host_id))
            .map(|node| PlacementNode {
                host_id: node.host_id,
                rack: node.description.rack.clone(),
            })
            .collect()
    };
    let heard_of = of(false);
    if heard_of.is_empty() { of(true) } else { heard_of }
}

fn placement_tablets(document: &ClusterDocument, input: &DecisionInput) -> Vec<PlacementTablet> {
    let ids: Vec<_> = document.tablets.iter().map(|tablet| tablet.id).collect();
    let weights = weights(&ids, input.loads);
    document
        .tablets
        .iter()
        .map(|tablet| {
            let owner = tablet.moving_to.or(tablet.owner);
            let suspected = owner.is_some_and(|owner| input.suspected.contains(&owner));
            PlacementTablet {
                id: tablet.id,
                owner,
                weight: weights[&tablet.id],
                pinned: tablet.moving_to.is_some() || suspected || document.reshape_of(tablet.id).is_some(),
            }
        })
        .collect()
}

/// Returns true if this node has been in the cluster longest, and therefore balances, splits and merges.
pub(crate) fn leads(document: &ClusterDocument, input: &DecisionInput) -> bool {
    let first = document
        .nodes
        .iter()
        .find(|node| document.accepts(node.host_id) && !input.suspected.contains(&node.host_id));
    first.is_some_and(|node| node.member() == input.me.member())
}

fn reshaping<'a>(document: &'a ClusterDocument, input: &'a DecisionInput) -> ReshapeInput<'a> {
    ReshapeInput {
        document,
        loads: input.loads,
        mergeable: input.mergeable,
        limits: input.limits,
        initial_tablets: input.initial_tablets.len(),
    }
}

fn reshape(document: &mut ClusterDocument, input: &DecisionInput) -> Result<(), ClusterError> {
    let step = reshaping(document, input).next();
    match step {
        Some(ReshapeStep::Split { tablet, at }) => document.begin_split(tablet, at),
        Some(ReshapeStep::Merge { left }) => document.begin_merge(left),
        Some(ReshapeStep::Colocate { tablet, to }) => document.begin_move(tablet, to),
        None => Ok(()),
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
