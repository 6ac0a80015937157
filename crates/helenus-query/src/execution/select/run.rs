//! Running a SELECT (Cassandra's `SelectStatement.execute`).

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::{Consistency, CqlError};
use helenus_row::KeyKind;
use helenus_row::key::split_partition_key;
use helenus_row::read::LiveRow;
use helenus_tablet::Tablet;

use super::output::{FilteredRow, PageLimit, ResultCollector, Step};
use super::size::ResultSize;
use super::source::RowSource;
use super::stored_row::{Live, View, clustering_values};
use super::tombstones::TombstoneCount;
use crate::analysis::restrictions::Filter;
use crate::analysis::select::SelectPlan;
use crate::analysis::select::limits::{Limits, NO_LIMIT};
use crate::analysis::select::paging::{EntryPosition, PagingState};
use crate::analysis::select::plan::Aggregation;
use crate::analysis::select::similarity::AnnOrdering;
use crate::analysis::{EvalContext, consistency};
use crate::cluster::Owner;
use crate::failure::ExecutionError;
use crate::index::lookup::{IndexLookup, lookups};
use crate::index::read::probe::ProbeLimits;
use crate::limits::scope::{self, LONG_ROW_BYTES};
use crate::request::{BoundValue, QueryOptions};
use crate::response::{Outcome, Response, Rows};
use crate::rows::{PartitionKey, RowAt, RowsWanted, StoredRow, corrupt_key};
use crate::schema::{ColumnKind, TableKind};
use crate::storage::ExecutionContext;

/// Rows of a page that Cassandra reads for an aggregate, each in a time of its own (`PageSize` of `SelectStatement`).
const AGGREGATE_PAGE_ROWS: usize = 10_000;

/// One execution.
pub(crate) struct SelectExecution<'a> {
    pub context: &'a Arc<ExecutionContext>,
    pub plan: &'a SelectPlan,
    pub ctx: EvalContext<'a>,
    pub now_s: i64,
    pub resume: Option<PagingState>,
    pub is_paged: bool,
    pub consistency: Consistency,
    pub probe: ProbeLimits,
    pub warnings: Vec<String>,
}

/// Runs a SELECT.
pub async fn execute(
    context: &Arc<ExecutionContext>,
    plan: &SelectPlan,
    values: &[BoundValue],
    options: &QueryOptions,
) -> Result<Outcome, ExecutionError> {
    consistency::check_read(options.consistency)?;
    let ctx = EvalContext {
        values,
        clock: context.clock.as_ref(),
        protocol_version: options.protocol_version,
    };
    let now_s = options
        .now_s
        .unwrap_or_else(|| context.clock.now_us().div_euclid(1_000_000));
    let limits = Limits::bind(plan.limit.as_ref(), plan.per_partition_limit.as_ref(), &ctx)?;
    plan.selection.check_constants(&ctx)?;
    let state = options.paging_state.as_ref();
    let resume = state.map(|state| PagingState::decode(state)?.of(&plan.table));
    let resume = resume.transpose()?;
    let is_paged = limits.are_paged(!matches!(plan.aggregation, Aggregation::None), options);
    let resume = resume.filter(|_| is_paged);
    if let (Some(point), None) = (&plan.point, &resume) {
        return Ok(super::point::execute(context, plan, point, &ctx, now_s, options.consistency).await?);
    }
    let mut run = SelectExecution {
        context,
        plan,
        ctx,
        now_s,
        resume,
        is_paged,
        consistency: options.consistency,
        probe: ProbeLimits::default(),
        warnings: Vec::new(),
    };
    match Box::pin(read(&mut run, limits, options)).await {
        Ok(rows) => Ok(Response::Rows(rows).with(run.warnings)),
        Err(error) => Err(error.map_failed(|error| match error {
            CqlError::Invalid(_) | CqlError::FunctionFailure { .. } | CqlError::ReadFailure { .. } => {
                error.warned(run.warnings)
            }
            other => other,
        })),
    }
}

/// The rows of one page.
async fn read(
    run: &mut SelectExecution<'_>,
    limits: Limits,
    options: &QueryOptions,
) -> Result<Rows, ExecutionError> {
    let (plan, ctx) = (run.plan, run.ctx);
    let page = run.page_limit(limits, options)?;
    let limits = match &run.resume {
        Some(state) => Limits {
            rows: state.remaining.min(limits.rows),
            ..limits
        },
        None => limits,
    };
    run.probe = run.probe_limits(limits, page);
    let mut output = ResultCollector::new(plan, ctx, limits, page, &run.context.client_memory)?;
    if limits.rows > 0 {
        match plan.table.kind {
            TableKind::Virtual => {
                run.warn_aggregate();
                run.read_virtual(&mut output).await?;
            }
            TableKind::Stored | TableKind::View | TableKind::Index => run.read_stored(&mut output).await?,
        }
    }
    if output.len_bytes() > LONG_ROW_BYTES {
        scope::step_aside().await;
    }
    let (content, paging_state) = output.finish()?;
    Ok(Rows {
        metadata: plan.metadata().clone(),
        content,
        paging_state,
    })
}

/// The tokens by which a read is passed on to their owner: those of the partitions that it names, or of the index entries that it begins
/// with. None if it is about a range.
///
/// # Errors
/// Cassandra's, for keys that make no sense.
pub(crate) fn tokens(
    context: &ExecutionContext,
    plan: &SelectPlan,
    values: &[BoundValue],
    options: &QueryOptions,
) -> Result<Vec<i64>, CqlError> {
    let ctx = EvalContext {
        values,
        clock: context.clock.as_ref(),
        protocol_version: options.protocol_version,
    };
    if plan.table.kind == TableKind::Virtual {
        return Ok(Vec::new());
    }
    if let Some(point) = &plan.point {
        return Ok(vec![point.bind(&plan.table, &ctx)?.0.token]);
    }
    let restrictions = &plan.restrictions;
    if !restrictions.is_key_range {
        let keys = restrictions.partition_keys(&ctx)?;
        return Ok(keys.iter().map(|key| key.token).collect());
    }
    if !restrictions.uses_index {
        return Ok(Vec::new());
    }
    let lookups = lookups(&plan.table, restrictions.filter(&ctx)?.expressions())?;
    Ok(lookups.first().map(IndexLookup::token).into_iter().collect())
}

impl SelectExecution<'_> {
    /// The size of a page, if the result is given in pages.
    fn page_limit(&mut self, limits: Limits, options: &QueryOptions) -> Result<Option<PageLimit>, CqlError> {
        let plan = self.plan;
        let page_size = options
            .page_size
            .and_then(|size| u32::try_from(size).ok())
            .filter(|size| *size > 0);
        if let Some(nearest) = &plan.nearest {
            if !matches!(plan.aggregation, Aggregation::None) {
                return Err(CqlError::invalid("Top-K queries can not be run with aggregation"));
            }
            let warnings =
                nearest.check(limits.rows, limits.per_partition, page_size, options.consistency)?;
            self.warnings.extend(warnings);
            plan.restrictions.filter(&self.ctx)?;
            nearest.bind(&self.ctx, false)?;
            if !plan.restrictions.is_key_range {
                plan.restrictions.partition_keys(&self.ctx)?;
            }
            AnnOrdering::check_limit(limits.rows)?;
            return Ok(None);
        }
        let sorts = !plan.sort_columns.is_empty();
        let is_aggregate = !matches!(plan.aggregation, Aggregation::None);
        let rows_max = if sorts { NO_LIMIT } else { limits.rows };
        let Some(rows) = page_size.filter(|size| is_aggregate || *size < rows_max) else {
            return Ok(None);
        };
        if sorts {
            // What is wrong with the values is told of first.
            plan.restrictions.filter(&self.ctx)?;
            if self.asked()?.is_some() || is_aggregate {
                self.warn_aggregate();
                return Err(CqlError::invalid(
                    "Cannot page queries with both ORDER BY and a IN restriction on the partition key; you must either remove the ORDER BY or the IN and sort client side, or disable paging for this query",
                ));
            }
        }
        if sorts || matches!(plan.aggregation, Aggregation::Everything) {
            return Ok(None);
        }
        Ok(Some(PageLimit {
            rows,
            bytes: self.context.limits.page_bytes_max,
        }))
    }

    /// How far to read into indexes before one is chosen.
    fn probe_limits(&self, limits: Limits, page: Option<PageLimit>) -> ProbeLimits {
        let plan = self.plan;
        let needs_all = !matches!(plan.aggregation, Aggregation::None)
            || !plan.sort_columns.is_empty()
            || plan.nearest.is_some();
        let rows_max = match page {
            _ if needs_all => NO_LIMIT,
            Some(page) => page.rows.min(limits.rows),
            None => limits.rows,
        };
        ProbeLimits {
            rows_max,
            needs_table_order: plan.is_distinct
                || limits.per_partition != NO_LIMIT
                || matches!(plan.aggregation, Aggregation::Groups(_)),
        }
    }

    /// Warns of aggregates of more than one partition, once all that is asked for is known to make sense.
    fn warn_aggregate(&mut self) {
        let restrictions = &self.plan.restrictions;
        if matches!(self.plan.aggregation, Aggregation::None) {
            return;
        }
        if restrictions.partition.is_empty() {
            self.warnings
                .push("Aggregation query used without partition key".to_owned());
        } else if restrictions.key_is_in() {
            self.warnings
                .push("Aggregation query used on multiple partition keys (IN restriction)".to_owned());
        }
    }

    /// The rows of each partition that are read.
    pub fn rows_wanted(&self) -> Result<RowsWanted, CqlError> {
        match self.plan.is_distinct {
            true => Ok(RowsWanted::all()),
            false => self.plan.restrictions.rows_wanted(&self.ctx),
        }
    }

    async fn read_stored(&mut self, output: &mut ResultCollector<'_>) -> Result<(), ExecutionError> {
        let filter = self.plan.restrictions.filter(&self.ctx)?;
        let source = self.source(&filter).await?;
        self.warn_aggregate();
        let Some(mut source) = source else {
            return Ok(());
        };
        consistency::require_replicas(&self.context.schema.load(), &self.plan.table, self.consistency)?;
        let mut tombstones = TombstoneCount::new(&self.context.limits);
        let needs_clustering = self.needs_clustering(&filter);
        let resume = self.resume.clone();
        let mut tablet = None;
        let mut size = ResultSize::new(self.context);
        while let Some(partition) = source.next_partition(self.context, &self.plan.table).await? {
            scope::checkpoint().await?;
            let resumed = resume
                .as_ref()
                .filter(|state| state.clustering.is_some() && state.partition_key == partition.bytes);
            output.begin_partition(
                resumed.map(|state| state.remaining_in_partition),
                source.is_at_last_key(),
            );
            let mut reader = PartitionReader {
                run: self,
                filter: &filter,
                partition: &partition,
                needs_clustering,
                is_resumed: resumed.is_some(),
            };
            let (live, dead) = tombstones.counts();
            let step = reader
                .read(&mut source, output, &mut tombstones, &mut size)
                .await?;
            let (live_after, dead_after) = tombstones.counts();
            let is_other = |tablet: &Arc<Tablet>| !tablet.token_range().contains(partition.token);
            if tablet.as_ref().is_none_or(is_other) {
                let here = is_here(self.context, partition.token);
                tablet = here
                    .then(|| self.context.store.tablet(partition.token).ok())
                    .flatten();
            }
            if let Some(tablet) = &tablet {
                tablet.passed((live_after - live) as u64, (dead_after - dead) as u64);
            }
            tombstones.check(self.plan, &partition)?;
            if step == Step::Stop {
                break;
            }
        }
        if let RowSource::Index(source) = &mut source {
            source.report(self.context);
        }
        self.warnings.extend(tombstones.finish(self.plan));
        Ok(())
    }

    /// Before a row that was read is looked at.
    async fn checkpoint(&self, found: &RowAt, tombstones: &TombstoneCount) -> Result<(), CqlError> {
        if found.row.packed.bytes().len() > LONG_ROW_BYTES {
            scope::step_aside().await;
        }
        let is_aggregate = !matches!(self.plan.aggregation, Aggregation::None);
        let (live, dead) = tombstones.counts();
        if is_aggregate
            && (live + dead + 1).is_multiple_of(AGGREGATE_PAGE_ROWS)
            && self.plan.timeout().is_none()
        {
            scope::renew_time(self.context.limits.timeouts.range_request_timeout);
        }
        scope::checkpoint().await
    }

    /// True if anything looks at the values of clustering columns.
    fn needs_clustering(&self, filter: &Filter) -> bool {
        let plan = self.plan;
        let is_clustering = |place: usize| {
            plan.table
                .columns
                .get(place)
                .is_some_and(|column| column.kind == ColumnKind::Clustering)
        };
        !matches!(plan.aggregation, Aggregation::None | Aggregation::Everything)
            || plan
                .selection
                .columns()
                .iter()
                .chain(&plan.sort_columns)
                .any(|place| is_clustering(*place))
            || filter.columns().any(is_clustering)
    }
}

/// Reads one partition.
struct PartitionReader<'r, 'a> {
    run: &'r SelectExecution<'a>,
    filter: &'r Filter,
    partition: &'r PartitionKey,
    needs_clustering: bool,
    is_resumed: bool,
}

impl PartitionReader<'_, '_> {
    async fn read(
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
        while let Some(found) = source.next_row(run.context, table).await? {
            run.checkpoint(&found, tombstones).await?;
            let Some(row) = found.row.live(run.now_s)? else {
                let met = found.row.tombstones_of_dead(run.now_s)?;
                tombstones.dead(run.plan, self.partition, met)?;
                if let RowSource::Index(source) = source {
                    source.row_is_dead();
                }
                continue;
            };
            is_dead = false;
            tombstones.live(run.plan, self.partition, row.dead_cells)?;
            if let RowSource::Index(source) = source
                && source.has_moved(table, KeyKind::Row, Some(&row))?
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
        let may_be_static_alone = table.has_static() && run.plan.restrictions.returns_static_alone();
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

    /// A partition without rows, whose static content counts as one.
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

fn is_here(context: &ExecutionContext, token: i64) -> bool {
    let owner = context.cluster().map(|cluster| cluster.owner(token));
    owner.is_none_or(|owner| owner == Owner::Here)
}

fn live(stored: Option<&StoredRow>, now_s: i64) -> Result<Option<LiveRow<'_>>, CqlError> {
    stored.map_or(Ok(None), |stored| stored.live(now_s))
}
