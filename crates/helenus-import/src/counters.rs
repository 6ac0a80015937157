//! Counter cells: the shards of all versions become one total (`db.context.CounterContext`, `db.rows.Cells.resolveCounter`).

use helenus_row::{Cell, CellKind, Deletion};
use helenus_sstable::counter::{Shard, decode_context, merge_contexts, total};
use helenus_sstable::{CellKind as FileKind, SstableError};

/// The versions of one counter, while they are merged.
#[derive(Debug, Default)]
pub(crate) struct CounterVersions {
    shards: Vec<Vec<Shard>>,
    newest_us: Option<i64>,
    tombstone: Option<Cell>,
}

impl CounterVersions {
    /// Adds a version, unless a deletion covers it.
    pub(crate) fn add(
        &mut self,
        cell: &helenus_sstable::Cell,
        deletion: Option<Deletion>,
    ) -> Result<(), SstableError> {
        if deletion.is_some_and(|deletion| deletion.deletes(cell.timestamp_us)) {
            return Ok(());
        }
        if let FileKind::Deleted { local_deletion_s } = cell.kind {
            let known = self.tombstone.as_ref().map(|known| known.timestamp_us);
            if known < Some(cell.timestamp_us) {
                self.tombstone = Some(Cell::tombstone(
                    cell.timestamp_us,
                    local_deletion_s.clamp(0, i64::from(u32::MAX)),
                ));
            }
            return Ok(());
        }
        self.shards.push(decode_context(&cell.value)?);
        self.newest_us = self.newest_us.max(Some(cell.timestamp_us));
        Ok(())
    }

    /// Returns the cell. A tombstone wins whatever its timestamp, as in Cassandra. A total has the timestamp of its newest version, or
    /// `now_us`, which replaces the total of the target. `None` if no version is left.
    pub(crate) fn cell(self, now_us: Option<i64>) -> Option<Cell> {
        if self.tombstone.is_some() {
            return self.tombstone;
        }
        let timestamp_us = now_us.or(self.newest_us);
        let merged = merge_contexts(self.shards.iter().map(Vec::as_slice));
        self.newest_us?;
        Some(Cell::counter(timestamp_us?, total(&merged)))
    }
}

/// Returns true if the cell is a counter's total.
pub(crate) fn is_total(cell: &Cell) -> bool {
    cell.kind == CellKind::Counter
}
