//! Runs the calls to the tablet host, several at a time.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures::StreamExt;
use futures::future::{Either, select};
use futures::stream::FuturesUnordered;
use helenus_row::TokenRange;
use tokio::sync::mpsc;

use super::AgentContext;
use super::handle::count;
use crate::environment::{Removal, TabletSpec};
use crate::error::HostError;
use crate::ids::{Epoch, TabletId};

const CLOSE_ATTEMPTS_MAX: u32 = 3;

#[derive(Debug)]
pub(super) enum TabletCommand {
    Open {
        tablet: TabletId,
        tokens: TokenRange,
        epoch: Epoch,
    },
    Close {
        tablet: TabletId,
    },
    Abandon {
        tablet: TabletId,
    },
    Reshape {
        /// The parents, with the epochs at which they are open.
        parents: Vec<(TabletId, Epoch)>,
        children: Vec<TabletSpec>,
    },
    Remove {
        tablet: TabletId,
    },
    FindOrphans,
}

/// The end of a split or merge.
#[derive(Debug)]
pub(super) struct Reshaped {
    /// The parents, with the epochs at which they were open.
    pub parents: Vec<(TabletId, Epoch)>,
    /// The first child.
    pub child: TabletId,
    pub result: Result<(), HostError>,
    /// Parents that are closed although the attempt failed, because they could not be opened again.
    pub closed: Vec<TabletId>,
}

#[derive(Debug)]
pub(super) enum TabletTaskEvent {
    Opened(TabletId, Result<(), HostError>),
    Closed(TabletId),
    Abandoned(TabletId),
    Reshaped(Reshaped),
    Removed(TabletId, Result<Removal, HostError>),
    /// The tablets of which the store has any data.
    Stored(Result<Vec<TabletId>, HostError>),
}

type Running = FuturesUnordered<Pin<Box<dyn Future<Output = TabletTaskEvent> + Send>>>;

pub(super) struct TabletTaskRunner {
    context: AgentContext,
    commands: mpsc::UnboundedReceiver<TabletCommand>,
    events: mpsc::UnboundedSender<TabletTaskEvent>,
    running: Running,
}

impl TabletTaskRunner {
    pub fn new(
        context: AgentContext,
        commands: mpsc::UnboundedReceiver<TabletCommand>,
        events: mpsc::UnboundedSender<TabletTaskEvent>,
    ) -> Self {
        TabletTaskRunner {
            context,
            commands,
            events,
            running: Running::new(),
        }
    }

    /// Runs commands until the sender is dropped.
    pub async fn run(&mut self) {
        loop {
            let event = tokio::select! {
                biased;
                Some(event) = self.running.next() => event,
                command = self.commands.recv() => match command {
                    Some(command) => {
                        self.begin(command);
                        continue;
                    }
                    None => return,
                },
            };
            self.count(&event);
            // Sending fails if no receiver is left, which is no error.
            let _ = self.events.send(event);
        }
    }

    fn count(&self, event: &TabletTaskEvent) {
        let counters = &self.context.shared.counters;
        match event {
            TabletTaskEvent::Opened(_, Ok(())) => count(&counters.opened),
            TabletTaskEvent::Closed(_) => count(&counters.closed),
            TabletTaskEvent::Reshaped(Reshaped { result: Ok(()), .. }) => count(&counters.reshaped),
            TabletTaskEvent::Opened(..) | TabletTaskEvent::Reshaped(..) | TabletTaskEvent::Abandoned(_) => {}
            TabletTaskEvent::Removed(..) | TabletTaskEvent::Stored(_) => {}
        }
    }

    fn begin(&mut self, command: TabletCommand) {
        let host = self.context.host.clone();
        match command {
            TabletCommand::Open {
                tablet,
                tokens,
                epoch,
            } => self.running.push(Box::pin(async move {
                TabletTaskEvent::Opened(tablet, host.open(tablet, tokens, epoch).await)
            })),
            TabletCommand::Abandon { tablet } => self.running.push(Box::pin(async move {
                host.abandon(tablet).await;
                TabletTaskEvent::Abandoned(tablet)
            })),
            TabletCommand::Remove { tablet } => self.running.push(Box::pin(async move {
                TabletTaskEvent::Removed(tablet, host.remove(tablet).await)
            })),
            TabletCommand::FindOrphans => {
                self.running.push(Box::pin(
                    async move { TabletTaskEvent::Stored(host.stored().await) },
                ))
            }
            TabletCommand::Reshape { parents, children } => self.running.push(Box::pin(async move {
                let ids: Vec<_> = parents.iter().map(|(id, _)| *id).collect();
                let result = match children[..] {
                    [child] => host.merge(&ids, child).await,
                    [left, right] => host.split(ids[0], [left, right]).await,
                    _ => Err(HostError::Unsupported("a tablet is split in two".into())),
                };
                let closed = match result {
                    Ok(()) => Vec::new(),
                    Err(_) => ids.into_iter().filter(|parent| !host.is_open(*parent)).collect(),
                };
                TabletTaskEvent::Reshaped(Reshaped {
                    parents,
                    child: children[0].id,
                    result,
                    closed,
                })
            })),
            TabletCommand::Close { tablet } => {
                self.running.push(Box::pin(close(self.context.clone(), tablet)))
            }
        }
    }
}

/// Closes the tablet. Gives up flushing if the store does not allow it, and the next owner then replays the log.
async fn close(context: AgentContext, tablet: TabletId) -> TabletTaskEvent {
    let lease = context.config.lease;
    for attempt in 1..=CLOSE_ATTEMPTS_MAX {
        let close = context.host.close(tablet);
        match select(close, context.clock.sleep(lease * 4)).await {
            Either::Left((Ok(()), _)) => return TabletTaskEvent::Closed(tablet),
            Either::Left((Err(error), _)) => {
                tracing::warn!(%tablet, %error, attempt, "the tablet could not be flushed and closed");
            }
            Either::Right(_) => {
                tracing::warn!(%tablet, "flushing and closing the tablet took too long");
                break;
            }
        }
        context.clock.sleep(pause_after(attempt, lease)).await;
    }
    context.host.abandon(tablet).await;
    TabletTaskEvent::Closed(tablet)
}

fn pause_after(attempt: u32, lease: Duration) -> Duration {
    lease / 16 * attempt
}
