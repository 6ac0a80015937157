//! Entries that a read comes across and that stand for nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::KeyKind;
use helenus_row::read::LiveRow;

use super::IndexSource;
use super::probe::RowOrder;
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
            let stale = StaleEntry {
                partition: entry.base,
                clustering: entry.clustering,
                written_us: entry.written_us,
            };
            self.stale.push((entry.value, stale));
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
        if !self.is_by_partition && !self.stands_for(table, KeyKind::Row, Some(row))? {
            self.note_stale();
        }
        Ok(())
    }

    /// Whether the row that was given last, or the static row of the partition, has another value than its entry says: where rows come in the
    /// order of values, it has another place there, or none.
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

    /// Whether the entry that was given last is right about the row, as far as one of that kind holds its value.
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

    /// Nothing of the partition was alive, or its static row does not fit.
    pub fn partition_is_dead(&mut self) {
        if self.is_by_partition {
            self.note_stale();
        }
    }

    /// Has entries removed that seem to stand for nothing.
    pub fn report(&mut self, context: &Arc<ExecutionContext>) {
        let mut by_value: BTreeMap<Bytes, Vec<StaleEntry>> = BTreeMap::new();
        for (value, entry) in self.stale.drain(..) {
            by_value.entry(value).or_default().push(entry);
        }
        for (value, entries) in by_value {
            let index = self.index.table.number.0;
            stale_entries::report(
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
