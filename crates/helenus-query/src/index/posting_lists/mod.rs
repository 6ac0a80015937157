//! Posting lists of vectors that are near to each other: what an index on vectors is made of (an inverted file, as that of SPANN).
//!
//! The vectors are divided among lists, each with a centroid, and each vector is an entry of the list whose centroid is nearest. A search reads the
//! lists whose centroids are nearest to what is looked for. There is one list at first. One that has grown too long is split: centroids are found
//! for its vectors, the list keeps one of them, new lists get the others, and entries are moved to them in the background
//! ([`super::splitting`]). No list is ever given up, so that an entry that was written by who did not know of a split yet is in a list that is read,
//! if not in the nearest.
//!
//! An entry is a hint. Searches read its row and score that, and an entry whose row has another vector stands for nothing, as one whose row is
//! gone. So an entry too many does no harm; that there is one for each row, the timestamps see to: an entry is moved with the next timestamp after
//! its own, which is older than that of whatever its row's next writer does, and that writer's removals are older than what it adds.

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
use self::packed_vector::pack;
use super::similarity::{SimilarityFunction, floats};
use crate::rows::PartitionKey;
use crate::schema::Index;

/// A node that has put so many entries into a list marks it, for its length to be looked at.
const ENTRIES_TO_MARK: u32 = 64;

/// The directories of indexes that the node knows, by the number of the index's table.
#[derive(Debug, Default)]
pub struct PostingLists {
    known: Mutex<HashMap<TableId, KnownDirectory>>,
    /// Entries that were put into a list since it was marked.
    added: Mutex<HashMap<(TableId, i64), u32>>,
    /// Held while a directory is read.
    pub loading: tokio::sync::Mutex<()>,
}

#[derive(Clone, Debug)]
struct KnownDirectory {
    directory: Arc<Directory>,
    checked: Instant,
}

impl PostingLists {
    /// Returns the directory of an index as it was known, and when.
    pub fn known(&self, index: &Index) -> Option<(Arc<Directory>, Instant)> {
        let known = self.known.lock();
        let known = known.get(&index.table.number)?;
        Some((known.directory.clone(), known.checked))
    }

    /// Takes note of a directory, unless a newer one is known.
    pub fn set(&self, index: &Index, directory: Arc<Directory>, checked: Instant) {
        let mut known = self.known.lock();
        let is_older = |known: &KnownDirectory| known.directory.version > directory.version;
        if !known.get(&index.table.number).is_some_and(is_older) {
            known.insert(index.table.number, KnownDirectory { directory, checked });
        }
    }

    /// Forgets what is known of indexes that are gone.
    pub fn retain(&self, is_there: impl Fn(TableId) -> bool) {
        self.known.lock().retain(|number, _| is_there(*number));
        self.added.lock().retain(|(number, _), _| is_there(*number));
    }

    /// Returns an entry was put into the list: true once in a while.
    fn wants_mark(&self, index: &Index, list: i64) -> bool {
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

/// Returns a vector as it is compared: where the direction alone counts, of length 1.
pub fn prepared(measure: SimilarityFunction, mut vector: Vec<f32>) -> Vec<f32> {
    if measure == SimilarityFunction::Cosine {
        let length = dot(&vector, &vector).sqrt();
        if length.is_finite() && length > 0.0 {
            vector.iter_mut().for_each(|component| *component /= length);
        }
    }
    vector
}

/// Returns a stored vector, prepared; none if the index does not hold such a one.
pub fn indexed_vector(index: &Index, ty: &CqlType, value: &[u8]) -> Option<Vec<f32>> {
    let CqlType::Vector { dimension, .. } = ty else {
        return None;
    };
    let measure = SimilarityFunction::of(index);
    let vector = floats(value);
    let is_held = vector.len() == *dimension as usize && measure.check(&vector).is_ok();
    is_held.then(|| prepared(measure, vector))
}

/// The vectors of a row, prepared: before a write, after it, and what will be left of the one before when all that expires has expired.
pub struct VectorChange {
    pub before: Option<Vec<f32>>,
    pub to_stay: Option<Vec<f32>>,
    pub after: Option<Vec<f32>>,
}

/// Entries to add and to remove.
#[derive(Debug, Default)]
pub struct ListOps {
    pub added: Vec<Op>,
    pub removed: Vec<Op>,
}

/// Returns the changes of entries that follow from a row's change.
///
/// # Errors
/// If the row's key is not of the layout.
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
    if let Some(vector) = change.before.as_ref().filter(|_| change.before != change.after) {
        // Removed as of before the addition, so that one that is moved meanwhile stays.
        let timestamp_us = next_timestamp_us();
        let old = directory.lists_of(vector).filter(|list| Some(*list) != new_list);
        ops.removed.extend(old.map(|list| {
            row_op(
                index,
                &list_partition(list),
                &row,
                Change::Removed { timestamp_us },
            )
        }));
    }
    let Some((vector, list)) = change.after.as_ref().zip(new_list) else {
        return Ok(ops);
    };
    if change.after == change.to_stay {
        return Ok(ops);
    }
    let timestamp_us = next_timestamp_us();
    let written = |cell| Change::Written { cell, timestamp_us };
    ops.added
        .push(row_op(index, &list_partition(list), &row, written(pack(vector))));
    if lists.wants_mark(index, list) {
        let mark = list_row(index, list)?;
        ops.added
            .push(row_op(index, &marks_partition(), &mark, written(Bytes::new())));
    }
    Ok(ops)
}
