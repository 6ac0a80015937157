//! Detection of stale entries during reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::KeyKind;
use helenus_row::read::LiveRow;

use super::IndexSource;
use super::probe::RowOrder;
use crate::index::stale_entry::{STALE_MAX, StaleEntries, StaleEntry};
use crate::index::stale_removal;
use crate::index::values::{RowLocation, values};
use crate::schema::{ColumnKind, Table};
use crate::storage::ExecutionContext;

impl IndexSource {
    /// Records the last entry as stale: its row does not seem to have the value. If entries are by partition, this applies to its
    /// partition.
    pub(crate) fn note_stale(&mut self) {
        if let Some(entry) = self.given.take()
            && self.stale.len() < STALE_MAX
        {
            let stale = StaleEntry {
                partition: entry.base,
                clustering: entry.clustering,
                written_us: entry.written_us,
            };
            self.stale.push((entry.value, stale));
        }
    }

    /// Records that the last returned row is dead, so that its entry is stale.
    pub fn row_is_dead(&mut self) {
        if !self.is_by_partition {
            self.note_stale();
        }
    }

    /// Records that the last returned row did not pass the filter. Its entry is stale if the row does not have the value.
    pub fn row_does_not_fit(&mut self, table: &Table, row: &LiveRow<'_>) -> Result<(), CqlError> {
        if !self.is_by_partition && !self.stands_for(table, KeyKind::Row, Some(row))? {
            self.note_stale();
        }
        Ok(())
    }

    /// Returns true if the last returned row, or the partition's static row, does not have the value of its entry. In a read in the order
    /// of values, such a row belongs elsewhere, or nowhere.
    pub fn has_moved(
        &mut self,
        table: &Table,
        kind: KeyKind,
        row: Option<&LiveRow<'_>>,
    ) -> Result<bool, CqlError> {
        if self.order == RowOrder::Table || self.stands_for(table, kind, row)? {
            return Ok(false);
        }
        self.note_stale();
        Ok(true)
    }

    /// Returns true if the row has the value of the last entry. Also true if a row of that kind does not contain the indexed column.
    fn stands_for(&self, table: &Table, kind: KeyKind, row: Option<&LiveRow<'_>>) -> Result<bool, CqlError> {
        let Some(entry) = &self.given else {
            return Ok(true);
        };
        let holder = match kind {
            KeyKind::Static => ColumnKind::Static,
            _ => ColumnKind::Regular,
        };
        let column = table.column(&self.index.target.column).map(|(_, column)| column);
        let Some(column) = column.filter(|column| column.kind == holder) else {
            return Ok(true);
        };
        let place = RowLocation {
            partition: &entry.base,
            kind,
            clustering: &[],
        };
        Ok(values(table, &self.index, column, place, row)?.contains(&entry.value))
    }

    /// Returns true if the index is on a static column.
    pub fn is_by_static(&self, table: &Table) -> bool {
        let column = table.column(&self.index.target.column);
        column.is_some_and(|(_, column)| column.is_static())
    }

    /// Records that the partition is dead, or that its static row did not pass the filter.
    pub fn partition_is_dead(&mut self) {
        if self.is_by_partition {
            self.note_stale();
        }
    }

    /// Has the owners of the rows remove the stale entries.
    pub fn report(&mut self, context: &Arc<ExecutionContext>) {
        let mut by_value: BTreeMap<Bytes, Vec<StaleEntry>> = BTreeMap::new();
        for (value, entry) in self.stale.drain(..) {
            by_value.entry(value).or_default().push(entry);
        }
        for (value, entries) in by_value {
            let index = self.index.table.number.0;
            stale_removal::report(
                context,
                StaleEntries {
                    index,
                    value,
                    entries,
                },
            );
        }
    }
}
