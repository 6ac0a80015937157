//! The bounds of deleted ranges, as a statement has them.

use helenus_row::Order;

use super::StatementRestrictions;
use super::restriction::{SliceBound, Test};

/// Bounds of the ranges that a statement deletes, in clustering order. Two bounds can be the same position in the store: for an `int`,
/// `> 1` and `>= 2`. These fields say which of them the statement has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RangeBounds {
    pub is_start_exclusive: bool,
    pub is_end_exclusive: bool,
}

impl StatementRestrictions {
    /// Returns the bounds of the ranges that a DELETE with these restrictions deletes.
    pub(crate) fn deleted_bounds(&self) -> RangeBounds {
        let slice = self
            .clustering
            .iter()
            .find_map(|restriction| match &restriction.test {
                Test::Slice(slice) => Some((restriction, slice)),
                _ => None,
            });
        let Some((restriction, slice)) = slice else {
            return RangeBounds::default();
        };
        let is_exclusive =
            |bound: &Option<SliceBound>| bound.as_ref().is_some_and(|bound| !bound.is_inclusive);
        let first = restriction.columns.first();
        let first = first.and_then(|place| self.table.columns.get(*place));
        let (start, end) = match first.is_some_and(|column| column.order == Order::Desc) {
            true => (&slice.end, &slice.start),
            false => (&slice.start, &slice.end),
        };
        RangeBounds {
            is_start_exclusive: is_exclusive(start),
            is_end_exclusive: is_exclusive(end),
        }
    }
}
