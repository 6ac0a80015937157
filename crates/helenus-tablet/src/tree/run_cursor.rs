//! A cursor over one source of a scan: a memtable, a file of level 0 or a sorted run.

use std::collections::VecDeque;
use std::ops::{Bound, Range};
use std::sync::Arc;

use bytes::Bytes;
use slatedb::FilterQuery;

use super::rows::SortedBlock;
use super::{SsTables, Tree};
use crate::tree::sstable::{OpenTable, Table};

pub(super) type Bounds = (Bound<Bytes>, Bound<Bytes>);

/// A cursor over one source: its loaded rows, and the files with the next ones.
pub(super) struct RunCursor {
    pub rows: Arc<SortedBlock>,
    /// The loaded rows that are still to come are those from `first`, before `behind`.
    first: usize,
    behind: usize,
    /// The files that are still to be read.
    files: VecDeque<Arc<Table>>,
    open: Option<OpenFile>,
}

struct OpenFile {
    table: Arc<Table>,
    open: Arc<OpenTable>,
    first_block: usize,
    behind_block: usize,
    /// Number of blocks that were read one by one.
    read: usize,
    ahead: Ahead,
}

/// State of reading blocks ahead, which long scans do.
enum Ahead {
    /// Reading ahead has not been tried.
    Untried,
    /// Blocks that were read ahead, from the next one on.
    Blocks(VecDeque<Arc<SortedBlock>>),
    /// Reading ahead is not possible: the file's blocks are read one by one.
    Never,
}

/// Number of blocks after which a scan over several partitions reads ahead. The blocks of shorter scans are cached.
const LONG_SCAN_BLOCKS: usize = 32;

impl OpenFile {
    /// Returns the next block in order.
    async fn next_block(
        &mut self,
        tables: &SsTables,
        may_read_ahead: bool,
    ) -> Result<Arc<SortedBlock>, slatedb::Error> {
        let block = self.first_block;
        self.first_block += 1;
        if let Ahead::Blocks(ahead) = &mut self.ahead {
            if let Some(rows) = ahead.pop_front() {
                return Ok(rows);
            }
            if let Some(rows) = tables.cached_block(&self.table, block) {
                return Ok(rows);
            }
            let range = block..self.behind_block;
            if let Some(blocks) = tables.blocks_ahead(&self.table, &self.open, range).await {
                ahead.extend(blocks);
                if let Some(rows) = ahead.pop_front() {
                    return Ok(rows);
                }
            }
        }
        let rows = tables.block(&self.table, &self.open, block).await?;
        self.read += 1;
        if may_read_ahead && self.read >= LONG_SCAN_BLOCKS && matches!(self.ahead, Ahead::Untried) {
            let same = tables
                .blocks_ahead(&self.table, &self.open, block..block + 1)
                .await;
            let is_same = same.is_some_and(|same| same.first() == Some(&rows));
            self.ahead = match is_same {
                true => Ahead::Blocks(VecDeque::new()),
                false => Ahead::Never,
            };
        }
        Ok(rows)
    }
}

/// Returns a cursor for each source that may have rows within the bounds.
pub(super) fn sources(tree: &Tree, bounds: &Bounds) -> Vec<RunCursor> {
    let memory = tree.memory.iter().filter_map(|table| {
        let places = places_within(&table.rows, bounds);
        (!places.is_empty()).then(|| RunCursor {
            rows: table.rows.clone(),
            first: places.start,
            behind: places.end,
            files: VecDeque::new(),
            open: None,
        })
    });
    let of_files = |files: VecDeque<Arc<Table>>| RunCursor {
        rows: Arc::default(),
        first: 0,
        behind: 0,
        files,
        open: None,
    };
    let overlapping = |tables: &[Arc<Table>]| -> VecDeque<Arc<Table>> {
        let tables = tables.iter().filter(|table| table.may_overlap(bounds));
        tables.cloned().collect()
    };
    let level0 = tree.files.level0.iter().map(std::slice::from_ref);
    let runs = tree.files.runs.iter().map(Vec::as_slice);
    let files = level0.chain(runs).map(overlapping);
    let files = files.filter(|files| !files.is_empty()).map(of_files);
    memory.chain(files).collect()
}

/// Returns the places of the rows within the bounds.
fn places_within(rows: &SortedBlock, bounds: &Bounds) -> Range<usize> {
    let first = match &bounds.0 {
        Bound::Unbounded => 0,
        Bound::Included(start) => rows.lower_bound(start),
        Bound::Excluded(start) => rows.upper_bound(start),
    };
    let is_within = |place: usize| match &bounds.1 {
        Bound::Unbounded => true,
        Bound::Included(end) => rows.key(place) <= end.as_ref(),
        Bound::Excluded(end) => rows.key(place) < end.as_ref(),
    };
    if first >= rows.len() || !is_within(first) {
        return first..first;
    }
    let behind = match &bounds.1 {
        Bound::Included(end) if !is_within(rows.len() - 1) => rows.upper_bound(end),
        Bound::Excluded(end) if !is_within(rows.len() - 1) => rows.lower_bound(end),
        _ => rows.len(),
    };
    first..behind
}

impl RunCursor {
    pub fn is_empty(&self) -> bool {
        self.first >= self.behind
    }

    pub fn may_go_on(&self) -> bool {
        self.open.is_some() || !self.files.is_empty()
    }

    /// Returns the place of the next row.
    pub fn place(&self, reversed: bool) -> usize {
        match reversed {
            false => self.first,
            true => self.behind.saturating_sub(1),
        }
    }

    pub fn key(&self, reversed: bool) -> &[u8] {
        self.rows.key(self.place(reversed))
    }

    /// Returns the place of the row after the next one. `None` if it is not loaded.
    pub fn after(&self, reversed: bool) -> Option<usize> {
        if self.behind - self.first < 2 {
            return None;
        }
        Some(match reversed {
            false => self.first + 1,
            true => self.behind - 2,
        })
    }

    /// Moves to the next row. Returns false if no more rows are loaded.
    pub fn step(&mut self, reversed: bool) -> bool {
        match reversed {
            false => self.first += 1,
            true => self.behind -= 1,
        }
        !self.is_empty()
    }

    /// Limits the loaded rows to those within the bounds.
    fn confine(&mut self, bounds: &Bounds) {
        let places = places_within(&self.rows, bounds);
        (self.first, self.behind) = (places.start, places.end);
    }

    /// Loads the next block, or opens the next file and finds its blocks.
    pub async fn read(
        &mut self,
        tree: &Tree,
        bounds: &Bounds,
        partition: Option<&FilterQuery>,
        reversed: bool,
    ) -> Result<(), slatedb::Error> {
        let tables = &tree.tables;
        match &mut self.open {
            Some(file) if file.first_block < file.behind_block => {
                self.rows = match reversed {
                    false => file.next_block(tables, partition.is_none()).await?,
                    true => {
                        file.behind_block -= 1;
                        tables.block(&file.table, &file.open, file.behind_block).await?
                    }
                };
                self.confine(bounds);
            }
            _ => {
                let next = match reversed {
                    false => self.files.pop_front(),
                    true => self.files.pop_back(),
                };
                self.open = None;
                if let Some(table) = next {
                    let open = tables.table(&table).await?;
                    if partition.is_none_or(|partition| open.might_match(&table, partition)) {
                        let bound = |bound| Bound::as_ref(bound).map(Bytes::as_ref);
                        let (first_block, behind_block) = open.blocks(bound(&bounds.0), bound(&bounds.1));
                        self.open = Some(OpenFile {
                            table,
                            open,
                            first_block,
                            behind_block,
                            read: 0,
                            ahead: Ahead::Untried,
                        });
                    }
                }
            }
        }
        Ok(())
    }
}
