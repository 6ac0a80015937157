//! The tombstones of a stored value, counted as Cassandra counts those of an SSTable (`MetadataCollector`). Deletions of partitions,
//! ranges, rows and collections count, and so do dead cells. Expiring cells are not counted until a compaction has made tombstones of them.

use bytes::Bytes;

use crate::error::RowError;
use crate::header::PartitionHeader;
use crate::key::KeyKind;
use crate::packed::{ColumnRef, Packed};

/// Returns the number of tombstones in a stored value or an operand.
///
/// # Errors
/// [`RowError`] if the value is corrupt.
pub fn count(kind: KeyKind, value: &Bytes) -> Result<u64, RowError> {
    match kind {
        KeyKind::Header => {
            let header = PartitionHeader::decode(value)?;
            Ok(u64::from(header.deletion.is_some()) + header.range_tombstones.len() as u64)
        }
        KeyKind::Static | KeyKind::Row => count_in_row(value),
    }
}

fn count_in_row(value: &Bytes) -> Result<u64, RowError> {
    let row = Packed::parse(value)?;
    let mut count = u64::from(row.deletion().is_some());
    for column in row.columns() {
        match column? {
            (_, ColumnRef::Simple(cell)) => count += u64::from(cell.is_tombstone()),
            (_, ColumnRef::Complex(complex)) => {
                count += u64::from(complex.deletion.is_some());
                for element in complex.cells() {
                    count += u64::from(element?.1.is_tombstone());
                }
            }
        }
    }
    Ok(count)
}

#[cfg(test)]
#[path = "tombstones_tests.rs"]
mod tests;
