//! Merges the rows of a range, with one cursor for each memtable, file of level 0 and sorted run.

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use slatedb::FilterQuery;

use super::rows::{EntryKind, SortedBlock};
use super::{SsTables, Tree, Versions};
use crate::data_model::RowMerge;
use crate::error::StoreError;
use crate::tree::limits::ReadLimits;
use crate::tree::sstable::{OpenTable, Table};

type Bounds = (Bound<Bytes>, Bound<Bytes>);

/// A cursor over one source: its loaded rows, and the files with the next ones.
struct RunCursor {
    rows: Arc<SortedBlock>,
    /// The loaded rows that are still to come are those from `first`, before `behind`.
    first: usize,
    behind: usize,
    /// The files that are still to be read.
    files: VecDeque<Table>,
    open: Option<OpenFile>,
}

struct OpenFile {
    table: Table,
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

/// The merged rows of a range, in order or in reverse.
pub(crate) struct MergingScan {
    tree: Arc<Tree>,
    model: Arc<dyn RowMerge>,
    bounds: Bounds,
    limits: ReadLimits,
    /// Filter query for the partition in which the range lies. Tables without the partition are skipped. `None` if the range spans several.
    partition: Option<FilterQuery>,
    reversed: bool,
    sources: Vec<RunCursor>,
    /// True if a source has no loaded row, but may have more.
    lacks_rows: bool,
    /// The source that comes first, and the second. `None` if they are not known.
    turn: Option<(usize, Option<usize>)>,
    /// The key whose versions are being collected, and these versions.
    collected: Option<Bytes>,
    versions: Versions,
}

impl MergingScan {
    /// Creates the scan of a range, which must not be empty.
    pub fn new(
        tree: Arc<Tree>,
        model: Arc<dyn RowMerge>,
        bounds: Bounds,
        partition: Option<Bytes>,
        reversed: bool,
        limits: ReadLimits,
    ) -> MergingScan {
        MergingScan {
            sources: sources(&tree, &bounds),
            limits,
            tree,
            model,
            bounds,
            partition: partition.map(FilterQuery::prefix),
            reversed,
            lacks_rows: true,
            turn: None,
            collected: None,
            versions: Versions::default(),
        }
    }

    /// Returns the next key and merged row. `None` if there is none.
    pub async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>, StoreError> {
        loop {
            if self.lacks_rows {
                let limits = self.limits.clone();
                limits.wait(Box::pin(self.find_rows())).await?;
            }
            if let Some(row) = self.single() {
                return Ok(Some(row));
            }
            if self.lacks_rows {
                continue;
            }
            let at = self.turn.take().or_else(|| self.least()).map(|(at, _)| at);
            match (at.and_then(|at| self.sources.get_mut(at)), &self.collected) {
                (Some(source), None) => {
                    self.collected = Some(source.rows.owned_key(source.place(self.reversed)));
                }
                (Some(source), Some(key)) if source.key(self.reversed) == key => {
                    self.versions.add(&source.rows, source.place(self.reversed));
                    self.lacks_rows |= !source.step(self.reversed);
                }
                (None, None) => return Ok(None),
                (_, Some(_)) => {
                    let Some(key) = self.collected.take() else {
                        return Ok(None);
                    };
                    if let Some(row) = self.versions.resolve(self.model.as_ref(), &key)? {
                        return Ok(Some((key, row)));
                    }
                }
            }
        }
    }

    /// Passes rows to `visit`, in order, as long as it returns true. Stops before a row that is not loaded, has several versions, or does
    /// not lie before `end`. Returns the key of the last one; [`MergingScan::next`] continues after it. Passes no row in a reverse scan.
    pub fn visit_at_hand(
        &mut self,
        end: Option<&[u8]>,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Option<Bytes> {
        if self.lacks_rows || self.reversed {
            return None;
        }
        let mut last = None;
        while let Some((at, place)) = self.single_place() {
            let Some(source) = self.sources.get(at) else { break };
            let key = source.rows.key(place);
            if end.is_some_and(|end| key >= end) {
                break;
            }
            let is_row = source.rows.kind(place) != EntryKind::Deleted;
            let needs_more = !is_row || visit(key, source.rows.value_ref(place));
            if is_row {
                last = Some((at, place));
            }
            self.pass(at);
            if !needs_more || self.lacks_rows {
                break;
            }
        }
        let (at, place) = last?;
        Some(self.sources.get(at)?.rows.owned_key(place))
    }

    /// Returns the next row if it has only one version and its source continues with another key.
    fn single(&mut self) -> Option<(Bytes, Bytes)> {
        loop {
            let (at, place) = self.single_place()?;
            let rows = &self.sources.get(at)?.rows;
            let row =
                (rows.kind(place) != EntryKind::Deleted).then(|| (rows.owned_key(place), rows.value(place)));
            self.pass(at);
            if row.is_some() || self.lacks_rows {
                return row;
            }
        }
    }

    /// Returns the source of the row that [`MergingScan::single`] returns next, and the row's place in it.
    fn single_place(&mut self) -> Option<(usize, usize)> {
        if self.collected.is_some() {
            return None;
        }
        loop {
            let turn = match self.turn {
                Some(turn) => turn,
                None => *self.turn.insert(self.least()?),
            };
            let rival = turn.1.and_then(|rival| self.sources.get(rival));
            let rival = rival.map(|rival| rival.key(self.reversed));
            let source = self.sources.get(turn.0)?;
            let place = source.place(self.reversed);
            let key = source.rows.key(place);
            let comes_first = rival.is_none_or(|rival| match self.reversed {
                false => key < rival,
                true => key > rival,
            });
            if !comes_first {
                // The second source may come first now. If it has the same key, the versions of that key are collected.
                let is_same = rival == Some(key);
                self.turn = None;
                if is_same {
                    return None;
                }
                continue;
            }
            let next = source.after(self.reversed)?;
            return (source.rows.key(next) != key).then_some((turn.0, place));
        }
    }

    /// Skips the next row of a source.
    fn pass(&mut self, at: usize) {
        let Some(source) = self.sources.get_mut(at) else {
            return;
        };
        if !source.step(self.reversed) {
            // The source has no loaded row left.
            self.lacks_rows = true;
            self.turn = None;
        }
    }

    /// Returns the source whose key comes first, and the second.
    fn least(&self) -> Option<(usize, Option<usize>)> {
        let mut least: Option<(usize, &[u8])> = None;
        let mut second: Option<(usize, &[u8])> = None;
        let comes_before = |a: &[u8], b: &[u8]| if self.reversed { a > b } else { a < b };
        for (at, source) in self.sources.iter().enumerate() {
            let key = source.key(self.reversed);
            if least.is_none_or(|(_, least)| comes_before(key, least)) {
                second = least.replace((at, key));
            } else if second.is_none_or(|(_, second)| comes_before(key, second)) {
                second = Some((at, key));
            }
        }
        least.map(|(at, _)| (at, second.map(|(at, _)| at)))
    }

    async fn find_rows(&mut self) -> Result<(), slatedb::Error> {
        self.turn = None;
        self.lacks_rows = false;
        // Reads from memory never wait, so they yield explicitly.
        tokio::task::coop::consume_budget().await;
        for source in &mut self.sources {
            while source.is_empty() && source.may_go_on() {
                source
                    .read(&self.tree, &self.bounds, self.partition.as_ref(), self.reversed)
                    .await?;
                tokio::task::coop::consume_budget().await;
            }
        }
        self.sources.retain(|source| !source.is_empty());
        Ok(())
    }
}

fn sources(tree: &Tree, bounds: &Bounds) -> Vec<RunCursor> {
    let memory = tree.memory.iter().map(|table| {
        let mut source = RunCursor {
            rows: table.rows.clone(),
            first: 0,
            behind: 0,
            files: VecDeque::new(),
            open: None,
        };
        source.confine(bounds);
        source
    });
    let of_files = |files: VecDeque<Table>| RunCursor {
        rows: Arc::default(),
        first: 0,
        behind: 0,
        files,
        open: None,
    };
    let overlapping = |tables: &[Table]| -> VecDeque<Table> {
        let tables = tables.iter().filter(|table| table.may_overlap(bounds));
        tables.cloned().collect()
    };
    let level0 = tree.files.level0.iter().map(std::slice::from_ref);
    let runs = tree.files.runs.iter().map(Vec::as_slice);
    let files = level0.chain(runs).map(overlapping);
    let files = files.filter(|files| !files.is_empty()).map(of_files);
    let memory = memory.filter(|source| !source.is_empty());
    memory.chain(files).collect()
}

impl RunCursor {
    fn is_empty(&self) -> bool {
        self.first >= self.behind
    }

    fn may_go_on(&self) -> bool {
        self.open.is_some() || !self.files.is_empty()
    }

    /// Returns the place of the next row.
    fn place(&self, reversed: bool) -> usize {
        match reversed {
            false => self.first,
            true => self.behind.saturating_sub(1),
        }
    }

    fn key(&self, reversed: bool) -> &[u8] {
        self.rows.key(self.place(reversed))
    }

    /// Returns the place of the row after the next one. `None` if it is not loaded.
    fn after(&self, reversed: bool) -> Option<usize> {
        if self.behind - self.first < 2 {
            return None;
        }
        Some(match reversed {
            false => self.first + 1,
            true => self.behind - 2,
        })
    }

    /// Moves to the next row. Returns false if no more rows are loaded.
    fn step(&mut self, reversed: bool) -> bool {
        match reversed {
            false => self.first += 1,
            true => self.behind -= 1,
        }
        !self.is_empty()
    }

    /// Limits the loaded rows to those within the bounds.
    fn confine(&mut self, bounds: &Bounds) {
        self.first = match &bounds.0 {
            Bound::Unbounded => 0,
            Bound::Included(start) => self.rows.lower_bound(start),
            Bound::Excluded(start) => self.rows.upper_bound(start),
        };
        let last = self.rows.key(self.rows.len().saturating_sub(1));
        self.behind = match &bounds.1 {
            Bound::Included(end) if last > end.as_ref() => self.rows.upper_bound(end),
            Bound::Excluded(end) if last >= end.as_ref() => self.rows.lower_bound(end),
            _ => self.rows.len(),
        };
    }

    /// Loads the next block, or opens the next file and finds its blocks.
    async fn read(
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
