//! Keeps a tablet as it is at one moment: its memtables of then are flushed before any later write, and a checkpoint of SlateDB holds the
//! files that there are then. So a moment costs no copy, and while it is pinned, its files are not deleted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use slatedb::config::{CheckpointOptions, CheckpointScope};
use tokio::sync::{MutexGuard, oneshot};
use uuid::Uuid;

use super::Tablet;
use crate::error::{StoreError, from_slatedb};
use crate::token_range::TokenRange;
use crate::tree::Tree;

/// The name of all checkpoints that pin a moment. SlateDB has checkpoints of its own, for clones.
pub(crate) const CHECKPOINT_NAME: &str = "snapshot";

/// A tablet as it was at one moment, and where its files of then are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedTablet {
    /// The tablet's number.
    pub id: u32,
    pub tokens: TokenRange,
    /// The number of the manifest.
    pub manifest: u64,
    /// Holds the manifest and its files.
    pub checkpoint: Uuid,
}

/// Tells when a moment is pinned.
pub(crate) type PinnedReceiver = oneshot::Receiver<Result<PinnedTablet, StoreError>>;

/// What a tablet has at one moment.
pub(crate) struct TabletMoment {
    /// With all writes of then, and frozen.
    pub tree: Arc<Tree>,
    pub pinned: oneshot::Sender<Result<PinnedTablet, StoreError>>,
    /// Set if nobody wants it any more.
    pub is_abandoned: Arc<AtomicBool>,
}

impl Tablet {
    /// Freezes the memtables, all writes so far being in them. Pins them, with the files, in the background.
    ///
    /// Call it on the log thread between two groups, when nothing is staged, with this tablet's lock of its memory.
    pub(crate) fn pin_now(
        &self,
        _memory: &MutexGuard<'_, ()>,
        is_abandoned: Arc<AtomicBool>,
    ) -> PinnedReceiver {
        let (pinned, receiver) = oneshot::channel();
        let tree = self.stage.freeze();
        self.flushes.pin(TabletMoment {
            tree,
            pinned,
            is_abandoned,
        });
        receiver
    }

    /// Flushes a moment and pins the files of then. Called where no other flush runs.
    pub(super) async fn pin(&self, moment: TabletMoment, given: &mut u64) {
        let TabletMoment {
            tree,
            pinned,
            is_abandoned,
        } = moment;
        if is_abandoned.load(Ordering::Acquire) {
            let why = "nobody wants the moment any more".to_owned();
            let _ = pinned.send(Err(StoreError::NotPinned(why)));
            return;
        }
        let result = match self.flush_tree(tree, given).await {
            Ok(()) => self.checkpoint().await,
            Err(error) => Err(error),
        };
        // Whoever drops the moment waits for it, too, and lets go what nobody wants.
        let _ = pinned.send(result);
    }

    /// Pins the files of now.
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
