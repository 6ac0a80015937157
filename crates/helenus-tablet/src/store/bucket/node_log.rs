//! The log of this process in a bucket: begun when the first tablet is opened, and anew after another process has fenced it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

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

/// A log of this process.
pub(super) struct OwnLog {
    pub id: LogId,
    pub log: Arc<NodeLog>,
    /// Groups that are not in the history yet, if it is kept, and those that are.
    pub newest: Option<Arc<NewestGroups>>,
    pub archived: Archived,
    /// Of a log in a topic, where its groups lie.
    pub offsets: Arc<FrameOffsets>,
    thread: Mutex<Option<JoinHandle<()>>>,
    is_abandoned: Arc<AtomicBool>,
}

impl OwnLog {
    /// Returns the number of the newest object.
    pub fn newest(&self) -> u64 {
        self.log.ledger.newest()
    }

    /// Ends the log once it has written what is queued, or at its next failure.
    pub async fn close(&self) {
        self.log.close(StoreError::Closed);
        self.is_abandoned.store(true, Ordering::Release);
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

impl Remote {
    /// Returns the log of this process, which is begun if there is none.
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

    /// Returns the log of this process, if there is one.
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
    /// Another process has fenced a log of this one: it takes over tablets.
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

    /// Serves a tablet no more that this process was not asked to close, and reports it.
    pub(super) fn lose(&self, tablet: &Arc<Tablet>, error: StoreError) {
        tablet.accepts_writes.store(false, Ordering::Release);
        if !self.remove(tablet) {
            return;
        }
        let Ok(remote) = self.remote() else { return };
        // There may be no listener.
        let _ = remote.events.send(TabletEvent::Lost {
            id: tablet.id(),
            error,
        });
        remote.serving.spawn(tablet.clone().close_unserved());
    }
}
