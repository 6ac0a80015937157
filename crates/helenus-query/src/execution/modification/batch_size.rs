//! The size of a batch as Cassandra computes it, for warnings and refusals (`BatchStatement.verifyBatchSize` and `verifyBatchType`).

use std::collections::HashSet;

use bytes::Bytes;
use hashbrown::HashMap;
use helenus_cql::ast::BatchKind;
use helenus_cql::error::CqlError;
use helenus_row::row::CellKind;
use helenus_row::{CellRef, ColumnRef, KeyKind, PartitionHeader, RowError, RowRef, merge};
use smallvec::SmallVec;

use crate::execution::writes::{RowWrite, WriteSet};
use crate::limits::Limits;
use crate::rows::{corrupt, corrupt_key};
use crate::schema::Table;

/// Number of partitions of an unlogged batch beyond which the client is warned (`unlogged_batch_across_partitions_warn_threshold`).
const UNLOGGED_PARTITIONS_WARN: usize = 10;

const TIMESTAMP_BYTES: usize = 8;
const TTL_BYTES: usize = 4;
const LOCAL_DELETION_BYTES: usize = 8;
/// `DeletionTime.dataSize`. It counts the local time as four bytes, its former size.
const DELETION_BYTES: usize = 12;
/// Bytes of a row's deletion, which has a flag for deletions by views.
const ROW_DELETION_BYTES: usize = DELETION_BYTES + 1;
/// Bytes of a counter's increment, as a context of one shard.
const INCREMENT_BYTES: usize = 36;

/// A batch that has passed the checks.
pub(crate) struct CheckedBatch {
    pub warnings: Vec<String>,
    /// Number of distinct pairs of keyspace and partition, which is Cassandra's number of mutations.
    pub partitions: usize,
}

/// Checks a batch of several partitions. One that is too large is refused. A large one, or an unlogged one over many partitions, gets a
/// warning.
pub(crate) fn check(limits: &Limits, kind: BatchKind, writes: &WriteSet) -> Result<CheckedBatch, CqlError> {
    let mut warnings = Vec::new();
    let partitions = writes.partitions();
    let mutations: HashSet<(&str, &Bytes)> = partitions
        .iter()
        .map(|((_, key), table)| (table.keyspace.as_str(), *key))
        .collect();
    let count = mutations.len();
    if count <= 1 {
        return Ok(CheckedBatch {
            warnings,
            partitions: count,
        });
    }
    let names = || table_names(partitions.values().copied());
    let size = data_size(writes, partitions.len())?;
    if size > limits.batch_size_fail_bytes {
        return Err(CqlError::invalid("Batch too large"));
    }
    let threshold = limits.batch_size_warn_bytes;
    if size > threshold {
        warnings.push(format!(
            "Batch for [{}] is of size {size}, exceeding specified threshold of {threshold} by {}.",
            names().join(", "),
            size - threshold
        ));
    }
    let keys: HashSet<&Bytes> = mutations.iter().map(|(_, key)| *key).collect();
    if kind != BatchKind::Logged && keys.len() > UNLOGGED_PARTITIONS_WARN {
        let names = names();
        warnings.push(format!(
            "Unlogged batch covering {} partitions detected against table{} [{}]. You should use a logged batch for atomicity, or asynchronous writes for performance.",
            keys.len(),
            if names.len() == 1 { "" } else { "s" },
            names.join(", ")
        ));
    }
    Ok(CheckedBatch {
        warnings,
        partitions: count,
    })
}

/// Returns the distinct names of tables, in the order of a Java `HashSet`.
pub(crate) fn table_names<'t>(tables: impl Iterator<Item = &'t Table>) -> Vec<String> {
    /// Buckets of a new set. They are doubled when the set is three quarters full.
    const BUCKETS: usize = 16;
    let mut names: Vec<String> = Vec::new();
    for table in tables {
        let name = table.cql_name();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.sort();
    let mut buckets = BUCKETS;
    while names.len() * 4 > buckets * 3 {
        buckets *= 2;
    }
    names.sort_by_key(|name| {
        let hash = string_hash(name);
        (hash ^ (hash >> 16)) as usize & (buckets - 1)
    });
    names
}

/// Returns the hash of Java's `String.hashCode`.
fn string_hash(text: &str) -> u32 {
    text.encode_utf16().fold(0, |hash: u32, unit| {
        hash.wrapping_mul(31).wrapping_add(u32::from(unit))
    })
}

/// Returns `IMutation.dataSize` of all writes.
fn data_size(writes: &WriteSet, partitions: usize) -> Result<usize, CqlError> {
    // Each partition of each table counts with a deletion time and a static row, even if these are empty.
    let mut size = partitions * (TIMESTAMP_BYTES + TIMESTAMP_BYTES + ROW_DELETION_BYTES);
    let mut headers: HashMap<(u32, &Bytes), PartitionHeader> = HashMap::new();
    for write in &writes.headers {
        headers
            .entry((write.table.number.0, &write.partition.bytes))
            .and_modify(|header| *header = header.merge(&write.header))
            .or_insert_with(|| write.header.clone());
    }
    size += headers.values().map(ranges_size).sum::<usize>();
    let mut rows: HashMap<(u32, &Bytes, KeyKind, &Bytes), SmallVec<[&RowWrite; 1]>> =
        HashMap::with_capacity(writes.rows.len());
    for write in &writes.rows {
        let key = (
            write.table.number.0,
            &write.partition.bytes,
            write.kind,
            &write.clustering,
        );
        rows.entry(key).or_default().push(write);
    }
    for writes in rows.values() {
        size += row_size(writes)?;
    }
    Ok(size)
}

/// Returns `RangeTombstoneList.dataSize`. Bounds count with their encoded size here.
fn ranges_size(header: &PartitionHeader) -> usize {
    /// Bytes of the number of ranges.
    const COUNT_BYTES: usize = 4;
    /// Bytes of a local deletion time, as range tombstones store it.
    const RANGE_LOCAL_DELETION_BYTES: usize = 4;
    let size = |range: &helenus_row::RangeTombstone| {
        let bounds = range.start.len() + range.end.as_ref().map_or(0, Bytes::len);
        bounds + TIMESTAMP_BYTES + RANGE_LOCAL_DELETION_BYTES
    };
    match header.range_tombstones.as_slice() {
        [] => 0,
        ranges => COUNT_BYTES + ranges.iter().map(size).sum::<usize>(),
    }
}

/// Returns `BTreeRow.dataSize` of one row's writes by several statements.
fn row_size(writes: &[&RowWrite]) -> Result<usize, CqlError> {
    let Some(first) = writes.first() else { return Ok(0) };
    let written = match writes {
        [only] => only.operand.clone(),
        several => {
            let operands: Vec<Bytes> = several.iter().map(|write| write.operand.clone()).collect();
            merge::merge(first.kind, None, &operands).map_err(corrupt)?
        }
    };
    let row = RowRef::parse(written).map_err(corrupt)?;
    let cells = cells_size(&row).map_err(corrupt)?;
    // In a table without clustering columns, the deletion of a row is that of its partition.
    let is_deleted = row.deletion().is_some() && row.liveness().is_none() && cells == 0;
    if is_deleted && first.table.clustering_count == 0 {
        return Ok(0);
    }
    if first.kind == KeyKind::Static {
        // The static row itself is counted with the partition.
        return Ok(cells);
    }
    let clustering = first.table.layout.decode_clustering(&first.clustering);
    let clustering: usize = clustering.map_err(corrupt_key)?.iter().map(Bytes::len).sum();
    let expiry = match row.liveness() {
        Some(liveness) if liveness.expiry.is_some() => TTL_BYTES + LOCAL_DELETION_BYTES,
        _ => 0,
    };
    Ok(clustering + TIMESTAMP_BYTES + expiry + ROW_DELETION_BYTES + cells)
}

fn cells_size(row: &RowRef) -> Result<usize, RowError> {
    let mut size = 0;
    for column in row.columns() {
        let (_, column) = column?;
        size += match column {
            ColumnRef::Simple(cell) => cell_size(&cell),
            ColumnRef::Complex(complex) => {
                let mut size = DELETION_BYTES;
                for element in complex.cells() {
                    let (path, cell) = element?;
                    size += path.len() + cell_size(&cell);
                }
                size
            }
        };
    }
    Ok(size)
}

fn cell_size(cell: &CellRef<'_>) -> usize {
    let value = match cell.kind {
        CellKind::Counter => INCREMENT_BYTES,
        CellKind::Live | CellKind::Expiring(_) | CellKind::Tombstone { .. } => cell.value.len(),
    };
    TIMESTAMP_BYTES + TTL_BYTES + LOCAL_DELETION_BYTES + value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hash_as_in_java() {
        assert_eq!(string_hash(""), 0);
        assert_eq!(string_hash("ab"), 97 * 31 + 98);
        assert_eq!(string_hash("polygenelubricants"), i32::MIN.cast_unsigned());
    }
}
