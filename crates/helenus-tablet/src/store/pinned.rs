//! All tablets as they were at one moment: kept ([`Store::pin`]), read ([`Store::open_pinned`]) and let go ([`Store::unpin_others`]).
//!
//! The moment is one between two groups of the log: a batch is in it in all tablets, or in none. Writes wait until what is staged has been
//! put into the memtables, which takes milliseconds; flushing these, and pinning the files, goes on beside later writes. Checkpoints that
//! nobody knows of, since the node ended before they were written down, are let go with the next ones.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use futures::future::{join_all, try_join_all};
use object_store::ObjectStore;
use object_store::path::Path;
use slatedb::admin::Admin;
use tokio::sync::{Semaphore, oneshot};
use uuid::Uuid;

use super::assemble::{TabletParts, assemble};
use super::local::Local;
use super::{Store, StoreKind};
use crate::clock::StoreClock;
use crate::config::StoreConfig;
use crate::database::Databases;
use crate::database::tablet_db::TabletDb;
use crate::error::{StoreError, from_slatedb};
use crate::metadata::documents::Meta;
use crate::metadata::slatedb_layout::tablet_path;
use crate::tablet::pin::{CHECKPOINT_NAME, PinnedReceiver, PinnedTablet};
use crate::tablet::{NodeLog, OpenTablets, Tablet};
use crate::tree::limits::ReadLimits;

/// How long writes wait at most for what is staged, and how long that is tried.
const STAGED_WAIT: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(20);
/// No memtable is ever filled.
const MEMTABLE_BYTES: u64 = 1 << 20;

/// What a store of pinned tablets has besides these.
pub(crate) struct Pinned {
    pub clock: Arc<StoreClock>,
}

impl Store {
    /// True of a store whose tablets can be kept as they are at one moment: one in a folder.
    pub fn can_pin(&self) -> bool {
        self.local().is_ok()
    }

    /// Keeps all tablets as they are at one moment from now on, which every write that was acknowledged before the call is in.
    ///
    /// # Errors
    /// [`StoreError::InvalidConfig`] of a store in a bucket; [`StoreError::NotPinned`] if memory was full for too long. What was kept of a moment
    /// that failed is let go with [`Store::unpin_others`].
    pub async fn pin(&self) -> Result<Vec<PinnedTablet>, StoreError> {
        let local = self.local()?;
        local.space.check()?;
        let tablets = self.tablets();
        let deadline = Instant::now() + PATIENCE;
        let receivers = loop {
            // Most of what is staged goes while writes go on, and all of it where memory is full.
            applied(&tablets).await?;
            match freeze(local, &tablets).await? {
                Some(receivers) => break receivers,
                None if Instant::now() >= deadline => {
                    let why = "the memtables are full all the time";
                    return Err(StoreError::NotPinned(why.to_owned()));
                }
                None => {}
            }
        };
        let pinned = join_all(receivers).await.into_iter();
        pinned
            .map(|pinned| pinned.map_err(|_| StoreError::Closed)?)
            .collect()
    }

    /// Keeps what the SSTables of all tablets have from now on, each for itself: what is in memory is left out, and a batch may be there in part.
    ///
    /// # Errors
    /// Those of [`Store::pin`].
    pub async fn pin_flushed(&self) -> Result<Vec<PinnedTablet>, StoreError> {
        self.local()?;
        let tablets = self.tablets();
        try_join_all(tablets.iter().map(|tablet| tablet.checkpoint())).await
    }

    /// Lets all pinned tablets go but those with these checkpoints; how many those were. Their files are then deleted as others that are obsolete.
    pub async fn unpin_others(&self, kept: &BTreeSet<Uuid>) -> Result<usize, StoreError> {
        let local = self.local()?;
        let mut count = 0;
        for tablet in self.tablets().iter() {
            let admin = Admin::builder(tablet_path(tablet.id()), local.objects.clone()).build();
            let checkpoints = admin.list_checkpoints(Some(CHECKPOINT_NAME)).await;
            let checkpoints = checkpoints.map_err(|error| from_slatedb(&error))?;
            for checkpoint in checkpoints.iter().filter(|of| !kept.contains(&of.id)) {
                let deleted = admin.delete_checkpoint(checkpoint.id).await;
                deleted.map_err(|error| from_slatedb(&error))?;
                count += 1;
            }
        }
        Ok(count)
    }

    /// The pinned tablets as a store, which can only be read.
    ///
    /// # Errors
    /// They have been let go, or one of their files is damaged.
    pub async fn open_pinned(&self, pinned: &[PinnedTablet]) -> Result<Arc<Store>, StoreError> {
        let local = self.local()?;
        self.open_pinned_in(&local.databases, &local.objects, pinned)
            .await
    }

    /// The same of tablets whose files lie in some object store.
    ///
    /// # Errors
    /// Those of [`Store::open_pinned`].
    pub(crate) async fn open_pinned_in(
        &self,
        databases: &Databases,
        objects: &Arc<dyn ObjectStore>,
        pinned: &[PinnedTablet],
    ) -> Result<Arc<Store>, StoreError> {
        let databases = Databases {
            // Rows that are read of the past do not push out those of today.
            config: StoreConfig {
                row_cache_bytes: 0,
                ..databases.config.clone()
            },
            ..databases.clone()
        };
        let log = NodeLog::new();
        log.close(StoreError::ReadOnly);
        let opening = pinned
            .iter()
            .map(|pinned| open_tablet(objects, &databases, &log, pinned));
        let mut tablets = try_join_all(opening).await?;
        tablets.sort_unstable_by_key(|tablet| tablet.token_range().first);
        Ok(Arc::new(Store {
            tablets: ArcSwap::from_pointee(tablets),
            in_flight: Arc::new(Semaphore::new(1)),
            in_flight_permits: 1,
            meta: Meta::new(objects.clone(), Path::default(), None),
            metrics: self.metrics.clone(),
            row_cache: self.row_cache.clone(),
            block_cache_bytes: self.block_cache_bytes,
            store_id: self.store_id,
            compaction_history: self.compaction_history.clone(),
            closed: AtomicBool::new(false),
            kind: StoreKind::Pinned(Box::new(Pinned {
                clock: databases.clock.clone(),
            })),
        }))
    }

    fn local(&self) -> Result<&Local, StoreError> {
        match &self.kind {
            StoreKind::Local(local) => Ok(local),
            StoreKind::Remote(_) | StoreKind::Pinned(_) => Err(StoreError::InvalidConfig(
                "only a store in a folder can keep its tablets as they are at one moment".into(),
            )),
        }
    }
}

/// Waits until all that is staged is in the memtables.
async fn applied(tablets: &[Arc<Tablet>]) -> Result<(), StoreError> {
    try_join_all(tablets.iter().map(|tablet| tablet.stage.applied())).await?;
    Ok(())
}

/// Freezes the memtables of all tablets between two groups of the log; none if what is staged does not get into them soon, or they are being
/// changed for longer.
async fn freeze(local: &Local, tablets: &OpenTablets) -> Result<Option<Vec<PinnedReceiver>>, StoreError> {
    let runtime = tokio::runtime::Handle::current();
    let tablets = tablets.clone();
    let (sender, frozen) = oneshot::channel();
    local.log.between_groups(Box::new(move || {
        let still = async {
            applied(&tablets).await?;
            Ok(join_all(tablets.iter().map(|tablet| tablet.flushes.memory.lock())).await)
        };
        let still = async { tokio::time::timeout(STAGED_WAIT, still).await };
        let frozen = match runtime.block_on(still) {
            Ok(Ok(locks)) => {
                let pinned = tablets.iter().zip(&locks);
                Ok(Some(pinned.map(|(tablet, lock)| tablet.pin_now(lock)).collect()))
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Ok(None),
        };
        let _ = sender.send(frozen);
    }));
    frozen.await.map_err(|_| StoreError::Closed)?
}

async fn open_tablet(
    objects: &Arc<dyn ObjectStore>,
    databases: &Databases,
    log: &Arc<NodeLog>,
    pinned: &PinnedTablet,
) -> Result<Arc<Tablet>, StoreError> {
    let admin = Admin::builder(tablet_path(pinned.id), objects.clone()).build();
    let manifest = admin.read_manifest(Some(pinned.manifest)).await;
    let manifest = manifest.map_err(|error| from_slatedb(&error))?;
    let manifest = manifest.ok_or_else(|| {
        StoreError::FileGone(format!("manifest {} of tablet {}", pinned.manifest, pinned.id))
    })?;
    Ok(assemble(
        databases,
        TabletParts {
            id: pinned.id,
            tokens: pinned.tokens,
            db: TabletDb::Pinned(Arc::new(manifest)),
            store: objects.clone(),
            compactions: Arc::default(),
            memtable_bytes: MEMTABLE_BYTES,
            log: log.clone(),
            limits: ReadLimits::default(),
        },
    ))
}
