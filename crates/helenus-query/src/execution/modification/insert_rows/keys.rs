//! Checks of partition keys, clusterings and bounds, as an INSERT or a DELETE makes them.

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::value::{as_bound, validate_bound};
use helenus_row::ClusteringRange;
use helenus_row::key::split_partition_key;
use helenus_row::transfer::TransferBound;

use super::super::write_builder::check_name;
use super::refusal::Refusal;
use crate::analysis::modification::bound::{self, RowName, check_lists};
use crate::analysis::restrictions::bounds;
use crate::rows::PartitionKey;
use crate::schema::{Column, Table};

/// Returns the partition of a serialized key.
pub(super) fn partition_key(table: &Table, key: &Bytes) -> Result<PartitionKey, Refusal> {
    let columns = table.partition_key();
    let values = split_partition_key(key, columns.len())
        .map_err(|_| Refusal::new(format!("the bytes are no key of {} columns", columns.len())))?;
    let partition = bounds::partition_key(&checked(columns, &values)?)?;
    // Other bytes would have another token than in the cluster from which they come.
    if partition.bytes != *key {
        return Err(Refusal::new(
            "the bytes are not those with which a node writes this key",
        ));
    }
    check_lists(table, std::slice::from_ref(&partition))?;
    Ok(partition)
}

/// Returns the name of the row with these clustering values.
pub(super) fn row_name(table: &Table, clustering: &[Bytes]) -> Result<RowName, Refusal> {
    let columns = table.clustering();
    // The last clustering columns of a compact table may have no value.
    let may_end_early = table.compact.is_some() && !clustering.is_empty();
    if clustering.len() < columns.len() && !may_end_early {
        return Err(wrong_count(clustering.len(), columns.len()));
    }
    let name = bound::row_name(table, &checked(columns, clustering)?)?;
    check_name(table, &name)?;
    Ok(name)
}

/// Returns the clusterings between two bounds.
pub(super) fn range(
    table: &Table,
    start: TransferBound,
    end: TransferBound,
) -> Result<ClusteringRange, Refusal> {
    let columns = table.clustering();
    if columns.is_empty() {
        return Err(Refusal::new(
            "the table has no clustering columns, so only its rows and partitions can be deleted",
        ));
    }
    let (starts, ends) = (checked(columns, &start.values)?, checked(columns, &end.values)?);
    table
        .layout
        .slice(side(&starts, start.is_inclusive), side(&ends, end.is_inclusive))
        .map_err(|error| Refusal::new(error.to_string()))
}

/// Returns a side of a slice. `None` if it is open, because the bound has no values.
fn side(values: &[Bytes], is_inclusive: bool) -> Option<(&[Bytes], bool)> {
    (!values.is_empty()).then_some((values, is_inclusive))
}

/// Checks the values of the first of these columns, and returns them as they are stored.
fn checked(columns: &[Arc<Column>], values: &[Bytes]) -> Result<Vec<Bytes>, Refusal> {
    if values.len() > columns.len() {
        return Err(wrong_count(values.len(), columns.len()));
    }
    let stored = |(column, value): (&Arc<Column>, &Bytes)| {
        let checked = validate_bound(&column.ty, value);
        checked
            .map(|()| as_bound(&column.ty, value))
            .map_err(|problem| Refusal::from(problem).of_column(column))
    };
    columns.iter().zip(values).map(stored).collect()
}

fn wrong_count(values: usize, columns: usize) -> Refusal {
    Refusal::new(format!("{values} values for {columns} clustering columns"))
}
