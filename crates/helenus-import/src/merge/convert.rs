//! Rows of SSTables as packed rows.

use std::sync::Arc;

use bytes::Bytes;
use helenus_row::{Cell, ColumnId, Deletion, Expiry, Liveness, RowBuilder};
use helenus_sstable::{CellKind, Column, DeletionTime, Row, RowDeletion};

use super::statistics::Statistics;
use crate::table::{Target, Targets};

/// Conversion of one version of a row.
pub(super) struct Conversion<'a> {
    pub(super) targets: &'a Targets,
    /// False if rows of the table have no liveness.
    pub(super) has_liveness: bool,
    /// The deletion of the partition or of ranges that covers the row. What it deletes isn't sent: the target may drop a deletion that
    /// covers nothing before the covered cells come.
    pub(super) covering: Option<Deletion>,
    /// Time in µs. Cells and deletions with lower timestamps are left out. `None` for all.
    pub(super) since_us: Option<i64>,
    pub(super) statistics: &'a mut Statistics,
}

impl Conversion<'_> {
    /// Returns the packed row, whose column ids are positions in the statement's list. `None` if nothing of the row is imported.
    pub(super) fn pack(&mut self, row: &Row) -> Option<Bytes> {
        let mut builder = RowBuilder::new();
        self.head(row, &mut builder);
        let mut hint = 0;
        for deletion in &row.complex_deletions {
            // A statement that replaces a collection deletes it with a timestamp that is lower by one than that of the new elements.
            if self.is_older(deletion.time.timestamp_us.saturating_add(1)) {
                continue;
            }
            let Some(id) = self.target(&deletion.column, deletion.time.timestamp_us, &mut hint) else {
                continue;
            };
            self.statistics.tombstones += 1;
            builder.delete_complex(id, deletion_of(deletion.time));
        }
        let mut elements: Vec<(Bytes, Cell)> = Vec::new();
        let mut complex: Option<ColumnId> = None;
        hint = 0;
        for cell in &row.cells {
            if self.is_older(cell.timestamp_us) {
                self.statistics.cells_before_since += 1;
                continue;
            }
            let Some(id) = self.target(&cell.column, cell.timestamp_us, &mut hint) else {
                continue;
            };
            let converted = convert_cell(cell, self.statistics);
            let Some(path) = &cell.path else {
                builder.cell(id, converted);
                continue;
            };
            if complex != Some(id)
                && let Some(before) = complex.replace(id)
            {
                builder.complex_cells(before, elements.drain(..));
            }
            elements.push((path.clone(), converted));
        }
        if let Some(id) = complex {
            builder.complex_cells(id, elements);
        }
        (!builder.is_empty()).then(|| builder.build())
    }

    /// Adds the liveness and the deletion of a row.
    pub(super) fn head(&mut self, row: &Row, builder: &mut RowBuilder) {
        let liveness = row
            .liveness
            .filter(|_| self.has_liveness)
            .map(|liveness| Liveness {
                timestamp_us: liveness.timestamp_us,
                expiry: liveness.expiry.map(expiry_of),
            });
        let is_taken = |liveness: &Liveness| {
            !self.is_covered(liveness.timestamp_us) && !self.is_older(liveness.timestamp_us)
        };
        if let Some(liveness) = liveness.filter(is_taken) {
            builder.liveness(liveness);
        }
        let deletion = row.deletion.filter(|deletion| !is_revoked(deletion, liveness));
        let deletion = deletion.filter(|deletion| !self.is_older(deletion.time.timestamp_us));
        let deletion = deletion.map(|deletion| deletion_of(deletion.time));
        if let Some(deletion) = deletion.filter(|deletion| Some(*deletion) > self.covering) {
            self.statistics.tombstones += 1;
            builder.delete_row(deletion);
        }
    }

    /// Returns the id of a column to which a cell or deletion goes. `None`, and counted, if it is left out.
    fn target(&mut self, column: &Arc<Column>, timestamp_us: i64, hint: &mut usize) -> Option<ColumnId> {
        match self.targets.find(column, hint)? {
            Target::Column { dropped_us, .. }
                if is_before_drop(dropped_us, timestamp_us, self.statistics) =>
            {
                None
            }
            Target::Column { .. } if self.is_covered(timestamp_us) => {
                self.statistics.shadowed += 1;
                None
            }
            Target::Column { id, .. } => Some(id),
            Target::LeftOut(position) => {
                self.statistics.leave_out(position);
                None
            }
        }
    }

    fn is_older(&self, timestamp_us: i64) -> bool {
        self.since_us.is_some_and(|since_us| timestamp_us < since_us)
    }

    fn is_covered(&self, timestamp_us: i64) -> bool {
        self.covering
            .is_some_and(|covering| covering.deletes(timestamp_us))
    }
}

/// Returns true if a newer liveness revokes the deletion.
fn is_revoked(deletion: &RowDeletion, liveness: Option<Liveness>) -> bool {
    deletion.is_shadowable
        && liveness.is_some_and(|liveness| liveness.timestamp_us > deletion.time.timestamp_us)
}

/// Returns true, and counts the cell, if it is from before the drop of its column.
pub(super) fn is_before_drop(
    dropped_us: Option<i64>,
    timestamp_us: i64,
    statistics: &mut Statistics,
) -> bool {
    let is_before = dropped_us.is_some_and(|dropped_us| timestamp_us <= dropped_us);
    statistics.cells_before_drop += u64::from(is_before);
    is_before
}

fn convert_cell(cell: &helenus_sstable::Cell, statistics: &mut Statistics) -> Cell {
    match cell.kind {
        CellKind::Live => {
            statistics.cells += 1;
            Cell::live(cell.timestamp_us, cell.value.clone())
        }
        CellKind::Expiring(expiry) => {
            statistics.cells += 1;
            Cell::expiring(cell.timestamp_us, expiry_of(expiry), cell.value.clone())
        }
        CellKind::Deleted { local_deletion_s } => {
            statistics.tombstones += 1;
            Cell::tombstone(cell.timestamp_us, valid_seconds(local_deletion_s))
        }
    }
}

fn expiry_of(expiry: helenus_sstable::Expiry) -> Expiry {
    Expiry {
        ttl_s: expiry.ttl_s,
        expires_at_s: valid_seconds(expiry.expires_at_s),
    }
}

pub(super) fn deletion_of(time: DeletionTime) -> Deletion {
    Deletion {
        timestamp_us: time.timestamp_us,
        local_deletion_s: valid_seconds(time.local_deletion_s),
    }
}

/// Returns a time in s since 1970 that the target accepts. Old versions wrote negative ones when a TTL overflowed (CASSANDRA-14092). They read
/// such cells as expired, which those of 1970 are as well.
pub(super) fn valid_seconds(seconds: i64) -> i64 {
    seconds.clamp(0, i64::from(u32::MAX))
}
