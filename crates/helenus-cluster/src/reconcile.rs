//! The actions that adapt the open tablets of a node to those that it owns: a pure function of both.

use std::collections::BTreeMap;
use std::time::Duration;

use helenus_row::TokenRange;

use crate::decide::must_release_tablets;
use crate::document::{ClusterDocument, Reshape, TabletRecord};
use crate::environment::TabletSpec;
use crate::ids::{Epoch, HostId, TabletId};

/// Maximum number of hand-overs in progress, from closing a tablet until the document shows the new owner. A few fast ones keep clients
/// waiting less than many that share the resources, and the next owner opens them one after the other.
const HAND_OVERS_MAX: usize = 2;

/// The state of a tablet on this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LocalTabletState {
    Opening {
        epoch: Epoch,
    },
    Open {
        epoch: Epoch,
    },
    Closing {
        epoch: Epoch,
    },
    /// Closed to be handed over. The tablet stays closed until the document shows a new owner, or that the move is cancelled. Until then, a
    /// write that hands it over may be in flight.
    Closed {
        epoch: Epoch,
    },
    /// Being split or merged. `child` is the first of the new tablets.
    Reshaping {
        child: TabletId,
    },
    /// Closed, because its children exist.
    Reshaped {
        child: TabletId,
    },
    Abandoning,
    /// Not open, and not to be opened before this time of the monotonic clock.
    Waiting {
        until: Duration,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Open {
        tablet: TabletId,
        tokens: TokenRange,
        epoch: Epoch,
    },
    Close {
        tablet: TabletId,
        epoch: Epoch,
    },
    /// Marks a tablet as closed that was never open, so that it can be handed over.
    MarkClosed {
        tablet: TabletId,
        epoch: Epoch,
    },
    Abandon {
        tablet: TabletId,
    },
    /// Forgets a tablet of which nothing is left here.
    Forget {
        tablet: TabletId,
    },
    Reshape {
        /// The parents, with the epochs at which they are open.
        parents: Vec<(TabletId, Epoch)>,
        children: Vec<TabletSpec>,
    },
}

/// Returns the next actions. Empty if nothing is to be done, or everything is in progress. `reshaped` has the outcomes of splits and merges
/// by first child: true if done, false if failed.
pub(crate) fn reconcile(
    document: &ClusterDocument,
    me: HostId,
    hosted: &BTreeMap<TabletId, LocalTabletState>,
    reshaped: &BTreeMap<TabletId, bool>,
    now: Duration,
) -> Vec<Action> {
    let releases = must_release_tablets(document, me);
    let mut actions: Vec<_> = document
        .tablets_of(me)
        .filter_map(|tablet| {
            let goes = (releases || tablet.moving_to.is_some()) && document.reshape_of(tablet.id).is_none();
            own(document, tablet, goes, hosted, reshaped, now)
        })
        .collect();
    for (id, state) in hosted {
        let mine = document.tablet(*id).is_ok_and(|tablet| tablet.owner == Some(me));
        if !mine {
            actions.extend(foreign(*id, *state));
        }
    }
    hold_back(&mut actions, hosted);
    actions
}

/// Removes closings that would exceed the number of hand-overs in progress. The last tablets of the ring are handed over first. A scan
/// comes from the other side, and would meet one hand-over after the other in the opposite order.
fn hold_back(actions: &mut Vec<Action>, hosted: &BTreeMap<TabletId, LocalTabletState>) {
    let is_close = |action: &Action| matches!(action, Action::Close { .. });
    let is_under_way = |state: &&LocalTabletState| {
        matches!(
            state,
            LocalTabletState::Closing { .. } | LocalTabletState::Closed { .. }
        )
    };
    let free = HAND_OVERS_MAX.saturating_sub(hosted.values().filter(is_under_way).count());
    let mut to_come = actions.iter().filter(|action| is_close(action)).count();
    actions.retain(|action| {
        if !is_close(action) {
            return true;
        }
        to_come -= 1;
        to_come < free
    });
}

fn own(
    document: &ClusterDocument,
    record: &TabletRecord,
    goes: bool,
    hosted: &BTreeMap<TabletId, LocalTabletState>,
    reshaped: &BTreeMap<TabletId, bool>,
    now: Duration,
) -> Option<Action> {
    let TabletRecord {
        id, tokens, epoch, ..
    } = *record;
    let tablet = id;
    let reshape = document.reshape_of(tablet);
    match hosted.get(&tablet) {
        Some(LocalTabletState::Waiting { until }) if *until > now && !goes => None,
        None | Some(LocalTabletState::Waiting { .. }) if goes => Some(Action::MarkClosed { tablet, epoch }),
        None | Some(LocalTabletState::Waiting { .. }) => Some(Action::Open {
            tablet,
            tokens,
            epoch,
        }),
        Some(LocalTabletState::Open { epoch: had }) if *had != epoch => Some(Action::Abandon { tablet }),
        Some(LocalTabletState::Open { .. }) if goes => Some(Action::Close { tablet, epoch }),
        Some(LocalTabletState::Open { .. }) => carry_out(reshape?, tablet, hosted, reshaped),
        Some(LocalTabletState::Closed { epoch: had }) if *had != epoch || !goes => {
            Some(Action::Forget { tablet })
        }
        Some(LocalTabletState::Reshaped { child })
            if reshape.is_none_or(|reshape| reshape.children[0].id != *child) =>
        {
            Some(Action::Forget { tablet })
        }
        Some(_) => None,
    }
}

/// Returns the action for a split or merge, if all its parents are open. It is returned for the first parent only, and once.
fn carry_out(
    reshape: &Reshape,
    tablet: TabletId,
    hosted: &BTreeMap<TabletId, LocalTabletState>,
    reshaped: &BTreeMap<TabletId, bool>,
) -> Option<Action> {
    let mut parents = Vec::new();
    for parent in &reshape.parents {
        let Some(LocalTabletState::Open { epoch }) = hosted.get(parent) else {
            return None;
        };
        parents.push((*parent, *epoch));
    }
    let tried = reshaped.contains_key(&reshape.children[0].id);
    (!tried && reshape.parents[0] == tablet).then(|| Action::Reshape {
        parents,
        children: reshape
            .children
            .iter()
            .map(|child| TabletSpec {
                id: child.id,
                tokens: child.tokens,
            })
            .collect(),
    })
}

fn foreign(tablet: TabletId, state: LocalTabletState) -> Option<Action> {
    match state {
        LocalTabletState::Open { .. } => Some(Action::Abandon { tablet }),
        LocalTabletState::Closed { .. }
        | LocalTabletState::Reshaped { .. }
        | LocalTabletState::Waiting { .. } => Some(Action::Forget { tablet }),
        LocalTabletState::Opening { .. }
        | LocalTabletState::Closing { .. }
        | LocalTabletState::Reshaping { .. }
        | LocalTabletState::Abandoning => None,
    }
}

#[cfg(test)]
#[path = "reconcile_tests.rs"]
mod tests;
