//! The LSM tree of a tablet, below its stage.
//!
//! Memtables are the tree's own ([`memory`]). When they are flushed, SlateDB receives them, each key once ([`flush_source`]), writes
//! SSTables and compacts them. Reads bypass SlateDB, whose boxed iterators pass rows on one by one. Instead, decoded blocks are cached
//! ([`files`]), searched for one row ([`get`]) or merged ([`runs`]).

pub(crate) mod block_cache;
pub(crate) mod changes;
mod files;
pub(crate) mod filters;
mod flush_source;
mod get;
pub(crate) mod limits;
mod memory;
mod purge;
mod read_ahead;
mod rows;
mod run_cursor;
mod runs;
pub(crate) mod sst_filter;
pub(crate) mod sstable;
pub(crate) mod staged_key;

use std::sync::Arc;

use bytes::Bytes;

pub(crate) use files::{Files, SsTables};
pub(crate) use memory::MemTable;
pub(crate) use purge::{Purge, Purged};
pub(crate) use rows::SortedBlock;
pub(crate) use runs::MergingScan;
pub use runs::Visit;

use crate::data_model::{DataModelError, RowMerge};
use rows::EntryKind;

/// The rows of a tablet as readers see them at one time. Each applied batch is either in `memory` or in `files`. Memtables are frozen as a
/// whole when they are flushed, and removed when the files have their rows.
#[derive(Clone)]
pub(crate) struct Tree {
    tables: Arc<SsTables>,
    /// The memtables, from new to old.
    memory: Vec<Arc<MemTable>>,
    files: Arc<Files>,
    /// Sequence number up to which batches are being flushed, or have been. They are not joined with later ones.
    frozen: u64,
    /// Bytes of unfrozen memtables from which all of them are joined.
    join_bytes: usize,
}

impl Tree {
    /// Creates the tree of a tablet that is being opened.
    pub fn new(tables: Arc<SsTables>, files: Arc<Files>, join_bytes: usize) -> Tree {
        Tree {
            tables,
            memory: Vec::new(),
            files,
            frozen: 0,
            join_bytes,
        }
    }

    fn changed(&self, change: impl FnOnce(&mut Tree)) -> Tree {
        let mut tree = self.clone();
        change(&mut tree);
        let flushed = tree.files.flushed;
        tree.memory.retain(|table| table.last_seq > flushed);
        tree
    }

    /// Returns the tree with one more table, from [`Tree::add_memtable`].
    pub fn with_batch(&self, table: Arc<MemTable>) -> Tree {
        self.changed(|tree| {
            tree.memory.retain(|older| older.last_seq < table.first_seq);
            tree.memory.insert(0, table);
        })
    }

    /// Returns the tree with other files.
    pub fn with_files(&self, files: Arc<Files>) -> Tree {
        self.changed(|tree| tree.files = files)
    }

    /// Returns the tree with all of its memtables frozen, for a flush.
    pub fn freeze(&self) -> Tree {
        self.changed(|tree| tree.frozen = tree.memory.first().map_or(tree.frozen, |newest| newest.last_seq))
    }

    /// Returns the sequence number up to which all batches are in files.
    pub fn flushed(&self) -> u64 {
        self.files.flushed
    }

    /// Returns the number of the manifest whose files are read.
    pub fn manifest(&self) -> u64 {
        self.files.manifest
    }

    /// Returns the bytes of rows in memory that are not in files.
    pub fn memory_bytes(&self) -> usize {
        memory::size(&self.memory)
    }

    /// Returns true if a memtable has a key that begins with `prefix`.
    pub fn has_in_memory(&self, prefix: &[u8]) -> bool {
        self.memory.iter().any(|table| table.has_prefix(prefix))
    }

    /// Returns the memtable of an applied batch, which replaces those that it is joined with. True if all unfrozen memtables were joined.
    pub fn add_memtable(
        &self,
        model: &dyn RowMerge,
        table: MemTable,
    ) -> Result<(Option<Arc<MemTable>>, bool), DataModelError> {
        let mut tables = vec![Arc::new(table)];
        tables.extend(self.unfrozen_tables().iter().cloned());
        if memory::size(&tables) < self.join_bytes {
            return Ok((memory::join_due(tables, model)?, false));
        }
        Ok((memory::join_all(&tables, model)?, true))
    }
}

/// Versions of one key.
#[derive(Default)]
struct Versions(Vec<(u64, EntryKind, Bytes)>);

impl Versions {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, rows: &SortedBlock, at: usize) {
        self.0.push((rows.seq(at), rows.kind(at), rows.value(at)));
    }

    /// Returns the merged row, and clears the versions. `None` if the row is deleted.
    fn resolve(&mut self, model: &dyn RowMerge, key: &[u8]) -> Result<Option<Bytes>, DataModelError> {
        let (kind, value) = self.fold(model, key)?;
        Ok((kind != EntryKind::Deleted).then_some(value))
    }

    /// Folds all versions into one, and clears them.
    fn fold(&mut self, model: &dyn RowMerge, key: &[u8]) -> Result<(EntryKind, Bytes), DataModelError> {
        if let [_] = self.0.as_slice()
            && let Some((_, kind, value)) = self.0.pop()
        {
            return Ok((kind, value));
        }
        self.0.sort_by_key(|(seq, ..)| std::cmp::Reverse(*seq));
        let mut base = None;
        let mut operands = Vec::with_capacity(self.0.len());
        for (_, kind, value) in self.0.drain(..) {
            match kind {
                EntryKind::Operand => operands.push(value),
                EntryKind::Whole | EntryKind::Deleted => {
                    base = Some((kind, value));
                    break;
                }
            }
        }
        if operands.is_empty() {
            return Ok(base.unwrap_or((EntryKind::Deleted, Bytes::new())));
        }
        operands.reverse();
        let whole = base.as_ref().filter(|(kind, _)| *kind == EntryKind::Whole);
        let merged = model.merge(key, whole.map(|(_, row)| row), &operands)?;
        // The result of a whole or deleted base is whole, so that it hides older versions as before.
        let kind = base.map_or(EntryKind::Operand, |_| EntryKind::Whole);
        Ok((kind, merged))
    }
}
