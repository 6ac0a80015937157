//! Collecting rows that pass the filter into result rows: limits, groups, sorting, and the ends of pages.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::value;
use helenus_row::Order;

use crate::analysis::EvalContext;
use crate::analysis::select::SelectPlan;
use crate::analysis::select::group::GroupMaker;
use crate::analysis::select::limits::Limits;
use crate::analysis::select::paging::{EntryPosition, PagingState, mark};
use crate::analysis::select::plan::Aggregation;
use crate::analysis::select::similarity::nearest_first;
use crate::analysis::selection::{Collector, PartialGroup};
use crate::limits::client_memory::{CHARGED_STEP, Charge, ClientMemory};
use crate::response::{RowsBuilder, RowsContent};
use crate::rows::{PartitionKey, RowView};

/// The next thing to read after a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    NextRow,
    NextPartition,
    Stop,
}

/// The maximum size of a page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageLimit {
    pub rows: u32,
    pub bytes: usize,
}

/// Result rows from a part of a read, in order.
pub(crate) struct ResultPage {
    pub content: RowsContent,
    /// Position of the last row. `None` if there are no rows.
    pub last: Option<PagingState>,
    /// True if there was no room for rows that may follow in the part.
    pub is_cut: bool,
}

/// A row that passed the filter: its values and its position.
#[derive(Clone, Copy)]
pub(crate) struct FilteredRow<'a> {
    pub view: &'a dyn RowView,
    pub partition: &'a PartitionKey,
    /// Values of the clustering columns. Empty if the row stands for static content alone.
    pub clustering: &'a [Bytes],
    /// Encoded clustering. `None` if the row stands for static content alone.
    pub position: Option<&'a Bytes>,
    /// The index entry of the row, if rows have the order of entries.
    pub entry: Option<&'a EntryPosition>,
}

/// A result row with its sort keys.
struct SortedRow {
    score: f32,
    keys: Vec<Option<Bytes>>,
    row: RowsContent,
}

/// Collector of the result of one execution.
pub(crate) struct ResultCollector<'a> {
    plan: &'a SelectPlan,
    /// The collector of selectors. `None` if the result consists of plain columns.
    collector: Option<Collector<'a>>,
    groups: Option<GroupMaker<'a>>,
    builder: RowsBuilder,
    sorted: Option<Vec<SortedRow>>,
    /// Bytes of the rows to be sorted.
    sorted_bytes: usize,
    nearest: Option<Vec<f32>>,
    /// Sort keys of the current group.
    group_keys: Vec<Option<Bytes>>,
    has_open_group: bool,
    limits: Limits,
    page: Option<PageLimit>,
    memory: &'a Arc<ClientMemory>,
    /// Memory that is counted for the rows. `None` as long as they are small.
    charge: Option<Charge>,
    counted: u32,
    counted_in_partition: u32,
    last: Option<PagingState>,
    /// True if the position of the last row is kept even if the page is not full.
    keeps_last: bool,
    is_page_full: bool,
    /// True if no partition follows the current one.
    is_last_partition: bool,
    /// True if the row that filled the page was the last of its partition.
    is_partition_done: bool,
}

impl<'a> ResultCollector<'a> {
    /// Returns a collector. `limits` are the remaining ones. `page` is `None` if all rows go into one page.
    pub fn new(
        plan: &'a SelectPlan,
        ctx: EvalContext<'a>,
        limits: Limits,
        page: Option<PageLimit>,
        memory: &'a Arc<ClientMemory>,
    ) -> Result<ResultCollector<'a>, CqlError> {
        let is_sorted = !plan.sort_columns.is_empty() || plan.nearest.is_some();
        Ok(ResultCollector {
            collector: match plan.selection.plain_columns() {
                Some(_) if matches!(plan.aggregation, Aggregation::None) => None,
                _ => Some(plan.selection.collector(ctx)?),
            },
            groups: match &plan.aggregation {
                Aggregation::Groups(grouping) => Some(grouping.maker(ctx)),
                Aggregation::None | Aggregation::Everything => None,
            },
            builder: new_builder(plan),
            sorted: is_sorted.then(Vec::new),
            sorted_bytes: 0,
            nearest: plan
                .nearest
                .as_ref()
                .map(|nearest| nearest.bind(&ctx, plan.restrictions.is_key_range))
                .transpose()?,
            group_keys: Vec::new(),
            has_open_group: false,
            limits,
            page,
            memory,
            charge: None,
            counted: 0,
            counted_in_partition: 0,
            last: None,
            keeps_last: false,
            is_page_full: false,
            is_last_partition: false,
            is_partition_done: false,
            plan,
        })
    }

    /// Begins a partition. `remaining` is the part of PER PARTITION LIMIT that an earlier page left. `is_last` is true if no other
    /// partition follows.
    pub fn begin_partition(&mut self, remaining: Option<u32>, is_last: bool) {
        self.is_last_partition = is_last;
        self.counted_in_partition =
            remaining.map_or(0, |remaining| self.limits.per_partition.saturating_sub(remaining));
    }

    /// Adds a row that passed all filters.
    pub fn row(&mut self, row: FilteredRow<'_>) -> Result<Step, CqlError> {
        match &self.plan.aggregation {
            Aggregation::None => self.single(row),
            Aggregation::Everything => {
                self.collect(row.view)?;
                Ok(if self.plan.is_distinct {
                    Step::NextPartition
                } else {
                    Step::NextRow
                })
            }
            Aggregation::Groups(_) => self.grouped(row),
        }
    }

    /// Returns the bytes of the rows so far.
    pub fn len_bytes(&self) -> usize {
        self.builder.len_bytes() + self.sorted_bytes
    }

    /// Returns the group of an aggregate's single result row, as far as it has been collected.
    pub fn into_partial(self) -> Option<PartialGroup> {
        self.collector.map(Collector::into_partial)
    }

    /// Merges the group of another collector, whose rows follow those of this one.
    pub fn merge(&mut self, partial: Option<PartialGroup>) {
        if let (Some(collector), Some(partial)) = (&mut self.collector, partial) {
            collector.merge(partial);
        }
    }

    /// Adds rows that were only counted.
    pub fn add_counted(&mut self, rows: u64) {
        if let Some(collector) = &mut self.collector {
            collector.add_counted(rows);
        }
    }

    /// Keeps the position of the last row even if the page is not full.
    pub fn keep_last(&mut self) {
        self.keeps_last = true;
    }

    /// Returns the result rows of a part of a read.
    ///
    /// # Errors
    /// Errors of the last group's selectors.
    pub fn into_page(mut self) -> Result<ResultPage, CqlError> {
        self.finish_group()?;
        Ok(ResultPage {
            content: self.builder.finish(),
            last: self.last,
            is_cut: self.is_page_full,
        })
    }

    /// Returns the number of further rows that fit into the page and LIMIT.
    pub fn rows_left(&self) -> u32 {
        let page = self.page.map_or(self.limits.rows, |page| page.rows);
        page.min(self.limits.rows).saturating_sub(self.counted)
    }

    /// Appends rows that follow. Returns true if no more rows fit.
    pub fn append(&mut self, page: ResultPage) -> bool {
        let rows = page.content.row_count();
        if rows == 0 {
            return false;
        }
        self.builder.append(&page.content);
        self.counted = self
            .counted
            .saturating_add(u32::try_from(rows).unwrap_or(u32::MAX));
        self.last = page.last;
        self.is_full()
    }

    fn collect(&mut self, view: &dyn RowView) -> Result<(), CqlError> {
        match &mut self.collector {
            Some(collector) => collector.add(view),
            None => Ok(()),
        }
    }

    fn single(&mut self, row: FilteredRow<'_>) -> Result<Step, CqlError> {
        if self.sorted.is_some() {
            self.sort_in(row)?;
        } else {
            write_row(self.plan, &mut self.collector, row.view, &mut self.builder)?;
        }
        self.counted += 1;
        self.counted_in_partition += 1;
        let is_partition_done =
            self.plan.is_distinct || self.counted_in_partition >= self.limits.per_partition;
        let is_full = self.is_full();
        if is_full {
            self.is_partition_done =
                is_partition_done || row.position.is_none() || self.plan.table.clustering_count == 0;
        }
        if is_full || self.keeps_last {
            self.remember(row, is_partition_done);
        }
        Ok(match (is_full, is_partition_done) {
            (true, _) => Step::Stop,
            (false, true) => Step::NextPartition,
            (false, false) => Step::NextRow,
        })
    }

    fn grouped(&mut self, row: FilteredRow<'_>) -> Result<Step, CqlError> {
        let is_new = match &mut self.groups {
            Some(groups) => groups.is_new(&row.partition.bytes, row.clustering, row.view)?,
            None => false,
        };
        if is_new {
            if self.finish_group()? {
                return Ok(Step::Stop);
            }
            if self.counted_in_partition >= self.limits.per_partition {
                return Ok(Step::NextPartition);
            }
            self.counted_in_partition += 1;
            self.has_open_group = true;
            self.group_keys = self.sort_keys(row.view);
        }
        self.collect(row.view)?;
        self.remember(row, self.plan.is_distinct);
        Ok(if self.plan.is_distinct {
            Step::NextPartition
        } else {
            Step::NextRow
        })
    }

    /// Ends the current group. Returns true if no more rows fit.
    fn finish_group(&mut self) -> Result<bool, CqlError> {
        if !self.has_open_group {
            return Ok(false);
        }
        self.has_open_group = false;
        self.counted += 1;
        if let Some(collector) = &mut self.collector {
            match &mut self.sorted {
                Some(sorted) => {
                    let mut builder = new_builder(self.plan);
                    collector.finish(&mut builder)?;
                    let keys = std::mem::take(&mut self.group_keys);
                    let row = builder.finish();
                    self.sorted_bytes += row.len_bytes() + size_of::<SortedRow>();
                    sorted.push(SortedRow {
                        score: 0.0,
                        keys,
                        row,
                    });
                }
                None => collector.finish(&mut self.builder)?,
            }
        }
        Ok(self.is_full())
    }

    fn remember(&mut self, row: FilteredRow<'_>, is_partition_done: bool) {
        if self.page.is_none() {
            return;
        }
        self.last = Some(PagingState {
            table: mark(self.plan.table.id),
            partition_key: row.partition.bytes.clone(),
            clustering: if is_partition_done {
                None
            } else {
                row.position.cloned()
            },
            entry: row.entry.cloned(),
            remaining: self.limits.rows,
            remaining_in_partition: self
                .limits
                .per_partition
                .saturating_sub(self.counted_in_partition),
        });
    }

    fn is_full(&mut self) -> bool {
        if self.sorted.is_some() {
            return false;
        }
        let len = self.builder.len_bytes();
        let is_memory_short = self.charge(len);
        let is_full = |page: PageLimit| self.counted >= page.rows || len >= page.bytes || is_memory_short;
        self.is_page_full = self.page.is_some_and(is_full);
        self.is_page_full || self.counted >= self.limits.rows
    }

    /// Counts the memory of the rows. Returns true if memory is short.
    fn charge(&mut self, len: usize) -> bool {
        let charged = self.charge.as_ref().map_or(0, Charge::bytes);
        if len < charged + CHARGED_STEP {
            return false;
        }
        match &mut self.charge {
            Some(charge) => charge.set(len),
            None => self.charge = Some(self.memory.charge(len)),
        }
        self.memory.is_short()
    }

    fn sort_keys(&self, view: &dyn RowView) -> Vec<Option<Bytes>> {
        self.plan
            .sort_columns
            .iter()
            .map(|place| view.value(*place))
            .collect()
    }

    fn sort_in(&mut self, row: FilteredRow<'_>) -> Result<(), CqlError> {
        let mut score = 0.0;
        if let (Some(nearest), Some(wanted)) = (&self.plan.nearest, &self.nearest) {
            // Rows without a vector are omitted.
            let Some(stored) = row.view.value(nearest.column) else {
                return Ok(());
            };
            score = nearest.score(wanted, &stored);
        }
        let mut builder = new_builder(self.plan);
        write_row(self.plan, &mut self.collector, row.view, &mut builder)?;
        let content = builder.finish();
        let keys = match self.plan.sorts_json {
            true => content.iter().flatten().collect(),
            false => self.sort_keys(row.view),
        };
        if let Some(sorted) = &mut self.sorted {
            self.sorted_bytes += content.len_bytes() + size_of::<SortedRow>();
            sorted.push(SortedRow {
                score,
                keys,
                row: content,
            });
        }
        Ok(())
    }

    /// Returns the result rows, and the paging state of the next page. The latter is `None` if there is no next page.
    pub fn finish(mut self) -> Result<(RowsContent, Option<Bytes>), CqlError> {
        self.finish_group()?;
        if let (Aggregation::Everything, Some(collector)) = (&self.plan.aggregation, &mut self.collector) {
            collector.finish(&mut self.builder)?;
            return Ok((self.builder.finish(), None));
        }
        if let Some(sorted) = self.sorted.take() {
            return Ok((self.sorted_rows(sorted), None));
        }
        let remaining = self.limits.rows.saturating_sub(self.counted);
        let is_end = remaining == 0 || (self.is_partition_done && self.is_last_partition);
        let state = self.last.take().filter(|_| self.is_page_full && !is_end);
        let state = state.map(|state| PagingState { remaining, ..state }.encode());
        Ok((self.builder.finish(), state))
    }

    fn sorted_rows(self, mut sorted: Vec<SortedRow>) -> RowsContent {
        let plan = self.plan;
        if plan.nearest.is_some() {
            sorted.sort_by(|a, b| nearest_first(a.score, b.score));
        } else {
            sorted.sort_by(|a, b| compare_keys(plan, &a.keys, &b.keys));
        }
        let mut builder = self.builder;
        for row in sorted
            .iter()
            .take(self.limits.rows as usize)
            .flat_map(|sorted| sorted.row.iter())
        {
            row.iter().for_each(|cell| builder.push(cell.as_deref()));
        }
        builder.finish()
    }
}

fn new_builder(plan: &SelectPlan) -> RowsBuilder {
    RowsBuilder::new(plan.metadata().columns.len())
}

fn write_row(
    plan: &SelectPlan,
    collector: &mut Option<Collector<'_>>,
    view: &dyn RowView,
    out: &mut RowsBuilder,
) -> Result<(), CqlError> {
    match (collector, plan.selection.plain_columns()) {
        (Some(collector), _) => {
            collector.add(view)?;
            collector.finish(out)
        }
        (None, columns) => {
            columns
                .unwrap_or_default()
                .iter()
                .for_each(|place| view.write(*place, out));
            Ok(())
        }
    }
}

/// Compares rows in clustering order, reversed if the statement says so. Nulls come first.
fn compare_keys(plan: &SelectPlan, a: &[Option<Bytes>], b: &[Option<Bytes>]) -> Ordering {
    let columns = plan
        .sort_columns
        .iter()
        .filter_map(|place| plan.table.columns.get(*place));
    let compared = columns.zip(a.iter().zip(b)).map(|(column, (a, b))| match (a, b) {
        (Some(a), Some(b)) if plan.sorts_json && column.is_reversed() => b.cmp(a),
        (Some(a), Some(b)) if plan.sorts_json => a.cmp(b),
        (Some(a), Some(b)) if column.order == Order::Desc => value::compare(&column.ty, b, a),
        (Some(a), Some(b)) => value::compare(&column.ty, a, b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    });
    let order = compared.fold(Ordering::Equal, Ordering::then);
    if plan.is_reversed { order.reverse() } else { order }
}
