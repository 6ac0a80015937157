//! Images: the changed rows as they were before, and as they are after a change.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::header::PartitionHeader;
use helenus_row::merge::merge;
use helenus_row::read::{LiveColumn, LiveRow};
use helenus_row::row::Deletion;
use helenus_row::{ColumnId, KeyKind, RowBuilder};

use super::changes::{PartitionChanges, TimedChanges};
use super::log_rows::{LogRows, Operation, frozen, truth};
use super::{PartitionWrites, RowsBefore, WriteSet};
use crate::failure::ExecutionError;
use crate::rows::{StoredRow, corrupt};
use crate::schema::cdc_log::{deleted_column, value_column};
use crate::schema::table_options::cdc::Preimage;
use crate::schema::{Column, Table};

/// A row of a partition by encoded clustering. `None` is the static row.
type RowName = Option<Bytes>;

/// The state of the changed rows, between the changes of one request.
pub(super) struct Images<'a> {
    table: &'a Table,
    clusterings: &'a BTreeMap<Bytes, Vec<Bytes>>,
    /// Deletions over the rows once the request has been applied.
    shadows: BTreeMap<RowName, Option<Deletion>>,
    rows: BTreeMap<RowName, StoredRow>,
    now_s: i64,
    /// Newest timestamp in the rows and in the partition's deletions, in µs. `i64::MIN` if there is none.
    newest_us: i64,
}

impl<'a> Images<'a> {
    /// Reads the rows that the request changes. The caller has locked the partition.
    pub async fn read(
        set: &WriteSet,
        rows_before: &mut RowsBefore<'_>,
        writes: &'a PartitionWrites<'_>,
        changes: &'a PartitionChanges,
        now_us: i64,
    ) -> Result<Images<'a>, ExecutionError> {
        let (table, partition) = (writes.table, writes.partition);
        let header = rows_before.header(table, partition).await?;
        let after = set.header_after(header.clone(), table, partition);
        let mut rows = BTreeMap::new();
        let mut shadows = BTreeMap::new();
        for clustering in changes.clusterings.keys() {
            let found = rows_before
                .row(table, partition, Some(clustering), &header)
                .await?;
            rows.extend(found.map(|found| (Some(clustering.clone()), found)));
            shadows.insert(Some(clustering.clone()), after.deletion_at(clustering));
        }
        let mut groups = changes.by_time.values();
        if groups.any(|group| !group.static_updates.is_empty()) {
            let found = rows_before.row(table, partition, None, &header).await?;
            rows.extend(found.map(|found| (None, found)));
            shadows.insert(None, after.deletion);
        }
        let mut newest_us = newest_deletion_us(&header);
        for row in rows.values() {
            newest_us = newest_us.max(row.newest_us()?);
        }
        Ok(Images {
            table,
            clusterings: &changes.clusterings,
            newest_us,
            shadows,
            rows,
            now_s: now_us.div_euclid(1_000_000),
        })
    }

    /// Returns true if the rows may have the changes of a write with that timestamp already, because the write is repeated.
    pub fn may_have(&self, write_us: i64) -> bool {
        self.newest_us >= write_us
    }

    /// Adds the preimages of the rows that a group of changes writes or deletes.
    pub fn add_before(&self, group: &TimedChanges, log: &mut LogRows<'_>) -> Result<(), CqlError> {
        let is_full = match self.table.options.cdc.preimage {
            Preimage::Off => return Ok(()),
            Preimage::Changed => false,
            Preimage::Full => true,
        };
        for (name, columns) in changed_columns(group) {
            let Some(row) = self.rows.get(&name) else { continue };
            let Some(live) = row.live(self.now_s)? else {
                continue;
            };
            let is_included = |column: &Column| match &columns {
                Some(columns) => is_full || columns.contains(&column.id),
                None => true,
            };
            let included = self.columns(&name).filter(|column| is_included(column));
            let values = included
                .map(|column| match value(column, &live) {
                    Some(value) => (value_column(column.id), value),
                    None => (deleted_column(column.id), truth()),
                })
                .collect();
            log.add(Operation::Preimage, self.clustering(&name), 0, values);
        }
        Ok(())
    }

    /// Applies a group of changes, and adds the postimages of the rows that it writes.
    pub fn add_after(&mut self, group: &TimedChanges, log: &mut LogRows<'_>) -> Result<(), CqlError> {
        let mut written: BTreeMap<RowName, Vec<Bytes>> = BTreeMap::new();
        for row in group.static_updates.values() {
            written.entry(None).or_default().push(row.build());
        }
        for ((clustering, _), row) in group.inserts.iter().chain(&group.updates) {
            written
                .entry(Some(clustering.clone()))
                .or_default()
                .push(row.build());
        }
        let updated: BTreeSet<RowName> = written.keys().cloned().collect();
        for (clustering, deletion) in &group.row_deletions {
            let mut row = RowBuilder::new();
            row.delete_row(*deletion);
            written
                .entry(Some(clustering.clone()))
                .or_default()
                .push(row.build());
        }
        for (name, operands) in written {
            let kind = if name.is_none() {
                KeyKind::Static
            } else {
                KeyKind::Row
            };
            let old = self.rows.get(&name).map(|row| row.packed.bytes());
            let merged = merge(kind, old, &operands).map_err(corrupt)?;
            let shadow = self.shadows.get(&name).copied().flatten();
            let row = StoredRow::parse(merged, shadow, &self.table.cell_rules)?;
            self.rows.insert(name, row);
        }
        if !self.table.options.cdc.postimage {
            return Ok(());
        }
        for name in updated {
            let is_deleted = match &name {
                None => group.deletes_partition,
                Some(clustering) => group.deletes_partition || group.row_deletions.contains_key(clustering),
            };
            let Some(row) = self.rows.get(&name).filter(|_| !is_deleted) else {
                continue;
            };
            let live = row.live(self.now_s)?;
            let value_of = |column: &Column| {
                let value = live.as_ref().and_then(|live| value(column, live));
                value.map(|value| (value_column(column.id), value))
            };
            let values = self.columns(&name).filter_map(value_of).collect();
            log.add(Operation::Postimage, self.clustering(&name), 0, values);
        }
        Ok(())
    }

    /// Returns the columns of static rows, or of the other ones.
    fn columns(&self, name: &RowName) -> impl Iterator<Item = &Column> {
        let columns = match name {
            None => self.table.static_columns(),
            Some(_) => self.table.regular_columns(),
        };
        columns.iter().map(AsRef::as_ref)
    }

    fn clustering(&self, name: &RowName) -> &'a [Bytes] {
        let values = name.as_ref().and_then(|name| self.clusterings.get(name));
        values.map_or(&[], Vec::as_slice)
    }
}

/// Returns the newest timestamp of a partition's deletions in µs. `i64::MIN` if there is none.
fn newest_deletion_us(header: &PartitionHeader) -> i64 {
    let ranges = header.range_tombstones.iter().map(|range| range.deletion);
    let deletions = header.deletion.into_iter().chain(ranges);
    deletions
        .map(|deletion| deletion.timestamp_us)
        .max()
        .unwrap_or(i64::MIN)
}

/// Returns the columns of each row that a group of changes writes. `None` if it deletes the row.
fn changed_columns(group: &TimedChanges) -> BTreeMap<RowName, Option<BTreeSet<ColumnId>>> {
    let mut rows: BTreeMap<RowName, Option<BTreeSet<ColumnId>>> = BTreeMap::new();
    let statics = group.static_updates.values().map(|row| (None, row));
    let others = group.inserts.iter().chain(&group.updates);
    let others = others.map(|((clustering, _), row)| (Some(clustering.clone()), row));
    for (name, row) in statics.chain(others) {
        let columns = rows.entry(name).or_insert_with(|| Some(BTreeSet::new()));
        if let Some(columns) = columns {
            columns.extend(row.row().columns.iter().map(|(id, _)| *id));
        }
    }
    for clustering in group.row_deletions.keys() {
        rows.insert(Some(clustering.clone()), None);
    }
    rows
}

/// Returns the value of a column in a log. `None` if the column is null.
fn value(column: &Column, row: &LiveRow<'_>) -> Option<Bytes> {
    match row.column(column.id)? {
        LiveColumn::Simple(cell) => Some(Bytes::copy_from_slice(cell.value)),
        LiveColumn::Complex(elements) => {
            let elements = elements.clone().in_cql_order(&column.ty);
            Some(frozen(&column.ty, &elements))
        }
    }
}
