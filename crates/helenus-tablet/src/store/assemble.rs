//! Assembles a tablet from its open database, and starts its tasks.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use helenus_row::TokenRange;
use object_store::ObjectStore;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::cache::row_cache_handle::RowCacheHandle;
use crate::compaction::CompactionState;
use crate::database::tablet_db::TabletDb;
use crate::database::{Databases, LEVEL0_MAX};
use crate::stage::backpressure::CompactionBacklog;
use crate::stage::{Stage, StageLimits};
use crate::tablet::flush::Flushes;
use crate::tablet::memory_purge::MemoryPurges;
use crate::tablet::obsolete_files::Scans;
use crate::tablet::origins::Origins;
use crate::tablet::stats::TabletCounters;
use crate::tablet::{NodeLog, Tablet, flush, manifest, stage_apply};
use crate::tree::limits::ReadLimits;
use crate::tree::{SsTables, Tree, filters};

/// A tablet's database, and its share of the node's resources.
pub(super) struct TabletParts {
    pub id: u32,
    pub tokens: TokenRange,
    pub db: TabletDb,
    /// The object store with the tablet's files.
    pub store: Arc<dyn ObjectStore>,
    pub compactions: Arc<CompactionState>,
    pub memtable_bytes: u64,
    pub log: Arc<NodeLog>,
    pub limits: ReadLimits,
    pub origins: Arc<Origins>,
}

/// Returns the tablet, with nothing in memory and without running tasks.
pub(super) fn assemble(databases: &Databases, parts: TabletParts) -> Arc<Tablet> {
    let memtable_bytes = parts.memtable_bytes;
    let model = databases.model.clone();
    let tables = Arc::new(SsTables::new(
        parts.id,
        parts.store,
        databases.block_cache.clone(),
        filters::policy(model.clone()),
    ));
    let mut files = Arc::default();
    tables.refresh_files(|| parts.db.manifest(), |found| files = found);
    let tree = Tree::new(tables.clone(), files, flush::join_bytes(memtable_bytes));
    Arc::new(Tablet {
        id: parts.id,
        tokens: parts.tokens,
        db: parts.db,
        cache: RowCacheHandle::new(databases.row_cache.clone()),
        stage: Arc::new(Stage::new(tree, StageLimits::new(memtable_bytes), model.clone())),
        row_cache_on: databases.config.row_cache_bytes > 0,
        model,
        clock: databases.clock.clone(),
        counters: TabletCounters::default(),
        compactions: parts.compactions,
        scans: Scans::new(),
        tables,
        flushes: Flushes::new(memtable_bytes),
        memory_purges: MemoryPurges::default(),
        backlog: CompactionBacklog::new(memtable_bytes, LEVEL0_MAX),
        log: parts.log,
        limits: parts.limits,
        origins: parts.origins,
        accepts_writes: AtomicBool::new(true),
    })
}

/// Starts the tasks that flush the memtables and apply the stage. Returns the latter, which ends when the stage is closed.
pub(super) fn start_tasks(tablet: &Arc<Tablet>, writing: &Handle, background: &Handle) -> JoinHandle<()> {
    background.spawn(flush::run(tablet.clone()));
    if let TabletDb::Owned(db) = &tablet.db {
        background.spawn(manifest::track_manifest(tablet, db));
    }
    writing.spawn(stage_apply::run(tablet.clone()))
}
