//! Aggregates over ranges of tokens, in parts: cut where tablets end, read one after the other until that takes long, then side by side, and
//! merged in the order of tokens. Only what is merged without a difference is cut ([`crate::analysis::selection::Selection::is_mergeable`]).
//!
//! A part of another node's tablet is read there ([`PartOwners`]), and here if that fails.

use std::collections::HashSet;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use helenus_cql::error::CqlError;
use helenus_tablet::TokenRange;
use tokio::sync::Semaphore;

use super::SelectExecution;
use super::output::ResultCollector;
use super::part_owners::PartOwners;
use super::part_work::{PartResult, PartWork};
use super::tombstones::TombstoneCount;
use crate::analysis::restrictions::Filter;
use crate::analysis::restrictions::token::TokenBounds;
use crate::failure::ExecutionError;
use crate::limits::scope;
use crate::rows::RowsWanted;
use crate::storage::ExecutionContext;
use crate::trace;

/// How long parts are read one after the other: what takes no longer is not worth other tasks.
const ALONE: Duration = Duration::from_millis(2);
/// Parts for each that are read at a time, so that all end at about the same time.
const PARTS_EACH: usize = 4;
/// Parts that are under way or wait for their turn, where several nodes read them: neighbours may be the same node's.
const UNDER_WAY_MAX: usize = 64;

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
        let ring = Ring::of(context);
        let at_a_time = context.limits().scan_concurrency;
        let owners = self.part_owners().filter(|_| ring.has_peers);
        // A trace shows the steps of one task.
        let is_alone = owners.is_none() && (at_a_time < 2 || trace::is_recording());
        if is_alone && !work.only_counts() {
            return Ok(false);
        }
        let parts_min = if is_alone {
            1
        } else {
            at_a_time * PARTS_EACH * ring.nodes
        };
        let under_way = if owners.is_some() {
            UNDER_WAY_MAX
        } else {
            at_a_time
        };
        let reader = PartReader {
            context,
            work: &work,
            owners: owners.as_ref(),
            places: Semaphore::new(at_a_time),
        };
        let mut parts = cut_at(bounds, &ring.tablets, parts_min).into_iter();
        let mut merge = |result| self.merge_part(result, output, tombstones);
        let began = Instant::now();
        while (is_alone || began.elapsed() < ALONE)
            && let Some(tokens) = parts.next()
        {
            merge(reader.read(tokens).await?)?;
        }
        if parts.len() == 0 {
            return Ok(true);
        }
        scope::step_aside().await;
        let mut results = stream::iter(parts.map(|tokens| reader.read_aside(tokens))).buffered(under_way);
        while let Some(result) = results.next().await {
            merge(result?)?;
            if self.plan.timeout().is_none() {
                scope::renew_time(context.limits().timeouts.range_request_timeout);
            }
        }
        Ok(true)
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

/// Reads parts of one execution.
struct PartReader<'r> {
    context: &'r Arc<ExecutionContext>,
    work: &'r PartWork,
    /// Who reads those of other nodes.
    owners: Option<&'r PartOwners<'r>>,
    /// For parts that are read here.
    places: Semaphore,
}

impl PartReader<'_> {
    async fn ask(&self, tokens: TokenRange) -> Result<Option<PartResult>, ExecutionError> {
        match self.owners {
            Some(owners) => owners.ask(tokens).await,
            None => Ok(None),
        }
    }

    /// Reads a part, in this task if it is read here.
    async fn read(&self, tokens: TokenRange) -> Result<PartResult, ExecutionError> {
        match self.ask(tokens).await? {
            Some(result) => Ok(result),
            None => self.work.run(self.context, tokens).await,
        }
    }

    /// Reads a part beside others.
    fn read_aside(&self, tokens: TokenRange) -> BoxFuture<'_, Result<PartResult, ExecutionError>> {
        Box::pin(async move {
            if let Some(result) = self.ask(tokens).await? {
                return Ok(result);
            }
            let _place = self.places.acquire().await;
            self.work.spawn(self.context, tokens).await
        })
    }
}

/// How the tokens are cut among tablets and nodes.
struct Ring {
    /// In the order of tokens.
    tablets: Vec<TokenRange>,
    /// Those that have tablets.
    nodes: usize,
    /// Other nodes have some.
    has_peers: bool,
}

impl Ring {
    fn of(context: &ExecutionContext) -> Ring {
        let Some(cluster) = context.cluster() else {
            let tablets = context.store.tablets();
            return Ring {
                tablets: tablets.iter().map(|tablet| tablet.token_range()).collect(),
                nodes: 1,
                has_peers: false,
            };
        };
        let (tablets, here) = (cluster.tablets(), cluster.here());
        let owners: HashSet<_> = tablets.iter().filter_map(|tablet| tablet.owner).collect();
        Ring {
            tablets: tablets.iter().map(|tablet| tablet.tokens).collect(),
            nodes: owners.len().max(1),
            has_peers: owners.iter().any(|owner| *owner != here),
        }
    }
}

/// The ranges of tokens within the bounds, in order: as the tablets are cut, and each of these into several if there are few.
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
