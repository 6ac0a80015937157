//! Where in a hidden table the entries of base rows lie, and those behind the row that a page ended with.

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
use crate::rows::wanted::rest_range;
use crate::rows::{PartitionKey, RowsWanted};
use crate::schema::{Index, Table};

/// Which base rows an index read may give.
#[derive(Clone, Copy)]
pub(crate) enum BaseRange<'a> {
    Tokens(TokenBounds),
    Partition(&'a PartitionKey),
}

/// Returns the entries of a value for base rows within the range.
pub(super) fn entry_slices(index: &Index, range: BaseRange<'_>) -> Result<RowsWanted, CqlError> {
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
    Ok(RowsWanted::Slices(ranges.into()))
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

/// Those of a value's entries that are for rows behind the one that the last page ended with.
pub(super) fn rest_of_entries(
    table: &Table,
    index: &Index,
    is_by_partition: bool,
    slices: &RowsWanted,
    state: &PagingState,
) -> Result<RowsWanted, CqlError> {
    match rest_start(table, index, is_by_partition, state)? {
        Some(start) => Ok(intersect(slices, &ClusteringRange { start, end: None })),
        None => Ok(RowsWanted::Slices(Arc::new([]))),
    }
}

/// Returns the least clustering of a value's entries behind that row; none if there are none. The entry of a partition that is not done
/// counts as behind.
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

/// Returns the clustering at which a value's entries before that row end; none if all of them are before it. The entry of a partition that
/// is not done counts as before.
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

/// Where the last page ended among the entries of a value.
enum LastEntry {
    /// The encoded clustering of its row's entry.
    Row(Bytes),
    /// The entries of its partition, of which rows are left.
    Partition(ClusteringRange),
    /// The same where none is left.
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

fn intersect(slices: &RowsWanted, rest: &ClusteringRange) -> RowsWanted {
    match slices {
        RowsWanted::Slices(ranges) => RowsWanted::Slices(
            ranges
                .iter()
                .map(|range| range.intersect(rest))
                .filter(|range| !range.is_empty())
                .collect(),
        ),
        names => names.clone(),
    }
}
