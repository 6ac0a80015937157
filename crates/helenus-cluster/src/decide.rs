//! What a node does to the cluster document: a pure function of the document and of what the node knows.
//!
//! Every node runs it, and the first to write wins; the others then find nothing left to do. Facts stay true until the document shows
//! that they were taken in, so a write whose outcome is unknown is just decided again.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::document::{ClusterDocument, FORMAT, NodeRecord};
use crate::effects::{TabletLoad, TabletSpec};
use crate::error::ClusterError;
use crate::ids::{Epoch, HostId, Member, TabletId};
use crate::placement::{Intent, PlacementNode, PlacementTablet, place, weights};
use crate::policy::{ReshapeLimits, Reshaping, Wish, is_busy};

/// Nodes' loads may differ by this part of their mean before tablets move to make them more equal.
const BALANCE_TOLERANCE_PERCENT: u64 = 25;
/// Moves that one round of balancing begins.
const BALANCE_MOVES_MAX: usize = 4;

/// What a node knows when it decides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
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
    /// Tablets that have been small together with the next one for long, in a calm cluster.
    pub mergeable: &'a BTreeSet<TabletId>,
    /// Whether it is time to balance, split and merge, should that be this node's task.
    pub tend: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    Keep,
    Write(Box<ClusterDocument>),
    /// This node can't join yet; why, for people.
    Wait(String),
    /// This node can't join as long as that member is there, which would not speak to it.
    Stranger(Member, ClusterError),
    /// This node was expelled.
    Expelled,
    /// This node wanted to leave and is out.
    Left,
}

/// What to make of the document; `None` is one that does not exist yet.
pub(crate) fn decide(document: Option<&ClusterDocument>, facts: &Facts) -> Result<Decision, ClusterError> {
    if let Some(document) = document
        && document.cluster_name != facts.cluster_name
    {
        return Err(ClusterError::WrongCluster {
            found: document.cluster_name.clone(),
            configured: facts.cluster_name.into(),
        });
    }
    document.map_or(Ok(()), |document| document.check_store(facts.store))?;
    let present = document.is_some_and(|document| document.has(facts.me.member()));
    if !present && facts.draining {
        return Ok(Decision::Left);
    }
    if !present && facts.joined {
        return Ok(Decision::Expelled);
    }
    let mut next = match document {
        Some(document) => document.clone(),
        None => ClusterDocument::create(facts.cluster_name, facts.initial_tablets),
    };
    if !present && let Some((member, error)) = stranger_to(&next, facts) {
        return Ok(Decision::Stranger(member, error));
    }
    if !present && let Some(obstacle) = obstacle(&next, facts) {
        return Ok(Decision::Wait(obstacle));
    }
    next.format = FORMAT;
    next.store = facts.store;
    change(&mut next, facts, !present)?;
    match document {
        Some(document) if *document == next => Ok(Decision::Keep),
        _ => {
            next.validate()?;
            Ok(Decision::Write(Box::new(next)))
        }
    }
}

/// Why this node can't join: its former self may still serve.
fn obstacle(document: &ClusterDocument, facts: &Facts) -> Option<String> {
    let former = document.node(facts.me.host_id)?;
    (!facts.dead.contains(&former.member())).then(|| {
        format!(
            "host id {} is in the cluster at {}: waiting for its lease to end",
            former.host_id, former.rpc_address
        )
    })
}

/// A node that may be alive, and why this one could not speak to it.
fn stranger_to(document: &ClusterDocument, facts: &Facts) -> Option<(Member, ClusterError)> {
    let mine = facts.me.credentials.as_ref()?;
    let mut others = document
        .nodes
        .iter()
        .filter(|node| node.host_id != facts.me.host_id && !facts.dead.contains(&node.member()));
    others.find_map(|node| {
        let error = ClusterError::NoCredentials {
            node: node.name.clone(),
            address: node.rpc_address.clone(),
            why: mine.differ(node.credentials.as_ref())?.to_owned(),
        };
        Some((node.member(), error))
    })
}

fn change(document: &mut ClusterDocument, facts: &Facts, joins: bool) -> Result<(), ClusterError> {
    let me = facts.me.member();
    let is_former_self = |member: &Member| joins && member.host_id == me.host_id;
    for member in facts.dead {
        if document.has(*member) && !is_former_self(member) {
            document.expel(*member)?;
        }
    }
    if joins {
        document.join(facts.me.clone());
    }
    if facts.draining && document.accepts(me.host_id) {
        document.begin_leaving(me)?;
    }
    hand_over(document, facts)?;
    finish_reshapes(document, facts)?;
    for tablet in facts.removed {
        document.forget_retired(*tablet);
    }
    rearrange(document, facts, joins)?;
    if leads(document, facts) && facts.tend {
        reshape(document, facts)?;
    }
    let owns_nothing = document.tablets_of(me.host_id).next().is_none();
    if facts.draining && owns_nothing {
        document.leave(me)?;
    }
    Ok(())
}

/// Gives away what this node has closed.
fn hand_over(document: &mut ClusterDocument, facts: &Facts) -> Result<(), ClusterError> {
    for (id, epoch) in facts.closed {
        let Ok(tablet) = document.tablet(*id) else {
            continue;
        };
        if tablet.owner != Some(facts.me.host_id) || tablet.epoch != *epoch {
            continue;
        }
        match tablet.moving_to {
            Some(to) if document.accepts(to) => document.finish_move(*id, *epoch)?,
            None if must_let_go(document, facts.me.host_id) && document.reshape_of(*id).is_none() => {
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

fn finish_reshapes(document: &mut ClusterDocument, facts: &Facts) -> Result<(), ClusterError> {
    for reshape in document.reshapes.clone() {
        let outcome = facts.reshaped.get(&reshape.children[0].id);
        match outcome {
            Some(true) => document.finish_reshape(reshape.parents[0])?,
            Some(false) => document.undo_reshape(reshape.parents[0])?,
            None => {}
        }
    }
    Ok(())
}

/// Finds owners for tablets without one and for those of nodes that leave; fills this node if it joins; balances if that is its task.
fn rearrange(document: &mut ClusterDocument, facts: &Facts, joins: bool) -> Result<(), ClusterError> {
    let calm = facts.suspected.is_empty() && !is_busy(document);
    let merges = reshaping(document, facts).may_merge();
    let balances = facts.tend && calm && !merges && leads(document, facts);
    let intent = match () {
        () if joins => Intent::Fill(facts.me.host_id),
        () if balances => Intent::Balance {
            tolerance_percent: BALANCE_TOLERANCE_PERCENT,
        },
        () => Intent::Settle,
    };
    let mut placed = place(
        &candidates(document, facts),
        &placement_tablets(document, facts),
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

/// The nodes that may be given tablets: those that are heard of, or all if there is none of them.
fn candidates(document: &ClusterDocument, facts: &Facts) -> Vec<PlacementNode> {
    let of = |with_suspected: bool| -> Vec<_> {
        document
            .nodes
            .iter()
            .filter(|node| document.accepts(node.host_id))
            .filter(|node| with_suspected || !facts.suspected.contains(&node.host_id))
            .map(|node| PlacementNode {
                host_id: node.host_id,
                rack: node.rack.clone(),
            })
            .collect()
    };
    let heard_of = of(false);
    if heard_of.is_empty() { of(true) } else { heard_of }
}

fn placement_tablets(document: &ClusterDocument, facts: &Facts) -> Vec<PlacementTablet> {
    let ids: Vec<_> = document.tablets.iter().map(|tablet| tablet.id).collect();
    let weights = weights(&ids, facts.loads);
    document
        .tablets
        .iter()
        .map(|tablet| {
            let owner = tablet.moving_to.or(tablet.owner);
            let suspected = owner.is_some_and(|owner| facts.suspected.contains(&owner));
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
pub(crate) fn leads(document: &ClusterDocument, facts: &Facts) -> bool {
    let first = document
        .nodes
        .iter()
        .find(|node| document.accepts(node.host_id) && !facts.suspected.contains(&node.host_id));
    first.is_some_and(|node| node.member() == facts.me.member())
}

fn reshaping<'a>(document: &'a ClusterDocument, facts: &'a Facts) -> Reshaping<'a> {
    Reshaping {
        document,
        loads: facts.loads,
        mergeable: facts.mergeable,
        limits: facts.limits,
        initial_tablets: facts.initial_tablets.len(),
    }
}

fn reshape(document: &mut ClusterDocument, facts: &Facts) -> Result<(), ClusterError> {
    let wish = reshaping(document, facts).next();
    match wish {
        Some(Wish::Split { tablet, at }) => document.begin_split(tablet, at),
        Some(Wish::Merge { left }) => document.begin_merge(left),
        Some(Wish::Gather { tablet, to }) => document.begin_move(tablet, to),
        None => Ok(()),
    }
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
