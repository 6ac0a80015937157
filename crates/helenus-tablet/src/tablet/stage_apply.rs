//! Moves the staged writes of a tablet into the memtables of its LSM tree, as one sorted table.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::data_model::DataModelError;
use crate::priority::yield_if_due;
use crate::tablet::Tablet;
use crate::tablet::flush::Flushes;
use crate::tree::MemTable;
use crate::tree::changes::ChangeTable;

/// Maximum time that a write stays in the stage while the tree takes writes.
const INTERVAL: Duration = Duration::from_millis(200);

/// Applies the stage until it is closed and empty, and updates the tablet's backlog.
pub(crate) async fn run(tablet: Arc<Tablet>) {
    let stage = &tablet.stage;
    loop {
        tokio::select! {
            () = stage.begun.notified() => {}
            () = tablet.memory_purges.due() => {
                tablet.purge().await;
                continue;
            }
        }
        if !stage.is_closed() {
            let _ = tokio::time::timeout(INTERVAL, stage.due.notified()).await;
        }
        tablet.flushes.wait_for_room(stage).await;
        let is_last = stage.is_closed();
        tablet.apply_stage().await;
        if is_last {
            return;
        }
    }
}

impl Tablet {
    async fn apply_stage(&self) {
        let Some(table) = self.stage.begin_apply() else {
            return;
        };
        // Updates the counters before waiters are notified.
        let counters = &self.counters;
        counters.batches.fetch_add(1, Ordering::Relaxed);
        counters.operands.fetch_add(table.operands, Ordering::Relaxed);
        counters.folded.fetch_add(table.folded, Ordering::Relaxed);
        if let Err(error) = self.add_memtable(&self.flushes, &table).await {
            tracing::error!(tablet = self.id(), %error, "log records could not be applied to the memtables");
            self.stage.fail(error.into());
        }
        let level0_files = self.db.manifest().map_or(0, |manifest| manifest.l0().len());
        self.backlog
            .update(self.stage.tree().memory_bytes(), level0_files);
        for key in &table.hot {
            // Reading the row inserts it into the cache. If the read fails, the next reader gets the error.
            let _ = self.get(key).await;
        }
        // The table may have tens of thousands of rows, which take milliseconds to free.
        if let Some(table) = Arc::into_inner(table) {
            for row in table.rows {
                drop(row);
                yield_if_due();
            }
        }
    }

    async fn add_memtable(&self, flushes: &Flushes, table: &ChangeTable) -> Result<(), DataModelError> {
        let batch = MemTable::new(table, |key| self.cache.hash(key));
        let memory = flushes.memory.lock().await;
        let tree = self.stage.tree();
        let (Some(memtable), is_all) = tree.add_memtable(&*self.model, batch)? else {
            return Ok(());
        };
        let mut bytes = memtable.rows.size();
        self.stage.end_apply(table, memtable);
        if is_all {
            drop((tree, memory));
            if self.is_purge_worthwhile() {
                self.purge().await;
                bytes = self.stage.tree().unfrozen_bytes();
            }
            flushes.joined(bytes);
        }
        Ok(())
    }

    /// Purges the memtables. Rows that cannot be decoded stay as they are, and their error is reported when they are read.
    async fn purge(&self) {
        if let Err(error) = self.purge_memory().await {
            tracing::error!(tablet = self.id(), %error, "the memtables could not be purged");
        }
    }
}
