//! The bounds of deleted ranges as clustering values.

use bytes::Bytes;
use helenus_row::KeyLayout;

use crate::analysis::restrictions::RangeBounds;

/// A bound: a prefix of clustering values, and true if the rows with that prefix are in the range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    pub values: Vec<Bytes>,
    pub is_inclusive: bool,
}

/// Returns the first bound of a range that starts at this position.
pub(super) fn start_bound(bounds: RangeBounds, layout: &KeyLayout, position: &Bytes) -> Bound {
    let before = || decoded(layout, position).map(|values| bound(values, true));
    let after = || {
        layout
            .decode_successor(position)
            .map(|values| bound(values, false))
    };
    let found = match bounds.is_start_exclusive {
        true => after().or_else(before),
        false => before().or_else(after),
    };
    found.unwrap_or(bound(Vec::new(), true))
}

/// Returns the last bound of a range that ends before this position. `None` is the end of the partition.
pub(super) fn end_bound(bounds: RangeBounds, layout: &KeyLayout, position: Option<&Bytes>) -> Bound {
    let Some(position) = position else {
        return bound(Vec::new(), true);
    };
    let before = || decoded(layout, position).map(|values| bound(values, false));
    let after = || {
        layout
            .decode_successor(position)
            .map(|values| bound(values, true))
    };
    let found = match bounds.is_end_exclusive {
        true => before().or_else(after),
        false => after().or_else(before),
    };
    found.unwrap_or(bound(Vec::new(), true))
}

fn decoded(layout: &KeyLayout, position: &Bytes) -> Option<Vec<Bytes>> {
    layout.decode_clustering(position).ok()
}

fn bound(values: Vec<Bytes>, is_inclusive: bool) -> Bound {
    Bound { values, is_inclusive }
}

#[cfg(test)]
#[path = "bounds_tests.rs"]
mod tests;
