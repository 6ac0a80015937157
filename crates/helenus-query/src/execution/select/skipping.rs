//! The choice of rows that a SELECT skips where they are stored ([`FittingRows`]).

use super::SelectExecution;
use super::partition_reader::AGGREGATE_PAGE_ROWS;
use crate::analysis::restrictions::Filter;
use crate::analysis::restrictions::packed_filter::PackedFilter;
use crate::analysis::select::plan::Aggregation;
use crate::execution::sampling::samples_ranges;
use crate::rows::RowSelection;
use crate::storage::row_reads::range_cursor::fitting::FittingRows;

impl SelectExecution<'_> {
    /// Returns the filter by which rows of a range are skipped where they are stored. `None` if each row is decoded.
    pub(super) fn fitting_rows(&self, filter: &Filter, wanted: &RowSelection) -> Option<FittingRows> {
        let plan = self.plan;
        let packed = self.packed_filter(filter)?;
        if packed.is_empty() && wanted.is_all() {
            return None;
        }
        let renews_time = !matches!(plan.aggregation, Aggregation::None) && plan.timeout().is_none();
        let rows = FittingRows::new(plan.table.clone(), packed, wanted.clone());
        Some(
            rows.with_static_content(self.finds_static(filter))
                .renewing_time(renews_time.then_some(AGGREGATE_PAGE_ROWS)),
        )
    }

    /// Returns the tests of packed rows. `None` if each row must be decoded, because of the filter, the table, or the sampling of partitions.
    pub(super) fn packed_filter(&self, filter: &Filter) -> Option<PackedFilter> {
        let table = &self.plan.table;
        match table.is_static_compact() || samples_ranges(&self.context.metrics.sampling) {
            true => None,
            false => PackedFilter::new(table, filter, self.now_s),
        }
    }

    /// Returns true if a partition may be part of the result for its static content alone.
    pub(super) fn finds_static(&self, filter: &Filter) -> bool {
        let plan = self.plan;
        plan.table.has_static() && plan.returns_static_alone() && filter.row.is_empty()
    }
}

#[cfg(test)]
#[path = "skipping_tests.rs"]
mod tests;
