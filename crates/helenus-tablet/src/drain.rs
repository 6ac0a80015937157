//! Puts what a local tablet has staged into the memory of its LSM tree: one sorted table for all that has gathered.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::flush::Flushes;
use crate::pace::Debt;
use crate::tablet::Tablet;
use crate::tree::{MemTable, Parts};

/// How long a write lies in the stage at most while the tree takes writes.
const INTERVAL: Duration = Duration::from_millis(200);

/// Runs until the stage is closed and empty, and keeps the tablet's `debt`.
pub(crate) async fn run(tablet: Arc<Tablet>, debt: Arc<Debt>) {
    let (stage, Some(disk)) = (&tablet.stage, &tablet.disk) else {
        return;
    };
    loop {
        stage.begun.notified().await;
        if !stage.is_closed() {
            let _ = tokio::time::timeout(INTERVAL, stage.due.notified()).await;
        }
        disk.flushes.wait_for_room(stage).await;
        let is_last = stage.is_closed();
        tablet.drain(&disk.flushes, &debt).await;
        if is_last {
            return;
        }
    }
}

impl Tablet {
    async fn drain(&self, flushes: &Flushes, debt: &Debt) {
        let Some(table) = self.stage.begin_drain() else {
            return;
        };
        let drained = MemTable::new(&table, |key| self.cache.hash(key));
        if let Some(absorbed) = self.stage.tree().parts().map(|parts: &Parts| parts.absorb(drained)) {
            self.stage.end_drain(&table, absorbed);
        }
        flushes.drained(&self.stage);
        let manifest = self.db.manifest();
        let flushed = manifest.replay_after_wal_id();
        debt.drained(table.last_lsn, table.bytes as u64, flushed, manifest.l0().len());
        let counters = &self.counters;
        counters.batches.fetch_add(1, Ordering::Relaxed);
        counters.operands.fetch_add(table.operands, Ordering::Relaxed);
        counters.folded.fetch_add(table.folded, Ordering::Relaxed);
        for key in &table.hot {
            // Reading it puts it into the cache; if that fails the next reader will be told.
            let _ = self.get(key).await;
        }
    }
}
