//! Rows of counter tables: the shards of all versions become one total for each cell.

use std::collections::BTreeMap;

use bytes::Bytes;
use helenus_row::{ColumnId, Deletion, RowBuilder};
use helenus_sstable::Row;

use super::convert::{Conversion, deletion_of, is_before_drop};
use super::input::Input;
use super::statistics::Statistics;
use crate::counters::{CounterVersions, is_total};
use crate::error::ImportError;
use crate::table::Target;

/// Merges the versions of a row. `covering` is the deletion of the partition or of ranges, whose counters don't count.
pub(super) fn merge<'a>(
    versions: impl Iterator<Item = (&'a Row, &'a Input)>,
    covering: Option<Deletion>,
    now_us: Option<i64>,
    statistics: &mut Statistics,
) -> Result<Option<Bytes>, ImportError> {
    let versions: Vec<(&Row, &Input)> = versions.collect();
    let of_rows = versions.iter().filter_map(|(row, _)| row.deletion);
    let deletion = of_rows.fold(covering, |known, deletion| {
        Deletion::max(known, Some(deletion_of(deletion.time)))
    });
    let mut builder = RowBuilder::new();
    let mut counters: BTreeMap<ColumnId, CounterVersions> = BTreeMap::new();
    for (row, input) in versions {
        let mut conversion = Conversion {
            targets: &input.targets,
            has_liveness: false,
            covering,
            since_us: None,
            statistics: &mut *statistics,
        };
        conversion.head(row, &mut builder);
        let mut hint = 0;
        for cell in &row.cells {
            match input.targets.find(&cell.column, &mut hint) {
                Some(Target::Column { id, dropped_us }) => {
                    if is_before_drop(dropped_us, cell.timestamp_us, statistics) {
                        continue;
                    }
                    let versions = counters.entry(id).or_default();
                    versions.add(cell, deletion).map_err(|error| {
                        ImportError::Refused(format!("{}: a counter can't be read: {error}", input.file))
                    })?;
                }
                Some(Target::LeftOut(position)) => statistics.leave_out(position),
                None => {}
            }
        }
    }
    for (id, versions) in counters {
        let Some(cell) = versions.cell(now_us) else {
            continue;
        };
        match is_total(&cell) {
            true => {
                statistics.cells += 1;
                statistics.counters += 1;
            }
            false => statistics.tombstones += 1,
        }
        builder.cell(id, cell);
    }
    Ok((!builder.is_empty()).then(|| builder.build()))
}
