//! Changes of rows that are not yet in the memtables.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;

use bytes::Bytes;

use crate::data_model::{DataModelError, RowMerge};

/// Approximate bytes of an entry besides its key and value.
const ENTRY_OVERHEAD_BYTES: usize = 64;

/// The staged change of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// The merged row, which includes the row of the tree.
    Whole(Bytes),
    /// A change that is to be merged into the row of the tree.
    Operand(Bytes),
}

impl Change {
    pub fn len(&self) -> usize {
        match self {
            Change::Whole(value) | Change::Operand(value) => value.len(),
        }
    }

    /// Combines this change with a later one.
    pub fn then(&self, model: &dyn RowMerge, key: &[u8], later: &Change) -> Result<Change, DataModelError> {
        match (self, later) {
            (_, Change::Whole(value)) => Ok(Change::Whole(value.clone())),
            (Change::Whole(value), Change::Operand(operand)) => model
                .merge(key, Some(value), std::slice::from_ref(operand))
                .map(Change::Whole),
            (Change::Operand(first), Change::Operand(second)) => model
                .merge(key, None, &[first.clone(), second.clone()])
                .map(Change::Operand),
        }
    }

    /// Returns the merged row. `below` is the row of the tree.
    pub fn over(
        self,
        model: &dyn RowMerge,
        key: &[u8],
        below: Option<&Bytes>,
    ) -> Result<Bytes, DataModelError> {
        match (self, below) {
            (Change::Whole(value), _) | (Change::Operand(value), None) => Ok(value),
            (Change::Operand(operand), Some(_)) => model.merge(key, below, &[operand]),
        }
    }
}

/// Changes by key, from consecutive writes.
#[derive(Default)]
pub(crate) struct ChangeTable {
    pub rows: BTreeMap<Bytes, Change>,
    /// Keys that are written often and not cached.
    pub hot: Vec<Bytes>,
    /// The last record of the log among the changes.
    pub last_lsn: u64,
    pub operands: u64,
    /// Number of rows that are whole because the row cache contained them.
    pub folded: u64,
    pub bytes: usize,
}

impl ChangeTable {
    /// Returns the bytes of all keys and changes.
    pub fn content_len(&self) -> usize {
        self.bytes.saturating_sub(self.rows.len() * ENTRY_OVERHEAD_BYTES)
    }

    /// Returns true if a key begins with `prefix`.
    pub fn has_prefix(&self, prefix: &[u8]) -> bool {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let mut rows = self.rows.range::<[u8], _>(from);
        rows.next().is_some_and(|(key, _)| key.starts_with(prefix))
    }

    pub fn add(&mut self, model: &dyn RowMerge, key: Bytes, change: Change) -> Result<(), DataModelError> {
        self.bytes += change.len();
        match self.rows.entry(key) {
            Entry::Vacant(vacant) => {
                self.bytes += vacant.key().len() + ENTRY_OVERHEAD_BYTES;
                vacant.insert(change);
            }
            Entry::Occupied(mut occupied) => {
                let before = occupied.get().len();
                let merged = occupied.get().then(model, occupied.key(), &change)?;
                self.bytes = (self.bytes + merged.len()).saturating_sub(before + change.len());
                occupied.insert(merged);
            }
        }
        Ok(())
    }
}
