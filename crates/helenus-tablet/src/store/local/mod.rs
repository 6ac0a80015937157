//! A store in a folder: one log for all tablets, which are open as long as the store is.

mod closing;
pub(crate) mod maintenance;
mod open;

use std::fs::File;
use std::sync::Arc;

use object_store::ObjectStore;
use parking_lot::Mutex;
use slatedb_common::metrics::DefaultMetricsRecorder;

use super::Store;
use super::background::BackgroundRuntime;
use crate::cache::row_cache::RowCache;
use crate::clock::StoreClock;
use crate::config::StoreConfig;
use crate::data_model::DataModel;
use crate::database::Databases;
use crate::disk::checksummed_objects::ManifestChecksums;
use crate::disk::disk_reserve::DiskReserve;
use crate::disk::incremental_delete::FileDeleter;
use crate::disk::local_store::{DiskSpace, LocalStore, free_bytes};
use crate::disk::permissions;
use crate::error::StoreError;
use crate::metadata::folders::Folders;
use crate::metadata::store_metadata::StoreMetadata;
use crate::tablet::NodeLog;
use crate::threads::NodeThread;
use crate::tree::block_cache::BlockCache;
use maintenance::Maintenance;
use open::StoreOpener;

/// A store in a folder: one log for all tablets, which are open as long as the store is.
pub(crate) struct Local {
    pub log: Arc<NodeLog>,
    /// The shared resources from which pinned tablets are assembled.
    pub databases: Databases,
    /// The object store with the tablets' files.
    pub objects: Arc<dyn ObjectStore>,
    pub space: Arc<DiskSpace>,
    pub maintenance: Arc<Maintenance>,
    /// The clock that stamps stored entries.
    pub clock: Arc<StoreClock>,
    pub replayed_records: u64,
    pub running: Mutex<Running>,
    /// Locks the store against other processes.
    pub _lock: File,
}

/// Threads and tasks that `close` stops.
#[derive(Default)]
pub(crate) struct Running {
    pub(crate) log_thread: Option<NodeThread>,
    pub(crate) stage_appliers: Vec<tokio::task::JoinHandle<()>>,
    pub(crate) maintenance: Option<tokio::task::JoinHandle<()>>,
    pub(crate) background: Option<BackgroundRuntime>,
    pub(crate) writing: Option<BackgroundRuntime>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(maintenance) = self.maintenance.take() {
            maintenance.abort();
        }
    }
}

/// Opens the store of a folder. Creates one if there is none.
pub(crate) async fn open(
    folders: Folders,
    config: StoreConfig,
    model: Arc<dyn DataModel>,
) -> Result<Arc<Store>, StoreError> {
    let lock = folders.lock()?;
    permissions::restrict_to_owner(&folders.root);
    let reserve = Arc::new(DiskReserve::new(&folders.log()));
    reserve.release_if_full(free_bytes(&folders.root));
    let format = folders.load_format(config.tablet_count, config.fsync)?;
    folders.remove_unfinished();
    let checksums = Arc::<ManifestChecksums>::default();
    let metadata = StoreMetadata::open(&folders, &format, &checksums, config.fsync)?;
    let log_path = folders.log();

    let space = Arc::new(DiskSpace::new(
        &log_path,
        config.disk_reserve_bytes,
        reserve.clone(),
    ));
    let deleter = FileDeleter::start()
        .map_err(|error| StoreError::Unavailable(format!("cannot start the thread that deletes: {error}")))?;
    let local = LocalStore::open(
        &folders.root,
        space.clone(),
        deleter.clone(),
        checksums,
        config.fsync,
    )?;
    let object_store: Arc<dyn ObjectStore> = Arc::new(local);
    let opener = StoreOpener {
        clock: Arc::new(StoreClock::new(config.clock.clone())),
        block_cache: BlockCache::new(config.block_cache_bytes),
        row_cache: Arc::new(RowCache::new(config.row_cache_bytes)),
        metrics: Arc::new(DefaultMetricsRecorder::new()),
        compaction_history: Arc::default(),
        origins: Arc::default(),
        store: object_store.clone(),
        deleter,
        background: BackgroundRuntime::start(config.background_threads)?,
        writing: BackgroundRuntime::start_writing()?,
        config,
        model,
        format,
        metadata,
        reserve,
    };
    opener.open(folders, space, lock).await
}
