//! The state of the tablets on this node, and the commands to the tablet task runner that adapt them to the cluster document
//! ([`crate::reconcile`] decides which).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::sync::mpsc;

use super::AgentContext;
use super::tablet_tasks::{Reshaped, TabletCommand, TabletTaskEvent};
use crate::document::ClusterDocument;
use crate::environment::Removal;
use crate::error::HostError;
use crate::ids::{Epoch, HostId, TabletId};
use crate::reconcile::{Action, LocalTabletState, reconcile};

/// Maximum number of retired tablets that are removed in one round.
const REMOVALS_MAX: usize = 4;

pub(super) struct LocalTablets {
    context: AgentContext,
    me: HostId,
    commands: mpsc::UnboundedSender<TabletCommand>,
    states: BTreeMap<TabletId, LocalTabletState>,
    /// Tablets that the host found fenced while they were being opened, split or merged. They are not open, whatever the outcome of that
    /// is.
    lost: BTreeSet<TabletId>,
    /// Outcomes of splits and merges by first child: true if done, false if failed.
    pub reshaped: BTreeMap<TabletId, bool>,
    removing: BTreeSet<TabletId>,
    /// Tablets with data in the store. The data is deleted if the tablet no longer exists.
    stored: BTreeSet<TabletId>,
    /// Retired tablets whose data is deleted.
    pub removed: BTreeSet<TabletId>,
}

impl LocalTablets {
    pub fn new(context: AgentContext, me: HostId, commands: mpsc::UnboundedSender<TabletCommand>) -> Self {
        LocalTablets {
            context,
            me,
            commands,
            states: BTreeMap::new(),
            lost: BTreeSet::new(),
            reshaped: BTreeMap::new(),
            removing: BTreeSet::new(),
            stored: BTreeSet::new(),
            removed: BTreeSet::new(),
        }
    }

    /// Returns the tablets of which this node may have any state.
    pub fn tablets(&self) -> Vec<TabletId> {
        self.states.keys().copied().collect()
    }

    /// Returns the tablets that were closed to be handed over.
    pub fn closed(&self) -> BTreeMap<TabletId, Epoch> {
        let closed = self.states.iter().filter_map(|(id, state)| match state {
            LocalTabletState::Closed { epoch } => Some((*id, *epoch)),
            _ => None,
        });
        closed.collect()
    }

    /// Returns true if every tablet of this node has been opened, or is being handed over.
    pub fn has_opened_all(&self, document: &ClusterDocument) -> bool {
        document.tablets_of(self.me).all(|tablet| {
            !matches!(
                self.states.get(&tablet.id),
                None | Some(LocalTabletState::Opening { .. })
            )
        })
    }

    /// Forgets the outcomes that the document already shows.
    pub fn observe_document(&mut self, document: &ClusterDocument) {
        let pending: BTreeSet<_> = document
            .reshapes
            .iter()
            .map(|reshape| reshape.children[0].id)
            .collect();
        self.reshaped.retain(|child, _| pending.contains(child));
        self.removed.retain(|tablet| document.retired.contains(tablet));
    }

    /// Makes the tablet task runner do what the document requires of this node.
    pub fn reconcile(&mut self, document: &ClusterDocument) {
        loop {
            let now = self.context.now();
            let actions = reconcile(document, self.me, &self.states, &self.reshaped, now);
            if actions.is_empty() {
                return;
            }
            actions.into_iter().for_each(|action| self.begin(action));
        }
    }

    fn begin(&mut self, action: Action) {
        match action {
            Action::Open {
                tablet,
                tokens,
                epoch,
            } => {
                self.states.insert(tablet, LocalTabletState::Opening { epoch });
                self.lost.remove(&tablet);
                self.command(TabletCommand::Open {
                    tablet,
                    tokens,
                    epoch,
                });
            }
            Action::Close { tablet, epoch } => {
                self.states.insert(tablet, LocalTabletState::Closing { epoch });
                self.command(TabletCommand::Close { tablet });
            }
            Action::MarkClosed { tablet, epoch } => {
                self.states.insert(tablet, LocalTabletState::Closed { epoch });
                // The notification has the effect of an event, so that the document is written at once.
                self.context.shared.refresh.notify_one();
            }
            Action::Abandon { tablet } => {
                self.states.insert(tablet, LocalTabletState::Abandoning);
                self.command(TabletCommand::Abandon { tablet });
            }
            Action::Forget { tablet } => {
                self.states.remove(&tablet);
            }
            Action::Reshape { parents, children } => {
                let child = children[0].id;
                for (parent, _) in &parents {
                    self.states.insert(*parent, LocalTabletState::Reshaping { child });
                    self.lost.remove(parent);
                }
                self.command(TabletCommand::Reshape { parents, children });
            }
        }
    }

    /// Sends a command to the runner, which lives as long as this does.
    fn command(&self, command: TabletCommand) {
        let _ = self.commands.send(command);
    }

    /// Requests a search of the store for data of tablets that no longer exist.
    pub fn find_orphan_tablets(&self) {
        self.command(TabletCommand::FindOrphans);
    }

    /// Deletes the data of some retired tablets, if no other tablet needs it. Also deletes leftover data of tablets that no longer exist. A
    /// node that was paused while a tablet was removed may have written such data afterwards.
    pub fn remove_retired(&mut self, document: &ClusterDocument) {
        self.stored.retain(|tablet| document.is_past(*tablet));
        let due: Vec<_> = document
            .retired
            .iter()
            .chain(&self.stored)
            .filter(|tablet| !self.removed.contains(tablet) && !self.removing.contains(tablet))
            .take(REMOVALS_MAX)
            .copied()
            .collect();
        for tablet in due {
            self.removing.insert(tablet);
            self.command(TabletCommand::Remove { tablet });
        }
    }

    pub fn handle_event(&mut self, event: TabletTaskEvent) {
        match event {
            TabletTaskEvent::Opened(tablet, result) => self.opened(tablet, result),
            TabletTaskEvent::Closed(tablet) => {
                if let Some(LocalTabletState::Closing { epoch }) = self.states.get(&tablet).copied() {
                    self.states.insert(tablet, LocalTabletState::Closed { epoch });
                }
            }
            TabletTaskEvent::Abandoned(tablet) => {
                self.states.remove(&tablet);
            }
            TabletTaskEvent::Reshaped(reshaped) => self.reshaping_ended(&reshaped),
            TabletTaskEvent::Stored(stored) => self.found(stored),
            TabletTaskEvent::Removed(tablet, result) => {
                self.removing.remove(&tablet);
                match result {
                    Ok(Removal::Gone) if self.stored.remove(&tablet) => {
                        tracing::info!(%tablet, "deleted the remaining data of a removed tablet");
                    }
                    Ok(Removal::Gone) => {
                        self.removed.insert(tablet);
                    }
                    Ok(Removal::StillNeeded) => {}
                    Err(error) => {
                        tracing::info!(%tablet, %error, "a retired tablet could not be removed yet")
                    }
                }
            }
        }
    }

    /// Adds the tablets of which the store has any data.
    fn found(&mut self, stored: Result<Vec<TabletId>, HostError>) {
        match stored {
            Ok(stored) => self.stored.extend(stored),
            Err(error) => tracing::info!(%error, "the tablets in the store could not be listed"),
        }
    }

    fn opened(&mut self, tablet: TabletId, result: Result<(), HostError>) {
        let Some(LocalTabletState::Opening { epoch }) = self.states.get(&tablet).copied() else {
            return;
        };
        let state = match result {
            Ok(()) if self.lost.remove(&tablet) => self.waiting(),
            Ok(()) => LocalTabletState::Open { epoch },
            Err(error) => {
                tracing::warn!(%tablet, %error, "the tablet could not be opened; trying again");
                self.waiting()
            }
        };
        self.states.insert(tablet, state);
    }

    /// Records the end of a split or merge. The parents of a failed attempt are open as before, unless they were lost meanwhile or could not
    /// be opened again.
    fn reshaping_ended(&mut self, reshaped: &Reshaped) {
        let child = reshaped.child;
        if let Err(error) = &reshaped.result {
            tracing::warn!(%child, %error, "a split or merge did not succeed: it is undone");
        }
        let is_done = reshaped.result.is_ok();
        for (parent, epoch) in &reshaped.parents {
            let is_lost = self.lost.remove(parent) || reshaped.closed.contains(parent);
            let state = match is_done {
                true => LocalTabletState::Reshaped { child },
                false if is_lost => self.waiting(),
                false => LocalTabletState::Open { epoch: *epoch },
            };
            self.states.insert(*parent, state);
        }
        self.reshaped.insert(child, is_done);
    }

    /// Records that the host found the tablet fenced and closed it. Returns true if that was not known.
    pub fn lost(&mut self, tablet: TabletId) -> bool {
        match self.states.get(&tablet) {
            Some(LocalTabletState::Open { .. }) => {
                self.states.insert(tablet, self.waiting());
            }
            Some(LocalTabletState::Opening { .. } | LocalTabletState::Reshaping { .. }) => {
                self.lost.insert(tablet);
            }
            _ => return false,
        }
        tracing::warn!(%tablet, "another node has opened the tablet: reading its owner from the cluster document");
        true
    }

    fn waiting(&self) -> LocalTabletState {
        LocalTabletState::Waiting {
            until: self.context.now() + self.context.config.retry_interval(),
        }
    }

    /// Returns the time at which the next tablet that could not be opened is due again. `None` if there is none.
    pub fn next_time(&self) -> Option<Duration> {
        let waiting = self.states.values().filter_map(|state| match state {
            LocalTabletState::Waiting { until } => Some(*until),
            _ => None,
        });
        waiting.min()
    }
}
