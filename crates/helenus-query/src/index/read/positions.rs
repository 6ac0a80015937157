//! Positions in a hidden table: the entries of base rows, and the entries after the row with which a page ended.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::ClusteringRange;
use helenus_row::key::TupleBound;

use crate::analysis::restrictions::bounds::invalid_key;
use crate::analysis::restrictions::token::TokenBounds;
use crate::analysis::select::paging::PagingState;
use crate::index::entries::entry_clustering;
use crate::rows::row_selection::rest_range;
use crate::rows::{PartitionKey, RowSelection};
use crate::schema::{Index, Table};

/// The base rows that an index read may return.
#[derive(Clone, Copy)]
pub(crate) enum BaseRange<'a> {
    Tokens(TokenBounds),
    Partition(&'a PartitionKey),
}

/// Returns the clusterings of a value's entries for base rows within the range.
pub(super) fn entry_slices(index: &Index, range: BaseRange<'_>) -> Result<RowSelection, CqlError> {
    let layout = &index.table.layout;
    let ranges = match range {
        BaseRange::Partition(key) => {
            vec![
                layout
                    .prefix_range(&entry_clustering(key, &[], true))
                    .map_err(invalid_key)?,
            ]
        }
        BaseRange::Tokens(bounds) => {
            let lower = token_bound(&bounds.start);
            let upper = token_bound(&bounds.end);
            layout
                .tuple_ranges::<Bytes>(&[], lower.as_ref(), upper.as_ref())
                .map_err(invalid_key)?
        }
    };
    Ok(RowSelection::Slices(ranges.into()))
}

fn token_bound(bound: &Bound<i64>) -> Option<TupleBound> {
    let (token, inclusive) = match bound {
        Bound::Included(token) => (token, true),
        Bound::Excluded(token) => (token, false),
        Bound::Unbounded => return None,
    };
    Some(TupleBound {
        values: vec![Bytes::copy_from_slice(&token.to_be_bytes())],
        inclusive,
    })
}

/// Returns the clusterings of a value's entries for rows after the last row of the last page.
pub(super) fn rest_of_entries(
    table: &Table,
    index: &Index,
    is_by_partition: bool,
    slices: &RowSelection,
    state: &PagingState,
) -> Result<RowSelection, CqlError> {
    match rest_start(table, index, is_by_partition, state)? {
        Some(start) => Ok(intersect(slices, &ClusteringRange { start, end: None })),
        None => Ok(RowSelection::Slices(Arc::new([]))),
    }
}

/// Returns the least clustering of a value's entries after the last row. `None` if there are no such entries. If the last partition has
/// rows left, its entry counts as after the row.
pub(super) fn rest_start(
    table: &Table,
    index: &Index,
    is_by_partition: bool,
    state: &PagingState,
) -> Result<Option<Bytes>, CqlError> {
    Ok(match last_entry(table, index, is_by_partition, state)? {
        LastEntry::Row(clustering) => Some(rest_range(&clustering, false).start),
        LastEntry::Partition(range) => Some(range.start),
        LastEntry::DonePartition(range) => range.end,
    })
}

/// Returns the end of the clusterings of a value's entries before the last row. `None` if all entries are before it. If the last partition
/// has rows left, its entry counts as before the row.
pub(super) fn rest_end(
    table: &Table,
    index: &Index,
    is_by_partition: bool,
    state: &PagingState,
) -> Result<Option<Bytes>, CqlError> {
    Ok(match last_entry(table, index, is_by_partition, state)? {
        LastEntry::Row(clustering) => Some(clustering),
        LastEntry::Partition(range) => range.end,
        LastEntry::DonePartition(range) => Some(range.start),
    })
}

/// The end of the last page among the entries of a value.
enum LastEntry {
    /// The encoded clustering of the last row's entry.
    Row(Bytes),
    /// The entries of the last partition, which has rows left.
    Partition(ClusteringRange),
    /// The entries of the last partition, which has no rows left.
    DonePartition(ClusteringRange),
}

fn last_entry(
    table: &Table,
    index: &Index,
    is_by_partition: bool,
    state: &PagingState,
) -> Result<LastEntry, CqlError> {
    let layout = &index.table.layout;
    let key = PartitionKey::new(state.partition_key.clone());
    let of_partition = || {
        layout
            .prefix_range(&entry_clustering(&key, &[], true))
            .map_err(invalid_key)
    };
    let Some(clustering) = &state.clustering else {
        return of_partition().map(LastEntry::DonePartition);
    };
    if is_by_partition {
        return of_partition().map(LastEntry::Partition);
    }
    let values = table.layout.decode_clustering(clustering).map_err(invalid_key)?;
    let last = layout
        .encode_clustering(&entry_clustering(&key, &values, false))
        .map_err(invalid_key)?;
    Ok(LastEntry::Row(last.bytes))
}

fn intersect(slices: &RowSelection, rest: &ClusteringRange) -> RowSelection {
    match slices {
        RowSelection::Slices(ranges) => RowSelection::Slices(
            ranges
                .iter()
                .map(|range| range.intersect(rest))
                .filter(|range| !range.is_empty())
                .collect(),
        ),
        names => names.clone(),
    }
}
