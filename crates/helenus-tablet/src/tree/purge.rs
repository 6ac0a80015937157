//! Purges memtables: joins those that are not frozen and drops dead rows, by the rules of a compaction ([`CompactFilter`]).
//!
//! Below them are the frozen memtables and the files. A file counts as containing a key unless its bounds exclude the key, or its filter
//! does, if that is in memory. The tombstones of a changed row are kept under its archive key, where readers of rows do not meet them. They
//! are flushed with the rest.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use slatedb::FilterQuery;

use super::memory::{MemTable, Merged};
use super::rows::{EntryKind, SortedBlockBuilder};
use super::sstable::Table;
use super::{Tree, Versions, memory};
use crate::data_model::{CompactFilter, DataModel, DataModelError, Decision, OlderOverlap, RowMerge};

/// The outcome of a purge.
pub(crate) struct Purged {
    /// The unfrozen memtables, joined into one.
    pub memtable: Arc<MemTable>,
    /// Number of rows that are left, including archived tombstones.
    pub rows: usize,
    /// Number of rows that were dropped or reduced.
    pub dropped: usize,
    /// Number of dead rows that are kept only because they are young, or because a newer write may have an older timestamp.
    pub kept: usize,
    /// Keys of headers of which deletions were purged. Such a deletion may cover cached rows of its partition.
    pub headers: Vec<Bytes>,
}

/// The rules of a purge, and the hash function of keys.
pub(crate) struct Purge<'a> {
    pub model: &'a dyn DataModel,
    pub filter: Box<dyn CompactFilter>,
    pub hash: &'a dyn Fn(&[u8]) -> u64,
}

impl Tree {
    /// Returns the number of rows in the memtables that are not frozen.
    pub fn unfrozen_rows(&self) -> usize {
        let tables = self.unfrozen_tables().iter();
        tables.map(|table| table.rows.len()).sum()
    }

    /// Returns the bytes of rows in the memtables that are not frozen.
    pub fn unfrozen_bytes(&self) -> usize {
        memory::size(self.unfrozen_tables())
    }

    /// Returns the sequence number of the newest batch that is not frozen. `None` if there is none.
    pub fn newest_unfrozen(&self) -> Option<u64> {
        Some(self.unfrozen_tables().first()?.last_seq)
    }

    /// Joins the memtables that are not frozen and purges them. `None` if there are none. Also `None` if no row would be left, because the
    /// number of the last batch has to be kept until it is flushed.
    pub fn purge(&self, purge: Purge<'_>) -> Result<Option<Purged>, DataModelError> {
        let tables = self.unfrozen_tables();
        let (Some(newest), Some(oldest)) = (tables.first(), tables.last()) else {
            return Ok(None);
        };
        let (first_seq, last_seq) = (oldest.first_seq, newest.last_seq);
        let mut purging = Purging {
            below: Below {
                tree: self,
                frozen: self.memory.get(tables.len()..).unwrap_or_default(),
            },
            purge,
            archived: BTreeMap::new(),
            headers: Vec::new(),
            rows: SortedBlockBuilder::with_capacity(0, 0),
            hashes: Vec::new(),
            last_seq,
            dropped: 0,
            kept: 0,
        };
        purging.join(tables)?;
        if purging.hashes.is_empty() {
            return Ok(None);
        }
        let (rows, hashes) = (purging.rows.finish(), purging.hashes);
        Ok(Some(Purged {
            memtable: Arc::new(MemTable::from_hashes(rows, &hashes, first_seq, last_seq)),
            rows: hashes.len(),
            dropped: purging.dropped,
            kept: purging.kept,
            headers: purging.headers,
        }))
    }

    /// Returns true if at least one in `part` of the rows that are not frozen is dead, estimated from `samples` rows.
    pub fn are_many_dead(&self, model: &dyn RowMerge, samples: usize, part: usize) -> bool {
        let Some(largest) = self.unfrozen_tables().iter().max_by_key(|table| table.rows.len()) else {
            return false;
        };
        let rows = &largest.rows;
        let step = (rows.len() / samples.max(1)).max(1);
        let sampled = (0..rows.len()).step_by(step);
        let (count, is_dead) = (sampled.len(), |at: &usize| {
            !model.may_be_alive(rows.key(*at), &rows.value(*at))
        });
        sampled.filter(is_dead).count() * part >= count.max(1)
    }

    pub(super) fn unfrozen_tables(&self) -> &[Arc<MemTable>] {
        let count = self.memory.partition_point(|table| table.first_seq > self.frozen);
        self.memory.get(..count).unwrap_or_default()
    }
}

/// A purge in progress.
struct Purging<'a> {
    below: Below<'a>,
    purge: Purge<'a>,
    /// Tombstones that were purged or are about to be, by archive key. These keys come later in the order of the purge.
    archived: BTreeMap<Bytes, Bytes>,
    headers: Vec<Bytes>,
    rows: SortedBlockBuilder,
    hashes: Vec<u64>,
    last_seq: u64,
    dropped: usize,
    kept: usize,
}

impl Purging<'_> {
    fn join(&mut self, tables: &[Arc<MemTable>]) -> Result<(), DataModelError> {
        let mut versions = Versions::default();
        let mut rows = Merged::new(tables).peekable();
        let is_last = |rows: &mut Peekable<Merged<'_>>, key: &[u8]| {
            let next = rows.peek();
            next.is_none_or(|(next, at)| next.rows.key(*at) != key)
        };
        while let Some((table, at)) = rows.next() {
            versions.add(&table.rows, at);
            let key = table.rows.key(at);
            if !is_last(&mut rows, key) {
                continue;
            }
            let key = table.rows.owned_key(at);
            let (kind, value) = versions.fold(self.purge.model, &key)?;
            self.add_archived_before(&key);
            let value = match self.archived.remove(&key) {
                Some(tombstones) => self.purge.model.merge(&key, None, &[value, tombstones])?,
                None => value,
            };
            self.add(&key, kind, value)?;
        }
        while let Some((key, tombstones)) = self.archived.pop_first() {
            self.push(&key, EntryKind::Operand, &tombstones);
        }
        Ok(())
    }

    /// Adds the archived tombstones whose keys are before `key`.
    fn add_archived_before(&mut self, key: &Bytes) {
        while let Some(first) = self.archived.first_entry()
            && first.key() < key
        {
            let (key, tombstones) = first.remove_entry();
            self.push(&key, EntryKind::Operand, &tombstones);
        }
    }

    fn push(&mut self, key: &[u8], kind: EntryKind, value: &[u8]) {
        self.rows.push(key, value, self.last_seq, kind);
        self.hashes.push((self.purge.hash)(key));
    }

    /// Adds the part of a row that the purge leaves.
    fn add(&mut self, key: &Bytes, kind: EntryKind, value: Bytes) -> Result<(), DataModelError> {
        let hides = kind != EntryKind::Operand;
        if kind == EntryKind::Deleted {
            if self.below.may_have(key, self.hash(key)) {
                self.push(key, kind, &value);
            }
            return Ok(());
        }
        let decision = self.decide(key, &value, hides)?;
        if decision == Decision::Keep || !self.archive(key, &value)? {
            self.push(key, kind, &value);
            return Ok(());
        }
        self.dropped += 1;
        match decision {
            Decision::Replace(left) => self.push(key, kind, &left),
            // A dropped row that hid older versions would uncover them, so a deletion replaces it.
            Decision::Drop if hides && self.below.may_have(key, self.hash(key)) => {
                self.push(key, EntryKind::Deleted, &[]);
            }
            Decision::Drop | Decision::Keep => {}
        }
        Ok(())
    }

    fn hash(&self, key: &[u8]) -> u64 {
        (self.purge.hash)(key)
    }

    fn decide(&mut self, key: &Bytes, value: &Bytes, hides: bool) -> Result<Decision, DataModelError> {
        let below = match hides {
            true => OlderOverlap::Hidden,
            false => OlderOverlap::Something,
        };
        let mut outcome = self.purge.filter.entry(key, value, below)?;
        if outcome.purge_blocked && !self.is_covered_below(key) {
            outcome = self.purge.filter.entry(key, value, OlderOverlap::Nothing)?;
        }
        if outcome.purged_covering_deletion {
            self.headers.push(key.clone());
        }
        let is_kept = outcome.is_dead && !outcome.purge_blocked && outcome.decision == Decision::Keep;
        self.kept += usize::from(is_kept && !self.purge.model.is_archive(key));
        Ok(outcome.decision)
    }

    /// Returns true if a row below may be covered by the deletions at `key`.
    fn is_covered_below(&self, key: &Bytes) -> bool {
        match self.purge.filter.covers(key) {
            None => self.below.may_have(key, self.hash(key)),
            Some((prefix, end)) => self.below.may_have_any(prefix, end),
        }
    }

    /// Archives the tombstones of a row that is about to be changed. Returns false if that is not possible.
    fn archive(&mut self, key: &Bytes, value: &Bytes) -> Result<bool, DataModelError> {
        let Some((archive_key, tombstones)) = self.purge.model.archive(key, value)? else {
            return Ok(true);
        };
        if archive_key <= *key {
            return Ok(false);
        }
        self.archived.insert(archive_key, tombstones);
        Ok(true)
    }
}

/// The data older than the memtables that are purged.
struct Below<'a> {
    tree: &'a Tree,
    frozen: &'a [Arc<MemTable>],
}

impl Below<'_> {
    fn may_have(&self, key: &Bytes, hash: u64) -> bool {
        let query = || FilterQuery::point(key.clone());
        self.frozen.iter().any(|table| table.may_have(hash))
            || self.any_file(|table| table.may_have(key), query)
    }

    /// Returns true if there may be a key with the prefix. `end` is the least key above all keys with it.
    fn may_have_any(&self, prefix: Bytes, end: Option<Bytes>) -> bool {
        let in_memory = self.frozen.iter().any(|table| {
            let next = table.rows.key(table.rows.lower_bound(&prefix));
            next.starts_with(&prefix)
        });
        let bounds = (
            Bound::Included(prefix.clone()),
            end.map_or(Bound::Unbounded, Bound::Excluded),
        );
        in_memory || self.any_file(|table| table.may_overlap(&bounds), || FilterQuery::prefix(prefix))
    }

    fn any_file(&self, is_in_bounds: impl Fn(&Table) -> bool, query: impl FnOnce() -> FilterQuery) -> bool {
        let files = &self.tree.files;
        let runs = files.runs.iter().flatten();
        let mut tables = files
            .level0
            .iter()
            .chain(runs)
            .filter(|table| is_in_bounds(table));
        let Some(first) = tables.next() else {
            return false;
        };
        let query = query();
        let may_match = |table: &Table| {
            let open = self.tree.tables.cached_table(table);
            open.is_none_or(|open| open.might_match(table, &query))
        };
        may_match(first) || tables.any(|table| may_match(table))
    }
}
