//! Checks of constraints (CHECK) that concern a whole statement: those of key columns, and NOT NULL of columns that it leaves out. The
//! values of other columns are checked when they are written.

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::key::partition_key_component;

use super::operation::Operation;
use crate::rows::corrupt_key;
use crate::schema::Table;
use crate::schema::constraint::missing;

/// Checks that an INSERT or UPDATE has an operation for each column with NOT NULL.
///
/// # Errors
/// `Column 'c' has to be specified as part of this query.`
pub(super) fn check_present(table: &Table, operations: &[Operation]) -> Result<(), CqlError> {
    if !table.has_constraints {
        return Ok(());
    }
    for (place, column) in table.columns.iter().enumerate() {
        let is_named = || operations.iter().any(|operation| operation.column == place);
        if column.refuses_null() && !is_named() {
            return Err(missing(&column.name));
        }
    }
    Ok(())
}

/// Checks the constraints of the partition key columns. `key` is the serialized key.
pub(super) fn check_partition_key(table: &Table, key: &[u8]) -> Result<(), CqlError> {
    let count = table.partition_key_count;
    for (position, column) in table.partition_key().iter().enumerate() {
        let value = partition_key_component(key, count, position).map_err(corrupt_key)?;
        column.check_constraints(Some(value))?;
    }
    Ok(())
}

/// Checks the constraints of the clustering columns. `exact` has the values as written, if they differ from the encoded ones.
pub(super) fn check_clustering(
    table: &Table,
    encoded: &[u8],
    exact: Option<&[Bytes]>,
) -> Result<(), CqlError> {
    let check = |values: &[Bytes]| {
        let mut columns = table.clustering().iter().zip(values);
        columns.try_for_each(|(column, value)| column.check_constraints(Some(value)))
    };
    match exact {
        Some(exact) => check(exact),
        None => check(&table.layout.decode_clustering(encoded).map_err(corrupt_key)?),
    }
}
