//! Changes of rows that are not yet in the memtables.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;

use bytes::Bytes;

use super::staged_key::{LeadingKey, SoughtKey, StagedKey};
use crate::data_model::{DataModelError, RowMerge};

/// Approximate bytes of an entry besides its key and value.
const ENTRY_OVERHEAD_BYTES: usize = 80;

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
    pub rows: BTreeMap<StagedKey, Change>,
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

    /// Returns the change of a key. `None` if it has none.
    pub fn get(&self, key: &[u8]) -> Option<&Change> {
        let sought: &dyn LeadingKey = &SoughtKey::new(key);
        self.rows.get(sought)
    }

    /// Returns the changes in a range, in order. The start of the range must not be behind its end.
    pub fn range<'t>(
        &'t self,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
    ) -> impl Iterator<Item = (&'t Bytes, &'t Change)> + use<'t> {
        let (start, end) = (start.map(SoughtKey::new), end.map(SoughtKey::new));
        let bounds: (Bound<&dyn LeadingKey>, Bound<&dyn LeadingKey>) = (
            start.as_ref().map(|key| key as &dyn LeadingKey),
            end.as_ref().map(|key| key as &dyn LeadingKey),
        );
        let rows = self.rows.range::<dyn LeadingKey, _>(bounds);
        rows.map(|(key, change)| (key.bytes(), change))
    }

    /// Returns true if a key begins with `prefix`.
    pub fn has_prefix(&self, prefix: &[u8]) -> bool {
        let mut rows = self.range(Bound::Included(prefix), Bound::Unbounded);
        rows.next().is_some_and(|(key, _)| key.starts_with(prefix))
    }

    pub fn add(&mut self, model: &dyn RowMerge, key: Bytes, change: Change) -> Result<(), DataModelError> {
        self.bytes += change.len();
        match self.rows.entry(StagedKey::new(key)) {
            Entry::Vacant(vacant) => {
                self.bytes += vacant.key().bytes().len() + ENTRY_OVERHEAD_BYTES;
                vacant.insert(change);
            }
            Entry::Occupied(mut occupied) => {
                let before = occupied.get().len();
                let merged = occupied.get().then(model, occupied.key().bytes(), &change)?;
                self.bytes = (self.bytes + merged.len()).saturating_sub(before + change.len());
                occupied.insert(merged);
            }
        }
        Ok(())
    }
}
