//! The changes that a node makes to the cluster document: a pure function of the document and of the node's knowledge.
//!
//! Every node runs it, and the first to write wins; the others then find nothing left to do. Inputs stay true until the document shows
//! that they were taken in, so a write whose outcome is unknown is just decided again.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::document::{ClusterDocument, FORMAT, NodeRecord};
use crate::environment::{TabletLoad, TabletSpec};
use crate::error::ClusterError;
use crate::ids::{Epoch, HostId, Member, TabletId};
use crate::placement::{MovePolicy, PlacementNode, PlacementTablet, place, weights};
use crate::reshape_policy::{ReshapeInput, ReshapeLimits, ReshapeStep, is_busy};

/// Nodes' loads may differ by this part of their mean before tablets move to make them more equal.
const BALANCE_TOLERANCE_PERCENT: u64 = 25;
/// Moves that one round of balancing begins.
const BALANCE_MOVES_MAX: usize = 4;
/// How long a lost node is shown, if nobody has it forgotten before.
pub(crate) const LOST_SHOWN_MS: i64 = 24 * 3600 * 1000;

/// What a node knows when it decides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecisionInput<'a> {
    pub cluster_name: &'a str,
    pub store: Option<Uuid>,
    pub initial_tablets: &'a [TabletSpec],
    pub limits: &'a ReshapeLimits,
    /// This node, as it would join.
    pub me: &'a NodeRecord,
    /// The document has shown this node in this incarnation before.
    pub joined: bool,
    pub draining: bool,
    /// Members whose leases have ended.
    pub dead: &'a BTreeSet<Member>,
    /// Nodes that have been quiet for a while and should not be given anything.
    pub suspected: &'a BTreeSet<HostId>,
    /// Tablets that this node has closed to hand over, with the epochs at which it had them.
    pub closed: &'a BTreeMap<TabletId, Epoch>,
    /// Splits and merges that this node has carried out (true) or failed at, by their first child.
    pub reshaped: &'a BTreeMap<TabletId, bool>,
    /// Retired tablets whose data is gone.
    pub removed: &'a BTreeSet<TabletId>,
    pub loads: &'a BTreeMap<TabletId, TabletLoad>,
    /// Tablets that have been small together with the next one for long, in a stable cluster.
    pub mergeable: &'a BTreeSet<TabletId>,
    /// Whether it is time to balance, split and merge, should that be this node's task.
    pub rebalance_due: bool,
    /// Milliseconds since 1970.
    pub now_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    Keep,
    Write(Box<ClusterDocument>),
    /// This node can't join yet; why, for people.
    Wait(String),
    /// This node can't join as long as that member is there, which would not speak to it.
    IncompatibleMember(Member, ClusterError),
    /// This node was expelled.
    Expelled,
    /// This node wanted to leave and is out.
    Left,
}

/// What to make of the document; `None` is one that does not exist yet.
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

/// Why this node can't join: its previous incarnation may still serve.
fn obstacle(document: &ClusterDocument, input: &DecisionInput) -> Option<String> {
    let previous = document.node(input.me.host_id)?;
    (!input.dead.contains(&previous.member())).then(|| {
        format!(
            "host id {} is in the cluster at {}: waiting for its lease to end",
            previous.host_id, previous.description.rpc_address
        )
    })
}

/// Returns a node that may be alive, and why this one could not speak to it.
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

/// Gives away what this node has closed.
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
            None if must_let_go(document, input.me.host_id) && document.reshape_of(*id).is_none() => {
                document.let_go(*id, *epoch)?
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether the node leaves and nobody is there to take its tablets, so that it closes them for whoever comes next.
pub(crate) fn must_let_go(document: &ClusterDocument, host_id: HostId) -> bool {
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

/// Finds owners for tablets without one and for those of nodes that leave; fills this node if it joins; balances if that is its task.
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

/// Returns the nodes that may be given tablets: those that are heard of, or all if there is none of them.
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

/// Balancing, splits and merges are the task of the node that has been there longest.
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
