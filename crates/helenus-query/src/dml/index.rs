//! Index maintenance: which entries of the hidden tables a write adds and removes.
//!
//! On a node alone the entries go into the same log record as the row, under the partition's lock, so that they are there together or not
//! at all. In a cluster an entry may be another node's: it is added before the row is written and removed after.
//! Entries carry the server's own timestamps, which follow the order of the locks, whatever the clients' are.
//! An entry may outlive its row (by TTL, by a deletion of a range): readers check each entry against the row.

use std::collections::BTreeSet;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::packed::RowRef;
use helenus_row::read::{LiveColumn, LiveRow, live_row};
use helenus_row::row::{Deletion, Liveness};
use helenus_row::{KeyKind, RowBuilder, key, merge};
use helenus_tablet::Op;

use crate::engine::Engine;
use crate::schema::{Column, ColumnKind, Index, IndexTargetKind, Table};
use crate::select::check_indexed;
use crate::storage::index_entry::{entry_clustering, entry_key, entry_value, is_by_partition};
use crate::storage::read::{PartitionKey, StoredRow, corrupt};

/// Longest value that an index takes.
const VALUE_LEN_MAX: usize = 65_535;

/// A row (or static row) that a statement writes, as index maintenance needs to know it.
pub struct RowWrite<'a> {
    pub partition: &'a PartitionKey,
    pub kind: KeyKind,
    /// The clustering values; none for a static row.
    pub clustering: &'a [Bytes],
    /// The row as it was; needed where [`reads_old_row`] says so.
    pub old: Option<&'a StoredRow>,
    /// What the partition's header puts over the row.
    pub shadow: Option<Deletion>,
    /// The packed merge operand.
    pub operand: &'a Bytes,
    pub now_s: i64,
}

/// True if the row must be read before this operand is written: it has views, touches an indexed column or deletes the row.
pub fn reads_old_row(table: &Table, operand: &Bytes) -> Result<bool, CqlError> {
    if !table.views.is_empty() {
        return Ok(true);
    }
    if table.indexes.is_empty() {
        return Ok(false);
    }
    let row = RowRef::parse(operand.clone()).map_err(corrupt)?;
    if row.deletion().is_some() {
        return Ok(true);
    }
    for index in &table.indexes {
        if let Some((_, column)) = table.column(&index.target.column)
            && !column.is_primary_key()
            && row.column(column.id).map_err(corrupt)?.is_some()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Entries to add and to remove.
#[derive(Debug, Default)]
pub struct EntryOps {
    pub added: Vec<Op>,
    pub removed: Vec<Op>,
}

/// The entries to add and to remove so that the table's indexes follow the write.
pub fn entry_ops(engine: &Engine, table: &Table, write: &RowWrite<'_>) -> Result<EntryOps, CqlError> {
    if table.indexes.is_empty() {
        return Ok(EntryOps::default());
    }
    let merged = merged(write)?;
    let new = live_row(&merged, write.shadow, &table.dropped_cells, write.now_s).map_err(corrupt)?;
    let old = match write.old {
        Some(old) => old.live(write.now_s)?,
        None => None,
    };
    let mut ops = EntryOps::default();
    for index in &table.indexes {
        let Some((_, column)) = table.column(&index.target.column) else {
            continue;
        };
        let before = values(table, index, column, write, old.as_ref())?;
        let after = values(table, index, column, write, new.as_ref())?;
        for value in after.difference(&before) {
            check_indexed(index, column, value)?;
            ops.added.push(entry(
                engine,
                table,
                index,
                write.partition,
                write.clustering,
                value,
                true,
            )?);
        }
        // An entry for a partition may stand for other rows of it too.
        if is_by_partition(index, table) && !column.is_static() {
            continue;
        }
        for value in before.difference(&after) {
            ops.removed.push(entry(
                engine,
                table,
                index,
                write.partition,
                write.clustering,
                value,
                false,
            )?);
        }
    }
    Ok(ops)
}

/// The row after the write.
pub fn merged(write: &RowWrite<'_>) -> Result<RowRef, CqlError> {
    let old = write.old.map(|old| old.packed.bytes());
    let packed = merge::merge(write.kind, old, std::slice::from_ref(write.operand)).map_err(corrupt)?;
    RowRef::parse(packed).map_err(corrupt)
}

/// The values under which an index holds the row; none if the row isn't alive.
fn values(
    table: &Table,
    index: &Index,
    column: &Column,
    write: &RowWrite<'_>,
    row: Option<&LiveRow<'_>>,
) -> Result<BTreeSet<Bytes>, CqlError> {
    let Some(row) = row else {
        return Ok(BTreeSet::new());
    };
    match column.kind {
        ColumnKind::PartitionKey => {
            let parts = key::split_partition_key(&write.partition.bytes, table.partition_key_count)
                .map_err(|error| CqlError::Server(error.to_string()))?;
            Ok(parts.get(column.position).cloned().into_iter().collect())
        }
        ColumnKind::Clustering => Ok(write
            .clustering
            .get(column.position)
            .cloned()
            .into_iter()
            .collect()),
        ColumnKind::Static if write.kind != KeyKind::Static => Ok(BTreeSet::new()),
        ColumnKind::Regular if write.kind != KeyKind::Row => Ok(BTreeSet::new()),
        ColumnKind::Static | ColumnKind::Regular => {
            let values = cell_values(index, column, row)?;
            Ok(match index.analysis() {
                Some(analysis) => values.iter().map(|value| analysis.apply(value)).collect(),
                None => values,
            })
        }
    }
}

fn cell_values(index: &Index, column: &Column, row: &LiveRow<'_>) -> Result<BTreeSet<Bytes>, CqlError> {
    let is_set = matches!(column.ty, helenus_cql::types::CqlType::Set { .. });
    let mut values = BTreeSet::new();
    match row.column(column.id) {
        None => {}
        Some(LiveColumn::Simple(cell)) => {
            values.insert(Bytes::copy_from_slice(cell.value));
        }
        Some(LiveColumn::Complex(elements)) => {
            for (path, cell) in elements.iter() {
                values.insert(match index.target.kind {
                    IndexTargetKind::Keys => Bytes::copy_from_slice(path),
                    IndexTargetKind::KeysAndValues => entry_value(path, cell.value)?,
                    _ if is_set => Bytes::copy_from_slice(path),
                    _ => Bytes::copy_from_slice(cell.value),
                });
            }
        }
    }
    Ok(values)
}

/// The operation that adds or removes an entry.
fn entry(
    engine: &Engine,
    table: &Table,
    index: &Index,
    base: &PartitionKey,
    clustering: &[Bytes],
    value: &Bytes,
    is_added: bool,
) -> Result<Op, CqlError> {
    if value.len() >= VALUE_LEN_MAX {
        return Err(CqlError::invalid(format!(
            "Cannot index value of size {} for index {} on {}({}) (maximum allowed size={VALUE_LEN_MAX})",
            value.len(),
            index.name,
            table.full_name(),
            index.target.column
        )));
    }
    let hidden = &index.table;
    let partition = entry_key(value.clone());
    let by_partition = is_by_partition(index, table);
    let clustering = hidden
        .layout
        .encode_clustering(&entry_clustering(base, clustering, by_partition))
        .map_err(|error| CqlError::invalid(error.to_string()))?;
    let timestamp_us = engine.timestamps.next_us(engine.clock.as_ref());
    let mut row = RowBuilder::new();
    if is_added {
        row.liveness(Liveness {
            timestamp_us,
            expiry: None,
        });
    } else {
        row.delete_row(Deletion {
            timestamp_us,
            local_deletion_s: timestamp_us.div_euclid(1_000_000),
        });
    }
    Ok(Op {
        token: partition.token,
        key: key::row_key(
            hidden.number,
            partition.token,
            &partition.bytes,
            &clustering.bytes,
        ),
        operand: row.build(),
    })
}
