//! Execution of SELECT (Cassandra's `SelectStatement.execute`).

use std::sync::Arc;

use helenus_cql::error::CqlError;

use super::SelectExecution;
use super::output::{PageLimit, ResultCollector, Step};
use super::partition_reader::PartitionReader;
use super::size::ResultSize;
use super::source::RowSource;
use super::tombstones::TombstoneCount;
use crate::analysis::restrictions::Filter;
use crate::analysis::select::SelectPlan;
use crate::analysis::select::limits::{Limits, NO_LIMIT};
use crate::analysis::select::paging::PagingState;
use crate::analysis::select::plan::Aggregation;
use crate::analysis::select::similarity::AnnOrdering;
use crate::analysis::{EvalContext, Planned, consistency};
use crate::cluster::Request;
use crate::execution::now_s;
use crate::execution::rate_limits::count_read;
use crate::execution::sampling::SampledRead;
use crate::failure::ExecutionError;
use crate::index::lookup::{IndexLookup, lookups, ordered_range};
use crate::index::read::probe::ProbeLimits;
use crate::limits::scope::{self, LONG_ROW_BYTES};
use crate::request::{BoundValue, QueryParameters};
use crate::response::{Outcome, Response, Rows};
use crate::rows::{PartitionKey, RowSelection};
use crate::schema::{ColumnKind, TableKind};
use crate::storage::ExecutionContext;
use crate::storage::row_reads::passed_rows::PassedRows;

/// Seconds by which the time of a read may lie before the current time. Such a read may still see cells that have expired since.
const SETTLED_S: i64 = 10;

/// Runs a SELECT. `plan` is the plan within `planned`. Other nodes may read parts of the `request`.
pub async fn execute(
    context: &Arc<ExecutionContext>,
    planned: &Arc<Planned>,
    plan: &SelectPlan,
    values: &[BoundValue],
    parameters: &QueryParameters,
    request: Option<&Request<'_>>,
) -> Result<Outcome, ExecutionError> {
    consistency::check_read(parameters.consistency)?;
    let ctx = EvalContext {
        values,
        clock: context.clock.as_ref(),
        protocol_version: parameters.version.number(),
    };
    let now_s = now_s(context, parameters);
    let limits = Limits::bind(plan.limit.as_ref(), plan.per_partition_limit.as_ref(), &ctx)?;
    plan.selection.check_constants(&ctx)?;
    let state = parameters.paging_state.as_ref();
    let resume = state.map(|state| PagingState::decode(state)?.of(&plan.table));
    let resume = resume.transpose()?;
    let is_paged = limits.are_paged(!matches!(plan.aggregation, Aggregation::None), parameters);
    let resume = resume.filter(|_| is_paged);
    if let (Some(point), None) = (&plan.point, &resume) {
        return Ok(super::point::execute(context, plan, point, &ctx, now_s, parameters.consistency).await?);
    }
    let mut run = SelectExecution {
        context,
        planned,
        plan,
        ctx,
        now_s,
        resume,
        is_paged,
        consistency: parameters.consistency,
        probe: ProbeLimits::default(),
        rows_max: limits.rows,
        request,
        warnings: Vec::new(),
    };
    match Box::pin(read(&mut run, limits, parameters)).await {
        Ok(rows) => Ok(Response::Rows(rows).with(run.warnings)),
        Err(error) => Err(error.map_failed(|error| match error {
            CqlError::Invalid(_) | CqlError::FunctionFailure { .. } | CqlError::ReadFailure { .. } => {
                error.warned(run.warnings)
            }
            other => other,
        })),
    }
}

/// Returns the rows of one page.
async fn read(
    run: &mut SelectExecution<'_>,
    limits: Limits,
    parameters: &QueryParameters,
) -> Result<Rows, ExecutionError> {
    let (plan, ctx) = (run.plan, run.ctx);
    let page = run.page_limit(limits, parameters)?;
    let limits = match &run.resume {
        Some(state) => Limits {
            rows: state.remaining.min(limits.rows),
            ..limits
        },
        None => limits,
    };
    run.probe = run.probe_limits(limits);
    let mut output = ResultCollector::new(plan, ctx, limits, page, &run.context.limits.client_memory)?;
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

/// Returns the tokens by which a read is routed to their owner: those of its partitions, or those of the index entries that it reads first.
/// Empty if a range is read.
///
/// # Errors
/// Cassandra's, for invalid keys.
pub(crate) fn tokens(
    context: &ExecutionContext,
    plan: &SelectPlan,
    values: &[BoundValue],
    parameters: &QueryParameters,
) -> Result<Vec<i64>, CqlError> {
    let ctx = EvalContext {
        values,
        clock: context.clock.as_ref(),
        protocol_version: parameters.version.number(),
    };
    if plan.table.kind == TableKind::Virtual {
        return Ok(Vec::new());
    }
    if let Some(point) = &plan.point {
        return Ok(vec![point.bind(&plan.table, &ctx)?.0.token]);
    }
    let restrictions = &plan.restrictions;
    if let Some(ordering) = &plan.by_value {
        let filter = restrictions.filter(&ctx)?;
        let range = ordered_range(&plan.table, &ordering.index, filter.expressions())?;
        return Ok(vec![match ordering.is_descending {
            true => range.last_token(&ordering.index),
            false => range.first_token(&ordering.index),
        }]);
    }
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
    /// Returns the size of a page. `None` if the result is not paged.
    fn page_limit(
        &mut self,
        limits: Limits,
        parameters: &QueryParameters,
    ) -> Result<Option<PageLimit>, CqlError> {
        let plan = self.plan;
        let page_size = parameters
            .page_size
            .and_then(|size| u32::try_from(size).ok())
            .filter(|size| *size > 0);
        if let Some(nearest) = &plan.nearest {
            if !matches!(plan.aggregation, Aggregation::None) {
                return Err(CqlError::invalid("Top-K queries can not be run with aggregation"));
            }
            let warnings = nearest.check(
                limits.rows,
                limits.per_partition,
                page_size,
                parameters.consistency,
            )?;
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
            // Errors in the values are reported first.
            plan.restrictions.filter(&self.ctx)?;
            if self.requested()?.is_some() || is_aggregate {
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
            bytes: self.context.limits().page_bytes_max,
        }))
    }

    /// Returns the limits for reading entries of several indexes before one is chosen.
    fn probe_limits(&self, limits: Limits) -> ProbeLimits {
        let plan = self.plan;
        let needs_all = !matches!(plan.aggregation, Aggregation::None)
            || !plan.sort_columns.is_empty()
            || plan.nearest.is_some();
        ProbeLimits {
            rows_max: if needs_all { NO_LIMIT } else { limits.rows },
            needs_table_order: plan.is_distinct
                || limits.per_partition != NO_LIMIT
                || matches!(plan.aggregation, Aggregation::Groups(_)),
        }
    }

    /// Warns of aggregates over more than one partition. Called once the request is known to be valid.
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

    /// Returns a time such that everything that has expired by then is expired for all future reads too. Requests may be about another time
    /// than the current one.
    pub(super) fn settled_s(&self) -> i64 {
        let now_s = self.context.clock.now_us().div_euclid(1_000_000);
        self.now_s.min(now_s).saturating_sub(SETTLED_S)
    }

    /// Returns the rows of each partition to be read.
    pub fn row_selection(&self) -> Result<RowSelection, CqlError> {
        match self.plan.is_distinct {
            true => Ok(RowSelection::all()),
            false => self.plan.restrictions.row_selection(&self.ctx),
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
        let mut tombstones = TombstoneCount::new(&self.context.limits());
        let mut is_read = false;
        if let RowSource::Range(range) = &source {
            let (bounds, wanted) = range.requested();
            is_read = Box::pin(self.read_parts(bounds, wanted, &filter, output, &mut tombstones)).await?;
        }
        if !is_read {
            let mut size = ResultSize::new(&self.context.limits);
            read_partitions(self, &filter, &mut source, output, &mut tombstones, &mut size).await?;
        }
        source.report(self.context);
        self.warnings.extend(tombstones.finish(self.plan));
        Ok(())
    }

    /// Returns true if the values of clustering columns are needed.
    pub(super) fn needs_clustering(&self, filter: &Filter) -> bool {
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

/// Reads the partitions of a source one after another.
pub(super) async fn read_partitions(
    run: &SelectExecution<'_>,
    filter: &Filter,
    source: &mut RowSource,
    output: &mut ResultCollector<'_>,
    tombstones: &mut TombstoneCount,
    size: &mut ResultSize<'_>,
) -> Result<(), ExecutionError> {
    let table = &run.plan.table;
    let needs_clustering = run.needs_clustering(filter);
    let resume = run.resume.clone();
    let mut passed = PassedRows::new(table.clone());
    if let RowSource::Range(range) = source {
        let fitting = run.fitting_rows(filter, range.requested().1);
        range.skip_others(fitting);
    }
    while let Some(partition) = next_partition(run, source, tombstones).await? {
        scope::checkpoint().await?;
        if source.is_of_named_keys() {
            count_read(run.context, table, &partition)?;
        }
        let resumed = resume
            .as_ref()
            .filter(|state| state.clustering.is_some() && state.partition_key == partition.bytes);
        output.begin_partition(
            resumed.map(|state| state.remaining_in_partition),
            source.is_at_last_key(),
        );
        let mut reader = PartitionReader {
            run,
            filter,
            partition: &partition,
            needs_clustering,
            is_resumed: resumed.is_some(),
        };
        let sampling = &run.context.metrics.sampling;
        let sampled = SampledRead::begin(sampling, table, &partition, source.is_of_keys());
        let before = tombstones.decoded();
        let step = reader.read(source, output, tombstones, size).await;
        let after = tombstones.decoded();
        let (live, dead) = (
            (after.live - before.live) as u64,
            (after.dead - before.dead) as u64,
        );
        // A read that fails because of too many tombstones is recorded too.
        sampled.end(&partition, live, (after.tombstones - before.tombstones) as u64);
        let step = step?;
        passed.add(run.context, partition.token, live, dead);
        tombstones.check(run.plan, &partition)?;
        if step == Step::Stop {
            break;
        }
    }
    Ok(())
}

/// Returns the next partition, and counts the rows that the source skipped before it.
async fn next_partition(
    run: &SelectExecution<'_>,
    source: &mut RowSource,
    tombstones: &mut TombstoneCount,
) -> Result<Option<PartitionKey>, ExecutionError> {
    let partition = source.next_partition(run.context, &run.plan.table).await?;
    if let Some(skipped) = source.take_skipped() {
        tombstones.skip(run.plan, skipped)?;
    }
    Ok(partition)
}
