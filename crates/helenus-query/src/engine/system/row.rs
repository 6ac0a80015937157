//! Rows of virtual tables, built by column name.

use std::cmp::Ordering;

use bytes::Bytes;
use helenus_cql::value::compare;
use helenus_row::{Order, murmur3_token};

use super::Row;
pub(crate) use crate::rows::cells::*;
use crate::schema::Table;
use crate::schema::names::is_virtual_keyspace;

/// Returns a row with these values. Columns that are not named are null.
pub(crate) fn row<'a>(table: &Table, values: impl IntoIterator<Item = (&'a str, Option<Bytes>)>) -> Row {
    let mut row = vec![None; table.columns.len()];
    for (name, value) in values {
        match table.column(name).and_then(|(at, _)| row.get_mut(at)) {
            Some(cell) => *cell = value,
            None => debug_assert!(false, "{} has no column {name}", table.full_name()),
        }
    }
    row
}

/// Sorts rows in the order in which Cassandra reads the table.
pub(crate) fn sort(table: &Table, rows: &mut [Row]) {
    let by_token =
        table.partition_key_count == 1 && !is_virtual_keyspace(&table.keyspace) && table.name != "IndexInfo";
    rows.sort_by(|left, right| {
        let tokens = if by_token {
            token(left).cmp(&token(right))
        } else {
            Ordering::Equal
        };
        tokens.then_with(|| compare_keys(table, left, right))
    });
}

fn token(row: &Row) -> i64 {
    murmur3_token(row.first().and_then(Option::as_deref).unwrap_or_default())
}

fn compare_keys(table: &Table, left: &Row, right: &Row) -> Ordering {
    for ((column, left), right) in table.primary_key().iter().zip(left).zip(right) {
        let left = left.as_deref().unwrap_or_default();
        let right = right.as_deref().unwrap_or_default();
        let order = compare(&column.ty, left, right);
        if order != Ordering::Equal {
            return match column.order {
                Order::Asc => order,
                Order::Desc => order.reverse(),
            };
        }
    }
    Ordering::Equal
}

/// Sets a column of a row, if the table has it.
pub(crate) fn set(row: &mut Row, table: &Table, name: &str, value: Option<Bytes>) {
    let cell = table.column(name).and_then(|(at, _)| row.get_mut(at));
    if let Some(cell) = cell {
        *cell = value;
    }
}

/// Returns the text in a column of a row. Empty if the column is null.
pub(crate) fn get_text<'r>(row: &'r Row, table: &Table, name: &str) -> &'r str {
    let cell = table.column(name).and_then(|(at, _)| row.get(at));
    let bytes = cell.and_then(Option::as_deref).unwrap_or_default();
    std::str::from_utf8(bytes).unwrap_or_default()
}
