//! The function `count(*)` over a range of tokens. Rows are counted without decoding them.

use std::ops::Bound;
use std::sync::Arc;

use helenus_cql::error::CqlError;
use helenus_tablet::TokenRange;

use super::partition_reader::AGGREGATE_PAGE_ROWS;
use crate::analysis::restrictions::packed_filter::PackedFilter;
use crate::rows::{RowCounts, RowSelection};
use crate::schema::Table;
use crate::storage::ExecutionContext;
use crate::storage::row_reads::RangeCursor;
use crate::storage::row_reads::range_cursor::fitting::FittingRows;

/// The rows to count.
pub(crate) struct CountRequest {
    pub table: Arc<Table>,
    pub wanted: RowSelection,
    /// The whole filter of the statement.
    pub filter: PackedFilter,
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
        let mut cursor = RangeCursor::new(&self.table, first, last, self.wanted.clone());
        let rows = FittingRows::new(self.table.clone(), self.filter.clone(), self.wanted.clone());
        let mut rows = rows
            .with_static_content(self.counts_static_alone)
            .renewing_time(self.renews_time.then_some(AGGREGATE_PAGE_ROWS));
        let counted = cursor.count_fitting(context, &mut rows).await?;
        Ok(Counted {
            rows: counted,
            met: rows.take_skipped(),
        })
    }
}
