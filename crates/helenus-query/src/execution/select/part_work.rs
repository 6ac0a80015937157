//! The work on each part of a range of tokens, and its result.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use helenus_cql::error::{Consistency, CqlError};
use helenus_tablet::TokenRange;
use tokio::task::JoinHandle;

use super::SelectExecution;
use super::count::{CountRequest, Counted};
use super::output::{PageLimit, ResultCollector, ResultPage};
use super::run::read_partitions;
use super::size::ResultSize;
use super::source::{RangeSource, RowSource};
use super::tombstones::TombstoneCount;
use crate::analysis::restrictions::Filter;
use crate::analysis::restrictions::packed_filter::PackedFilter;
use crate::analysis::restrictions::token::TokenBounds;
use crate::analysis::select::SelectPlan;
use crate::analysis::select::limits::{Limits, NO_LIMIT};
use crate::analysis::select::paging::PagingState;
use crate::analysis::select::plan::Aggregation;
use crate::analysis::selection::PartialGroup;
use crate::analysis::{EvalContext, Plan, Planned};
use crate::cluster::{PartAnswer, PartPage, PartRows};
use crate::failure::ExecutionError;
use crate::index::read::probe::ProbeLimits;
use crate::limits::scope;
use crate::request::BoundValue;
use crate::rows::{RowCounts, RowSelection};
use crate::storage::ExecutionContext;

/// Maximum bytes of a part's page. It limits the messages between nodes, and the memory of parts that are read concurrently.
const PAGE_BYTES: usize = 1 << 20;

/// A part of a range of tokens.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub tokens: TokenRange,
    /// Maximum number of result rows, if the part gives any.
    pub rows_max: u32,
    /// Position after which the result rows begin. `None` if they begin at the first row.
    pub resume: Option<PagingState>,
}

/// The result of a part.
pub(super) enum PartResult {
    Counted(Counted),
    Collected(Option<PartialGroup>, RowCounts),
    Page(ResultPage, RowCounts),
}

impl Part {
    /// Returns a part with all rows of the tokens.
    pub fn whole(tokens: TokenRange) -> Part {
        Part {
            tokens,
            rows_max: NO_LIMIT,
            resume: None,
        }
    }
}

impl PartResult {
    /// Returns the result for another node. `None` if it cannot be encoded.
    pub fn into_answer(self, plan: &SelectPlan) -> Option<PartAnswer> {
        Some(match self {
            PartResult::Counted(counted) => PartAnswer {
                rows: PartRows::Counted(counted.rows),
                met: counted.met,
            },
            PartResult::Collected(group, met) => PartAnswer {
                rows: PartRows::Group(group?.named(&plan.table)?),
                met,
            },
            PartResult::Page(page, met) => PartAnswer {
                rows: PartRows::Page(PartPage {
                    metadata: plan.metadata().clone(),
                    content: page.content,
                    last: page.last.map(|state| state.encode()),
                    is_cut: page.is_cut,
                }),
                met,
            },
        })
    }

    /// Returns the result that another node has sent. `None` if it belongs to another statement.
    pub fn of_answer(answer: PartAnswer, plan: &SelectPlan) -> Option<PartResult> {
        let PartAnswer { rows, met } = answer;
        match rows {
            PartRows::Counted(rows) if plan.selection.counts_rows() => {
                Some(PartResult::Counted(Counted { rows, met }))
            }
            PartRows::Counted(_) => None,
            PartRows::Group(group) => {
                let group = group.placed(&plan.selection, &plan.table)?;
                Some(PartResult::Collected(Some(group), met))
            }
            PartRows::Page(page) => Some(PartResult::Page(ResultPage::of_answer(page, plan)?, met)),
        }
    }
}

impl ResultPage {
    /// Returns the rows that another node has sent. `None` if they belong to another statement.
    fn of_answer(page: PartPage, plan: &SelectPlan) -> Option<ResultPage> {
        let state = |state: Bytes| PagingState::decode(&state)?.of(&plan.table);
        let last = page.last.map(state).transpose().ok()?;
        let is_known = page.metadata.id() == plan.metadata().id()
            && page.content.column_count() == plan.metadata().columns.len()
            && last.is_some() == (page.content.row_count() > 0)
            && (last.is_some() || !page.is_cut);
        is_known.then_some(ResultPage {
            content: page.content,
            last,
            is_cut: page.is_cut,
        })
    }
}

/// The work on each part.
#[derive(Clone)]
pub(super) enum PartWork {
    Count(Arc<CountRequest>),
    /// Collects rows into one group.
    Collect(Arc<CollectRequest>),
    /// Filters rows, or groups them within partitions, and gives result rows.
    Rows(Arc<CollectRequest>),
}

/// A SELECT that collects rows, in the form for another task.
pub(super) struct CollectRequest {
    planned: Arc<Planned>,
    values: Vec<BoundValue>,
    protocol_version: u8,
    now_s: i64,
    wanted: RowSelection,
}

impl<'a> SelectExecution<'a> {
    /// Returns the execution of a part for another task or another node. It has no access to the client.
    pub(super) fn of_part(
        context: &'a Arc<ExecutionContext>,
        planned: &'a Arc<Planned>,
        ctx: EvalContext<'a>,
        now_s: i64,
    ) -> Result<SelectExecution<'a>, CqlError> {
        let Plan::Select(plan) = &planned.plan else {
            return Err(CqlError::Server("only SELECT is read in parts".to_owned()));
        };
        Ok(SelectExecution {
            context,
            planned,
            plan,
            ctx,
            now_s,
            resume: None,
            is_paged: false,
            consistency: Consistency::One,
            probe: ProbeLimits::default(),
            rows_max: NO_LIMIT,
            request: None,
            warnings: Vec::new(),
        })
    }

    /// Returns the work on each part. `None` if the statement cannot be read in parts.
    pub(super) fn part_work(&self, wanted: &RowSelection, filter: &Filter) -> Option<PartWork> {
        let plan = self.plan;
        if plan.nearest.is_some() {
            return None;
        }
        match &plan.aggregation {
            Aggregation::Everything => self.aggregate_work(wanted, filter),
            Aggregation::None if filter.is_empty() && plan.restrictions.clustering.is_empty() => None,
            Aggregation::None | Aggregation::Groups(_) => {
                Some(PartWork::Rows(Arc::new(self.collect_request(wanted))))
            }
        }
    }

    fn aggregate_work(&self, wanted: &RowSelection, filter: &Filter) -> Option<PartWork> {
        let plan = self.plan;
        if plan.is_distinct || self.resume.is_some() || !plan.selection.is_mergeable() {
            return None;
        }
        let collects = || PartWork::Collect(Arc::new(self.collect_request(wanted)));
        Some(self.count_work(wanted, filter).unwrap_or_else(collects))
    }

    /// Returns the work of counting rows where they are stored. `None` if each row must be decoded.
    fn count_work(&self, wanted: &RowSelection, filter: &Filter) -> Option<PartWork> {
        let plan = self.plan;
        if !plan.selection.counts_rows() {
            return None;
        }
        let packed = self.packed_filter(filter).filter(PackedFilter::is_complete)?;
        Some(PartWork::Count(Arc::new(CountRequest {
            table: plan.table.clone(),
            wanted: wanted.clone(),
            filter: packed,
            counts_static_alone: self.finds_static(filter),
            renews_time: plan.timeout().is_none(),
        })))
    }

    fn collect_request(&self, wanted: &RowSelection) -> CollectRequest {
        CollectRequest {
            planned: self.planned.clone(),
            values: self.ctx.values.to_vec(),
            protocol_version: self.ctx.protocol_version,
            now_s: self.now_s,
            wanted: wanted.clone(),
        }
    }
}

impl PartWork {
    /// Returns true if rows are counted without decoding them.
    pub fn only_counts(&self) -> bool {
        matches!(self, PartWork::Count(_))
    }

    /// Returns true if a part gives result rows.
    pub fn gives_rows(&self) -> bool {
        matches!(self, PartWork::Rows(_))
    }

    /// Reads the part's rows, on whichever node they are.
    pub fn run<'a>(
        &'a self,
        context: &'a Arc<ExecutionContext>,
        part: Part,
    ) -> BoxFuture<'a, Result<PartResult, ExecutionError>> {
        Box::pin(async move {
            match self {
                PartWork::Count(request) => {
                    let counted = request.run(context, part.tokens).await?;
                    Ok(PartResult::Counted(counted))
                }
                PartWork::Collect(request) => request.collect(context, part).await,
                PartWork::Rows(request) => request.read_rows(context, part).await,
            }
        })
    }

    /// Reads the part in a task of its own, once there is a permit. The task is aborted if the future is dropped.
    pub async fn spawn(
        &self,
        context: &Arc<ExecutionContext>,
        part: Part,
    ) -> Result<PartResult, ExecutionError> {
        let scope = scope::part();
        let (work, context) = (self.clone(), context.clone());
        let mut task = PartTask(tokio::spawn(scope::within(scope, async move {
            let _permit = context.limits.scan_permits.acquire().await;
            work.run(&context, part).await
        })));
        match (&mut task.0).await {
            Ok(result) => result,
            Err(error) => Err(CqlError::Server(format!("a part of the read has failed: {error}")).into()),
        }
    }
}

/// A task that reads a part. It is aborted when this is dropped.
struct PartTask(JoinHandle<Result<PartResult, ExecutionError>>);

impl Drop for PartTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl CollectRequest {
    /// Collects the rows of a part into the group of an aggregate.
    async fn collect(
        &self,
        context: &Arc<ExecutionContext>,
        part: Part,
    ) -> Result<PartResult, ExecutionError> {
        let run = self.execution(context, part.resume)?;
        let limits = Limits {
            rows: NO_LIMIT,
            per_partition: NO_LIMIT,
        };
        let mut output =
            ResultCollector::new(run.plan, run.ctx, limits, None, &context.limits.client_memory)?;
        let met = self.read(&run, part.tokens, &mut output).await?;
        Ok(PartResult::Collected(output.into_partial(), met))
    }

    /// Returns the result rows of a part, up to the page's limits.
    async fn read_rows(
        &self,
        context: &Arc<ExecutionContext>,
        part: Part,
    ) -> Result<PartResult, ExecutionError> {
        let run = self.execution(context, part.resume)?;
        let plan = run.plan;
        let limits = Limits::bind(None, plan.per_partition_limit.as_ref(), &run.ctx)?;
        let page = PageLimit {
            rows: part.rows_max,
            bytes: context.limits().page_bytes_max.min(PAGE_BYTES),
        };
        let mut output =
            ResultCollector::new(plan, run.ctx, limits, Some(page), &context.limits.client_memory)?;
        output.keep_last();
        let met = self.read(&run, part.tokens, &mut output).await?;
        Ok(PartResult::Page(output.into_page()?, met))
    }

    fn execution<'a>(
        &'a self,
        context: &'a Arc<ExecutionContext>,
        resume: Option<PagingState>,
    ) -> Result<SelectExecution<'a>, CqlError> {
        let ctx = EvalContext {
            values: &self.values,
            clock: context.clock.as_ref(),
            protocol_version: self.protocol_version,
        };
        let run = SelectExecution::of_part(context, &self.planned, ctx, self.now_s)?;
        Ok(SelectExecution { resume, ..run })
    }

    /// Reads the rows with these tokens. Returns the counts of the rows that were read.
    async fn read(
        &self,
        run: &SelectExecution<'_>,
        tokens: TokenRange,
        output: &mut ResultCollector<'_>,
    ) -> Result<RowCounts, ExecutionError> {
        let filter = run.plan.restrictions.filter(&run.ctx)?;
        let mut tombstones = TombstoneCount::new(&run.context.limits());
        let bounds = TokenBounds {
            start: Bound::Included(tokens.first),
            end: Bound::Included(tokens.last),
        };
        let source = RangeSource::new(&run.plan.table, bounds, self.wanted.clone(), run.resume.as_ref());
        let mut source = RowSource::Range(source);
        let mut size = ResultSize::new(&run.context.limits);
        read_partitions(run, &filter, &mut source, output, &mut tombstones, &mut size).await?;
        Ok(tombstones.met())
    }
}
