//! Reads of ranges of tokens in parts, which end where tablets end. The parts are read one after another at first, and concurrently if that
//! takes long. The results are combined in the order of tokens. This applies to
//!
//! - aggregates over everything whose partial results can be merged exactly ([`crate::analysis::selection::Selection::is_mergeable`]), in
//!   this module;
//! - filtered rows, and groups, which never span partitions ([`super::row_parts`]).
//!
//! Parts of another node's tablets are read on that node ([`PartOwners`]), or on this one if that fails.

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
use crate::rows::RowSelection;
use crate::storage::ExecutionContext;
use crate::trace;

/// Time for which parts are read one after another. Shorter reads are not worth the cost of other tasks.
pub(super) const ALONE: Duration = Duration::from_millis(2);
/// Number of parts for each concurrent reader, so that all readers end at about the same time.
const PARTS_EACH: usize = 4;
/// Maximum number of parts that are being read or wait, if several nodes read them. It is large because neighbouring parts may belong to
/// the same node.
const UNDER_WAY_MAX: usize = 64;

impl SelectExecution<'_> {
    /// Reads the rows of a range of tokens in parts. Returns false if the range must be read as a whole.
    pub(super) async fn read_parts(
        &self,
        bounds: TokenBounds,
        wanted: &RowSelection,
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
        // A trace only shows the steps of one task.
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

    /// Restarts the time limit for the following rows of an aggregate.
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

/// Returns the error for a part whose result is of the wrong kind.
pub(super) fn not_expected() -> CqlError {
    CqlError::Server("a part of the read has another kind of result than requested".to_owned())
}

/// The reader of one execution's parts.
pub(super) struct PartReader<'r> {
    context: &'r Arc<ExecutionContext>,
    work: &'r PartWork,
    /// The other nodes. `None` if this node reads all parts.
    owners: Option<&'r PartOwners<'r>>,
    /// Permits for parts that this node reads.
    places: Semaphore,
    /// Maximum number of parts that are being read or wait.
    pub under_way: usize,
}

impl PartReader<'_> {
    async fn request(&self, part: &Part) -> Result<Option<PartResult>, ExecutionError> {
        match self.owners {
            Some(owners) => owners.request(part).await,
            None => Ok(None),
        }
    }

    /// Reads a part. If this node reads it, it does so in the current task.
    pub async fn read(&self, part: Part) -> Result<PartResult, ExecutionError> {
        match self.request(&part).await? {
            Some(result) => Ok(result),
            None => self.work.run(self.context, part).await,
        }
    }

    /// Reads a part concurrently with others.
    pub fn read_aside(&self, part: Part) -> BoxFuture<'_, Result<PartResult, ExecutionError>> {
        Box::pin(async move {
            if let Some(result) = self.request(&part).await? {
                return Ok(result);
            }
            let _place = self.places.acquire().await;
            self.work.spawn(self.context, part).await
        })
    }
}
