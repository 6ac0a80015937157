//! Writes that arrive late: with a timestamp that lies in the past, as those of retries, of replays, of clients whose clocks are slow.
//!
//! A compaction forgets a tombstone once nothing that it shadows is left. A late write that is older than the tombstone takes it along
//! again, from the archive, where flushes put a copy of each tombstone ([`crate::DataModel::archive`]). Other writes need not look there:
//! they are newer than any tombstone that was forgotten.
//!
//! A compaction begins when the late writes under way have ended: so each of them either found what the compaction forgets
//! in the archive, or lies where the compaction sees it ([`crate::compaction::WriteTimes`]).

use tokio::sync::OwnedRwLockReadGuard;

use crate::error::StoreError;
use crate::tablet::Tablet;
use crate::write_batch::Op;

/// Writes whose timestamps lie further back are late.
const LATE_US: i64 = 2_000_000;

/// Late writes under way in some tablets, until it is dropped.
#[derive(Default)]
pub struct LateWrites(Vec<(u32, OwnedRwLockReadGuard<()>)>);

impl LateWrites {
    /// True if there are none.
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

/// True if what was written is late at that time, in ms.
pub(crate) fn is_late(oldest_us: i64, now_ms: i64) -> bool {
    oldest_us <= now_ms.saturating_mul(1000).saturating_sub(LATE_US)
}

impl Tablet {
    pub(crate) async fn put_under_archived_tombstones(
        &self,
        op: &mut Op,
        now_ms: i64,
    ) -> Result<(), StoreError> {
        let Some(archives) = self.model.archives_over(&op.key) else {
            return Ok(());
        };
        // Past the row cache, which is for what is read.
        let row = Box::pin(self.read(&archives.row)).await?;
        let header = match &archives.header {
            Some(header) => Box::pin(self.read(header)).await?,
            None => None,
        };
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
}
