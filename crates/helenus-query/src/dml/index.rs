//! Index maintenance: which entries of the hidden tables a write adds and removes.
//!
//! On a node alone the entries go into the same log record as the row, under the partition's lock, so that they are there together or not
//! at all. In a cluster an entry may be another node's: it is added before the row is written and removed after.
//! Entries carry the server's own timestamps, which follow the order of the locks, whatever the clients' are.
//! An entry may outlive its row (by TTL, by a deletion of a range): readers check each entry against the row, and have those that stand for
//! nothing removed ([`super::stale`]).

use std::collections::BTreeSet;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_row::packed::{CellRef, RowRef};
use helenus_row::read::{LiveColumn, LiveRow, live_row};
use helenus_row::row::{CellKind, Deletion, Liveness};
use helenus_row::{KeyKind, RowBuilder, key, merge};
use helenus_tablet::Op;

use crate::engine::Engine;
use crate::schema::{Column, ColumnKind, Index, IndexKind, IndexTargetKind, Table, sasi};
use crate::select::check_indexed;
use crate::storage::index_entry::{
    entry_clustering, entry_key, entry_value, held_key, held_value, is_by_partition,
};
use crate::storage::read::{PartitionKey, StoredRow, corrupt};

/// Longest value that an index takes.
const VALUE_LEN_MAX: usize = 65_535;
/// Longest value that a storage-attached index holds: rows are not found by what is longer (`sai_string_term_size_fail_threshold`).
const SAI_VALUE_LEN_MAX: usize = 8_192;

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
///
/// What expires some time counts as gone when it comes to what is added, and as there when it comes to what is removed: an entry of a value
/// that has expired by somebody's clock may be removed at any time ([`super::stale`]).
pub fn entry_ops(engine: &Engine, table: &Table, write: &RowWrite<'_>) -> Result<EntryOps, CqlError> {
    if table.indexes.is_empty() {
        return Ok(EntryOps::default());
    }
    let merged = merged(write)?;
    let new = live_row(&merged, write.shadow, &table.cell_rules, write.now_s).map_err(corrupt)?;
    let old = |now_s| write.old.map_or(Ok(None), |old| old.live(now_s));
    let old_with_all = old(i64::MIN)?;
    let expires = old_with_all.as_ref().is_some_and(expires);
    let old_to_stay = if expires { old(i64::MAX)? } else { None };
    let place = Place::of(write);
    let mut ops = EntryOps::default();
    for index in &table.indexes {
        let Some((_, column)) = table.column(&index.target.column) else {
            continue;
        };
        let before = values(table, index, column, place, old_with_all.as_ref())?;
        let after = values(table, index, column, place, new.as_ref())?;
        let to_stay = match expires {
            true => &values(table, index, column, place, old_to_stay.as_ref())?,
            false => &before,
        };
        let entry = |value, is_added| {
            let timestamp_us = engine.timestamps.next_us(engine.clock.as_ref());
            let change = match is_added {
                true => Change::Added { timestamp_us },
                false => Change::Removed { timestamp_us },
            };
            entry(table, index, write.partition, write.clustering, value, change)
        };
        for value in after.difference(to_stay) {
            check_indexed(index, column, value)?;
            ops.added.push(entry(value, true)?);
        }
        // An entry for a partition may stand for other rows of it too.
        if is_by_partition(index, table) && !column.is_static() {
            continue;
        }
        for value in before.difference(&after) {
            ops.removed.push(entry(value, false)?);
        }
    }
    Ok(ops)
}

/// True if any of it expires some time.
fn expires(row: &LiveRow<'_>) -> bool {
    let is_expiring = |cell: &CellRef<'_>| matches!(cell.kind, CellKind::Expiring(_));
    let column_expires = |column: &LiveColumn<'_>| match column {
        LiveColumn::Simple(cell) => is_expiring(cell),
        LiveColumn::Complex(elements) => elements.iter().any(|(_, cell)| is_expiring(cell)),
    };
    row.liveness.is_some_and(|liveness| liveness.expiry.is_some())
        || row.columns.iter().any(|(_, column)| column_expires(column))
}

/// Which row (or static row) of a table.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub partition: &'a PartitionKey,
    pub kind: KeyKind,
    /// The clustering values; none for a static row.
    pub clustering: &'a [Bytes],
}

impl<'a> Place<'a> {
    fn of(write: &RowWrite<'a>) -> Place<'a> {
        Place {
            partition: write.partition,
            kind: write.kind,
            clustering: write.clustering,
        }
    }
}

/// The row after the write.
pub fn merged(write: &RowWrite<'_>) -> Result<RowRef, CqlError> {
    let old = write.old.map(|old| old.packed.bytes());
    let packed = merge::merge(write.kind, old, std::slice::from_ref(write.operand)).map_err(corrupt)?;
    RowRef::parse(packed).map_err(corrupt)
}

/// The values under which an index holds the row; none if the row isn't alive.
pub fn values(
    table: &Table,
    index: &Index,
    column: &Column,
    place: Place<'_>,
    row: Option<&LiveRow<'_>>,
) -> Result<BTreeSet<Bytes>, CqlError> {
    let Some(row) = row else {
        return Ok(BTreeSet::new());
    };
    let mut values = all_values(table, index, column, place, row)?;
    if index.kind == IndexKind::Custom && !matches!(column.ty, CqlType::Vector { .. }) {
        values.retain(|value| value.len() <= SAI_VALUE_LEN_MAX);
        if index.skips_empty(column) {
            values.retain(|value| !value.is_empty());
        }
        if index.is_sasi() && sasi::is_literal(column, index.options.get("is_literal").map(String::as_str)) {
            values.retain(|value| value.len() < sasi::TERM_LEN_END);
        }
    }
    Ok(values)
}

fn all_values(
    table: &Table,
    index: &Index,
    column: &Column,
    place: Place<'_>,
    row: &LiveRow<'_>,
) -> Result<BTreeSet<Bytes>, CqlError> {
    match column.kind {
        ColumnKind::PartitionKey => {
            let parts = key::split_partition_key(&place.partition.bytes, table.partition_key_count)
                .map_err(|error| CqlError::Server(error.to_string()))?;
            let part = parts.get(column.position);
            Ok(part
                .map(|part| held_value(index, column, part))
                .into_iter()
                .collect())
        }
        ColumnKind::Clustering => Ok(place
            .clustering
            .get(column.position)
            .map(|value| {
                let held = held_value(index, column, value);
                // A storage-attached index has such text as it is.
                let analysis = index.analysis().filter(|_| index.is_sasi());
                analysis.map_or(held.clone(), |analysis| analysis.apply(&held))
            })
            .into_iter()
            .collect()),
        ColumnKind::Static if place.kind != KeyKind::Static => Ok(BTreeSet::new()),
        ColumnKind::Regular if place.kind != KeyKind::Row => Ok(BTreeSet::new()),
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
    let is_set = matches!(column.ty, CqlType::Set { .. });
    let mut values = BTreeSet::new();
    match row.column(column.id) {
        None => {}
        Some(LiveColumn::Simple(cell)) => {
            values.insert(held_value(index, column, cell.value));
        }
        Some(LiveColumn::Complex(elements)) => {
            for (path, cell) in elements.iter() {
                values.insert(match index.target.kind {
                    IndexTargetKind::Keys if is_set => held_value(index, column, path),
                    IndexTargetKind::Keys => held_key(index, column, path),
                    // No composite can be made of what is too long to be held.
                    IndexTargetKind::KeysAndValues
                        if index.kind == IndexKind::Custom
                            && path.len().max(cell.value.len()) > SAI_VALUE_LEN_MAX =>
                    {
                        continue;
                    }
                    IndexTargetKind::KeysAndValues => entry_value(path, cell.value)?,
                    _ if is_set => held_value(index, column, path),
                    _ => held_value(index, column, cell.value),
                });
            }
        }
    }
    Ok(values)
}

/// What becomes of an entry, and as of when.
#[derive(Clone, Copy)]
pub enum Change {
    Added { timestamp_us: i64 },
    Removed { timestamp_us: i64 },
}

/// The operation that adds or removes an entry.
pub fn entry(
    table: &Table,
    index: &Index,
    base: &PartitionKey,
    clustering: &[Bytes],
    value: &Bytes,
    change: Change,
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
    let mut row = RowBuilder::new();
    match change {
        Change::Added { timestamp_us } => row.liveness(Liveness {
            timestamp_us,
            expiry: None,
        }),
        Change::Removed { timestamp_us } => row.delete_row(Deletion {
            timestamp_us,
            local_deletion_s: timestamp_us.div_euclid(1_000_000),
        }),
    };
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
