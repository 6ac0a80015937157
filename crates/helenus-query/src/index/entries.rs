//! The hidden table of an index.
//!
//! The partition key of an entry is the indexed value ([`held_value`], [`entry_key`]). For an index on map entries, it is the composite of key and
//! value. The token is the hash of the value. For an index that answers bounds, it follows the order of the values instead
//! ([`placed_value`]), so that a range of values is a range of keys.
//!
//! The clustering is the base row's token (`bigint`), its serialized partition key (`blob`), and then its clustering columns with their
//! types and orders. So the entries of a value have the order in which a scan of the base table returns the rows. A token, a partition or a
//! row of the base table is a slice of them.
//!
//! An entry is a row with liveness and without cells. Indexes on static columns and on partition key columns have one entry for a base
//! partition, without the base's clustering columns. An entry says that the base row may have the value, and readers check the base row. A
//! writer of the base row adds the new entry before the row and removes the old entry after it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::{CqlType, NativeType};
use helenus_cql::value::{Decimal, without_trailing_nulls};
use helenus_row::key::{compose_partition_key, decode_leading_partition, ordered_token, ordered_value};
use helenus_row::{ColumnId, Order, TableId};
use uuid::Uuid;

use crate::rows::PartitionKey;
use crate::schema::{
    Column, ColumnKind, Index, IndexKind, IndexTarget, IndexTargetKind, Table, TableBuilder, TableKind,
    TableOptions,
};

/// Number of the hidden table's clustering columns before those of the base table.
const LEADING: usize = 2;

/// Returns the columns of the hidden table of an index on `indexed`.
pub fn hidden_columns(base: &Table, indexed: &Column) -> Vec<Column> {
    let column = |name: &str, ty: CqlType, kind, position: usize, order| Column {
        name: name.to_owned(),
        ty,
        kind,
        position,
        id: ColumnId(u32::try_from(position).unwrap_or(u32::MAX)),
        order,
        mask: None,
        constraints: Arc::default(),
    };
    let mut columns = vec![
        column(" value", CqlType::BLOB, ColumnKind::PartitionKey, 0, Order::Asc),
        column(" token", CqlType::BIGINT, ColumnKind::Clustering, 0, Order::Asc),
        column(" key", CqlType::BLOB, ColumnKind::Clustering, 1, Order::Asc),
    ];
    if matches!(indexed.kind, ColumnKind::Clustering | ColumnKind::Regular) {
        columns.extend(base.clustering().iter().map(|clustering| {
            let position = clustering.position + LEADING;
            column(
                &clustering.name,
                clustering.ty.clone(),
                ColumnKind::Clustering,
                position,
                clustering.order,
            )
        }));
    }
    columns
}

/// Returns true if an entry of the index stands for a base partition instead of a row.
pub fn is_by_partition(index: &Index, base: &Table) -> bool {
    index.table.clustering_count == LEADING && base.clustering_count > 0
}

/// Returns the partition of the hidden table with the entries of an indexed value. `value` comes from [`placed_value`].
pub fn entry_key(index: &Index, value: Bytes) -> PartitionKey {
    match &index.order {
        Some(ty) => PartitionKey {
            token: ordered_token(ty, &value),
            bytes: value,
        },
        None => PartitionKey::new(value),
    }
}

/// Returns an indexed value in the form in which it is the key of its entries.
///
/// # Errors
/// The value does not belong to the type by which the entries are ordered.
pub fn placed_value(index: &Index, held: Bytes) -> Result<Bytes, CqlError> {
    match &index.order {
        Some(ty) => ordered_value(ty, &held).map_err(|error| CqlError::invalid(error.to_string())),
        None => Ok(held),
    }
}

/// Returns a key of a map in the form in which an index holds it, like [`held_value`].
pub fn held_key(index: &Index, column: &Column, key: &[u8]) -> Bytes {
    let ty = match &column.ty {
        CqlType::Map { key, .. } => key,
        other => other,
    };
    held(index, column, ty, key)
}

/// Returns a value in the form in which an index holds it. Trailing nulls of tuples and user types are cut off. A row is then found whether
/// it was written before or after a field was added. Equal decimals have one form in indexes where Cassandra does so. They also have one
/// form if the value is a clustering key, which does not distinguish them.
pub fn held_value(index: &Index, column: &Column, value: &[u8]) -> Bytes {
    let is_whole = matches!(index.target.kind, IndexTargetKind::Simple | IndexTargetKind::Full);
    let ty = match &column.ty {
        whole if is_whole => whole,
        CqlType::Map { value, .. } => value,
        CqlType::List { element, .. } | CqlType::Set { element, .. } => element,
        other => other,
    };
    held(index, column, ty, value)
}

fn held(index: &Index, column: &Column, ty: &CqlType, value: &[u8]) -> Bytes {
    let equal_are_one = index.kind == IndexKind::Custom || column.kind == ColumnKind::Clustering;
    let decimal = match ty {
        CqlType::Native(NativeType::Decimal) if equal_are_one => Decimal::from_bytes(value),
        _ => None,
    };
    match decimal {
        Some(decimal) => decimal.strip_trailing_zeros().to_bytes(),
        None => without_trailing_nulls(ty, value).into_owned().into(),
    }
}

/// Returns the indexed value of a map's entry, for an index on entries. Trailing nulls of tuples and user types are cut off. Equal decimals
/// stay distinct.
///
/// # Errors
/// The result is longer than a partition key may be.
pub fn entry_value(column: &Column, key: &[u8], value: &[u8]) -> Result<Bytes, CqlError> {
    let composite = match &column.ty {
        CqlType::Map {
            key: key_type,
            value: value_type,
            ..
        } => compose_partition_key(&[
            without_trailing_nulls(key_type, key),
            without_trailing_nulls(value_type, value),
        ]),
        _ => compose_partition_key(&[key, value]),
    };
    composite.map_err(|error| CqlError::invalid(error.to_string()))
}

/// Returns the clustering values of the entry for a base row. `clustering` is that of the row, and an index by partition omits it.
pub fn entry_clustering(base: &PartitionKey, clustering: &[Bytes], is_by_partition: bool) -> Vec<Bytes> {
    let mut values = vec![
        Bytes::copy_from_slice(&base.token.to_be_bytes()),
        base.bytes.clone(),
    ];
    if !is_by_partition {
        values.extend_from_slice(clustering);
    }
    values
}

/// Returns the base row of an entry from the entry's encoded clustering: the row's partition and encoded clustering. The latter is empty if
/// the entry is for a partition, or if the table has no clustering columns.
pub fn decode_entry(index: &Index, clustering: &Bytes) -> Result<(PartitionKey, Bytes), CqlError> {
    let damaged = |_| CqlError::Server(format!("an entry of index {} is damaged", index.name));
    let (token, key, rest) = decode_leading_partition(clustering).map_err(damaged)?;
    let bytes = match key {
        Cow::Borrowed(key) => clustering.slice_ref(key),
        Cow::Owned(key) => key.into(),
    };
    Ok((PartitionKey { token, bytes }, clustering.slice_ref(rest)))
}

/// Returns the hidden table of an index, with the layout that [`super::entries`] describes.
pub fn hidden_table(
    base: &Table,
    name: &str,
    target: &IndexTarget,
    number: TableId,
    id: Uuid,
) -> Result<Table, CqlError> {
    let Some((_, indexed)) = base.column(&target.column) else {
        return Err(CqlError::Server(format!(
            "index {name} is on {}, which is no column",
            target.column
        )));
    };
    let columns = hidden_columns(base, indexed);
    let builder = TableBuilder {
        keyspace: base.keyspace.clone(),
        name: format!("{}.{name}", base.name),
        id,
        incarnation: None,
        number,
        kind: TableKind::Index,
        compact: None,
        options: TableOptions::default(),
        next_column_id: ColumnId(u32::try_from(columns.len()).unwrap_or(u32::MAX)),
        columns,
        dropped_columns: BTreeMap::new(),
        indexes: Vec::new(),
        views: Vec::new(),
        view: None,
        origin: None,
        adopts_origin: false,
        cdc_log_of: None,
    };
    Ok(builder.build())
}
