//! Aggregates over ranges of tokens, in parts: cut where tablets end, read one after the other until that takes long, then side by side, and
//! merged in the order of tokens. Only what is merged without a difference is cut ([`crate::analysis::selection::Selection::is_mergeable`]).

use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use helenus_cql::error::CqlError;
use helenus_tablet::TokenRange;
use tokio::task::JoinHandle;

use super::SelectExecution;
use super::count::{CountRequest, Counted};
use super::output::ResultCollector;
use super::run::{is_here, read_partitions};
use super::size::ResultSize;
use super::source::{RangeSource, RowSource};
use super::tombstones::{RowCounts, TombstoneCount};
use crate::analysis::restrictions::Filter;
use crate::analysis::restrictions::token::TokenBounds;
use crate::analysis::select::limits::{Limits, NO_LIMIT};
use crate::analysis::select::plan::Aggregation;
use crate::analysis::selection::PartialGroup;
use crate::analysis::{EvalContext, Plan, Planned};
use crate::failure::ExecutionError;
use crate::index::read::probe::ProbeLimits;
use crate::limits::scope;
use crate::request::BoundValue;
use crate::rows::RowsWanted;
use crate::storage::ExecutionContext;
use crate::trace;

/// How long parts are read one after the other: what takes no longer is not worth other tasks.
const ALONE: Duration = Duration::from_millis(2);
/// Parts for each that are read at a time, so that all end at about the same time.
const PARTS_EACH: usize = 4;

/// What a part comes to.
enum PartResult {
    Counted(Counted),
    Collected(Option<PartialGroup>, RowCounts),
}

/// What is read of each part.
#[derive(Clone)]
enum PartWork {
    Count(CountRequest),
    Collect(Arc<CollectRequest>),
}

/// A SELECT that collects rows, as it is run in another task.
struct CollectRequest {
    planned: Arc<Planned>,
    values: Vec<BoundValue>,
    protocol_version: u8,
    now_s: i64,
    wanted: RowsWanted,
}

impl SelectExecution<'_> {
    /// Reads the rows of a range of tokens for the aggregate that is the whole result. False if they must be read one after the other.
    pub(super) async fn read_parts(
        &self,
        bounds: TokenBounds,
        wanted: &RowsWanted,
        filter: &Filter,
        output: &mut ResultCollector<'_>,
        tombstones: &mut TombstoneCount,
    ) -> Result<bool, ExecutionError> {
        let Some(work) = self.part_work(wanted, filter) else {
            return Ok(false);
        };
        let context = self.context;
        let at_a_time = context.limits().scan_concurrency;
        let counts_only = matches!(work, PartWork::Count(_));
        // A trace shows the steps of one task.
        let is_alone = at_a_time < 2 || trace::is_recording();
        if is_alone && !counts_only {
            return Ok(false);
        }
        let per_tablet = if is_alone { 1 } else { at_a_time * PARTS_EACH };
        let mut parts = cut(context, bounds, per_tablet).into_iter();
        let mut merge = |result| self.merge_part(result, output, tombstones);
        let began = Instant::now();
        while (is_alone || began.elapsed() < ALONE)
            && let Some(tokens) = parts.next()
        {
            merge(work.run(context, tokens).await?)?;
        }
        if parts.len() == 0 {
            return Ok(true);
        }
        scope::step_aside().await;
        let mut results = stream::iter(parts.map(|tokens| work.spawn(context, tokens))).buffered(at_a_time);
        while let Some(result) = results.next().await {
            merge(result?)?;
            if self.plan.timeout().is_none() {
                scope::renew_time(context.limits().timeouts.range_request_timeout);
            }
        }
        Ok(true)
    }

    /// How parts are read, if they may be.
    fn part_work(&self, wanted: &RowsWanted, filter: &Filter) -> Option<PartWork> {
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

    fn merge_part(
        &self,
        result: PartResult,
        output: &mut ResultCollector<'_>,
        tombstones: &mut TombstoneCount,
    ) -> Result<(), CqlError> {
        let met = match result {
            PartResult::Counted(counted) => {
                output.add_counted(counted.rows);
                counted.met
            }
            PartResult::Collected(partial, met) => {
                output.merge(partial);
                met
            }
        };
        tombstones.add(self.plan, met)
    }
}

impl PartWork {
    fn run<'a>(
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
    async fn spawn(
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
        let Plan::Select(plan) = &self.planned.plan else {
            return Err(CqlError::Server("only SELECT is read in parts".to_owned()).into());
        };
        let ctx = EvalContext {
            values: &self.values,
            clock: context.clock.as_ref(),
            protocol_version: self.protocol_version,
        };
        let run = SelectExecution {
            context,
            planned: &self.planned,
            plan,
            ctx,
            now_s: self.now_s,
            resume: None,
            is_paged: false,
            consistency: helenus_cql::error::Consistency::One,
            probe: ProbeLimits::default(),
            rows_max: NO_LIMIT,
            warnings: Vec::new(),
        };
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

/// The ranges of tokens within the bounds, in order: as the tablets are cut, and each of these into several if there are few.
fn cut(context: &ExecutionContext, bounds: TokenBounds, parts_min: usize) -> Vec<TokenRange> {
    let tablets: Vec<TokenRange> = match context.cluster() {
        Some(cluster) => cluster.tablets().iter().map(|tablet| tablet.tokens).collect(),
        None => {
            let tablets = context.store.tablets();
            tablets.iter().map(|tablet| tablet.token_range()).collect()
        }
    };
    cut_at(bounds, &tablets, parts_min)
}

fn cut_at(bounds: TokenBounds, tablets: &[TokenRange], parts_min: usize) -> Vec<TokenRange> {
    let first = match bounds.start {
        Bound::Unbounded => Some(i64::MIN),
        Bound::Included(token) => Some(token),
        Bound::Excluded(token) => token.checked_add(1),
    };
    let last = match bounds.end {
        Bound::Unbounded => Some(i64::MAX),
        Bound::Included(token) => Some(token),
        Bound::Excluded(token) => token.checked_sub(1),
    };
    let (Some(first), Some(last)) = (first, last) else {
        return Vec::new();
    };
    let each = parts_min.div_ceil(tablets.len().max(1)).max(1) as i128;
    let mut parts = Vec::new();
    let mut next = Some(first);
    // What lies behind the last tablet, or between two, is some tablet's by the time it is read.
    for end in tablets.iter().map(|tablet| tablet.last).chain([i64::MAX]) {
        let end = end.min(last);
        let Some(start) = next.filter(|start| *start <= end) else {
            continue;
        };
        let (from, width) = (i128::from(start), i128::from(end) - i128::from(start) + 1);
        let at = |part: i128| from + width * part / each;
        let ranges = (0..each).map(|part| (at(part), at(part + 1) - 1));
        let ranges = ranges.filter(|(first, last)| first <= last);
        parts.extend(ranges.map(|(first, last)| TokenRange {
            first: first as i64,
            last: last as i64,
        }));
        next = end.checked_add(1);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(start: Bound<i64>, end: Bound<i64>) -> TokenBounds {
        TokenBounds { start, end }
    }

    /// The parts cover the tokens of the bounds, in order and without a gap.
    fn check(parts: &[TokenRange], first: i64, last: i64) {
        assert_eq!(parts.first().unwrap().first, first);
        assert_eq!(parts.last().unwrap().last, last);
        assert!(parts.iter().all(|part| part.first <= part.last));
        for pair in parts.windows(2) {
            assert_eq!(pair[0].last + 1, pair[1].first);
        }
    }

    #[test]
    fn parts_cover_the_bounds_whatever_the_tablets_are() {
        let ring = TokenRange::split_ring(3);
        let with_gap: Vec<TokenRange> = ring.iter().step_by(2).copied().collect();
        for tablets in [ring.as_slice(), &with_gap, &[]] {
            for parts_min in [1, 2, 7, 16] {
                let all = cut_at(TokenBounds::ALL, tablets, parts_min);
                check(&all, i64::MIN, i64::MAX);
                assert!(all.len() >= parts_min);
                let some = bounds(Bound::Excluded(-5), Bound::Included(5));
                check(&cut_at(some, tablets, parts_min), -4, 5);
                let one = bounds(Bound::Included(7), Bound::Included(7));
                assert_eq!(cut_at(one, tablets, parts_min).len(), 1);
            }
        }
    }

    #[test]
    fn of_no_tokens_there_are_no_parts() {
        let tablets = TokenRange::split_ring(2);
        let behind = bounds(Bound::Excluded(i64::MAX), Bound::Unbounded);
        assert!(cut_at(behind, &tablets, 4).is_empty());
        let none = bounds(Bound::Excluded(3), Bound::Excluded(4));
        assert!(cut_at(none, &tablets, 4).is_empty());
    }
}
