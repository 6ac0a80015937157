//! Posting lists: lists of vectors that are near to each other, which make up an index on vectors (an inverted file, as in SPANN).
//!
//! The vectors are divided among lists, each with a centroid. Each vector is an entry of the list with the nearest centroid. A search reads
//! the lists whose centroids are nearest to the query vector. There is one list at first. A list that has grown too long is split:
//! centroids are computed for its vectors, the list keeps one of them, and new lists get the others. Entries are moved to the new lists in
//! the background ([`super::splitting`]). Lists are never removed. So an entry that was written without knowledge of a split is still in a
//! list that searches read, even if it is not the nearest one.
//!
//! An entry is a hint. A search reads its row and scores the row's vector. An entry whose row is gone or has another vector is stale, so a
//! superfluous entry does no harm. Timestamps ensure that each row has an entry. An entry is moved with its own timestamp plus one, which
//! is older than any timestamp of the row's next writer. That writer's removals are older than its additions.
//!
//! A changed vector may belong to the list of its predecessor, so that both have the same entry. The entry then contains both vectors until
//! the row is written, and is found by either, whether or not that write fails.

pub(crate) mod arithmetic;
pub(crate) mod directory;
#[cfg(test)]
pub(crate) mod gaussian;
pub(crate) mod hidden_rows;
pub(crate) mod k_means;
pub(crate) mod packed_vector;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_row::TableId;
use helenus_tablet::Op;
use parking_lot::Mutex;

use self::arithmetic::dot;
use self::directory::Directory;
use self::hidden_rows::{Change, entry_row, list_partition, list_row, marks_partition, row_op};
use self::packed_vector::{pack, pair};
use super::similarity::{SimilarityFunction, floats};
use crate::rows::PartitionKey;
use crate::schema::Index;

/// Number of entries after which a node marks a list, so that its length is checked.
const ENTRIES_TO_MARK: u32 = 64;

/// The node's copies of the directories of indexes, by the number of the index's table.
#[derive(Debug, Default)]
pub struct PostingLists {
    known: Mutex<HashMap<TableId, KnownDirectory>>,
    /// Number of entries added to each list since it was last marked.
    added: Mutex<HashMap<(TableId, i64), u32>>,
    /// A lock that is held while a directory is read.
    pub loading: tokio::sync::Mutex<()>,
}

#[derive(Clone, Debug)]
struct KnownDirectory {
    directory: Arc<Directory>,
    checked: Instant,
}

impl PostingLists {
    /// Returns the node's copy of an index's directory, with the time of its last check. `None` if there is none.
    pub fn known(&self, index: &Index) -> Option<(Arc<Directory>, Instant)> {
        let known = self.known.lock();
        let known = known.get(&index.table.number)?;
        Some((known.directory.clone(), known.checked))
    }

    /// Stores a copy of a directory, unless a newer one is known.
    pub fn set(&self, index: &Index, directory: Arc<Directory>, checked: Instant) {
        let mut known = self.known.lock();
        let is_older = |known: &KnownDirectory| known.directory.version > directory.version;
        if !known.get(&index.table.number).is_some_and(is_older) {
            known.insert(index.table.number, KnownDirectory { directory, checked });
        }
    }

    /// Drops the data of indexes that do not exist any more.
    pub fn retain(&self, is_there: impl Fn(TableId) -> bool) {
        self.known.lock().retain(|number, _| is_there(*number));
        self.added.lock().retain(|(number, _), _| is_there(*number));
    }

    /// Counts an entry that was added to the list. Returns true if the list must be marked now.
    fn needs_mark(&self, index: &Index, list: i64) -> bool {
        let mut added = self.added.lock();
        let count = added.entry((index.table.number, list)).or_default();
        *count += 1;
        let is_due = *count >= ENTRIES_TO_MARK;
        if is_due {
            *count = 0;
        }
        is_due
    }

    fn directory(&self, index: &Index) -> Arc<Directory> {
        self.known(index)
            .map(|(directory, _)| directory)
            .unwrap_or_default()
    }
}

/// Returns a vector in the form in which it is compared: for cosine, where only the direction counts, it is scaled to length 1.
pub fn prepared(measure: SimilarityFunction, mut vector: Vec<f32>) -> Vec<f32> {
    if measure == SimilarityFunction::Cosine {
        let length = dot(&vector, &vector).sqrt();
        if length.is_finite() && length > 0.0 {
            vector.iter_mut().for_each(|component| *component /= length);
        }
    }
    vector
}

/// Returns a stored vector in its prepared form. `None` if the index does not hold such vectors.
pub fn indexed_vector(index: &Index, ty: &CqlType, value: &[u8]) -> Option<Vec<f32>> {
    let CqlType::Vector { dimension, .. } = ty else {
        return None;
    };
    let measure = SimilarityFunction::of(index);
    let vector = floats(value);
    let is_held = vector.len() == *dimension as usize && measure.check(&vector).is_ok();
    is_held.then(|| prepared(measure, vector))
}

/// The prepared vectors of a row: before a write, after it, and in `to_stay` the earlier one that remains once everything that expires has
/// expired.
pub struct VectorChange {
    pub before: Option<Vec<f32>>,
    pub to_stay: Option<Vec<f32>>,
    pub after: Option<Vec<f32>>,
}

/// An entry of a list to which both the earlier and the new vector of a row belong.
#[derive(Debug)]
pub struct ReplacedEntry {
    /// The entry with both vectors.
    pub pair: Op,
    /// The entry with the new vector. It replaces the pair.
    pub single: Op,
}

/// Entries to add, to replace and to remove.
#[derive(Debug, Default)]
pub struct ListOps {
    pub added: Vec<Op>,
    pub replaced: Option<ReplacedEntry>,
    pub removed: Vec<Op>,
}

/// Returns the changes of entries that a row's change requires.
///
/// # Errors
/// The row's key does not fit the layout.
pub fn list_ops(
    lists: &PostingLists,
    index: &Index,
    base: &PartitionKey,
    clustering: &[Bytes],
    change: &VectorChange,
    next_timestamp_us: &dyn Fn() -> i64,
) -> Result<ListOps, CqlError> {
    let mut ops = ListOps::default();
    if change.before == change.after && change.to_stay == change.after {
        return Ok(ops);
    }
    let directory = lists.directory(index);
    let row = entry_row(index, base, clustering)?;
    let new_list = change.after.as_ref().map(|vector| directory.list_of(vector));
    let mut predecessor = None;
    if let Some(vector) = change.before.as_ref().filter(|_| change.before != change.after) {
        // The removal has an older timestamp than the addition, so that an entry that is moved meanwhile stays.
        let timestamp_us = next_timestamp_us();
        for list in directory.lists_of(vector) {
            if Some(list) == new_list {
                predecessor = Some(vector);
                continue;
            }
            let removed = Change::Removed { timestamp_us };
            ops.removed
                .push(row_op(index, &list_partition(list), &row, removed));
        }
    }
    let Some((vector, list)) = change.after.as_ref().zip(new_list) else {
        return Ok(ops);
    };
    if change.after == change.to_stay {
        return Ok(ops);
    }
    let timestamp_us = next_timestamp_us();
    let written = |cell| Change::Written { cell, timestamp_us };
    let entry = |change| row_op(index, &list_partition(list), &row, change);
    let packed = pack(vector);
    match predecessor {
        None => ops.added.push(entry(written(packed))),
        Some(predecessor) => {
            let both = pair(&packed, &pack(predecessor));
            let single = Change::Written {
                cell: packed,
                timestamp_us: next_timestamp_us(),
            };
            ops.replaced = Some(ReplacedEntry {
                pair: entry(written(both)),
                single: entry(single),
            });
        }
    }
    if lists.needs_mark(index, list) {
        let mark = list_row(index, list)?;
        ops.added
            .push(row_op(index, &marks_partition(), &mark, written(Bytes::new())));
    }
    Ok(ops)
}
