//! One SSTable: its bounds, its index and its filter.

use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use object_store::path::Path;
use slatedb::manifest::{SsTableHandle, SsTableView};
use slatedb::{Filter, FilterQuery, SstFile, SstIndex};

use crate::trace;
use crate::trace::Sstable;

/// Bytes of an open table besides its index and filter.
pub(super) const TABLE_BYTES: usize = 2 << 10;

/// One SSTable.
pub(crate) struct Table {
    pub handle: SsTableHandle,
    /// The folder of the tablet that wrote the SSTable. After a split it may differ from the reader's.
    pub root: Path,
    pub first: Bytes,
    /// The last key. `None` if it is not known: the SSTable may then contain any greater key.
    pub last: Option<Bytes>,
    /// The sorted run that the SSTable belongs to. `None` for level 0.
    pub run: Option<u32>,
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Sstable {
            id: self.handle.id.value(),
            run: self.run.as_ref(),
        }
        .fmt(f)
    }
}

impl Table {
    pub fn new(view: &SsTableView, run: Option<u32>, root: Path) -> Table {
        let info = &view.sst.info;
        Table {
            run,
            root,
            first: info.first_entry.clone().unwrap_or_default(),
            last: info.last_entry.clone(),
            handle: view.sst.clone(),
        }
    }

    pub fn may_have(&self, key: &[u8]) -> bool {
        self.first.as_ref() <= key && !self.ends_before(key)
    }

    fn ends_before(&self, key: &[u8]) -> bool {
        self.last.as_ref().is_some_and(|last| last.as_ref() < key)
    }

    /// Returns false if no key lies within the bounds.
    pub fn may_overlap(&self, bounds: &(Bound<Bytes>, Bound<Bytes>)) -> bool {
        let is_before = match &bounds.0 {
            Bound::Unbounded => false,
            Bound::Included(start) => self.ends_before(start),
            Bound::Excluded(start) => self.last.as_ref().is_some_and(|last| last <= start),
        };
        let is_behind = match &bounds.1 {
            Bound::Unbounded => false,
            Bound::Included(end) => self.first > end,
            Bound::Excluded(end) => self.first >= end,
        };
        !is_before && !is_behind
    }
}

/// Returns the tables of a run that may have the key.
pub(crate) fn covering<'a>(run: &'a [Arc<Table>], key: &'a [u8]) -> impl Iterator<Item = &'a Arc<Table>> {
    let from = run.partition_point(|table| table.ends_before(key));
    run.iter().skip(from).take_while(|table| table.may_have(key))
}

/// An SSTable's index and filter.
pub(crate) struct OpenTable {
    pub file: SstFile,
    pub index: SstIndex,
    pub filter: Option<Arc<dyn Filter>>,
    pub bytes: usize,
}

impl OpenTable {
    /// Returns the bytes used in memory.
    pub fn size(&self) -> usize {
        self.bytes
    }

    /// Returns false if the filter excludes all keys of the query. `table` is named in the trace.
    pub fn might_match(&self, table: &Table, query: &FilterQuery) -> bool {
        let might_match = self
            .filter
            .as_ref()
            .is_none_or(|filter| filter.might_match(query));
        if !might_match {
            trace::step(|| trace::skipped(table));
        }
        might_match
    }

    /// Returns the index of the first block that may have keys within the bounds, and the index after the last.
    pub fn blocks(&self, start: Bound<&[u8]>, end: Bound<&[u8]>) -> (usize, usize) {
        // A block's key in the index is at most its first key, and at least the last key of the blocks before it.
        let first = match start {
            Bound::Unbounded => 0,
            Bound::Included(start) | Bound::Excluded(start) => {
                self.index.partition_point(|key| key < start).saturating_sub(1)
            }
        };
        let behind = match end {
            Bound::Unbounded => self.index.len(),
            Bound::Included(end) => self.index.partition_point(|key| key <= end),
            Bound::Excluded(end) => self.index.partition_point(|key| key < end),
        };
        (first, behind)
    }
}
