//! Merges the rows of a range, with one cursor for each memtable, file of level 0 and sorted run.

use std::sync::Arc;

use bytes::Bytes;
use slatedb::FilterQuery;

use super::rows::EntryKind;
use super::run_cursor::{Bounds, RunCursor, sources};
use super::{Tree, Versions};
use crate::data_model::RowMerge;
use crate::error::StoreError;
use crate::tree::limits::ReadLimits;

/// The wish of a visitor of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// The row was read. The next one is wanted.
    Next,
    /// The row was read. No more rows are wanted.
    Last,
    /// The row is the next one of the scan, as if it had not been visited.
    Before,
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
                // Reads from memory never wait, so they yield explicitly.
                tokio::task::coop::consume_budget().await;
                if self.needs_files() {
                    let limits = self.limits.clone();
                    limits.wait(Box::pin(self.read_files())).await?;
                }
                self.sources.retain(|source| !source.is_empty());
                (self.lacks_rows, self.turn) = (false, None);
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

    /// Passes rows to `visit`, in order, as long as it returns [`Visit::Next`]. Stops before a row that is not loaded, has several
    /// versions, or does not lie before `end`. Returns the key of the last row that was read; [`MergingScan::next`] continues after it.
    /// Passes no row in a reverse scan.
    pub fn visit_at_hand(
        &mut self,
        end: Option<&[u8]>,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> Visit,
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
            let wish = match is_row {
                true => visit(key, source.rows.value_ref(place)),
                false => Visit::Next,
            };
            if wish == Visit::Before {
                break;
            }
            if is_row {
                last = Some((at, place));
            }
            self.pass(at);
            if wish == Visit::Last || self.lacks_rows {
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
            let is_single = match source.after(self.reversed) {
                Some(next) => source.rows.key(next) != key,
                None => !source.may_go_on(),
            };
            return is_single.then_some((turn.0, place));
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

    /// Returns true if a source has no loaded row, and files that may have some.
    fn needs_files(&self) -> bool {
        let needs_files = |source: &RunCursor| source.is_empty() && source.may_go_on();
        self.sources.iter().any(needs_files)
    }

    /// Loads the next rows of each source that has none.
    async fn read_files(&mut self) -> Result<(), slatedb::Error> {
        for source in &mut self.sources {
            while source.is_empty() && source.may_go_on() {
                source
                    .read(&self.tree, &self.bounds, self.partition.as_ref(), self.reversed)
                    .await?;
                tokio::task::coop::consume_budget().await;
            }
        }
        Ok(())
    }
}
