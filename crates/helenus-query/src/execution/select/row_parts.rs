//! Result rows from ranges of tokens that are read in parts: filtered or grouped rows.
//!
//! The rows of a page are in order. So a part that is read concurrently with earlier ones may be read in vain. The number of concurrent
//! parts depends on the rows of the earlier parts: one if the page is likely to be full after it, and all if no rows were found so far
//! (Cassandra's `RangeCommandIterator.computeConcurrencyFactor`).

use std::ops::Bound;
use std::time::Instant;

use futures::future::BoxFuture;
use futures::stream::{FuturesOrdered, StreamExt};
use helenus_row::murmur3_token;
use helenus_tablet::TokenRange;

use super::SelectExecution;
use super::output::{ResultCollector, ResultPage};
use super::part_work::{Part, PartResult};
use super::parts::{ALONE, PartReader, not_expected};
use super::size::ResultSize;
use super::tombstones::TombstoneCount;
use crate::analysis::restrictions::token::TokenBounds;
use crate::analysis::select::plan::Aggregation;
use crate::failure::ExecutionError;
use crate::limits::scope;
use crate::rows::RowCounts;

/// A part with its result rows.
type PartRead = Result<(Part, ResultPage, RowCounts), ExecutionError>;

impl SelectExecution<'_> {
    /// Returns the bounds of the tokens that remain to be read.
    pub(super) fn begin_at_resume(&self, bounds: TokenBounds) -> TokenBounds {
        match &self.resume {
            Some(state) => TokenBounds {
                start: Bound::Included(murmur3_token(&state.partition_key)),
                ..bounds
            },
            None => bounds,
        }
    }

    /// Reads result rows from the parts, which are in the order of tokens, until no more rows fit.
    pub(super) async fn read_row_parts(
        &self,
        reader: &PartReader<'_>,
        parts: Vec<TokenRange>,
        output: &mut ResultCollector<'_>,
        tombstones: &mut TombstoneCount,
    ) -> Result<(), ExecutionError> {
        let mut resume = self.resume.clone();
        let mut parts = parts.into_iter().map(|tokens| Part {
            resume: resume.take(),
            ..Part::whole(tokens)
        });
        let mut size = ResultSize::new(&self.context.limits);
        let mut pace = Pace::default();
        let mut under_way = FuturesOrdered::new();
        let began = Instant::now();
        let mut is_aside = false;
        loop {
            if !is_aside && began.elapsed() >= ALONE {
                is_aside = true;
                scope::step_aside().await;
            }
            let rows_max = output.rows_left();
            let at_a_time = match is_aside {
                true => pace.parts_at_a_time(rows_max, reader.under_way),
                false => 1,
            };
            while under_way.len() < at_a_time
                && let Some(part) = parts.next()
            {
                under_way.push_back(read(reader, Part { rows_max, ..part }, at_a_time > 1));
            }
            let Some(result) = under_way.next().await else {
                return Ok(());
            };
            let (part, page, met) = result?;
            if page.content.row_count() > rows_max as usize {
                // The parts before it have used the room for which this one was read.
                under_way.push_front(read(reader, Part { rows_max, ..part }, false));
                continue;
            }
            tombstones.add(self.plan, met)?;
            pace.note(&page);
            let rest = page.is_cut.then(|| page.last.clone()).flatten();
            let is_full = output.append(page);
            size.reserve(output.len_bytes()).await?;
            if is_full {
                return Ok(());
            }
            if let Some(last) = rest {
                let part = Part {
                    tokens: TokenRange {
                        first: murmur3_token(&last.partition_key),
                        ..part.tokens
                    },
                    rows_max: output.rows_left(),
                    resume: Some(last),
                };
                under_way.push_front(read(reader, part, is_aside));
            }
            if !matches!(self.plan.aggregation, Aggregation::None) {
                self.renew_time();
            }
        }
    }
}

/// Reads a part. If it is read concurrently with others, it gets a task of its own.
fn read<'r>(reader: &'r PartReader<'_>, part: Part, is_aside: bool) -> BoxFuture<'r, PartRead> {
    Box::pin(async move {
        let result = match is_aside {
            true => reader.read_aside(part.clone()).await?,
            false => reader.read(part.clone()).await?,
        };
        match result {
            PartResult::Page(page, met) => Ok((part, page, met)),
            PartResult::Counted(_) | PartResult::Collected(..) => Err(not_expected().into()),
        }
    })
}

/// Rows and parts so far.
#[derive(Default)]
struct Pace {
    rows: u64,
    /// Number of parts that were read to the end.
    parts: u64,
}

impl Pace {
    fn note(&mut self, page: &ResultPage) {
        self.rows += page.content.row_count() as u64;
        self.parts += u64::from(!page.is_cut);
    }

    /// Returns the number of parts that probably contain that many rows.
    fn parts_at_a_time(&self, rows: u32, parts_max: usize) -> usize {
        if self.parts == 0 {
            return 1;
        }
        let parts = (u64::from(rows) * self.parts)
            .checked_div(self.rows)
            .map_or(parts_max, |parts| usize::try_from(parts).unwrap_or(usize::MAX));
        (parts + 1).min(parts_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(rows: u64, parts: u64) -> Pace {
        Pace { rows, parts }
    }

    #[test]
    fn as_many_parts_are_read_as_the_rows_seem_to_lie_in() {
        assert_eq!(pace(0, 0).parts_at_a_time(5000, 64), 1);
        assert_eq!(pace(9000, 0).parts_at_a_time(5000, 64), 1);
        assert_eq!(pace(0, 1).parts_at_a_time(5000, 64), 64);
        assert_eq!(pace(10, 1).parts_at_a_time(100, 64), 11);
        assert_eq!(pace(10, 4).parts_at_a_time(100, 64), 41);
        assert_eq!(pace(10_000, 2).parts_at_a_time(100, 64), 1);
        assert_eq!(pace(1, u64::from(u32::MAX)).parts_at_a_time(u32::MAX, 64), 64);
    }
}
