//! Index maintenance: the entries of the hidden tables that a write adds and removes.
//!
//! On a node that is alone, the entries are in the same log record as the row, under the partition's lock. So either all of them are
//! written or none. In a cluster, another node may own an entry. Entries are then added before the row is written, and removed after it.
//! Entries have timestamps of the server, which follow the order of the locks, whatever the clients' timestamps are. An entry may outlive
//! its row (after a TTL, or a deletion of a range). So readers check each entry against the row, and have stale ones removed
//! ([`super::stale_removal`]).

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::packed::{CellRef, RowRef};
use helenus_row::read::{LiveColumn, LiveRow, live_row};
use helenus_row::row::{CellKind, Deletion, Liveness};
use helenus_row::{KeyKind, RowBuilder, key, merge};
use helenus_tablet::Op;

use super::entries::{entry_clustering, entry_key, is_by_partition};
use super::posting_lists::hidden_rows::vector;
use super::posting_lists::{PostingLists, ReplacedEntry, VectorChange, list_ops};
use super::similarity::check_indexed;
use super::values::{RowLocation, cell_values, values};
use crate::rows::{PartitionKey, StoredRow, corrupt};
use crate::schema::{Index, Table};

/// Bytes from which on a value cannot be indexed.
const VALUE_LEN_MAX: usize = 65_535;

/// The change of a row or static row by a write, as the maintenance of indexes and views needs it.
pub struct RowChange<'a> {
    pub partition: &'a PartitionKey,
    pub kind: KeyKind,
    /// The clustering values. Empty for a static row.
    pub clustering: &'a [Bytes],
    /// The row before the write. Needed only if [`reads_old_row`] returns true.
    pub old: Option<&'a StoredRow>,
    /// The deletion in the partition's header that covers the row. `None` if there is none.
    pub shadow: Option<Deletion>,
    /// The packed merge operand.
    pub operand: &'a Bytes,
    pub now_s: i64,
}

/// Returns true if the row must be read before this operand is written: the table has views, or the operand changes an indexed column or
/// deletes the row.
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

/// Entries to add, to replace and to remove.
#[derive(Debug, Default)]
pub struct EntryOps {
    pub added: Vec<Op>,
    pub replaced: Vec<ReplacedEntry>,
    pub removed: Vec<Op>,
}

/// Returns the entries to add and to remove so that the table's indexes follow the write. `lists` has the directories of indexes with
/// posting lists.
///
/// Values that expire count as gone when entries are added, and as present when entries are removed. The reason is that an entry may be
/// removed as soon as its value has expired by the clock of any node ([`super::stale_removal`]).
pub fn entry_ops(
    table: &Table,
    write: &RowChange<'_>,
    lists: &PostingLists,
    next_timestamp_us: &dyn Fn() -> i64,
) -> Result<EntryOps, CqlError> {
    if table.indexes.is_empty() {
        return Ok(EntryOps::default());
    }
    let merged = merged(write)?;
    let new = live_row(&merged, write.shadow, &table.cell_rules, write.now_s).map_err(corrupt)?;
    let old = |now_s| write.old.map_or(Ok(None), |old| old.live(now_s));
    let old_with_all = old(i64::MIN)?;
    let expires = old_with_all.as_ref().is_some_and(expires);
    let old_to_stay = if expires { old(i64::MAX)? } else { None };
    let place = RowLocation::of(write);
    let mut ops = EntryOps::default();
    for index in &table.indexes {
        let Some((_, column)) = table.column(&index.target.column) else {
            continue;
        };
        if index.has_posting_lists {
            if write.kind != KeyKind::Row {
                continue;
            }
            if let Some(new) = &new {
                let held = cell_values(index, column, new)?;
                held.iter()
                    .try_for_each(|value| check_indexed(index, column, value))?;
            }
            let old_to_stay = if expires { &old_to_stay } else { &old_with_all };
            let change = VectorChange {
                before: vector(table, index, old_with_all.as_ref()),
                to_stay: vector(table, index, old_to_stay.as_ref()),
                after: vector(table, index, new.as_ref()),
            };
            let changed = list_ops(
                lists,
                index,
                write.partition,
                write.clustering,
                &change,
                next_timestamp_us,
            )?;
            ops.added.extend(changed.added);
            ops.replaced.extend(changed.replaced);
            ops.removed.extend(changed.removed);
            continue;
        }
        let before = values(table, index, column, place, old_with_all.as_ref())?;
        let after = values(table, index, column, place, new.as_ref())?;
        let to_stay = match expires {
            true => &values(table, index, column, place, old_to_stay.as_ref())?,
            false => &before,
        };
        let entry = |value, is_added| {
            let timestamp_us = next_timestamp_us();
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
        // An entry for a partition may also stand for its other rows.
        if is_by_partition(index, table) && !column.is_static() {
            continue;
        }
        for value in before.difference(&after) {
            ops.removed.push(entry(value, false)?);
        }
    }
    Ok(ops)
}

/// Returns true if any part of the row expires.
fn expires(row: &LiveRow<'_>) -> bool {
    let is_expiring = |cell: &CellRef<'_>| matches!(cell.kind, CellKind::Expiring(_));
    let column_expires = |column: &LiveColumn<'_>| match column {
        LiveColumn::Simple(cell) => is_expiring(cell),
        LiveColumn::Complex(elements) => elements.iter().any(|(_, cell)| is_expiring(cell)),
    };
    row.liveness.is_some_and(|liveness| liveness.expiry.is_some())
        || row.columns.iter().any(|(_, column)| column_expires(column))
}

impl<'a> RowLocation<'a> {
    fn of(write: &RowChange<'a>) -> RowLocation<'a> {
        RowLocation {
            partition: write.partition,
            kind: write.kind,
            clustering: write.clustering,
        }
    }
}

/// Returns the row after the write.
pub fn merged(write: &RowChange<'_>) -> Result<RowRef, CqlError> {
    let old = write.old.map(|old| old.packed.bytes());
    let packed = merge::merge(write.kind, old, std::slice::from_ref(write.operand)).map_err(corrupt)?;
    RowRef::parse(packed).map_err(corrupt)
}

/// A change of an entry, with its timestamp.
#[derive(Clone, Copy)]
pub enum Change {
    Added { timestamp_us: i64 },
    Removed { timestamp_us: i64 },
}

/// Returns the operation that adds or removes an entry.
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
    let partition = entry_key(index, value.clone());
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
