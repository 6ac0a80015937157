//! Opens a store in a bucket.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arc_swap::ArcSwap;
use object_store::ObjectStore;
use object_store::path::Path;
use slatedb_common::metrics::DefaultMetricsRecorder;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::Remote;
use super::{compactor, log_maintenance};
use crate::bucket::connection::Bucket;
use crate::bucket::log_move::LogMoveRecord;
use crate::bucket::store_identity::BindTarget;
use crate::bucket::{check, format, log_store};
use crate::cache::disk::{DiskCache, DiskCacheConfig};
use crate::cache::row_cache::RowCache;
use crate::clock::StoreClock;
use crate::compaction;
use crate::compaction::CompactionHistory;
use crate::config::StoreConfig;
use crate::data_model::DataModel;
use crate::database::Databases;
use crate::error::StoreError;
use crate::log::topic::TopicLogs;
use crate::metadata::documents::Meta;
use crate::metadata::format::Format;
use crate::store::background::BackgroundRuntime;
use crate::store::bucket::single_node;
use crate::store::{Store, StoreKind, in_flight_permits};
use crate::tree::block_cache::BlockCache;

/// Opens the store of a bucket. Creates one if there is none.
pub(crate) async fn open(
    bucket: Bucket,
    config: StoreConfig,
    model: Arc<dyn DataModel>,
) -> Result<Arc<Store>, StoreError> {
    check::check(&bucket).await?;
    LogMoveRecord::refuse(&bucket).await?;
    open_moving(bucket, config, model).await
}

/// Opens the store of a bucket even while its log is being moved, for the process that moves it.
pub(super) async fn open_moving(
    bucket: Bucket,
    config: StoreConfig,
    model: Arc<dyn DataModel>,
) -> Result<Arc<Store>, StoreError> {
    let log = log_store::connect(&bucket, &config)?;
    let topic = log_store::connect_topic(&config).await?;
    let topic_url = config.log_topic.as_ref();
    let format = format::load_or_create(&bucket, log.as_ref(), topic_url, config.tablet_count).await?;
    let identity = BindTarget::store(&bucket).identity(Uuid::new_v4()).await?;
    let log = log_store::of_store(&bucket, log, topic_url, &format, identity).await?;
    let topic = topic.map(|client| TopicLogs {
        client,
        store_identity: identity,
        bucket: bucket.store.clone(),
    });
    let open_all = config.open_all_tablets;
    let disk_cache = disk_cache(&config, identity).await;
    let places = LogPlaces {
        log_store: log,
        topic,
    };
    let store = assemble(&bucket, places, disk_cache, config, model, &format, identity)?;
    let maintenance = tokio::spawn(log_maintenance::run(Arc::downgrade(&store)));
    let presence = tokio::spawn(compactor::follow_presence(Arc::downgrade(&store)));
    store.remote()?.tasks.lock().extend([maintenance, presence]);
    if open_all {
        single_node::open_all(&store).await?;
    }
    Ok(store)
}

/// Opens the store of a bucket for reading only. Nothing is written to the bucket, and there is no log. No tablet is open until
/// [`Store::follow_tablets`].
pub(crate) async fn open_read_only(
    bucket: Bucket,
    config: StoreConfig,
    model: Arc<dyn DataModel>,
) -> Result<Arc<Store>, StoreError> {
    let Some(format) = format::load(&bucket).await? else {
        return Err(StoreError::InvalidConfig(format!(
            "store = \"{}\": there is no store; the first node that is not read-only creates it",
            bucket.url
        )));
    };
    let identity = BindTarget::store(&bucket).recorded().await?;
    let disk_cache = disk_cache(&config, identity).await;
    assemble(
        &bucket,
        LogPlaces::default(),
        disk_cache,
        config,
        model,
        &format,
        identity,
    )
}

async fn disk_cache(config: &StoreConfig, identity: Uuid) -> Option<Arc<DiskCache>> {
    let config = DiskCacheConfig {
        folder: config.cache_dir.clone()?,
        bytes: config.cache_disk_bytes,
    };
    DiskCache::start(&config, identity).await
}

/// The place of a store's log. Both are `None` if the log is beside the store's data.
#[derive(Default)]
pub(super) struct LogPlaces {
    log_store: Option<Arc<dyn ObjectStore>>,
    topic: Option<TopicLogs>,
}

/// Returns the store of a bucket, without open tablets or running tasks.
pub(super) fn assemble(
    bucket: &Bucket,
    log: LogPlaces,
    disk_cache: Option<Arc<DiskCache>>,
    config: StoreConfig,
    model: Arc<dyn DataModel>,
    format: &Format,
    identity: Uuid,
) -> Result<Arc<Store>, StoreError> {
    bucket.checksums.require();
    let background = BackgroundRuntime::start(config.background_threads)?;
    let writing = BackgroundRuntime::start_writing()?;
    let permits = in_flight_permits(&config);
    let block_cache_bytes = config.block_cache_bytes;
    let metrics = Arc::new(DefaultMetricsRecorder::new());
    let row_cache = Arc::new(RowCache::new(config.row_cache_bytes));
    let compaction_history = Arc::<CompactionHistory>::default();
    let databases = Databases {
        model,
        clock: Arc::new(StoreClock::new(config.clock.clone())),
        block_cache: BlockCache::new(config.block_cache_bytes),
        row_cache: row_cache.clone(),
        metrics: metrics.clone(),
        background: background.handle.clone(),
        slots: Arc::new(Semaphore::new(compaction::slots(&config))),
        compactors: Arc::default(),
        history: compaction_history.clone(),
        config,
    };
    let remote = Remote {
        disk_cache,
        topic: log.topic,
        ..Remote::new(
            databases,
            bucket,
            log.log_store,
            background,
            writing,
            format,
            identity,
        )
    };
    Ok(Arc::new(Store {
        tablets: ArcSwap::default(),
        in_flight: Arc::new(Semaphore::new(permits as usize)),
        in_flight_permits: permits,
        meta: Meta::new(bucket.store.clone(), Path::default(), None),
        metrics,
        row_cache,
        block_cache_bytes,
        store_id: format.store_id,
        compaction_history,
        origins: remote.origins.clone(),
        closed: AtomicBool::new(false),
        kind: StoreKind::Remote(Box::new(remote)),
    }))
}
