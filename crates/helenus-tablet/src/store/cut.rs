//! Freezes all tablets that are open here at one cut ([`Store::hold_cut`]), and pins them ([`HeldCut::pinned`]).
//!
//! The cut is between two groups of the log: a batch of one record is in it in all tablets, or in none. Writes wait until the staged ones
//! are in the memtables, which takes milliseconds. The memtables are flushed and the files pinned beside later writes.
//!
//! Several nodes have a consistent cut if at some time the logs of all of them are held. Then no write that one node has included is later
//! than a write that another has left out. So the log can be held until all nodes are frozen. The hold ends by itself, since its caller may
//! be gone, and [`HeldCut::release`] returns whether it has lasted. No tablet can be handed over meanwhile, because a hand-over waits for
//! the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::future::{join_all, try_join_all};
use helenus_row::TokenRange;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};

use super::{Store, StoreKind};
use crate::boxed;
use crate::error::StoreError;
use crate::history::HistoryPosition;
use crate::tablet::pin::{PinnedReceiver, PinnedTablet};
use crate::tablet::{NodeLog, Tablet};

/// Maximum time that writes wait for the staged ones to reach the memtables.
const STAGED_WAIT: Duration = Duration::from_millis(50);
/// Maximum time for which [`Store::pin`] tries to find all memtables ready.
const PIN_PATIENCE: Duration = Duration::from_secs(20);

/// Frozen tablets, whose log is held. If this is dropped, those that were pinned are unpinned.
pub struct HeldCut {
    /// Position of the end of the log. `None` if the node has no log.
    position: Option<HistoryPosition>,
    tablets: Vec<(u32, TokenRange)>,
    /// The receivers of the tablets that are not known to be pinned yet.
    pinning: Vec<PinnedReceiver>,
    pinned: Vec<PinnedTablet>,
    hold: Arc<LogHold>,
    is_abandoned: Arc<AtomicBool>,
    store: Arc<Store>,
    runtime: Handle,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum HoldState {
    #[default]
    Held,
    Released,
    Expired,
}

/// The hold of the log, for which the log thread waits.
#[derive(Default)]
struct LogHold {
    state: Mutex<HoldState>,
    released: Notify,
}

impl LogHold {
    /// Waits until the log is released, on the log thread.
    async fn wait(&self, at_most: Duration) {
        let _ = tokio::time::timeout(at_most, self.released.notified()).await;
        let mut state = self.state.lock();
        if *state == HoldState::Held {
            *state = HoldState::Expired;
        }
    }

    /// Releases the log. Returns false if the hold had expired before.
    fn release(&self) -> bool {
        let mut state = self.state.lock();
        if *state == HoldState::Held {
            *state = HoldState::Released;
            self.released.notify_one();
        }
        *state == HoldState::Released
    }
}

impl Drop for HeldCut {
    fn drop(&mut self) {
        self.hold.release();
        let (pinning, mut pinned) = (
            std::mem::take(&mut self.pinning),
            std::mem::take(&mut self.pinned),
        );
        if pinning.is_empty() && pinned.is_empty() {
            return;
        }
        self.is_abandoned.store(true, Ordering::Release);
        let store = self.store.clone();
        // Unpinning runs in the background, since no caller waits for it.
        self.runtime.spawn(async move {
            pinned.extend(join_all(pinning).await.into_iter().flatten().flatten());
            if let Err(error) = store.unpin(&pinned).await {
                tracing::debug!(%error, "tablets of a cancelled cut are unpinned later");
            }
        });
    }
}

impl HeldCut {
    /// Returns the frozen tablets.
    pub fn tablets(&self) -> &[(u32, TokenRange)] {
        &self.tablets
    }

    /// Returns the position of the end of this node's log at the cut. `None` if it has no log yet.
    pub fn position(&self) -> Option<HistoryPosition> {
        self.position
    }

    /// Releases the log. Returns false if the hold had expired before.
    pub fn release(&self) -> bool {
        self.hold.release()
    }

    /// Releases the log, and waits until the files of the frozen tablets are pinned.
    ///
    /// # Errors
    /// One of the tablets was closed, or could not be flushed. Then none stays pinned.
    #[boxed]
    pub async fn pinned(mut self) -> Result<Vec<PinnedTablet>, StoreError> {
        self.release();
        let mut failure = None;
        while let Some(pinning) = self.pinning.last_mut() {
            let result = pinning.await;
            self.pinning.pop();
            match result.unwrap_or(Err(StoreError::Closed)) {
                Ok(pinned) => self.pinned.push(pinned),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            None => Ok(std::mem::take(&mut self.pinned)),
            Some(error) => Err(error),
        }
    }
}

impl Store {
    /// Pins all tablets that are open here at one cut. The cut includes every write that was acknowledged before the call.
    ///
    /// # Errors
    /// [`StoreError::NotPinned`] if memory was full for too long. [`StoreError::ReadOnly`] for a read-only store.
    pub async fn pin(self: &Arc<Self>) -> Result<Vec<PinnedTablet>, StoreError> {
        let cut = self.hold_cut(PIN_PATIENCE, Duration::ZERO).await?;
        cut.pinned().await
    }

    /// Freezes all tablets that are open here at one cut. The cut includes every write that was acknowledged before the call. Their log is
    /// held until the result is dropped or [`HeldCut::release`] is called, but no longer than `at_most`. Meanwhile their memory is
    /// flushed and their files are pinned.
    ///
    /// # Errors
    /// [`StoreError::NotPinned`] if memory was full, or a tablet was being handed over, for all of `patience`. [`StoreError::ReadOnly`] for
    /// a read-only store.
    pub async fn hold_cut(
        self: &Arc<Self>,
        patience: Duration,
        at_most: Duration,
    ) -> Result<HeldCut, StoreError> {
        self.check_writable()?;
        if let StoreKind::Local(local) = &self.kind {
            local.space.check()?;
        }
        let deadline = Instant::now() + patience;
        loop {
            let tablets = self.tablets();
            let Some(log) = tablets.first().map(|tablet| tablet.log.clone()) else {
                return Ok(HeldCut {
                    position: self.own_position().await,
                    tablets: Vec::new(),
                    pinning: Vec::new(),
                    pinned: Vec::new(),
                    hold: Arc::default(),
                    is_abandoned: Arc::default(),
                    store: self.clone(),
                    runtime: Handle::current(),
                });
            };
            // Most staged writes are applied while new ones are accepted, so that the hold is short. If memory is full, all of them are.
            applied(&tablets).await?;
            if let Some(cut) = self.freeze(log, at_most).await? {
                return Ok(cut);
            }
            if Instant::now() >= deadline {
                return Err(StoreError::NotPinned(
                    "memtables are full, or tablets are moving, all the time".to_owned(),
                ));
            }
        }
    }

    /// Pins the current SSTables of all tablets that are open here, each for itself. Rows in memory are left out, and a batch may be
    /// included in part.
    ///
    /// # Errors
    /// See [`Store::pin`].
    #[boxed]
    pub async fn pin_flushed(&self) -> Result<Vec<PinnedTablet>, StoreError> {
        self.check_writable()?;
        let tablets = self.tablets();
        try_join_all(tablets.iter().map(|tablet| tablet.checkpoint())).await
    }

    /// Returns the position of the end of this process's log, when no tablet is open. `None` if it has no log.
    async fn own_position(&self) -> Option<HistoryPosition> {
        let own = self.remote().ok()?.own_log_now().await?;
        position(&own)
    }

    /// Freezes the memtables of all tablets between two groups of the log, and holds the log. `None` if the staged writes do not reach the
    /// memtables soon, if the memtables are being changed for longer, or if a tablet is being closed.
    async fn freeze(
        self: &Arc<Self>,
        log: Arc<NodeLog>,
        at_most: Duration,
    ) -> Result<Option<HeldCut>, StoreError> {
        let runtime = Handle::current();
        let (store, of_log) = (self.clone(), log.clone());
        let (sender, frozen) = oneshot::channel();
        log.between_groups(Box::pin(async move {
            let hold = Arc::<LogHold>::default();
            let frozen = store.freeze_now(&of_log, &hold, &runtime).await;
            let is_frozen = matches!(frozen, Ok(Some(_)));
            // If the caller waits no more, the result is dropped here, which ends the hold.
            let _ = sender.send(frozen);
            if is_frozen {
                hold.wait(at_most).await;
            }
        }));
        frozen.await.map_err(|_| StoreError::Closed)?
    }

    /// Freezes the memtables on the log thread.
    async fn freeze_now(
        self: &Arc<Self>,
        log: &Arc<NodeLog>,
        hold: &Arc<LogHold>,
        runtime: &Handle,
    ) -> Result<Option<HeldCut>, StoreError> {
        let tablets = self.tablets();
        // A tablet that takes no more writes may be another node's by now.
        let is_whole = |tablet: &Arc<Tablet>| {
            tablet.accepts_writes.load(Ordering::Acquire) && Arc::ptr_eq(&tablet.log, log)
        };
        let ready = async {
            applied(&tablets).await?;
            Ok::<_, StoreError>(join_all(tablets.iter().map(|tablet| tablet.flushes.memory.lock())).await)
        };
        let locks = match tokio::time::timeout(STAGED_WAIT, ready).await {
            Ok(locks) => locks?,
            Err(_) => return Ok(None),
        };
        if !tablets.iter().all(is_whole) {
            return Ok(None);
        }
        let frozen = tablets.iter().zip(&locks);
        let is_abandoned = Arc::<AtomicBool>::default();
        Ok(Some(HeldCut {
            position: position(log),
            pinning: frozen
                .map(|(tablet, lock)| tablet.pin_now(lock, is_abandoned.clone()))
                .collect(),
            pinned: Vec::new(),
            tablets: tablets
                .iter()
                .map(|tablet| (tablet.id(), tablet.token_range()))
                .collect(),
            hold: hold.clone(),
            is_abandoned,
            store: self.clone(),
            runtime: runtime.clone(),
        }))
    }
}

/// Returns the position of the end of a log.
fn position(log: &NodeLog) -> Option<HistoryPosition> {
    let id = *log.id.get()?;
    Some(HistoryPosition::new(id, log.ledger.reached()))
}

/// Waits until all staged writes are in the memtables.
async fn applied(tablets: &[Arc<Tablet>]) -> Result<(), StoreError> {
    try_join_all(tablets.iter().map(|tablet| tablet.stage.applied())).await?;
    Ok(())
}
