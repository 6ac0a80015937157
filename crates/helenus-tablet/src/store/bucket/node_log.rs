//! The log of this process in a bucket. It is begun when the first tablet is opened, and again after another process has fenced it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::archived::Archived;
use super::{Remote, TabletEvent};
use crate::error::StoreError;
use crate::log;
use crate::log::object::{LogId, NewestGroups};
use crate::log::topic::FrameOffsets;
use crate::store::Store;
use crate::store::dispatch::{CompletionNotifier, TabletRouter};
use crate::tablet::{NodeLog, Tablet};
use crate::threads::NodeThread;

/// A log of this process.
pub(super) struct OwnLog {
    pub id: LogId,
    pub log: Arc<NodeLog>,
    /// Groups that are not in the history yet, and the objects that are. `newest` is `None` if no history is kept.
    pub newest: Option<Arc<NewestGroups>>,
    pub archived: Archived,
    /// The offsets of groups of a log in a topic. Empty for other logs.
    pub offsets: Arc<FrameOffsets>,
    thread: Mutex<Option<NodeThread>>,
    is_abandoned: Arc<AtomicBool>,
}

impl OwnLog {
    /// Returns the number of the newest object.
    pub fn newest(&self) -> u64 {
        self.log.ledger.newest()
    }

    /// Ends the log after it has written all queued groups, or at its next failure.
    pub async fn close(&self) {
        self.log.close(StoreError::Closed);
        self.is_abandoned.store(true, Ordering::Release);
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            thread.join().await;
        }
    }
}

impl Remote {
    /// Returns the log of this process. Begins one if there is none, or if the last one is closed.
    pub(super) async fn own_log(&self, store: &Arc<Store>) -> Result<Arc<OwnLog>, StoreError> {
        let mut own = self.own_log.lock().await;
        if let Some(own) = own.as_ref()
            && own.log.closed().is_none()
        {
            return Ok(own.clone());
        }
        let begun = self.begin_log(store).await?;
        *own = Some(begun.clone());
        Ok(begun)
    }

    /// Returns the log of this process. `None` if none was begun.
    pub(crate) async fn own_log_now(&self) -> Option<Arc<NodeLog>> {
        self.own_log.lock().await.as_ref().map(|own| own.log.clone())
    }

    async fn begin_log(&self, store: &Arc<Store>) -> Result<Arc<OwnLog>, StoreError> {
        let log = NodeLog::new();
        let is_abandoned = Arc::<AtomicBool>::default();
        let begun = self.begin_appending(store, &log, is_abandoned.clone()).await?;
        let (id, offsets, newest) = (begun.id, begun.offsets, begun.newest);
        let _ = log.id.set(id);
        let (of_store, fenced) = (Arc::downgrade(store), Arc::downgrade(&log));
        let router = Arc::new(TabletRouter {
            log: log.clone(),
            space: None,
            notifier: CompletionNotifier::start(),
            on_fenced: Box::new(move || {
                if let (Some(store), Some(log)) = (of_store.upgrade(), fenced.upgrade()) {
                    store.lose_tablets_of(&log);
                }
            }),
        });
        // Requests of the log must not be the agent's, whose runtime may begin the log.
        let _serving = self.serving.enter();
        let thread = log::start(log.clone(), router, begun.appender)
            .map_err(|error| StoreError::Unavailable(format!("cannot start the log thread: {error}")))?;
        tracing::debug!(log = %id, "a log is begun");
        Ok(Arc::new(OwnLog {
            id,
            log,
            newest,
            archived: Archived::default(),
            offsets,
            thread: Mutex::new(Some(thread)),
            is_abandoned,
        }))
    }
}

impl Store {
    /// Closes all tablets that write to a log of this process, because another process has fenced the log to take over tablets.
    fn lose_tablets_of(&self, log: &Arc<NodeLog>) {
        let tablets = self.tablets();
        let lost = tablets.iter().filter(|tablet| Arc::ptr_eq(&tablet.log, log));
        for tablet in lost {
            tracing::warn!(
                tablet = tablet.id(),
                "another process has taken over this node's log; the tablet is closed here"
            );
            self.lose(tablet, StoreError::Fenced);
        }
    }

    /// Stops serving a tablet that this process was not requested to close, and reports the loss.
    pub(super) fn lose(&self, tablet: &Arc<Tablet>, error: StoreError) {
        tablet.accepts_writes.store(false, Ordering::Release);
        if !self.remove(tablet) {
            return;
        }
        let Ok(remote) = self.remote() else { return };
        // Sending fails if there is no listener, which is no error.
        let _ = remote.events.send(TabletEvent::Lost {
            id: tablet.id(),
            error,
        });
        remote.serving.spawn(tablet.clone().close_unserved());
    }
}
