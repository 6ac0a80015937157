//! A slice of clustering columns with the values of one request, and its ranges of rows.

use std::cmp::Ordering;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::value;
use helenus_row::key::TupleBound;
use helenus_row::{ClusteringRange, KeyError, KeyLayout, Order};

use super::RangeBounds;
use super::restriction::{Restriction, Slice, SliceBound, complete, null_column};
use crate::analysis::EvalContext;
use crate::schema::Table;

/// One side of a slice.
pub(crate) enum Side {
    Null,
    Open,
    Bound(TupleBound),
}

impl Side {
    /// Returns the bound. `None` if the side has no bound.
    fn as_bound(&self) -> Option<&TupleBound> {
        match self {
            Side::Bound(bound) => Some(bound),
            Side::Null | Side::Open => None,
        }
    }
}

/// A slice with its values. Lower and upper follow the order of values, not the order of storage.
pub(crate) struct BoundSlice<'r> {
    pub restriction: &'r Restriction,
    slice: &'r Slice,
    lower: Side,
    upper: Side,
    /// Tuples whose rows are not in the slice.
    excluded: Vec<Vec<Bytes>>,
}

/// A range of rows, with the kind of its bounds.
pub(crate) type BoundedRange = (ClusteringRange, RangeBounds);

impl<'r> BoundSlice<'r> {
    pub(crate) fn bind(
        table: &Table,
        restriction: &'r Restriction,
        slice: &'r Slice,
        ctx: &EvalContext<'_>,
    ) -> Result<BoundSlice<'r>, CqlError> {
        let (lower, upper) = match (&slice.start, &slice.end) {
            (Some(first), Some(second)) if slice.is_between => {
                bind_between(table, restriction, [first, second], ctx)?
            }
            (start, end) => (
                bind_bound(table, restriction, start.as_ref(), ctx)?,
                bind_bound(table, restriction, end.as_ref(), ctx)?,
            ),
        };
        let mut excluded = Vec::new();
        for exclusion in &slice.excluded {
            excluded.extend(exclusion.bind(table, ctx)?);
        }
        Ok(BoundSlice {
            restriction,
            slice,
            lower,
            upper,
            excluded,
        })
    }

    /// Returns the sides in the order of storage. Null is stored before every value, even in a descending column. Nothing is stored before
    /// a null.
    fn ends(&self, table: &Table) -> (&Side, &Side) {
        let column = table.columns.get(self.restriction.first_column());
        match column.is_some_and(|column| column.order == Order::Desc) {
            true => (&self.upper, &self.lower),
            false => (&self.lower, &self.upper),
        }
    }

    /// Returns true if the slice ends with a null in the order of storage.
    pub(crate) fn ends_with_null(&self, table: &Table) -> bool {
        matches!(self.ends(table).1, Side::Null)
    }

    pub(crate) fn has_null(&self) -> bool {
        matches!(self.lower, Side::Null) || matches!(self.upper, Side::Null)
    }

    /// Returns true if the slice ends with a null, and begins with a value. Also true if both sides are null, and one of them is exclusive.
    pub(crate) fn is_surely_empty(&self, table: &Table) -> bool {
        let is_inclusive = |bound: Option<&SliceBound>| bound.is_some_and(|bound| bound.is_inclusive);
        match self.ends(table) {
            (Side::Null, Side::Null) => {
                !is_inclusive(self.slice.start.as_ref()) || !is_inclusive(self.slice.end.as_ref())
            }
            (first, Side::Null) => matches!(first, Side::Bound(_)),
            _ => false,
        }
    }

    /// Returns true if the values of the upper bound are greater than those of the lower bound, even if no value fits between them.
    pub(crate) fn rises(&self, table: &Table) -> bool {
        let (Side::Bound(lower), Side::Bound(upper)) = (&self.lower, &self.upper) else {
            return false;
        };
        compare(table, self.restriction, &lower.values, &upper.values).is_lt()
    }

    /// Adds the ranges of the rows that begin with `prefix` and are in the slice.
    pub(crate) fn add_ranges(
        &self,
        layout: &KeyLayout,
        prefix: &[Bytes],
        bounds: RangeBounds,
        ranges: &mut Vec<BoundedRange>,
    ) -> Result<(), KeyError> {
        let whole = layout.tuple_ranges(prefix, self.lower.as_bound(), self.upper.as_bound())?;
        let mut holes = Vec::with_capacity(self.excluded.len());
        for tuple in &self.excluded {
            let row: Vec<&Bytes> = prefix.iter().chain(tuple).collect();
            holes.push(layout.prefix_range(&row)?);
        }
        holes.sort_by(|a, b| a.start.cmp(&b.start));
        for range in whole {
            cut(range, &holes, bounds, ranges);
        }
        Ok(())
    }
}

/// Adds the parts of a range that lie outside of the holes, which are ascending. A bound at a hole is exclusive.
fn cut(
    range: ClusteringRange,
    holes: &[ClusteringRange],
    bounds: RangeBounds,
    parts: &mut Vec<BoundedRange>,
) {
    let (mut rest, mut rest_bounds) = (range, bounds);
    for hole in holes {
        let is_before = rest.end.as_ref().is_some_and(|end| *end <= hole.start);
        let is_behind = hole.end.as_ref().is_some_and(|end| *end <= rest.start);
        if is_before || is_behind {
            continue;
        }
        let part = ClusteringRange {
            start: rest.start.clone(),
            end: Some(hole.start.clone()),
        };
        let part_bounds = RangeBounds {
            is_end_exclusive: true,
            ..rest_bounds
        };
        parts.push((part, part_bounds));
        let Some(end) = hole.end.clone() else { return };
        rest.start = end;
        rest_bounds.is_start_exclusive = true;
    }
    parts.push((rest, rest_bounds));
}

fn compare(table: &Table, restriction: &Restriction, a: &[Bytes], b: &[Bytes]) -> Ordering {
    let columns = restriction.columns.iter();
    let compared = columns
        .filter_map(|place| table.columns.get(*place))
        .zip(a.iter().zip(b))
        .map(|(column, (a, b))| value::compare(&column.ty, a, b));
    compared.fold(Ordering::Equal, Ordering::then)
}

/// Binds the values of BETWEEN, and sorts them.
fn bind_between(
    table: &Table,
    restriction: &Restriction,
    bounds: [&SliceBound; 2],
    ctx: &EvalContext<'_>,
) -> Result<(Side, Side), CqlError> {
    let columns = &restriction.columns;
    let [first, second] = bounds.map(|bound| {
        let tuple = bound.tuple.bind(table, columns, ctx)?;
        let values = complete(tuple, table, columns, restriction.is_multi)?;
        Ok(TupleBound {
            values,
            inclusive: true,
        })
    });
    let (first, second) = (first?, second?);
    Ok(
        match compare(table, restriction, &first.values, &second.values).is_gt() {
            true => (Side::Bound(second), Side::Bound(first)),
            false => (Side::Bound(first), Side::Bound(second)),
        },
    )
}

/// Binds the values of one side of a slice.
fn bind_bound(
    table: &Table,
    restriction: &Restriction,
    bound: Option<&SliceBound>,
    ctx: &EvalContext<'_>,
) -> Result<Side, CqlError> {
    let Some(bound) = bound else {
        return Ok(Side::Open);
    };
    let tuple = bound.tuple.bind(table, &restriction.columns, ctx)?;
    let mut values = Vec::with_capacity(tuple.len());
    for (at, value) in tuple.into_iter().enumerate() {
        match value {
            Some(value) => values.push(value),
            None if !restriction.is_multi => return Ok(Side::Null),
            None => {
                let column = restriction.columns.get(at..).unwrap_or(&restriction.columns);
                return Err(null_column(table, column));
            }
        }
    }
    Ok(Side::Bound(TupleBound {
        values,
        inclusive: bound.is_inclusive,
    }))
}

#[cfg(test)]
#[path = "bound_slice_tests.rs"]
mod tests;
