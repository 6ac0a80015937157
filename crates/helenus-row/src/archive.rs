//! The tombstone archive: a copy of each tombstone, kept apart from the rows for late writes.
//!
//! A compaction purges a tombstone as soon as nothing is left that it shadows. A write that arrives later and is older than the tombstone (a
//! retry, a replay with `USING TIMESTAMP`, a client with a slow clock) must still be shadowed. So a flush writes the tombstones of each row a
//! second time, under a key of the archive; a late write is merged with the tombstones that it finds there. Reads never use the archive.
//! [`crate::compaction_filter`] purges entries older than the table's window.
//!
//! An archive key is the row's key in a table of its own ([`ARCHIVE`]), in which the partition key begins with the number of the row's
//! table. Tokens, partition prefixes and merges are those of any key.

use bytes::Bytes;

use crate::error::{KeyError, RowError};
use crate::header::PartitionHeader;
use crate::key::{KeyKind, KeyParts, TableId};
use crate::merge::merge_rows;
use crate::packed::{CellRef, ColumnRef, Packed, RowWriter};
use crate::row::{CellKind, Expiry};

/// The number under which archive keys lie; no table has it.
pub const ARCHIVE: TableId = TableId(u32::MAX - 1);

/// Where the partition key begins in a key.
const PARTITION_KEY_AT: usize = 12;
/// A table's number, in bytes of which none is zero, so that escaping leaves them as they are.
const TABLE_LEN: usize = 5;

/// Returns true for keys of the archive.
pub fn is_archive_key(key: &[u8]) -> bool {
    key.starts_with(&ARCHIVE.0.to_be_bytes())
}

/// Where the tombstones of the row at `key` are archived.
///
/// # Errors
/// [`KeyError::Corrupt`] if `key` is too short to be one.
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

/// Returns the table that a key of the archive is about.
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
/// written, without their values. `None` if there is none.
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

/// Returns an operand merged with archived tombstones: those of its row, and those of its partition's header. Expiring cells that are still
/// live at `now_s` do not count as tombstones.
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

/// Returns the oldest timestamp in a value that a deletion could shadow; `None` if there is none.
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

/// The dead part of a row.
struct RowTombstones {
    is_empty: bool,
    writer: RowWriter,
}

/// Returns a cell whose value is never read.
pub(crate) fn without_value(cell: CellRef<'_>) -> CellRef<'_> {
    CellRef { value: &[], ..cell }
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
