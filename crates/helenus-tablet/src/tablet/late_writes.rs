//! Late writes: writes with old timestamps, such as retries, replays, and writes of clients with slow clocks.
//!
//! A compaction purges a tombstone once nothing that it shadows is left. A late write that is older than the tombstone restores it from the
//! archive, to which flushes copy each tombstone ([`crate::TombstoneArchive::archive`]). Other writes need no look-up: they are newer than any
//! purged tombstone.
//!
//! A purge of the memtables moves tombstones to the archive in memory ([`super::memory_purge`]). So a late write looks at the row and its
//! header in memory first, and then into the archive. It finds a tombstone in one of the two places, or in both.
//!
//! A compaction begins after the late writes in progress have ended. Each of these either found the purged tombstones in the archive, or is
//! visible to the compaction (`crate::compaction::write_times`).

use bytes::Bytes;
use tokio::sync::OwnedRwLockReadGuard;

use crate::error::StoreError;
use crate::operation::Op;
use crate::stage::View;
use crate::tablet::Tablet;

/// Age in microseconds from which a write is late.
const LATE_US: i64 = 2_000_000;

/// Guard of the late writes in progress in some tablets. They end when it is dropped.
#[derive(Default)]
pub struct LateWrites(Vec<(u32, OwnedRwLockReadGuard<()>)>);

impl LateWrites {
    /// Returns true if no late write is in progress.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) async fn enter(&mut self, tablet: &Tablet) {
        if !self.0.iter().any(|(entered, _)| *entered == tablet.id) {
            let guard = tablet.compactions.late.clone().read_owned().await;
            self.0.push((tablet.id, guard));
        }
    }
}

/// Returns true if a write with this oldest timestamp is late at `now_ms`.
pub(crate) fn is_late(oldest_us: i64, now_ms: i64) -> bool {
    oldest_us <= now_ms.saturating_mul(1000).saturating_sub(LATE_US)
}

impl Tablet {
    /// Merges a late operation with the archived tombstones of its row, and adds the tablet to those with late writes in progress.
    pub(crate) async fn put_late_under_archived_tombstones(
        &self,
        op: &mut Op,
        late: &mut LateWrites,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        late.enter(self).await;
        let Some(archives) = self.model.archives_over(&op.key) else {
            return Ok(());
        };
        let row = self.read_in_memory(&op.key)?;
        let header = archives.unarchived_header.as_ref();
        let header = header.map(|header| self.read_in_memory(header)).transpose()?;
        self.put_under(op, row, header.flatten(), now_ms)?;
        // Bypasses the row cache, which is for rows that clients read.
        let row = Box::pin(self.read(&archives.row)).await?;
        let header = match &archives.header {
            Some(header) => Box::pin(self.read(header)).await?,
            None => None,
        };
        self.put_under(op, row, header, now_ms)?;
        let key = op.key.clone();
        Box::pin(self.put_under_origin(op, &key, now_ms)).await
    }

    /// Merges an operation with the archived tombstones of its row in the table's origin. `key` is the row's key in this tablet.
    async fn put_under_origin(&self, op: &mut Op, key: &[u8], now_ms: i64) -> Result<(), StoreError> {
        let Some(origin) = self.origins.of(key) else {
            return Ok(());
        };
        let Some(tablet) = origin.tablet_of(&*self.model, key).await? else {
            return Ok(());
        };
        let key = origin.key_there(key);
        if let Some(archives) = self.model.archives_of_origin(&op.key, &key) {
            let row = tablet.read(&archives.row).await?;
            let header = match &archives.header {
                Some(header) => tablet.read(header).await?,
                None => None,
            };
            self.put_under(op, row, header, now_ms)?;
        }
        Box::pin(tablet.put_under_origin(op, &key, now_ms)).await
    }

    /// Merges an operation with tombstones of its row and of its partition's header.
    fn put_under(
        &self,
        op: &mut Op,
        row: Option<Bytes>,
        header: Option<Bytes>,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        if row.is_some() || header.is_some() {
            op.operand = self.model.apply_archived_tombstones(
                &op.key,
                &op.operand,
                row.as_ref(),
                header.as_ref(),
                now_ms,
            )?;
        }
        Ok(())
    }

    /// Returns the row at `key` as far as the stage and the memtables contain it.
    fn read_in_memory(&self, key: &Bytes) -> Result<Option<Bytes>, StoreError> {
        let View { change, tree } = self.stage.view(key)?;
        let model = &*self.model;
        let below = tree.get_in_memory(model, key, self.cache.hash(key))?;
        match change {
            None => Ok(below),
            Some(change) => Ok(Some(change.over(model, key, below.as_ref())?)),
        }
    }
}
