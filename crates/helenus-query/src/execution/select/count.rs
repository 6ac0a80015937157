//! The function `count(*)` over a range of tokens. Rows are counted without decoding them.

use std::ops::Bound;
use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_row::header::PartitionHeader;
use helenus_row::key::{split_key, token_of};
use helenus_row::read::row_state;
use helenus_row::{KeyKind, RowError};
use helenus_tablet::TokenRange;

use super::partition_reader::AGGREGATE_PAGE_ROWS;
use crate::limits::scope;
use crate::rows::{RowCounts, RowSelection, corrupt, corrupt_key};
use crate::schema::Table;
use crate::storage::ExecutionContext;
use crate::storage::row_reads::RangeCursor;

/// Rows between two checkpoints, which take some ten microseconds.
const STEP_ROWS: usize = 128;

/// The rows to count.
#[derive(Clone)]
pub(crate) struct CountRequest {
    pub table: Arc<Table>,
    pub now_s: i64,
    /// True if a partition with static content and without rows counts as one row.
    pub counts_static_alone: bool,
    /// True if each [`AGGREGATE_PAGE_ROWS`] rows get the time limit of a range read.
    pub renews_time: bool,
}

/// The result of counting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Number of rows of the answer.
    pub rows: u64,
    /// Counts of all rows that were read.
    pub met: RowCounts,
}

impl CountRequest {
    /// Counts the rows of the partitions with these tokens.
    pub async fn run(&self, context: &ExecutionContext, tokens: TokenRange) -> Result<Counted, CqlError> {
        let (first, last) = (Bound::Included(tokens.first), Bound::Included(tokens.last));
        let mut cursor = RangeCursor::new(&self.table, first, last, RowSelection::all());
        let mut counter = RowCounter::new(self);
        let failure_threshold = context.limits().tombstone_failure_threshold;
        let (mut has_more, mut timed) = (true, 0);
        while has_more && counter.counted.met.tombstones <= failure_threshold {
            let mut steps = 0;
            let mut failed = None;
            has_more = cursor
                .visit(context, &mut |key, packed| {
                    failed = counter.see(key, packed).err();
                    steps += 1;
                    failed.is_none() && steps < STEP_ROWS
                })
                .await?;
            if let Some(error) = failed {
                return Err(error);
            }
            timed += steps;
            if timed >= AGGREGATE_PAGE_ROWS && self.renews_time {
                timed = 0;
                scope::renew_time(context.limits().timeouts.range_request_timeout);
            }
            scope::hurry();
            scope::checkpoint().await?;
        }
        counter.leave_partition();
        Ok(counter.counted)
    }
}

/// The state of counting rows in order.
struct RowCounter<'r> {
    request: &'r CountRequest,
    /// Key prefix of the current partition, and below its header.
    prefix: Vec<u8>,
    header: Option<PartitionHeader>,
    has_rows: bool,
    has_static: bool,
    counted: Counted,
}

impl<'r> RowCounter<'r> {
    fn new(request: &'r CountRequest) -> RowCounter<'r> {
        RowCounter {
            request,
            prefix: Vec::new(),
            header: None,
            has_rows: false,
            has_static: false,
            counted: Counted::default(),
        }
    }

    fn see(&mut self, key: &[u8], packed: &[u8]) -> Result<(), CqlError> {
        let parts = split_key(key).map_err(corrupt_key)?;
        if parts.partition_prefix != self.prefix {
            self.leave_partition();
            self.prefix.clear();
            self.prefix.extend_from_slice(parts.partition_prefix);
            self.counted.met.last_token = token_of(key).or(self.counted.met.last_token);
        }
        self.see_in_partition(parts.kind, parts.clustering, packed)
            .map_err(corrupt)
    }

    fn see_in_partition(&mut self, kind: KeyKind, clustering: &[u8], packed: &[u8]) -> Result<(), RowError> {
        let CountRequest { table, now_s, .. } = self.request;
        let header = self.header.as_ref();
        match kind {
            KeyKind::Header => {
                self.header = Some(PartitionHeader::decode(packed)?);
            }
            KeyKind::Static if self.request.counts_static_alone => {
                let shadow = header.and_then(|header| header.deletion);
                self.has_static = row_state(packed, shadow, &table.cell_rules, *now_s)?.is_live;
            }
            KeyKind::Static => {}
            KeyKind::Row => {
                let shadow = header.and_then(|header| header.deletion_at(clustering));
                let state = row_state(packed, shadow, &table.cell_rules, *now_s)?;
                self.has_rows |= state.is_live;
                self.counted.rows += u64::from(state.is_live);
                self.counted.met.add(state);
            }
        }
        Ok(())
    }

    fn leave_partition(&mut self) {
        self.counted.rows += u64::from(self.has_static && !self.has_rows);
        (self.has_rows, self.has_static) = (false, false);
        self.header = None;
    }
}
