//! Rows of the hidden table of an index with posting lists.
//!
//! The partition key is one byte for the kind of partition, and possibly the number of a list.
//! - `0`, the directory: a row for each list, and one for the version with [`VERSION_ROW`] in place of the list's number.
//! - `1`, the marks: a row for each list that may have grown too long.
//! - `2` and a list's number: the entries of the list, one for each base row.
//!
//! An entry has the clustering of any index entry, and a cell with the [packed vectors](super::packed_vector). Rows of the directory and the marks have the list's
//! number in place of the token, and an empty key.

use bytes::{BufMut, Bytes, BytesMut};
use helenus_cql::error::CqlError;
use helenus_row::packed::simple_cell;
use helenus_row::read::{LiveColumn, LiveRow};
use helenus_row::row::{Cell, Deletion, Liveness};
use helenus_row::{ColumnId, RowBuilder, key};
use helenus_tablet::Op;

use super::directory::List;
use crate::index::entries::entry_clustering;
use crate::index::similarity::floats;
use crate::rows::{PartitionKey, corrupt};
use crate::schema::{Index, Table};

/// Number of the directory's row with the version.
pub const VERSION_ROW: i64 = i64::MIN;
/// The only column of all these rows.
const CELL: ColumnId = ColumnId(65_535);

const DIRECTORY: u8 = 0;
const MARKS: u8 = 1;
const LIST: u8 = 2;

const SETTLED: u8 = 0;
const MOVING: u8 = 1;

/// Returns the partition of the directory.
pub fn directory_partition() -> PartitionKey {
    PartitionKey::new(Bytes::from_static(&[DIRECTORY]))
}

/// Returns the partition of the marks.
pub fn marks_partition() -> PartitionKey {
    PartitionKey::new(Bytes::from_static(&[MARKS]))
}

/// Returns the partition of a list's entries.
pub fn list_partition(list: i64) -> PartitionKey {
    let mut bytes = BytesMut::with_capacity(9);
    bytes.put_u8(LIST);
    bytes.put_i64(list);
    PartitionKey::new(bytes.freeze())
}

/// A change of a row, with its timestamp.
pub enum Change {
    Written { cell: Bytes, timestamp_us: i64 },
    Removed { timestamp_us: i64 },
}

/// Returns the operation that changes the row of an encoded clustering.
pub fn row_op(index: &Index, partition: &PartitionKey, clustering: &[u8], change: Change) -> Op {
    let mut row = RowBuilder::new();
    match change {
        Change::Written { cell, timestamp_us } => {
            row.liveness(Liveness {
                timestamp_us,
                expiry: None,
            });
            row.cell(CELL, Cell::live(timestamp_us, cell));
        }
        Change::Removed { timestamp_us } => {
            row.delete_row(Deletion {
                timestamp_us,
                local_deletion_s: timestamp_us.div_euclid(1_000_000),
            });
        }
    }
    Op {
        token: partition.token,
        key: key::row_key(index.table.number, partition.token, &partition.bytes, clustering),
        operand: row.build(),
    }
}

/// Returns the encoded clustering of the entry for a row of the base table.
pub fn entry_row(index: &Index, base: &PartitionKey, clustering: &[Bytes]) -> Result<Bytes, CqlError> {
    encoded(index, &entry_clustering(base, clustering, false))
}

/// Returns the encoded clustering of a list's row in the directory or the marks.
pub fn list_row(index: &Index, list: i64) -> Result<Bytes, CqlError> {
    encoded(
        index,
        &[Bytes::copy_from_slice(&list.to_be_bytes()), Bytes::new()],
    )
}

fn encoded(index: &Index, values: &[Bytes]) -> Result<Bytes, CqlError> {
    let encoded = index.table.layout.encode_clustering(values);
    let encoded = encoded.map_err(|error| CqlError::invalid(error.to_string()))?;
    Ok(encoded.bytes)
}

/// Returns the list of a row in the directory or the marks. `None` if the row is damaged.
pub fn decode_list_row(index: &Index, clustering: &[u8]) -> Option<i64> {
    let (values, _) = index.table.layout.decode_leading(clustering, 1).ok()?;
    let list = values.first()?;
    Some(i64::from_be_bytes(list.as_ref().try_into().ok()?))
}

/// Returns the row's cell. `None` if it has none.
pub fn cell<'r>(row: &LiveRow<'r>) -> Option<&'r [u8]> {
    match row.column(CELL)? {
        LiveColumn::Simple(cell) => Some(cell.value),
        LiveColumn::Complex(_) => None,
    }
}

/// Returns the cell of a packed row, with its timestamp in microseconds. `None` if the cell is deleted or missing.
///
/// # Errors
/// The row is damaged.
pub fn stored_cell(row: &[u8]) -> Result<Option<(&[u8], i64)>, CqlError> {
    let cell = simple_cell(row, CELL).map_err(corrupt)?;
    let live = cell.filter(|cell| !cell.is_tombstone());
    Ok(live.map(|cell| (cell.value, cell.timestamp_us)))
}

/// Encodes a list's row in the directory: whether entries are being moved into it, from which list, and the centroid.
pub fn encode_list(list: &List) -> Bytes {
    let mut cell = BytesMut::with_capacity(9 + list.centroid.len() * 4);
    match list.moving_from {
        Some(from) => {
            cell.put_u8(MOVING);
            cell.put_i64(from);
        }
        None => cell.put_u8(SETTLED),
    }
    list.centroid
        .iter()
        .for_each(|component| cell.put_f32(*component));
    cell.freeze()
}

/// Decodes a list's row in the directory. `None` if it is damaged.
pub fn decode_list(id: i64, cell: &[u8]) -> Option<List> {
    let (kind, rest) = cell.split_first()?;
    let (moving_from, rest) = match *kind {
        SETTLED => (None, rest),
        MOVING => {
            let (from, rest) = rest.split_first_chunk::<8>()?;
            (Some(i64::from_be_bytes(*from)), rest)
        }
        _ => return None,
    };
    Some(List {
        id,
        moving_from,
        centroid: floats(rest),
    })
}

/// Returns the indexed vector of a live row. `None` if the row has no vector that the index holds.
pub fn vector(table: &Table, index: &Index, row: Option<&LiveRow<'_>>) -> Option<Vec<f32>> {
    let (_, column) = table.column(&index.target.column)?;
    let LiveColumn::Simple(cell) = row?.column(column.id)? else {
        return None;
    };
    super::indexed_vector(index, &column.ty, cell.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_decoded_as_they_were_encoded() {
        for moving_from in [None, Some(-4)] {
            let list = List {
                id: 12,
                moving_from,
                centroid: vec![0.5, -2.0],
            };
            assert_eq!(decode_list(12, &encode_list(&list)), Some(list));
        }
        assert!(decode_list(1, &[]).is_none() && decode_list(1, &[MOVING, 2]).is_none());
    }
}
