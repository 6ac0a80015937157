//! What is read of each part of an aggregate, and what comes of it.

use std::ops::Bound;
use std::sync::Arc;

use futures::future::BoxFuture;
use helenus_cql::error::{Consistency, CqlError};
use helenus_tablet::TokenRange;
use tokio::task::JoinHandle;

use super::SelectExecution;
use super::count::{CountRequest, Counted};
use super::output::ResultCollector;
use super::run::{is_here, read_partitions};
use super::size::ResultSize;
use super::source::{RangeSource, RowSource};
use super::tombstones::TombstoneCount;
use crate::analysis::restrictions::Filter;
use crate::analysis::restrictions::token::TokenBounds;
use crate::analysis::select::SelectPlan;
use crate::analysis::select::limits::{Limits, NO_LIMIT};
use crate::analysis::select::plan::Aggregation;
use crate::analysis::selection::PartialGroup;
use crate::analysis::{EvalContext, Plan, Planned};
use crate::cluster::{PartAnswer, PartRows};
use crate::failure::ExecutionError;
use crate::index::read::probe::ProbeLimits;
use crate::limits::scope;
use crate::request::BoundValue;
use crate::rows::{RowCounts, RowsWanted};
use crate::storage::ExecutionContext;

/// What a part comes to.
pub(super) enum PartResult {
    Counted(Counted),
    Collected(Option<PartialGroup>, RowCounts),
}

impl PartResult {
    /// The result for another node; none if it can't be told.
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
        })
    }

    /// The result that another node has told; none if it is that of another statement.
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
        }
    }
}

/// What is read of each part.
#[derive(Clone)]
pub(super) enum PartWork {
    Count(CountRequest),
    Collect(Arc<CollectRequest>),
}

/// A SELECT that collects rows, as it is run in another task.
pub(super) struct CollectRequest {
    planned: Arc<Planned>,
    values: Vec<BoundValue>,
    protocol_version: u8,
    now_s: i64,
    wanted: RowsWanted,
}

impl<'a> SelectExecution<'a> {
    /// What reads a part for another task or another node, neither of which tells a client of it.
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
            origin: None,
            warnings: Vec::new(),
        })
    }

    /// How parts are read, if they may be.
    pub(super) fn part_work(&self, wanted: &RowsWanted, filter: &Filter) -> Option<PartWork> {
        let plan = self.plan;
        let is_cut = matches!(plan.aggregation, Aggregation::Everything)
            && !plan.is_distinct
            && plan.nearest.is_none()
            && self.resume.is_none()
            && plan.selection.is_mergeable();
        if !is_cut {
            return None;
        }
        let wants_all = plan.restrictions.clustering.is_empty() && !plan.table.is_static_compact();
        if plan.selection.counts_rows() && filter.is_empty() && wants_all {
            return Some(PartWork::Count(CountRequest {
                table: plan.table.clone(),
                now_s: self.now_s,
                counts_static_alone: plan.table.has_static() && plan.restrictions.returns_static_alone(),
                renews_time: plan.timeout().is_none(),
            }));
        }
        Some(PartWork::Collect(Arc::new(CollectRequest {
            planned: self.planned.clone(),
            values: self.ctx.values.to_vec(),
            protocol_version: self.ctx.protocol_version,
            now_s: self.now_s,
            wanted: wanted.clone(),
        })))
    }
}

impl PartWork {
    /// True if rows are counted where they lie.
    pub fn only_counts(&self) -> bool {
        matches!(self, PartWork::Count(_))
    }

    /// Reads the part's rows, wherever they are.
    pub fn run<'a>(
        &'a self,
        context: &'a Arc<ExecutionContext>,
        tokens: TokenRange,
    ) -> BoxFuture<'a, Result<PartResult, ExecutionError>> {
        Box::pin(async move {
            match self {
                PartWork::Count(request) => {
                    let counted = request.run(context, tokens).await?;
                    if is_here(context, tokens.first)
                        && let Ok(tablet) = context.store.tablet(tokens.first)
                    {
                        tablet.passed(counted.met.live as u64, counted.met.dead as u64);
                    }
                    Ok(PartResult::Counted(counted))
                }
                PartWork::Collect(request) => request.run(context, tokens).await,
            }
        })
    }

    /// The same in a task of its own, once there is a place for it. The task ends with what is returned.
    pub async fn spawn(
        &self,
        context: &Arc<ExecutionContext>,
        tokens: TokenRange,
    ) -> Result<PartResult, ExecutionError> {
        let scope = scope::part();
        let (work, context) = (self.clone(), context.clone());
        let mut task = PartTask(tokio::spawn(scope::within(scope, async move {
            let _permit = context.scan_permits.acquire().await;
            work.run(&context, tokens).await
        })));
        match (&mut task.0).await {
            Ok(result) => result,
            Err(error) => Err(CqlError::Server(format!("a part of the read has failed: {error}")).into()),
        }
    }
}

/// A part that is read by another task, until nobody waits for it.
struct PartTask(JoinHandle<Result<PartResult, ExecutionError>>);

impl Drop for PartTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl CollectRequest {
    async fn run(
        &self,
        context: &Arc<ExecutionContext>,
        tokens: TokenRange,
    ) -> Result<PartResult, ExecutionError> {
        let ctx = EvalContext {
            values: &self.values,
            clock: context.clock.as_ref(),
            protocol_version: self.protocol_version,
        };
        let run = SelectExecution::of_part(context, &self.planned, ctx, self.now_s)?;
        let plan = run.plan;
        let filter = plan.restrictions.filter(&ctx)?;
        let limits = Limits {
            rows: NO_LIMIT,
            per_partition: NO_LIMIT,
        };
        let mut output = ResultCollector::new(plan, ctx, limits, None, &context.client_memory)?;
        let mut tombstones = TombstoneCount::new(&context.limits());
        let bounds = TokenBounds {
            start: Bound::Included(tokens.first),
            end: Bound::Included(tokens.last),
        };
        let mut source = RowSource::Range(RangeSource::new(&plan.table, bounds, self.wanted.clone(), None));
        let mut size = ResultSize::new(context);
        read_partitions(
            &run,
            &filter,
            &mut source,
            &mut output,
            &mut tombstones,
            &mut size,
        )
        .await?;
        Ok(PartResult::Collected(output.into_partial(), tombstones.met()))
    }
}
