//! Rows of virtual tables, put together by the names of columns.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;

use bytes::Bytes;
use helenus_cql::types::CqlType;
use helenus_cql::value::{compare, pack_list, pack_map, pack_set};
use helenus_row::{Order, murmur3_token};
use uuid::Uuid;

use super::Row;
use crate::schema::Table;
use crate::schema::names::is_virtual_keyspace;

/// A row with these values; columns that are not named are null.
pub(crate) fn row<const N: usize>(table: &Table, values: [(&str, Option<Bytes>); N]) -> Row {
    let mut row = vec![None; table.columns.len()];
    for (name, value) in values {
        match table.column(name).and_then(|(at, _)| row.get_mut(at)) {
            Some(cell) => *cell = value,
            None => debug_assert!(false, "{} has no column {name}", table.full_name()),
        }
    }
    row
}

pub(crate) fn text(value: impl AsRef<str>) -> Option<Bytes> {
    Some(Bytes::copy_from_slice(value.as_ref().as_bytes()))
}

pub(crate) fn blob(value: impl AsRef<[u8]>) -> Option<Bytes> {
    Some(Bytes::copy_from_slice(value.as_ref()))
}

pub(crate) fn int(value: i32) -> Option<Bytes> {
    blob(value.to_be_bytes())
}

pub(crate) fn bigint(value: i64) -> Option<Bytes> {
    blob(value.to_be_bytes())
}

pub(crate) fn double(value: f64) -> Option<Bytes> {
    blob(value.to_be_bytes())
}

pub(crate) fn boolean(value: bool) -> Option<Bytes> {
    blob([u8::from(value)])
}

pub(crate) fn uuid(value: Uuid) -> Option<Bytes> {
    blob(value.as_bytes())
}

pub(crate) fn inet(value: IpAddr) -> Option<Bytes> {
    match value {
        IpAddr::V4(address) => blob(address.octets()),
        IpAddr::V6(address) => blob(address.octets()),
    }
}

pub(crate) fn text_set<T: AsRef<str>>(values: impl IntoIterator<Item = T>) -> Option<Bytes> {
    let values: Vec<T> = values.into_iter().collect();
    Some(pack_set(
        &CqlType::TEXT,
        values.iter().map(|value| value.as_ref().as_bytes()),
    ))
}

pub(crate) fn text_list<T: AsRef<str>>(values: impl IntoIterator<Item = T>) -> Option<Bytes> {
    let values: Vec<T> = values.into_iter().collect();
    Some(pack_list(values.iter().map(|value| value.as_ref().as_bytes())))
}

pub(crate) fn text_map<V: AsRef<[u8]>>(values: &BTreeMap<String, V>) -> Option<Bytes> {
    Some(pack_map(
        &CqlType::TEXT,
        values.iter().map(|(key, value)| (key.as_bytes(), value.as_ref())),
    ))
}

/// Puts rows into the order in which Cassandra reads the table.
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
