//! Tablets pinned at one cut ([`super::cut`]). They can be read ([`Store::open_pinned`]) and released ([`Store::unpin`],
//! [`Store::unpin_others`]).
//!
//! Any process that can read the files can open them, whichever node pinned them. A node may end before it has recorded its checkpoints.
//! [`Store::unpin_others`] removes such unknown checkpoints. In a bucket, another node may be about to record one, so only old ones are
//! removed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::future::try_join_all;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore};
use slatedb::Checkpoint;
use slatedb::admin::Admin;
use slatedb::config::CheckpointOptions;
use slatedb_common::clock::SystemClock;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::assemble::{TabletParts, assemble};
use super::{Store, StoreKind, unfinished_batches};
use crate::boxed;
use crate::clock::StoreClock;
use crate::config::StoreConfig;
use crate::database::Databases;
use crate::database::tablet_db::TabletDb;
use crate::error::{StoreError, from_slatedb};
use crate::metadata::documents::Meta;
use crate::metadata::slatedb_layout::tablet_path;
use crate::operation::Op;
use crate::tablet::origins::Origins;
use crate::tablet::pin::{CHECKPOINT_NAME, PinnedTablet};
use crate::tablet::{NodeLog, Tablet};
use crate::tree::limits::ReadLimits;

/// Memory for rows that are added to pinned tablets, which are few.
const MEMTABLE_BYTES: u64 = 1 << 20;
/// Age from which an unknown checkpoint in a bucket is removed. Until then a node may still record it.
const UNKNOWN_AGE_MAX: Duration = Duration::from_secs(600);
/// Maximum number of manifests that are read at the same time.
const READS: usize = 16;

/// State of a store of pinned tablets, besides the tablets.
pub(crate) struct Pinned {
    pub clock: Arc<StoreClock>,
    /// Number of operations that were added.
    pub added: AtomicU64,
}

/// The place of tablets that are only read, and the shared resources from which they are assembled.
#[derive(Clone)]
pub(crate) struct TabletFiles {
    pub databases: Databases,
    pub objects: Arc<dyn ObjectStore>,
    /// Maximum time to wait for reads. `None` if there is no limit.
    pub read_timeout: Option<Duration>,
}

impl Store {
    /// Releases pinned tablets. Their files are then deleted like other obsolete ones.
    #[boxed]
    pub async fn unpin(&self, pinned: &[PinnedTablet]) -> Result<(), StoreError> {
        let objects = self.files()?.objects;
        let unpin = |tablet: &PinnedTablet| {
            let (admin, checkpoint) = (admin(tablet.id, &objects), tablet.checkpoint);
            async move { delete(&admin, checkpoint).await }
        };
        let unpinning: Vec<_> = pinned.iter().map(unpin).collect();
        let unpinning = futures::stream::iter(unpinning).buffer_unordered(READS);
        unpinning.try_collect::<()>().await?;
        let gone = unfinished_batches::ids(pinned);
        unfinished_batches::delete(&objects, |id, _| gone.contains(&id)).await
    }

    /// Pins pinned tablets once more, each under a new checkpoint. They stay pinned when the old checkpoints are removed.
    ///
    /// # Errors
    /// The tablets have been released. If some were pinned before that, [`Store::unpin_others`] releases them.
    #[boxed]
    pub async fn pin_again(&self, pinned: &[PinnedTablet]) -> Result<Vec<PinnedTablet>, StoreError> {
        let objects = self.files()?.objects;
        let pin = |tablet: &PinnedTablet| {
            let admin = admin(tablet.id, &objects);
            let tablet = tablet.clone();
            async move {
                let options = CheckpointOptions {
                    source: Some(tablet.checkpoint),
                    name: Some(CHECKPOINT_NAME.to_owned()),
                    ..CheckpointOptions::default()
                };
                let created = admin.create_detached_checkpoint(&options).await;
                let created = created.map_err(|error| from_slatedb(&error))?;
                Ok::<_, StoreError>(PinnedTablet {
                    manifest: created.manifest_id,
                    checkpoint: created.id,
                    ..tablet
                })
            }
        };
        let pinning: Vec<_> = pinned.iter().map(pin).collect();
        let pinning = futures::stream::iter(pinning).buffered(READS);
        pinning.try_collect().await
    }

    /// Releases all pinned tablets except those with these checkpoints. In a bucket, tablets that were pinned in the last ten minutes are
    /// kept too. Returns the number of released ones. Their files are then deleted like other obsolete ones.
    #[boxed]
    pub async fn unpin_others(&self, kept: &BTreeSet<Uuid>) -> Result<usize, StoreError> {
        let TabletFiles {
            databases, objects, ..
        } = self.files()?;
        let (tablets, age_min) = match self.is_shared() {
            true => (self.stored_tablets().await?, UNKNOWN_AGE_MAX),
            false => (
                self.tablets().iter().map(|tablet| tablet.id()).collect(),
                Duration::ZERO,
            ),
        };
        let now = SystemClock::now(databases.clock.as_ref());
        let is_unknown = |checkpoint: &Checkpoint| {
            let age = (now - checkpoint.create_time).to_std().unwrap_or_default();
            age >= age_min && !kept.contains(&checkpoint.id)
        };
        let unpin = |tablet: u32| {
            let admin = admin(tablet, &objects);
            async move {
                let mut count = 0;
                for checkpoint in checkpoints(&admin)
                    .await?
                    .iter()
                    .filter(|found| is_unknown(found))
                {
                    delete(&admin, checkpoint.id).await?;
                    count += 1;
                }
                Ok::<usize, StoreError>(count)
            }
        };
        let is_old =
            |object: &ObjectMeta| (now - object.last_modified).to_std().unwrap_or_default() >= age_min;
        let is_gone = |id: Uuid, object: &ObjectMeta| is_old(object) && !kept.contains(&id);
        unfinished_batches::delete(&objects, is_gone).await?;
        let unpinning = futures::stream::iter(tablets).map(unpin).buffer_unordered(READS);
        unpinning
            .try_fold(0, |sum, count| async move { Ok(sum + count) })
            .await
    }

    /// Returns the bytes of the SSTables that only these pinned tablets have, and neither the open tablets nor `others`.
    ///
    /// # Errors
    /// A manifest cannot be read.
    #[boxed]
    pub async fn bytes_of_pinned(
        &self,
        pinned: &[PinnedTablet],
        others: &[PinnedTablet],
    ) -> Result<u64, StoreError> {
        let files = self.files()?;
        let log = NodeLog::new();
        let origins = Arc::<Origins>::default();
        let tables = |pinned: PinnedTablet| {
            let (files, log, origins) = (&files, &log, &origins);
            async move { Ok::<_, StoreError>(open_tablet(files, log, origins, &pinned).await?.files()) }
        };
        let reading: Vec<_> = others.iter().cloned().map(tables).collect();
        let of_others = futures::stream::iter(reading).buffer_unordered(READS);
        let of_others: Vec<_> = of_others.try_collect().await?;
        let now = self.tablets();
        let of_others = of_others.into_iter().flatten();
        let known = now.iter().flat_map(|tablet| tablet.files()).chain(of_others);
        let mut seen: BTreeSet<(u32, u128)> = known.map(|file| file.id()).collect();
        let reading: Vec<_> = pinned.iter().cloned().map(tables).collect();
        let mut own = futures::stream::iter(reading).buffer_unordered(READS);
        let mut bytes = 0;
        while let Some(found) = own.try_next().await? {
            let unseen = found.iter().filter(|file| seen.insert(file.id()));
            bytes += unseen.map(|file| file.bytes()).sum::<u64>();
        }
        Ok(bytes)
    }

    /// Opens pinned tablets as a read-only store.
    ///
    /// # Errors
    /// The tablets have been released, or one of their files is damaged.
    #[boxed]
    pub async fn open_pinned(&self, pinned: &[PinnedTablet]) -> Result<Arc<Store>, StoreError> {
        self.open_pinned_in(&self.files()?, pinned, Arc::default()).await
    }

    /// Opens pinned tablets like [`Store::open_pinned`], with the given place of their files and origins of their tables.
    pub(super) async fn open_pinned_in(
        &self,
        files: &TabletFiles,
        pinned: &[PinnedTablet],
        origins: Arc<Origins>,
    ) -> Result<Arc<Store>, StoreError> {
        let log = NodeLog::new();
        log.close(StoreError::ReadOnly);
        let opening = pinned
            .iter()
            .map(|pinned| open_tablet(files, &log, &origins, pinned));
        let mut tablets = try_join_all(opening).await?;
        tablets.sort_unstable_by_key(|tablet| tablet.token_range().first);
        let unfinished = unfinished_batches::read(&files.objects, pinned).await?;
        let store = Arc::new(Store {
            tablets: ArcSwap::from_pointee(tablets),
            in_flight: Arc::new(Semaphore::new(1)),
            in_flight_permits: 1,
            meta: Meta::new(files.objects.clone(), Path::default(), None),
            metrics: self.metrics.clone(),
            row_cache: self.row_cache.clone(),
            block_cache_bytes: self.block_cache_bytes,
            store_id: self.store_id,
            compaction_history: self.compaction_history.clone(),
            origins,
            closed: AtomicBool::new(false),
            kind: StoreKind::Pinned(Box::new(Pinned {
                clock: files.databases.clock.clone(),
                added: AtomicU64::default(),
            })),
        });
        store.add_to_pinned(unfinished)?;
        Ok(store)
    }

    /// Adds operations to this store of pinned tablets, in memory alone. They complete batches that were in progress at the cut.
    ///
    /// # Errors
    /// [`StoreError::InvalidConfig`] for any other store. [`StoreError::NotOwned`] if no tablet has the token.
    pub fn add_to_pinned(&self, ops: Vec<Op>) -> Result<(), StoreError> {
        let StoreKind::Pinned(pinned) = &self.kind else {
            return Err(StoreError::InvalidConfig(
                "operations are added to pinned tablets alone".into(),
            ));
        };
        for op in ops {
            let number = pinned.added.fetch_add(1, Ordering::Relaxed) + 1;
            self.tablet(op.token)?.stage_ops(vec![(number, op)])?;
        }
        Ok(())
    }

    /// Returns the place of this store's tablets, and the shared resources for reading them.
    pub(crate) fn files(&self) -> Result<TabletFiles, StoreError> {
        let (databases, objects) = match &self.kind {
            StoreKind::Local(local) => (&local.databases, local.objects.clone()),
            StoreKind::Remote(remote) => (remote.databases(), remote.tablet_files()),
            StoreKind::Pinned(_) => return Err(StoreError::ReadOnly),
        };
        Ok(TabletFiles {
            objects,
            read_timeout: self.is_shared().then_some(databases.config.read_timeout),
            databases: Databases {
                // Rows of the history must not evict current ones from the row cache.
                config: StoreConfig {
                    row_cache_bytes: 0,
                    ..databases.config.clone()
                },
                ..databases.clone()
            },
        })
    }
}

fn admin(tablet: u32, objects: &Arc<dyn ObjectStore>) -> Admin {
    Admin::builder(tablet_path(tablet), objects.clone()).build()
}

async fn checkpoints(admin: &Admin) -> Result<Vec<Checkpoint>, StoreError> {
    let checkpoints = admin.list_checkpoints(Some(CHECKPOINT_NAME)).await;
    checkpoints.map_err(|error| from_slatedb(&error))
}

/// Removes a checkpoint, unless another node has removed it. SlateDB would write a manifest even then.
async fn delete(admin: &Admin, checkpoint: Uuid) -> Result<(), StoreError> {
    let there = checkpoints(admin).await?;
    if !there.iter().any(|found| found.id == checkpoint) {
        return Ok(());
    }
    let deleted = admin.delete_checkpoint(checkpoint).await;
    deleted.map_err(|error| from_slatedb(&error))
}

async fn open_tablet(
    files: &TabletFiles,
    log: &Arc<NodeLog>,
    origins: &Arc<Origins>,
    pinned: &PinnedTablet,
) -> Result<Arc<Tablet>, StoreError> {
    let manifest = admin(pinned.id, &files.objects)
        .read_manifest(Some(pinned.manifest))
        .await;
    let manifest = manifest.map_err(|error| from_slatedb(&error))?;
    let manifest = manifest.ok_or_else(|| {
        StoreError::FileGone(format!("manifest {} of tablet {}", pinned.manifest, pinned.id))
    })?;
    Ok(assemble(
        &files.databases,
        TabletParts {
            id: pinned.id,
            tokens: pinned.tokens,
            db: TabletDb::Pinned(Arc::new(manifest)),
            store: files.objects.clone(),
            compactions: Arc::default(),
            memtable_bytes: MEMTABLE_BYTES,
            log: log.clone(),
            limits: files.read_timeout.map_or_else(ReadLimits::default, |timeout| {
                ReadLimits::of_bucket(timeout, pinned.tokens.first)
            }),
            origins: origins.clone(),
        },
    ))
}
