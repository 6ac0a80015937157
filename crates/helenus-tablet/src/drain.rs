//! Puts what a tablet has staged into its LSM tree: one SlateDB batch, sorted, for all that has gathered.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use slatedb::config::WriteOptions;

use crate::error::{StoreError, from_slatedb};
use crate::pace::Debt;
use crate::stage::{Change, Table};
use crate::tablet::Tablet;
use crate::tree::MemTable;

/// How long a write lies in the stage at most while the tree takes writes.
const INTERVAL: Duration = Duration::from_millis(200);

/// Runs until the stage is closed and empty, and keeps the tablet's `debt`.
pub(crate) async fn run(tablet: Arc<Tablet>, debt: Arc<Debt>) {
    let stage = &tablet.stage;
    loop {
        stage.begun.notified().await;
        let is_last = stage.is_closed();
        if !is_last {
            let _ = tokio::time::timeout(INTERVAL, stage.due.notified()).await;
        }
        tablet.drain(&debt).await;
        if is_last {
            return;
        }
    }
}

impl Tablet {
    async fn drain(&self, debt: &Debt) {
        let Some(table) = self.stage.begin_drain() else {
            return;
        };
        match self.put(&table).await {
            Ok(snapshot) => {
                let hash = |key: &[u8]| self.cache.hash(key);
                let kept = self.stage.tree().absorb(|| MemTable::new(&table, hash));
                self.stage.end_drain(&table, snapshot, kept);
                self.see_files();
                let manifest = self.db.manifest();
                let flushed = manifest.replay_after_wal_id();
                debt.drained(table.last_lsn, table.bytes as u64, flushed, manifest.l0().len());
            }
            Err(error) => {
                tracing::error!(tablet = self.id(), %error, "what is in the log could not be applied");
                self.stage.fail(error);
            }
        }
        let counters = &self.counters;
        counters.batches.fetch_add(1, Ordering::Relaxed);
        counters.operands.fetch_add(table.operands, Ordering::Relaxed);
        counters.folded.fetch_add(table.folded, Ordering::Relaxed);
        for key in &table.hot {
            // Reading it puts it into the cache; if that fails the next reader will be told.
            let _ = self.get(key).await;
        }
    }

    async fn put(&self, table: &Table) -> Result<Arc<slatedb::DbSnapshot>, StoreError> {
        let mut batch = slatedb::WriteBatch::new();
        for (key, change) in &table.rows {
            match change {
                Change::Whole(value) => batch.put_bytes(key.clone(), value.clone()),
                Change::Operand(operand) => batch.merge(key, operand),
            }
        }
        let options = WriteOptions {
            seqnum: table.last_lsn,
        };
        let written = self.db.write_with_options(batch, &options).await;
        written
            .and_then(|_| self.db.snapshot())
            .map_err(|error| from_slatedb(&error))
    }
}
