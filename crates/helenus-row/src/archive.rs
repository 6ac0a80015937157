//! The tombstone archive: a copy of each tombstone, kept apart from the rows for late writes.
//!
//! A compaction purges a tombstone as soon as nothing is left that the tombstone shadows. A late write that is older than the tombstone
//! must still be shadowed. It may be a retry, a replay with `USING TIMESTAMP`, or the write of a client with a slow clock. Therefore a
//! flush writes the tombstones of each row a second time, under a key of the archive. A late write is merged with the tombstones that are
//! archived for its row. Reads never use the archive. [`crate::compaction_filter`] purges entries older than the table's window.
//!
//! An archive key is the row's key moved to a table of its own ([`ARCHIVE`]). There, the partition key begins with the number of the row's
//! table. Tokens, partition prefixes and merges are those of any key.

use bytes::Bytes;

use crate::error::{KeyError, RowError};
use crate::header::PartitionHeader;
use crate::key::{KeyKind, KeyParts, TableId};
use crate::merge::merge_rows;
use crate::packed::{CellRef, ColumnRef, Packed, RowWriter};
use crate::row::{CellKind, Expiry};

/// The table id of archive keys. No table has this id.
pub const ARCHIVE: TableId = TableId(u32::MAX - 1);

/// Offset of the partition key within a key, in bytes.
const PARTITION_KEY_AT: usize = 12;
/// Bytes of a table's number in the partition key. None of these bytes is zero, so escaping does not change them.
const TABLE_LEN: usize = 5;

/// Returns true for keys of the archive.
pub fn is_archive_key(key: &[u8]) -> bool {
    key.starts_with(&ARCHIVE.0.to_be_bytes())
}

/// Returns the key under which the tombstones of the row at `key` are archived.
///
/// # Errors
/// [`KeyError::Corrupt`] if `key` is too short to be a key.
pub fn archive_key(key: &[u8]) -> Result<Bytes, KeyError> {
    const TOO_SHORT: KeyError = KeyError::Corrupt("key ends too early");
    let (table, rest) = key.split_first_chunk::<4>().ok_or(TOO_SHORT)?;
    let (token, rest) = rest.split_first_chunk::<8>().ok_or(TOO_SHORT)?;
    let number = u32::from_be_bytes(*table);
    let mut archived = Vec::with_capacity(key.len() + TABLE_LEN);
    archived.extend_from_slice(&ARCHIVE.0.to_be_bytes());
    archived.extend_from_slice(token);
    archived.extend([28, 21, 14, 7, 0].map(|shift| 0x80 | (number >> shift) as u8 & 0x7f));
    archived.extend_from_slice(rest);
    Ok(archived.into())
}

/// Returns the table of the row that a key of the archive is for.
pub(crate) fn archived_table(parts: &KeyParts<'_>) -> Option<TableId> {
    let number = parts
        .partition_prefix
        .get(PARTITION_KEY_AT..PARTITION_KEY_AT + TABLE_LEN)?;
    let number = number
        .iter()
        .fold(0u32, |number, byte| number << 7 | u32::from(byte & 0x7f));
    Some(TableId(number))
}

/// Returns the part of a stored value that goes into the archive: deletions, tombstones, and cells that expire within `window_s` of being
/// written. The cells have no values. `None` if there is no such part.
///
/// # Errors
/// [`RowError`] if the value is corrupt.
pub fn tombstones_of(kind: KeyKind, value: &Bytes, window_s: i64) -> Result<Option<Bytes>, RowError> {
    match kind {
        KeyKind::Header => Ok((!PartitionHeader::decode(value)?.is_empty()).then(|| value.clone())),
        KeyKind::Static | KeyKind::Row => {
            let keeps = |expiry: Expiry| i64::from(expiry.ttl_s) < window_s;
            tombstones_of_row(value, keeps)
        }
    }
}

/// Returns an operand merged with the archived tombstones of its row and of its partition's header. Expiring cells that are still live at
/// `now_s` do not count as tombstones.
///
/// # Errors
/// [`RowError`] if one of the values is corrupt.
pub fn under_tombstones(
    parts: &KeyParts<'_>,
    operand: &Bytes,
    row: Option<&Bytes>,
    header: Option<&Bytes>,
    now_s: i64,
) -> Result<Bytes, RowError> {
    let mut under = operand.clone();
    if let Some(row) = row
        && let Some(tombstones) = tombstones_of_row(row, |expiry| expiry.expires_at_s <= now_s)?
    {
        under = merge_rows(&under, &tombstones)?;
    }
    let header = header.map(|header| PartitionHeader::decode(header)).transpose()?;
    let deletion = header.and_then(|header| match parts.kind {
        KeyKind::Row => header.deletion_at(parts.clustering),
        KeyKind::Static | KeyKind::Header => header.deletion,
    });
    if deletion.is_some() {
        under = merge_rows(&under, &RowWriter::new(None, deletion, 0).finish(None))?;
    }
    Ok(under)
}

/// Returns the oldest timestamp in a value that a deletion could shadow. `None` if the value has no such timestamp.
///
/// # Errors
/// [`RowError`] if the value is corrupt.
pub fn oldest_us(kind: KeyKind, value: &[u8]) -> Result<Option<i64>, RowError> {
    if kind == KeyKind::Header {
        return Ok(None);
    }
    let row = Packed::parse(value)?;
    let liveness = row.liveness().map(|liveness| liveness.timestamp_us);
    if row.is_uniform() {
        let has_cells = row.columns().next().is_some();
        return Ok(liveness.or(has_cells.then_some(row.base().timestamp_us)));
    }
    let mut oldest = liveness.unwrap_or(i64::MAX);
    for column in row.columns() {
        match column?.1 {
            ColumnRef::Simple(cell) => see(&mut oldest, &cell),
            ColumnRef::Complex(complex) => {
                for element in complex.cells() {
                    see(&mut oldest, &element?.1);
                }
            }
        }
    }
    Ok((oldest != i64::MAX).then_some(oldest))
}

fn see(oldest: &mut i64, cell: &CellRef<'_>) {
    if !cell.is_tombstone() {
        *oldest = cell.timestamp_us.min(*oldest);
    }
}

fn tombstones_of_row(value: &Bytes, keeps: impl Fn(Expiry) -> bool) -> Result<Option<Bytes>, RowError> {
    let row = Packed::parse(value)?;
    let is_kept = |cell: &CellRef<'_>| match cell.kind {
        CellKind::Tombstone { .. } => true,
        CellKind::Expiring(expiry) => keeps(expiry),
        CellKind::Live | CellKind::Counter => false,
    };
    let liveness = row
        .liveness()
        .filter(|liveness| liveness.expiry.is_some_and(&keeps));
    let mut tombstones = RowTombstones {
        is_empty: liveness.is_none() && row.deletion().is_none(),
        writer: RowWriter::new(liveness, row.deletion(), 0),
    };
    for column in row.columns() {
        let (id, column) = column?;
        match column {
            ColumnRef::Simple(cell) if is_kept(&cell) => {
                tombstones.is_empty = false;
                tombstones.writer.simple(id, &without_value(cell));
            }
            ColumnRef::Simple(_) => {}
            ColumnRef::Complex(complex) => {
                let mut elements = Vec::new();
                for element in complex.cells() {
                    let (path, cell) = element?;
                    if is_kept(&cell) {
                        elements.push((path, without_value(cell)));
                    }
                }
                tombstones.is_empty &= complex.deletion.is_none() && elements.is_empty();
                tombstones.writer.complex(id, complex.deletion, &elements);
            }
        }
    }
    Ok((!tombstones.is_empty).then(|| tombstones.writer.finish(None)))
}

/// The tombstones of a row, collected for the archive.
struct RowTombstones {
    is_empty: bool,
    writer: RowWriter,
}

/// Returns the cell with an empty value, for cells whose value is never read.
pub(crate) fn without_value(cell: CellRef<'_>) -> CellRef<'_> {
    CellRef { value: &[], ..cell }
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
