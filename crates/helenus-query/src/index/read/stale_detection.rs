//! Entries that a read comes across and that stand for nothing.

use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_row::KeyKind;
use helenus_row::read::LiveRow;

use super::IndexSource;
use crate::index::stale_entries;
use crate::index::stale_entry::{STALE_MAX, StaleEntries, StaleEntry};
use crate::index::values::{RowLocation, values};
use crate::schema::{ColumnKind, Table};
use crate::storage::ExecutionContext;

impl IndexSource {
    /// The row that was given last, or the partition if entries are by partition, does not have the value, as it seems.
    pub(crate) fn note_stale(&mut self) {
        if let Some(entry) = self.given.take()
            && self.stale.len() < STALE_MAX
        {
            self.stale.push(StaleEntry {
                partition: entry.base,
                clustering: entry.clustering,
                written_us: entry.written_us,
            });
        }
    }

    /// The row that was given last is not alive.
    pub fn row_is_dead(&mut self) {
        if !self.is_by_partition {
            self.note_stale();
        }
    }

    /// The row that was given last does not fit: perhaps it does not have the value.
    pub fn row_does_not_fit(&mut self, table: &Table, row: &LiveRow<'_>) -> Result<(), CqlError> {
        let (Some(entry), false) = (&self.given, self.is_by_partition) else {
            return Ok(());
        };
        let column = table.column(&self.index.target.column).map(|(_, column)| column);
        let Some(column) = column.filter(|column| column.kind == ColumnKind::Regular) else {
            return Ok(());
        };
        let place = RowLocation {
            partition: &entry.base,
            kind: KeyKind::Row,
            clustering: &[],
        };
        if !values(table, &self.index, column, place, Some(row))?.contains(&self.value) {
            self.note_stale();
        }
        Ok(())
    }

    /// True if the index is on a static column.
    pub fn is_by_static(&self, table: &Table) -> bool {
        let column = table.column(&self.index.target.column);
        column.is_some_and(|(_, column)| column.is_static())
    }

    /// Nothing of the partition was alive, or its static row does not fit.
    pub fn partition_is_dead(&mut self) {
        if self.is_by_partition {
            self.note_stale();
        }
    }

    /// Has entries removed that seem to stand for nothing.
    pub fn report(&mut self, context: &Arc<ExecutionContext>) {
        if self.stale.is_empty() {
            return;
        }
        let stale = StaleEntries {
            index: self.index.table.number.0,
            value: self.value.clone(),
            entries: std::mem::take(&mut self.stale),
        };
        stale_entries::report(context, stale);
    }
}
