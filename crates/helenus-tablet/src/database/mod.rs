//! Settings and setup of a tablet's SlateDB database, in a folder or in a bucket.

mod compactor;
pub(crate) mod followed;
pub(crate) mod tablet_db;
pub(crate) mod wal;

use std::sync::{Arc, OnceLock};

use helenus_row::TokenRange;
use object_store::ObjectStore;
use object_store::path::Path;
use slatedb::config::{CompressionCodec, GarbageCollectorOptions, Settings};
use slatedb::{CompactorBuilder, Db, DbBuilder};
use slatedb_common::metrics::DefaultMetricsRecorder;
use tokio::sync::Semaphore;

use crate::cache::row_cache::RowCache;
use crate::clock::StoreClock;
use crate::compaction;
use crate::compaction::{CompactionHistory, CompactionState, CompactorPresence, SchedulerFactory, Tables};
use crate::config::StoreConfig;
use crate::data_model::{DataModel, Merge};
use crate::metadata::slatedb_layout::{DOCUMENTS, tablet_path};
use crate::throttle::Throttle;
use crate::throttle::object_store::ThrottledObjectStore;
use crate::tree::block_cache::BlockCache;
use crate::tree::filters;

/// Maximum number of files at level 0. SlateDB writes no more of them until some are compacted.
pub(crate) const LEVEL0_MAX: usize = 16;

pub(crate) use compactor::run as run_compactor;

/// The shared parts of a store's databases.
#[derive(Clone)]
pub(crate) struct Databases {
    pub config: StoreConfig,
    pub model: Arc<dyn DataModel>,
    pub clock: Arc<StoreClock>,
    pub block_cache: Arc<BlockCache>,
    pub row_cache: Arc<RowCache>,
    pub metrics: Arc<DefaultMetricsRecorder>,
    /// The runtime of flushes and compactions.
    pub background: tokio::runtime::Handle,
    /// Limits the parts of compactions that run concurrently, over all tablets.
    pub slots: Arc<Semaphore>,
    pub compactors: Arc<CompactorPresence>,
    pub history: Arc<CompactionHistory>,
}

/// A tablet's database.
#[derive(Clone)]
pub(crate) struct Database {
    pub id: u32,
    /// Token range of the tablet. Rows outside it are dropped, such as those of the other half after a split. `None` if all rows are kept.
    pub only: Option<TokenRange>,
    pub store: Arc<dyn ObjectStore>,
    /// Objects as seen by compactions, whose reads do not displace other data from caches.
    pub compaction_store: Arc<dyn ObjectStore>,
    pub compactions: Arc<CompactionState>,
}

/// The database, once it is open. Compactions read rows from it.
pub(crate) type Opened = Arc<OnceLock<Db>>;

impl Databases {
    /// Returns the settings of a database on a local disk that has `memtable_bytes` for its memtables.
    pub fn settings(&self, memtable_bytes: u64) -> Settings {
        Settings {
            // No interval is needed, because each batch is flushed explicitly.
            flush_interval: None,
            // A quarter for each file: one is being filled, one or two are being written, and the rest is slack before writes have to wait.
            // A tablet on a local disk gives SlateDB the rows to flush in one batch.
            l0_sst_size_bytes: (memtable_bytes / 4).clamp(1 << 20, 64 << 20) as usize,
            max_unflushed_bytes: memtable_bytes.max(2 << 20) as usize,
            l0_max_ssts: LEVEL0_MAX,
            l0_max_ssts_per_key: LEVEL0_MAX,
            l0_flush_parallelism: 1,
            min_filter_keys: compaction::MIN_FILTER_KEYS,
            compression_codec: Some(CompressionCodec::Lz4),
            // The compactor runs beside the database.
            compactor_options: None,
            garbage_collector_options: Some(GarbageCollectorOptions {
                manifest_options: Some(DOCUMENTS),
                wal_options: None,
                wal_fence_options: None,
                // SSTables are deleted by `crate::tablet::obsolete_files`.
                compacted_options: None,
                compactions_options: Some(DOCUMENTS),
                detach_options: None,
                // A local file system has no conditional overwrite. The lock of the folder replaces it.
                boundary_files_enabled: false,
                ..GarbageCollectorOptions::default()
            }),
            ..Settings::default()
        }
    }

    /// Returns a compactor of a database, which runs beside it.
    pub fn compactor(&self, database: &Database, opened: &Opened) -> CompactorBuilder<Path> {
        let path = tablet_path(database.id);
        let policy = filters::policy(self.model.clone());
        database.compactions.start();
        let are_elsewhere = database.compactions.elsewhere.begin(&self.compactors);
        CompactorBuilder::new(
            path.clone(),
            throttled(&database.compaction_store, &self.config.throttles.compaction),
        )
        .with_runtime(self.background.clone())
        .with_system_clock(self.clock.clone())
        .with_metrics_recorder(self.metrics.clone())
        .with_merge_operator(Arc::new(Merge(self.model.clone())))
        .with_options(compaction::options(&self.config, are_elsewhere))
        .with_filter_policies(vec![policy.clone()])
        .with_scheduler_supplier(Arc::new(SchedulerFactory {
            compactions: database.compactions.clone(),
            clock: self.clock.clone(),
        }))
        .with_compaction_filter_supplier(Arc::new(compaction::Filters {
            model: self.model.clone(),
            clock: self.clock.clone(),
            db: opened.clone(),
            compactions: database.compactions.clone(),
            tables: Arc::new(Tables {
                store: database.store.clone(),
                root: path,
                policy,
            }),
            slots: self.slots.clone(),
            only: database.only,
        }))
    }

    /// Returns a builder of a database. Its compactor and an external log are set elsewhere.
    pub fn builder(&self, database: &Database, settings: Settings) -> DbBuilder<Path> {
        let mut builder = Db::builder(
            tablet_path(database.id),
            throttled(&database.store, &self.config.throttles.flush),
        )
        .with_settings(settings)
        .with_merge_operator(Arc::new(Merge(self.model.clone())))
        .with_filter_policies(vec![filters::policy(self.model.clone())])
        .with_db_cache(self.block_cache.clone(), u64::from(database.id))
        .with_system_clock(self.clock.clone())
        .with_metrics_recorder(self.metrics.clone());
        if let Some(seed) = self.config.seed {
            builder = builder.with_seed(seed.wrapping_add(u64::from(database.id)));
        }
        builder
    }
}

/// Returns a view of the store that throttles the writing of SSTables.
pub(crate) fn throttled(store: &Arc<dyn ObjectStore>, throttle: &Arc<Throttle>) -> Arc<dyn ObjectStore> {
    Arc::new(ThrottledObjectStore::new(store.clone(), throttle.clone()))
}
