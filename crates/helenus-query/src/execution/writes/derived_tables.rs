//! The writes to indexes and views that follow from writes to their tables.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::header::PartitionHeader;
use helenus_row::merge::merge;
use helenus_row::{KeyKind, RowBuilder};
use helenus_tablet::Op;

use super::rows_before::RowsBefore;
use super::{HeaderWrite, RowWrite, WriteSet};
use crate::execution::views;
use crate::failure::{ExecutionError, store_error};
use crate::index::nearest::directories;
use crate::index::posting_lists::{PostingLists, ReplacedEntry};
use crate::index::upkeep;
use crate::rows::{PartitionKey, RowAt, RowSelection, corrupt, corrupt_key};
use crate::schema::{Table, views_of};
use crate::storage::row_reads::{ReadView, RowCursor};
use crate::storage::{Access, ExecutionContext};

/// The table, partition, kind and clustering of a row.
type RowKey<'w> = (u32, &'w Bytes, KeyKind, &'w Bytes);

/// Operands of rows, and of the index entries and views that follow from them.
pub struct IndexedOps {
    pub rows: Vec<Op>,
    /// New index entries.
    pub added: Vec<Op>,
    /// Index entries of which a new value replaces the earlier one.
    pub replaced: Vec<ReplacedEntry>,
    /// Removals of index entries.
    pub removed: Vec<Op>,
    /// Rows of views.
    pub views: Vec<Op>,
    /// Rows of the logs of captured changes. They are in the tablets of the rows.
    pub changes: Vec<Op>,
}

impl IndexedOps {
    /// Returns all operands, for one tablet or one log record.
    pub fn into_ops(self) -> Vec<Op> {
        let mut ops = self.added;
        ops.extend(self.replaced.into_iter().map(|entry| entry.single));
        ops.extend(self.removed);
        ops.extend(self.views);
        ops.extend(self.changes);
        ops.extend(self.rows);
        ops
    }
}

impl RowWrite {
    /// Returns the clustering values. Empty for a static row.
    fn clustering_values(&self) -> Result<Vec<Bytes>, CqlError> {
        match self.kind {
            KeyKind::Static => Ok(Vec::new()),
            _ => {
                let layout = &self.table.layout;
                layout.decode_clustering(&self.clustering).map_err(corrupt_key)
            }
        }
    }
}

impl WriteSet {
    /// Refuses values that an index cannot hold, before any of the separate parts is written.
    pub(crate) fn check_indexed(&self, context: &ExecutionContext) -> Result<(), CqlError> {
        for row in self.rows.iter().filter(|row| !row.table.indexes.is_empty()) {
            let write = upkeep::RowChange {
                partition: &row.partition,
                kind: row.kind,
                clustering: &row.clustering_values()?,
                old: None,
                shadow: None,
                operand: &row.operand,
                now_s: context.clock.now_us().div_euclid(1_000_000),
            };
            let lists = PostingLists::default();
            upkeep::entry_ops(&row.table, &write, &lists, &|| context.next_timestamp_us())?;
        }
        Ok(())
    }

    /// Locks the partitions whose indexes and views must be maintained.
    pub(crate) async fn lock_indexed(&mut self, context: &ExecutionContext) -> Result<(), CqlError> {
        let mut partitions = Vec::new();
        for write in self.rows.iter().filter(|write| write.table.reads_old_rows()) {
            partitions.push((write.table.number, write.partition.token, Access::Alone));
        }
        let has_rows = |table: &Table| !table.views.is_empty() || table.has_images;
        for write in self.headers.iter().filter(|write| has_rows(&write.table)) {
            partitions.push((write.table.number, write.partition.token, Access::Alone));
        }
        if !partitions.is_empty() {
            self.guard = Some(context.lock_partitions(partitions).await?);
        }
        Ok(())
    }

    /// Returns the operands, with the index entries, rows of views and rows of logs that follow from them. The caller has locked the
    /// partitions of tables whose old rows are needed.
    pub(crate) async fn indexed_ops(self, context: &ExecutionContext) -> Result<IndexedOps, ExecutionError> {
        let guard = self.guard.clone();
        let mut before = RowsBefore::new(ReadView::under(context, guard.as_ref()));
        let changes = match self.is_captured() {
            true => Box::pin(self.captured_ops(context, &mut before)).await?,
            false => Vec::new(),
        };
        if self.has_derived_tables() {
            let derived = Box::pin(self.derived_ops(context, &mut before)).await?;
            return Ok(IndexedOps { changes, ..derived });
        }
        Ok(IndexedOps {
            changes,
            rows: self.into_ops(),
            added: Vec::new(),
            replaced: Vec::new(),
            removed: Vec::new(),
            views: Vec::new(),
        })
    }

    /// Adds the operands to the pinned tablets of a cut, with the index entries and views that follow from them. Returns all of them.
    pub(crate) async fn add_to_cut(self, context: &ExecutionContext) -> Result<Vec<Op>, CqlError> {
        let ops = self.indexed_ops(context).await;
        let ops = ops.map_err(ExecutionError::into_client_error)?.into_ops();
        context.store.add_to_pinned(ops.clone()).map_err(store_error)?;
        Ok(ops)
    }

    pub(crate) fn has_derived_tables(&self) -> bool {
        self.rows.iter().any(|write| !write.table.indexes.is_empty()) || self.has_views()
    }

    /// Returns true if views must be maintained.
    pub(crate) fn has_views(&self) -> bool {
        let rows = self.rows.iter().map(|write| &write.table);
        let mut tables = rows.chain(self.headers.iter().map(|write| &write.table));
        tables.any(|table| !table.views.is_empty())
    }

    async fn derived_ops(
        mut self,
        context: &ExecutionContext,
        rows_before: &mut RowsBefore<'_>,
    ) -> Result<IndexedOps, ExecutionError> {
        self.put_under_archived(context).await?;
        let (mut added, mut replaced, mut removed) = (Vec::new(), Vec::new(), Vec::new());
        let mut views = Vec::new();
        let mut by_row: BTreeMap<RowKey<'_>, (&RowWrite, Vec<Bytes>)> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.table.has_derived_tables()) {
            let key = (
                row.table.number.0,
                &row.partition.bytes,
                row.kind,
                &row.clustering,
            );
            by_row
                .entry(key)
                .or_insert_with(|| (row, Vec::new()))
                .1
                .push(row.operand.clone());
        }
        let now_s = context.clock.now_us().div_euclid(1_000_000);
        for write in self.first_headers_of_viewed() {
            views.extend(
                self.views_of_deleted(context, rows_before, write, &by_row, now_s)
                    .await?,
            );
        }
        for (row, operands) in by_row.into_values() {
            let operand = merge(row.kind, None, &operands).map_err(corrupt)?;
            let (table, partition) = (&row.table, &row.partition);
            let before = rows_before.header(table, partition).await?;
            let name = (row.kind != KeyKind::Static).then_some(&row.clustering);
            let old = match upkeep::reads_old_row(table, &operand)? {
                false => None,
                true => rows_before.row(table, partition, name, &before).await?,
            };
            let after = self.header_after(before, table, partition);
            let clustering = row.clustering_values()?;
            let write = upkeep::RowChange {
                partition,
                kind: row.kind,
                clustering: &clustering,
                old: old.as_ref(),
                shadow: match row.kind {
                    KeyKind::Static => after.deletion,
                    _ => after.deletion_at(&row.clustering),
                },
                operand: &operand,
                now_s,
            };
            directories::prepare(context, table).await?;
            let entries = upkeep::entry_ops(table, &write, &context.indexes.posting_lists, &|| {
                context.next_timestamp_us()
            })?;
            added.extend(entries.added);
            replaced.extend(entries.replaced);
            removed.extend(entries.removed);
            if !table.views.is_empty() {
                views.extend(views::view_ops(
                    context,
                    &views_now(context, table),
                    table,
                    &write,
                )?);
            }
        }
        Ok(IndexedOps {
            rows: self.into_ops(),
            added,
            replaced,
            removed,
            views,
            changes: Vec::new(),
        })
    }

    /// Applies the archived tombstones to late writes, so that deleted cells have no effect on indexes and views.
    async fn put_under_archived(&mut self, context: &ExecutionContext) -> Result<(), ExecutionError> {
        let followed = |row: &&mut RowWrite| row.table.has_derived_tables();
        let mut ops: Vec<Op> = self
            .rows
            .iter_mut()
            .filter(followed)
            .map(|row| row.op())
            .collect();
        // The later write itself waits for compactions, so the guard is not needed here.
        let _late = context.store.apply_archived_tombstones(&mut ops).await?;
        for (row, op) in self.rows.iter_mut().filter(followed).zip(ops) {
            row.operand = op.operand;
        }
        Ok(())
    }

    /// Returns one header write for each partition of tables with views.
    fn first_headers_of_viewed(&self) -> impl Iterator<Item = &HeaderWrite> {
        let mut seen = HashSet::new();
        self.headers
            .iter()
            .filter(|write| !write.table.views.is_empty())
            .filter(move |write| seen.insert((write.table.number.0, &write.partition.bytes)))
    }

    /// Returns the writes to views for rows that a partition's headers delete, except for rows that are also written.
    async fn views_of_deleted(
        &self,
        context: &ExecutionContext,
        rows_before: &mut RowsBefore<'_>,
        write: &HeaderWrite,
        written: &BTreeMap<RowKey<'_>, (&RowWrite, Vec<Bytes>)>,
        now_s: i64,
    ) -> Result<Vec<Op>, ExecutionError> {
        let (table, partition) = (&write.table, &write.partition);
        let tables = views_now(context, table);
        let view = self.view(context);
        let before = rows_before.header(table, partition).await?;
        let after = self.header_after(before.clone(), table, partition);
        let mut cursor = RowCursor::new(table, partition.clone(), Some(before), RowSelection::all(), false);
        let untouched = RowBuilder::new().build();
        let mut ops = Vec::new();
        while let Some(RowAt { clustering, row }) = cursor.next(view).await? {
            let shadow = after.deletion_at(&clustering);
            let key = (table.number.0, &partition.bytes, KeyKind::Row, &clustering);
            if shadow == row.shadow || written.contains_key(&key) {
                continue;
            }
            let values = table.layout.decode_clustering(&clustering).map_err(corrupt_key)?;
            let write = upkeep::RowChange {
                partition,
                kind: KeyKind::Row,
                clustering: &values,
                old: Some(&row),
                shadow,
                operand: &untouched,
                now_s,
            };
            ops.extend(views::view_ops(context, &tables, table, &write)?);
        }
        Ok(ops)
    }

    /// Returns a partition's header after the writes.
    pub(super) fn header_after(
        &self,
        before: PartitionHeader,
        table: &Table,
        partition: &PartitionKey,
    ) -> PartitionHeader {
        self.headers
            .iter()
            .filter(|write| write.table.number == table.number && write.partition == *partition)
            .fold(before, |header, write| header.merge(&write.header))
    }
}

/// Returns the views of a table in the current schema.
fn views_now(context: &ExecutionContext, table: &Table) -> Vec<Arc<Table>> {
    views_of(&context.schema(), table).cloned().collect()
}
