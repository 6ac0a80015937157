//! The hidden table behind an index.
//!
//! Partition key: the indexed value ([`held_value`], [`entry_key`]; of an index on map entries the composite of key and
//! value). Its token is its hash, or, of an index that answers bounds, follows the order of the values ([`placed_value`]):
//! then a range of values is a range of keys. Clustering: the base row's token (`bigint`), its serialized partition key (`blob`), then its clustering
//! columns with their types and orders. So the entries of a value come in the order in which a scan of the base table
//! gives the rows, and a token, a partition or a row of the base table is a slice of them.
//!
//! An entry is a row with liveness and without cells. Indexes on static columns and on partition key columns have one
//! entry for a base partition: there the base's clustering columns are left out. An entry says that the base row may
//! have the value: readers check it against the base row, whose writer adds the new entry before it writes the row
//! and removes the old one after.

use std::collections::BTreeMap;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::{CqlType, NativeType};
use helenus_cql::value::{Decimal, without_trailing_nulls};
use helenus_row::key::{compose_partition_key, ordered_token, ordered_value};
use helenus_row::{ColumnId, Order, TableId};
use uuid::Uuid;

use crate::rows::PartitionKey;
use crate::schema::{
    Column, ColumnKind, Index, IndexKind, IndexTarget, IndexTargetKind, Table, TableBuilder, TableKind,
    TableOptions,
};

/// Clustering columns of the hidden table before those of the base table.
const LEADING: usize = 2;

/// Returns the columns of the hidden table of an index on that column of the base table.
pub fn hidden_columns(base: &Table, indexed: &Column) -> Vec<Column> {
    let column = |name: &str, ty: CqlType, kind, position: usize, order| Column {
        name: name.to_owned(),
        ty,
        kind,
        position,
        id: ColumnId(u32::try_from(position).unwrap_or(u32::MAX)),
        order,
        mask: None,
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

/// Returns true if an entry of the index stands for a base partition, not for a row.
pub fn is_by_partition(index: &Index, base: &Table) -> bool {
    index.table.clustering_count == LEADING && base.clustering_count > 0
}

/// Returns the partition of the hidden table that holds the entries of an indexed value; `value` is from [`placed_value`].
pub fn entry_key(index: &Index, value: Bytes) -> PartitionKey {
    match &index.order {
        Some(ty) => PartitionKey {
            token: ordered_token(ty, &value),
            bytes: value,
        },
        None => PartitionKey::new(value),
    }
}

/// Returns a value that an index holds, as the key of its entries.
///
/// # Errors
/// If it is no value of the type by which the entries are ordered.
pub fn placed_value(index: &Index, held: Bytes) -> Result<Bytes, CqlError> {
    match &index.order {
        Some(ty) => ordered_value(ty, &held).map_err(|error| CqlError::invalid(error.to_string())),
        None => Ok(held),
    }
}

/// How an index holds a key of a map: as [`held_value`] does.
pub fn held_key(index: &Index, column: &Column, key: &[u8]) -> Bytes {
    let ty = match &column.ty {
        CqlType::Map { key, .. } => key,
        other => other,
    };
    held(index, column, ty, key)
}

/// Returns a value as an index holds it. Nulls at the end of tuples and user types are cut off, so that a row is found whether it was
/// written before or after a field was added. Equal decimals are one where Cassandra's index does that, and where the value is taken
/// from a clustering key, which does not tell them apart.
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

/// Returns the indexed value of a map's entry, for an index on entries. Nulls at the end of tuples and user types are cut off; equal
/// decimals stay apart.
///
/// # Errors
/// If it is longer than a partition key may be.
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

/// Returns the clustering values of the entry for a base row; `clustering` is the row's, which an index by partition leaves
/// out.
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

/// Returns the base row that an encoded clustering of the hidden table stands for: its partition, and its encoded clustering
/// (empty if the entry is for a partition, or the table has no clustering columns).
pub fn decode_entry(index: &Index, clustering: &Bytes) -> Result<(PartitionKey, Bytes), CqlError> {
    let layout = &index.table.layout;
    let damaged = || CqlError::Server(format!("an entry of index {} is damaged", index.name));
    let (values, rest) = layout
        .decode_leading(clustering, LEADING)
        .map_err(|_| damaged())?;
    let [token, key] = values.as_slice() else {
        return Err(damaged());
    };
    let token = token
        .as_ref()
        .try_into()
        .map(i64::from_be_bytes)
        .map_err(|_| damaged())?;
    Ok((
        PartitionKey {
            token,
            bytes: key.clone(),
        },
        clustering.slice_ref(rest),
    ))
}

/// Returns the hidden table of an index; [`super::entries`] says how it is laid out.
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
    };
    Ok(builder.build())
}
