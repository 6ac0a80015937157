//! The indexed values of a row.

use std::collections::BTreeSet;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_row::read::{LiveColumn, LiveRow};
use helenus_row::{KeyKind, key};

use super::entries::{entry_value, held_key, held_value, placed_value};
use super::kinds;
use crate::rows::PartitionKey;
use crate::schema::{Column, ColumnKind, Index, IndexTargetKind, Table};

/// The location of a row or static row.
#[derive(Clone, Copy)]
pub struct RowLocation<'a> {
    pub partition: &'a PartitionKey,
    pub kind: KeyKind,
    /// The clustering values. Empty for a static row.
    pub clustering: &'a [Bytes],
}

/// Returns the values under which an index holds the row, as the keys of its entries. Empty if the row is dead.
pub fn values(
    table: &Table,
    index: &Index,
    column: &Column,
    place: RowLocation<'_>,
    row: Option<&LiveRow<'_>>,
) -> Result<BTreeSet<Bytes>, CqlError> {
    let Some(row) = row else {
        return Ok(BTreeSet::new());
    };
    let mut values = all_values(table, index, column, place, row)?;
    let kind = kinds::of(index);
    values.retain(|value| kind.holds(index, column, value));
    if index.order.is_none() {
        return Ok(values);
    }
    values
        .into_iter()
        .map(|value| placed_value(index, value))
        .collect()
}

pub(crate) fn all_values(
    table: &Table,
    index: &Index,
    column: &Column,
    place: RowLocation<'_>,
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
                let analysis = index
                    .analysis()
                    .filter(|_| kinds::of(index).analyzes_clustering());
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

pub(crate) fn cell_values(
    index: &Index,
    column: &Column,
    row: &LiveRow<'_>,
) -> Result<BTreeSet<Bytes>, CqlError> {
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
                    // An entry that is too long to be held cannot be encoded as a composite.
                    IndexTargetKind::KeysAndValues if !kinds::of(index).holds_entry(path, cell.value) => {
                        continue;
                    }
                    IndexTargetKind::KeysAndValues => entry_value(column, path, cell.value)?,
                    _ if is_set => held_value(index, column, path),
                    _ => held_value(index, column, cell.value),
                });
            }
        }
    }
    Ok(values)
}
