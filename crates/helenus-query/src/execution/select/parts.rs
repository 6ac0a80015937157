//! Reads of ranges of tokens in parts: cut where tablets end, read one after the other until that takes long, then side by side, and put
//! together in the order of tokens. So are read
//!
//! - aggregates of everything that are merged without a difference ([`crate::analysis::selection::Selection::is_mergeable`]), here;
//! - rows that are filtered, and groups, which never span partitions ([`super::row_parts`]).
//!
//! A part of another node's tablet is read there ([`PartOwners`]), and here if that fails.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use helenus_cql::error::CqlError;
use tokio::sync::Semaphore;

use super::SelectExecution;
use super::output::ResultCollector;
use super::part_owners::PartOwners;
use super::part_ranges::Ring;
use super::part_work::{Part, PartResult, PartWork};
use super::tombstones::TombstoneCount;
use crate::analysis::restrictions::Filter;
use crate::analysis::restrictions::token::TokenBounds;
use crate::failure::ExecutionError;
use crate::limits::scope;
use crate::rows::RowsWanted;
use crate::storage::ExecutionContext;
use crate::trace;

/// How long parts are read one after the other: what takes no longer is not worth other tasks.
pub(super) const ALONE: Duration = Duration::from_millis(2);
/// Parts for each that are read at a time, so that all end at about the same time.
const PARTS_EACH: usize = 4;
/// Parts that are under way or wait for their turn, where several nodes read them: neighbours may be the same node's.
const UNDER_WAY_MAX: usize = 64;

impl SelectExecution<'_> {
    /// Reads the rows of a range of tokens in parts. False if they must be read one after the other.
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
        let reader = PartReader {
            context,
            work: &work,
            owners: owners.as_ref(),
            places: Semaphore::new(at_a_time),
            under_way: match owners.is_some() {
                true => UNDER_WAY_MAX,
                false => at_a_time,
            },
        };
        if work.gives_rows() {
            let parts = ring.cut(self.begin_at_resume(bounds), parts_min);
            self.read_row_parts(&reader, parts, output, tombstones).await?;
            return Ok(true);
        }
        let mut parts = ring.cut(bounds, parts_min).into_iter().map(Part::whole);
        let mut merge = |result| self.merge_part(result, output, tombstones);
        let began = Instant::now();
        while (is_alone || began.elapsed() < ALONE)
            && let Some(part) = parts.next()
        {
            merge(reader.read(part).await?)?;
        }
        if parts.len() == 0 {
            return Ok(true);
        }
        scope::step_aside().await;
        let results = stream::iter(parts.map(|part| reader.read_aside(part)));
        let mut results = results.buffered(reader.under_way);
        while let Some(result) = results.next().await {
            merge(result?)?;
            self.renew_time();
        }
        Ok(true)
    }

    /// What comes next of an aggregate has a time of its own.
    pub(super) fn renew_time(&self) {
        if self.plan.timeout().is_none() {
            scope::renew_time(self.context.limits().timeouts.range_request_timeout);
        }
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
            PartResult::Page(..) => return Err(not_expected()),
        };
        tombstones.add(self.plan, met)
    }
}

/// Parts come to something else than what was asked of them.
pub(super) fn not_expected() -> CqlError {
    CqlError::Server("a part of the read has come to something else than was asked".to_owned())
}

/// Reads parts of one execution.
pub(super) struct PartReader<'r> {
    context: &'r Arc<ExecutionContext>,
    work: &'r PartWork,
    /// Who reads those of other nodes.
    owners: Option<&'r PartOwners<'r>>,
    /// For parts that are read here.
    places: Semaphore,
    /// Parts that may be under way or wait for their turn.
    pub under_way: usize,
}

impl PartReader<'_> {
    async fn ask(&self, part: &Part) -> Result<Option<PartResult>, ExecutionError> {
        match self.owners {
            Some(owners) => owners.ask(part).await,
            None => Ok(None),
        }
    }

    /// Reads a part, in this task if it is read here.
    pub async fn read(&self, part: Part) -> Result<PartResult, ExecutionError> {
        match self.ask(&part).await? {
            Some(result) => Ok(result),
            None => self.work.run(self.context, part).await,
        }
    }

    /// Reads a part beside others.
    pub fn read_aside(&self, part: Part) -> BoxFuture<'_, Result<PartResult, ExecutionError>> {
        Box::pin(async move {
            if let Some(result) = self.ask(&part).await? {
                return Ok(result);
            }
            let _place = self.places.acquire().await;
            self.work.spawn(self.context, part).await
        })
    }
}
