//! Materialized views: the rows of a view that follow from a row of its base table.
//!
//! A row of a view stands for one row of the base table, because its key contains the whole key of that row. Whenever the base row is
//! written, its rows in the views are computed from its old and new content, under the partition's lock. They are written as a whole: a
//! deletion, and the new content with a timestamp just above it. The timestamps are the server's own, and follow the order of the locks. So
//! the last writer of the base row is the last writer of the view, whatever timestamps clients chose. Writing a row twice has the same
//! result as writing it once.

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_row::packed::{CellRef, RowRef};
use helenus_row::read::{LiveColumn, LiveRow, live_row};
use helenus_row::row::{CellKind, Deletion, Expiry, Liveness};
use helenus_row::{Cell, ColumnId, KeyKind, RowBuilder, key};
use helenus_tablet::Op;

use super::select::stored_row::View as KeyView;
use crate::index::upkeep::{RowChange, merged};
use crate::rows::{PartitionKey, corrupt};
use crate::schema::{Column, ColumnKind, Table};
use crate::storage::ExecutionContext;

/// A row of a view, without timestamps.
#[derive(Debug, PartialEq, Eq)]
struct ViewRow {
    token: i64,
    key: Bytes,
    /// The row's expiry. `None` if it does not expire.
    expiry: Option<Expiry>,
    /// The clustering values as they were written. `None` if they can be decoded from the key.
    exact_clustering: Option<Vec<Bytes>>,
    cells: Vec<ViewCell>,
}

#[derive(Debug, PartialEq, Eq)]
struct ViewCell {
    column: ColumnId,
    /// Path of an element of a collection, or of a field of a user type. `None` for a simple column.
    path: Option<Bytes>,
    value: Bytes,
    expiry: Option<Expiry>,
}

/// Returns the writes to views that follow from the write of a row.
pub fn view_ops(
    context: &ExecutionContext,
    views: &[Arc<Table>],
    base: &Table,
    write: &RowChange<'_>,
) -> Result<Vec<Op>, CqlError> {
    if write.kind == KeyKind::Static {
        return Ok(Vec::new());
    }
    let packed = merged(write)?;
    let new = live_row(&packed, write.shadow, &base.cell_rules, write.now_s).map_err(corrupt)?;
    let old = match write.old {
        Some(old) => old.live(write.now_s)?.map(|live| (&old.packed, live)),
        None => None,
    };
    let mut ops = Vec::new();
    for view in views {
        let before = match &old {
            Some((packed, live)) => view_row(view, base, write, packed, live)?,
            None => None,
        };
        let after = match &new {
            Some(live) => view_row(view, base, write, &packed, live)?,
            None => None,
        };
        if before == after {
            continue;
        }
        let timestamp_us = context.next_timestamp_us();
        let deletion = Deletion {
            timestamp_us,
            local_deletion_s: timestamp_us.div_euclid(1_000_000),
        };
        if let Some(before) = before
            && after.as_ref().is_none_or(|after| after.key != before.key)
        {
            let mut row = RowBuilder::new();
            row.delete_row(deletion);
            ops.push(before.op(&row));
        }
        if let Some(after) = after {
            let timestamp_us = context.next_timestamp_us();
            let mut row = after.builder(timestamp_us);
            row.delete_row(deletion);
            ops.push(after.op(&row));
        }
    }
    Ok(ops)
}

/// Returns the write that adds an existing row to a view. It is older than anything that writers of the row write.
pub fn existing_row_op(
    view: &Table,
    base: &Table,
    write: &RowChange<'_>,
    timestamp_us: i64,
) -> Result<Option<Op>, CqlError> {
    let packed = RowRef::parse(write.operand.clone()).map_err(corrupt)?;
    let Some(live) = live_row(&packed, write.shadow, &base.cell_rules, write.now_s).map_err(corrupt)? else {
        return Ok(None);
    };
    let row = view_row(view, base, write, &packed, &live)?;
    Ok(row.map(|row| row.op(&row.builder(timestamp_us))))
}

impl ViewRow {
    fn op(&self, row: &RowBuilder) -> Op {
        Op {
            token: self.token,
            key: self.key.clone(),
            operand: row.build(),
        }
    }

    fn builder(&self, timestamp_us: i64) -> RowBuilder {
        let mut row = RowBuilder::new();
        row.liveness(Liveness {
            timestamp_us,
            expiry: self.expiry,
        });
        for cell in &self.cells {
            let value = cell.value.clone();
            let written = match cell.expiry {
                Some(expiry) => Cell::expiring(timestamp_us, expiry, value),
                None => Cell::live(timestamp_us, value),
            };
            match &cell.path {
                Some(path) => row.complex_cell(cell.column, path.clone(), written),
                None => row.cell(cell.column, written),
            };
        }
        if let Some(exact) = &self.exact_clustering {
            row.exact_clustering(timestamp_us, exact.clone());
        }
        row
    }
}

/// The values of the base row's key.
struct BaseKey {
    partition: Vec<Bytes>,
    clustering: Vec<Bytes>,
}

impl BaseKey {
    fn of(base: &Table, write: &RowChange<'_>, packed: &RowRef) -> Result<BaseKey, CqlError> {
        let partition = key::split_partition_key(&write.partition.bytes, base.partition_key_count)
            .map_err(|error| CqlError::Server(error.to_string()))?;
        let exact = packed.exact_clustering().map_err(corrupt)?;
        Ok(BaseKey {
            partition,
            clustering: exact.map_or_else(|| write.clustering.to_vec(), |exact| exact.components),
        })
    }

    fn value(&self, column: &Column) -> Option<&Bytes> {
        match column.kind {
            ColumnKind::PartitionKey => self.partition.get(column.position),
            ColumnKind::Clustering => self.clustering.get(column.position),
            ColumnKind::Static | ColumnKind::Regular => None,
        }
    }
}

/// Returns the view's row for a row of its base table. `None` if it has none.
fn view_row(
    view: &Table,
    base: &Table,
    write: &RowChange<'_>,
    packed: &RowRef,
    live: &LiveRow<'_>,
) -> Result<Option<ViewRow>, CqlError> {
    let base_key = BaseKey::of(base, write, packed)?;
    // Expiry of the regular cell that is part of the view's key. Without such a cell, the view's row lives as long as anything in the base
    // row.
    let mut key_expiry = None;
    let mut lives_by_key = false;
    let mut values = Vec::with_capacity(view.primary_key().len());
    for column in view.primary_key() {
        let Some((_, source)) = base.column(&column.name) else {
            return Ok(None);
        };
        let value = match (base_key.value(source), live.column(source.id)) {
            (Some(value), _) => value.clone(),
            (None, Some(LiveColumn::Simple(cell))) => {
                lives_by_key = true;
                key_expiry = expiry(cell);
                packed.slice(cell.value)
            }
            (None, _) => return Ok(None),
        };
        values.push(value);
    }
    let (partition, clustering) = values.split_at(view.partition_key_count);
    if !accepts(view, partition, clustering, write.now_s) {
        return Ok(None);
    }
    let invalid = |error: helenus_row::KeyError| CqlError::invalid(error.to_string());
    let partition = PartitionKey::new(key::compose_partition_key(partition).map_err(invalid)?);
    let encoded = view.layout.encode_clustering(clustering).map_err(invalid)?;
    let has_forms = !encoded.canonical
        || view
            .clustering()
            .iter()
            .any(|column| column.ty == CqlType::DECIMAL);
    Ok(Some(ViewRow {
        token: partition.token,
        key: key::row_key(view.number, partition.token, &partition.bytes, &encoded.bytes),
        expiry: match lives_by_key {
            true => key_expiry,
            false => longest(live),
        },
        exact_clustering: has_forms.then(|| clustering.to_vec()),
        cells: cells(view, base, packed, live, key_expiry),
    }))
}

/// Returns true if the view's WHERE clause selects the key.
fn accepts(view: &Table, key: &[Bytes], clustering: &[Bytes], now_s: i64) -> bool {
    let Some(definition) = &view.view else {
        return false;
    };
    let row = KeyView {
        table: view,
        key,
        clustering,
        row: None,
        statics: None,
        now_s,
    };
    definition
        .filter
        .iter()
        .all(|expression| expression.accepts(&view.columns, &row))
}

/// Returns the cells of the view's other columns. They expire with the cell in its key, or earlier.
fn cells(
    view: &Table,
    base: &Table,
    packed: &RowRef,
    live: &LiveRow<'_>,
    key_expiry: Option<Expiry>,
) -> Vec<ViewCell> {
    let mut cells = Vec::new();
    for column in view.regular_columns() {
        let Some((_, source)) = base.column(&column.name) else {
            continue;
        };
        let cell = |path: Option<&[u8]>, cell: &CellRef<'_>| ViewCell {
            column: column.id,
            path: path.map(|path| packed.slice(path)),
            value: packed.slice(cell.value),
            expiry: sooner(expiry(cell), key_expiry),
        };
        match live.column(source.id) {
            None => {}
            Some(LiveColumn::Simple(simple)) => cells.push(cell(None, simple)),
            Some(LiveColumn::Complex(elements)) => {
                let elements = elements.iter();
                cells.extend(elements.map(|(path, element)| cell(Some(path), element)));
            }
        }
    }
    cells
}

fn expiry(cell: &CellRef<'_>) -> Option<Expiry> {
    match cell.kind {
        CellKind::Expiring(expiry) => Some(expiry),
        CellKind::Live | CellKind::Tombstone { .. } | CellKind::Counter => None,
    }
}

fn sooner(a: Option<Expiry>, b: Option<Expiry>) -> Option<Expiry> {
    match (a, b) {
        (Some(a), Some(b)) if b.expires_at_s < a.expires_at_s => Some(b),
        (Some(a), _) => Some(a),
        (None, b) => b,
    }
}

/// Returns the latest expiry among the row's parts. `None` if a part does not expire.
fn longest(live: &LiveRow<'_>) -> Option<Expiry> {
    let mut longest: Option<Expiry> = None;
    let mut is_endless = false;
    let mut see = |expiry: Option<Expiry>| match expiry {
        None => is_endless = true,
        Some(expiry) if longest.is_none_or(|known| known.expires_at_s < expiry.expires_at_s) => {
            longest = Some(expiry);
        }
        Some(_) => {}
    };
    if let Some(liveness) = &live.liveness {
        see(liveness.expiry);
    }
    for (_, column) in &live.columns {
        match column {
            LiveColumn::Simple(cell) => see(expiry(cell)),
            LiveColumn::Complex(elements) => elements.iter().for_each(|(_, cell)| see(expiry(cell))),
        }
    }
    if is_endless { None } else { longest }
}
