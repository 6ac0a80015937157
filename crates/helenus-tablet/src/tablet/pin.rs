//! Pins a tablet at one cut: its memtables as of that time are flushed before any later write, and a checkpoint of SlateDB holds the files
//! as of that time. So a cut costs no copy, and while it is pinned, its files are not deleted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use helenus_row::TokenRange;
use slatedb::config::{CheckpointOptions, CheckpointScope};
use tokio::sync::{MutexGuard, oneshot};
use uuid::Uuid;

use super::Tablet;
use crate::error::{StoreError, from_slatedb};
use crate::tree::Tree;

/// The name of all checkpoints that pin a cut. SlateDB has checkpoints of its own, for clones.
pub(crate) const CHECKPOINT_NAME: &str = "snapshot";

/// A tablet pinned at one cut, with the manifest that lists its files as of that time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedTablet {
    /// The tablet's number.
    pub id: u32,
    pub tokens: TokenRange,
    /// The number of the manifest.
    pub manifest: u64,
    /// The checkpoint that protects the manifest and its files from deletion.
    pub checkpoint: Uuid,
}

impl PinnedTablet {
    /// Returns the id of a cut: the least of its tablets' checkpoints. `None` if the cut has no tablets.
    pub fn cut_id(cut: &[PinnedTablet]) -> Option<Uuid> {
        cut.iter().map(|tablet| tablet.checkpoint).min()
    }
}

/// Receives the pinned tablet, or the error if it could not be pinned.
pub(crate) type PinnedReceiver = oneshot::Receiver<Result<PinnedTablet, StoreError>>;

/// The content of a tablet at one cut.
pub(crate) struct TabletCut {
    /// The tablet's tree, frozen, with all writes as of that time.
    pub tree: Arc<Tree>,
    pub pinned: oneshot::Sender<Result<PinnedTablet, StoreError>>,
    /// True if the cut is no longer wanted.
    pub is_abandoned: Arc<AtomicBool>,
}

impl Tablet {
    /// Freezes the memtables, which contain all writes so far. Pins them, with the files, in the background.
    ///
    /// Must be called on the log thread between two groups, when nothing is staged. The caller holds this tablet's lock of its memory.
    pub(crate) fn pin_now(
        &self,
        _memory: &MutexGuard<'_, ()>,
        is_abandoned: Arc<AtomicBool>,
    ) -> PinnedReceiver {
        let (pinned, receiver) = oneshot::channel();
        let tree = self.stage.freeze();
        self.flushes.pin(TabletCut {
            tree,
            pinned,
            is_abandoned,
        });
        receiver
    }

    /// Flushes a cut and pins the files as of that time. Must be called where no other flush runs.
    pub(super) async fn pin(&self, cut: TabletCut, given: &mut u64) {
        let TabletCut {
            tree,
            pinned,
            is_abandoned,
        } = cut;
        if is_abandoned.load(Ordering::Acquire) {
            let why = "the cut was cancelled".to_owned();
            let _ = pinned.send(Err(StoreError::NotPinned(why)));
            return;
        }
        let result = match self.flush_tree(tree, given).await {
            Ok(()) => self.checkpoint().await,
            Err(error) => Err(error),
        };
        // A dropped cut also waits for this result, and unpins the tablet.
        let _ = pinned.send(result);
    }

    /// Pins the current files.
    pub(crate) async fn checkpoint(&self) -> Result<PinnedTablet, StoreError> {
        let options = CheckpointOptions {
            name: Some(CHECKPOINT_NAME.to_owned()),
            ..CheckpointOptions::default()
        };
        let created = self
            .db
            .owned()?
            .create_checkpoint(CheckpointScope::Durable, &options);
        let created = created.await.map_err(|error| from_slatedb(&error))?;
        Ok(PinnedTablet {
            id: self.id,
            tokens: self.tokens,
            manifest: created.manifest_id,
            checkpoint: created.id,
        })
    }
}
