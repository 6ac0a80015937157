//! Rows of SSTables as packed rows.

use bytes::Bytes;
use helenus_row::{Cell, ColumnId, Deletion, Expiry, Liveness, RowBuilder};
use helenus_sstable::{CellKind, DeletionTime, Row, RowDeletion};

use super::statistics::Statistics;
use crate::table::{Target, Targets};

/// Returns the packed row, whose column ids are positions in the statement's list. `None` if nothing of the row is imported.
pub(super) fn pack(
    row: &Row,
    has_liveness: bool,
    targets: &Targets,
    statistics: &mut Statistics,
) -> Option<Bytes> {
    let mut builder = RowBuilder::new();
    head(row, has_liveness, &mut builder, statistics);
    let mut hint = 0;
    for deletion in &row.complex_deletions {
        match targets.find(&deletion.column, &mut hint) {
            Some(Target::Column { id, dropped_us }) => {
                if is_before_drop(dropped_us, deletion.time.timestamp_us, statistics) {
                    continue;
                }
                statistics.tombstones += 1;
                builder.delete_complex(id, deletion_of(deletion.time));
            }
            Some(Target::LeftOut(position)) => statistics.leave_out(position),
            None => {}
        }
    }
    let mut elements: Vec<(Bytes, Cell)> = Vec::new();
    let mut complex: Option<ColumnId> = None;
    hint = 0;
    for cell in &row.cells {
        let (id, dropped_us) = match targets.find(&cell.column, &mut hint) {
            Some(Target::Column { id, dropped_us }) => (id, dropped_us),
            Some(Target::LeftOut(position)) => {
                statistics.leave_out(position);
                continue;
            }
            None => continue,
        };
        if is_before_drop(dropped_us, cell.timestamp_us, statistics) {
            continue;
        }
        let converted = convert_cell(cell, statistics);
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
pub(super) fn head(row: &Row, has_liveness: bool, builder: &mut RowBuilder, statistics: &mut Statistics) {
    let liveness = row.liveness.filter(|_| has_liveness).map(|liveness| Liveness {
        timestamp_us: liveness.timestamp_us,
        expiry: liveness.expiry.map(expiry_of),
    });
    if let Some(liveness) = liveness {
        builder.liveness(liveness);
    }
    if let Some(deletion) = row.deletion.filter(|deletion| !is_revoked(deletion, liveness)) {
        statistics.tombstones += 1;
        builder.delete_row(deletion_of(deletion.time));
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
