//! Reading one partition of a SELECT: its static row, and its rows that pass the filter.

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::KeyKind;
use helenus_row::key::split_partition_key;
use helenus_row::read::LiveRow;

use super::SelectExecution;
use super::output::{FilteredRow, ResultCollector, Step};
use super::size::ResultSize;
use super::source::RowSource;
use super::stored_row::{Live, View, clustering_values};
use super::tombstones::TombstoneCount;
use crate::analysis::restrictions::Filter;
use crate::analysis::select::paging::EntryPosition;
use crate::analysis::select::plan::Aggregation;
use crate::failure::ExecutionError;
use crate::limits::scope::{self, LONG_ROW_BYTES};
use crate::rows::{PartitionKey, RowAt, StoredRow, corrupt_key};

/// Rows of a page that Cassandra reads for an aggregate. Each page has a time limit of its own (`PageSize` of `SelectStatement`).
pub(super) const AGGREGATE_PAGE_ROWS: usize = 10_000;

/// The reader of one partition.
pub(super) struct PartitionReader<'r, 'a> {
    pub run: &'r SelectExecution<'a>,
    pub filter: &'r Filter,
    pub partition: &'r PartitionKey,
    pub needs_clustering: bool,
    pub is_resumed: bool,
}

impl PartitionReader<'_, '_> {
    pub async fn read(
        &mut self,
        source: &mut RowSource,
        output: &mut ResultCollector<'_>,
        tombstones: &mut TombstoneCount,
        size: &mut ResultSize<'_>,
    ) -> Result<Step, ExecutionError> {
        let (run, table) = (self.run, &self.run.plan.table);
        let components;
        let key = match table.partition_key_count {
            1 => std::slice::from_ref(&self.partition.bytes),
            count => {
                components = split_partition_key(&self.partition.bytes, count).map_err(corrupt_key)?;
                components.as_slice()
            }
        };
        let mut statics = match run.plan.needs_static {
            true => source.static_row(run.context, table).await?,
            false => None,
        };
        let live_statics = live(statics.as_ref(), run.now_s)?;
        let base = View {
            table,
            key,
            clustering: &[],
            row: None,
            statics: statics
                .as_ref()
                .zip(live_statics.as_ref())
                .map(|(stored, row)| Live {
                    packed: &stored.packed,
                    row,
                }),
            now_s: run.now_s,
        };
        if !self.filter.accepts_partition(table, &base) {
            if let RowSource::Index(source) = source
                && source.is_by_static(table)
            {
                source.partition_is_dead();
            }
            return Ok(Step::NextPartition);
        }
        if let RowSource::Index(source) = source
            && source.has_moved(table, KeyKind::Static, live_statics.as_ref())?
        {
            return Ok(Step::NextPartition);
        }
        let mut has_rows = false;
        let mut is_dead = live_statics.is_none();
        while let Some(found) = self.next_row(source, tombstones).await? {
            self.checkpoint(&found, tombstones).await?;
            let Some(row) = found.row.live(run.now_s)? else {
                let met = found.row.tombstones_of_dead(run.now_s)?;
                tombstones.dead(run.plan, self.partition, met)?;
                if source.is_at_dead_front() && found.row.live(run.settled_s())?.is_none() {
                    source.mark_dead();
                }
                source.row_is_dead();
                continue;
            };
            is_dead = false;
            tombstones.live(run.plan, self.partition, row.dead_cells)?;
            if let RowSource::Index(source) = source
                && source.has_moved(table, KeyKind::Row, Some(&row))?
            {
                continue;
            }
            if let RowSource::Nearest(source) = source
                && !source.stands_for(table, &row)
            {
                continue;
            }
            let clustering = self.clustering(&found)?;
            let live = Live {
                packed: &found.row.packed,
                row: &row,
            };
            let view = View {
                clustering: &clustering,
                row: Some(live),
                ..base
            };
            if !self.filter.accepts_row(table, &view) {
                if let RowSource::Index(source) = source {
                    source.row_does_not_fit(table, &row)?;
                }
                continue;
            }
            has_rows = true;
            if let RowSource::Nearest(source) = source {
                source.row_passed();
            }
            let entry = source.entry_position();
            let passed = FilteredRow {
                entry: entry.as_ref(),
                view: &view,
                partition: self.partition,
                clustering: &clustering,
                position: Some(&found.clustering),
            };
            let step = output.row(passed)?;
            size.reserve(output.len_bytes()).await?;
            if step != Step::NextRow {
                return Ok(step);
            }
        }
        if let RowSource::Index(source) = source
            && is_dead
        {
            source.partition_is_dead();
        }
        let may_be_static_alone = table.has_static() && run.plan.returns_static_alone();
        if has_rows || self.is_resumed || !may_be_static_alone || !self.filter.row.is_empty() {
            return Ok(Step::NextPartition);
        }
        drop(live_statics);
        if !run.plan.needs_static {
            statics = source.static_row(run.context, table).await?;
        }
        let entry = source.entry_position();
        Ok(self.static_alone(key, statics.as_ref(), entry.as_ref(), output)?)
    }

    /// Returns the next row, and counts the rows that the source skipped before it.
    async fn next_row(
        &self,
        source: &mut RowSource,
        tombstones: &mut TombstoneCount,
    ) -> Result<Option<RowAt>, ExecutionError> {
        let (context, plan) = (self.run.context, self.run.plan);
        let found = source.next_row(context, &plan.table).await?;
        if let Some(skipped) = source.take_skipped() {
            tombstones.skip(plan, skipped)?;
        }
        Ok(found)
    }

    /// Yields if necessary, before a row that was read is processed.
    async fn checkpoint(&self, found: &RowAt, tombstones: &TombstoneCount) -> Result<(), CqlError> {
        if found.row.packed.bytes().len() > LONG_ROW_BYTES {
            scope::step_aside().await;
        }
        let is_aggregate = !matches!(self.run.plan.aggregation, Aggregation::None);
        let (live, dead) = tombstones.counts();
        if is_aggregate
            && (live + dead + 1).is_multiple_of(AGGREGATE_PAGE_ROWS)
            && self.run.plan.timeout().is_none()
        {
            scope::renew_time(self.run.context.limits().timeouts.range_request_timeout);
        }
        scope::checkpoint().await
    }

    /// Adds a partition without rows to the output, if it has static content, which counts as one row.
    fn static_alone(
        &self,
        key: &[Bytes],
        statics: Option<&StoredRow>,
        entry: Option<&EntryPosition>,
        output: &mut ResultCollector<'_>,
    ) -> Result<Step, CqlError> {
        let live_statics = live(statics, self.run.now_s)?;
        let Some((stored, row)) = statics.zip(live_statics.as_ref()) else {
            return Ok(Step::NextPartition);
        };
        let view = View {
            table: &self.run.plan.table,
            key,
            clustering: &[],
            row: None,
            statics: Some(Live {
                packed: &stored.packed,
                row,
            }),
            now_s: self.run.now_s,
        };
        let passed = FilteredRow {
            view: &view,
            partition: self.partition,
            clustering: &[],
            position: None,
            entry,
        };
        match output.row(passed)? {
            Step::Stop => Ok(Step::Stop),
            Step::NextRow | Step::NextPartition => Ok(Step::NextPartition),
        }
    }

    fn clustering(&self, found: &RowAt) -> Result<Vec<Bytes>, CqlError> {
        let table = &self.run.plan.table;
        if !self.needs_clustering || table.clustering_count == 0 {
            return Ok(Vec::new());
        }
        clustering_values(table, found)
    }
}

fn live(stored: Option<&StoredRow>, now_s: i64) -> Result<Option<LiveRow<'_>>, CqlError> {
    stored.map_or(Ok(None), |stored| stored.live(now_s))
}
