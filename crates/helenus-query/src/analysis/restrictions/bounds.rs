//! Binding of restrictions to the values of one request. The results are partition keys, tokens and ranges of clusterings.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_cql::value;
use helenus_row::key::compose_partition_key;
use helenus_row::{ClusteringRange, KeyError};

use super::bound_slice::{BoundSlice, BoundedRange};
use super::restriction::{BoundTuple, Restriction, Test, column_name, null_column};
use super::token::TokenBounds;
use super::{RangeBounds, StatementRestrictions, is_filter};
use crate::analysis::EvalContext;
use crate::rows::{PartitionKey, RowSelection};
use crate::schema::Table;

/// Maximum number of combinations of the IN values of several columns. A few thousand bytes of text could request billions. The values of
/// one column are not limited: they take no more memory than a multiple of the request.
const COMBINATIONS_MAX: usize = 250_000;

/// Maximum length in bytes of a serialized partition key (`FBUtilities.MAX_UNSIGNED_SHORT`).
const KEY_LEN_MAX: usize = 65_535;

/// Returns Cassandra's error for a value that can't be a clustering value.
pub(crate) fn invalid_key(error: KeyError) -> CqlError {
    CqlError::invalid(error.to_string())
}

/// Returns the partition key of these values.
///
/// # Errors
/// `Key may not be empty`, `Key length of 70000 is longer than maximum of 65535`
pub fn partition_key(components: &[Bytes]) -> Result<PartitionKey, CqlError> {
    let len: usize = components.iter().map(Bytes::len).sum();
    if len > KEY_LEN_MAX {
        return Err(CqlError::invalid(format!(
            "Key length of {len} is longer than maximum of {KEY_LEN_MAX}"
        )));
    }
    let bytes = match components {
        [only] => only.clone(),
        several => compose_partition_key(several).map_err(invalid_key)?,
    };
    if bytes.is_empty() {
        return Err(CqlError::invalid("Key may not be empty"));
    }
    Ok(PartitionKey::new(bytes))
}

/// All combinations of values. They grow column by column.
#[derive(Default)]
struct Combinations {
    rows: Vec<Vec<Bytes>>,
}

impl Combinations {
    fn new() -> Combinations {
        Combinations {
            rows: vec![Vec::new()],
        }
    }

    /// Returns true after an IN without values. As in Cassandra, the values behind it are not checked, however wrong they are.
    fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn push(&mut self, tuples: &[Vec<Bytes>]) -> Result<(), CqlError> {
        if let ([row], [tuple]) = (self.rows.as_mut_slice(), tuples) {
            row.extend_from_slice(tuple);
            return Ok(());
        }
        let is_product = self.rows.len() > 1 && tuples.len() > 1;
        if is_product && self.rows.len().saturating_mul(tuples.len()) > COMBINATIONS_MAX {
            return Err(CqlError::invalid(format!(
                "The combinations of the IN values are more than the maximum of {COMBINATIONS_MAX}"
            )));
        }
        let join =
            |row: &Vec<Bytes>, tuple: &Vec<Bytes>| row.iter().chain(tuple).cloned().collect::<Vec<_>>();
        self.rows = self
            .rows
            .iter()
            .flat_map(|row| tuples.iter().map(move |tuple| join(row, tuple)))
            .collect();
        Ok(())
    }
}

/// Returns the tuples of an = or an IN. Nulls are refused.
fn equal_tuples(
    table: &Table,
    restriction: &Restriction,
    ctx: &EvalContext<'_>,
) -> Result<Vec<Vec<Bytes>>, CqlError> {
    let columns = &restriction.columns;
    match &restriction.test {
        Test::Eq(tuple) => {
            let bound = tuple.bind(table, columns, ctx)?;
            let null = bound.iter().position(Option::is_none);
            match (null, restriction.is_multi) {
                (None, _) => Ok(vec![bound.into_iter().flatten().collect()]),
                (Some(_), false) => Err(null_column(table, columns)),
                (Some(at), true) => Err(CqlError::invalid(format!(
                    "Invalid null value for column {}",
                    columns.get(at).map_or("", |place| column_name(table, *place))
                ))),
            }
        }
        Test::In(list) => {
            let bound = list.bind(table, columns, restriction.is_multi, ctx)?;
            let complete = |tuple: BoundTuple| tuple.into_iter().collect::<Option<Vec<Bytes>>>();
            bound
                .into_iter()
                .map(|tuple| complete(tuple).ok_or_else(|| null_in(table, restriction)))
                .collect()
        }
        Test::Slice(_) | Test::Contains(_) | Test::Like(_) | Test::IsNotNull => Ok(Vec::new()),
    }
}

fn null_in(table: &Table, restriction: &Restriction) -> CqlError {
    if !restriction.is_multi {
        return null_column(table, &restriction.columns);
    }
    let names = super::restriction::names(table, &restriction.columns, ", ");
    CqlError::invalid(format!("Invalid null value in condition for columns: [{names}]"))
}

impl StatementRestrictions {
    /// Returns the requested partition keys in the order of their values, without duplicates. The statement must not be a key range.
    pub fn partition_keys(&self, ctx: &EvalContext<'_>) -> Result<Vec<PartitionKey>, CqlError> {
        self.keys_of(&self.partition_values(ctx)?, ctx)
    }

    /// Returns the values of the requested partition keys.
    pub fn partition_values(&self, ctx: &EvalContext<'_>) -> Result<Vec<Vec<Bytes>>, CqlError> {
        let table = &self.table;
        let mut combinations = Combinations::new();
        for restriction in self.partition.set.iter() {
            combinations.push(&equal_tuples(table, restriction, ctx)?)?;
            if combinations.is_empty() {
                break;
            }
        }
        let mut rows = combinations.rows;
        if rows.len() > 1 {
            rows.sort_by(|a, b| compare_keys(table, a, b));
            rows.dedup();
        }
        Ok(rows)
    }

    /// Returns the partition keys of these values, without those that the statement's token excludes.
    pub fn keys_of(
        &self,
        values: &[Vec<Bytes>],
        ctx: &EvalContext<'_>,
    ) -> Result<Vec<PartitionKey>, CqlError> {
        let mut keys = values
            .iter()
            .map(|row| partition_key(row))
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(token) = &self.partition.token {
            let bounds = token.bounds(ctx)?;
            keys.retain(|key| passes_token(&bounds, key.token));
        }
        Ok(keys)
    }

    /// Returns the tokens to read. `None` if there can't be any. The statement must be a key range.
    pub fn token_bounds(&self, ctx: &EvalContext<'_>) -> Result<Option<TokenBounds>, CqlError> {
        let Some(token) = &self.partition.token else {
            return Ok(Some(TokenBounds::ALL));
        };
        let bounds = token.bounds(ctx)?.scanned();
        Ok((!is_empty(&bounds)).then_some(bounds))
    }

    /// Returns the rows to read of each partition.
    pub fn row_selection(&self, ctx: &EvalContext<'_>) -> Result<RowSelection, CqlError> {
        if self.clustering.is_empty() {
            // Without clustering columns a partition has one row, whose clustering is empty.
            return Ok(match self.table.clustering_count {
                0 => RowSelection::Names([Bytes::new()].into()),
                // All data of the table is in the static row.
                _ if self.table.is_static_compact() => RowSelection::Names([].into()),
                _ => RowSelection::all(),
            });
        }
        if self.names_slices() {
            return self
                .clustering_slices(ctx)
                .map(|ranges| RowSelection::Slices(ranges.into()));
        }
        self.row_names(ctx).map(RowSelection::Names)
    }

    /// Returns true if the restrictions on clustering columns lead to slices rather than to single rows.
    pub fn names_slices(&self) -> bool {
        self.is_column_range() || self.clustering_needs_filtering()
    }

    /// Returns the encoded clusterings of the restrictions on clustering columns, all of which are by = or IN.
    pub fn row_names(&self, ctx: &EvalContext<'_>) -> Result<Arc<[Bytes]>, CqlError> {
        let mut combinations = Combinations::new();
        for restriction in self.clustering.iter() {
            combinations.push(&equal_tuples(&self.table, restriction, ctx)?)?;
            if combinations.is_empty() {
                break;
            }
        }
        let layout = &self.table.layout;
        let encode = |row: &Vec<Bytes>| layout.encode_clustering(row).map(|encoded| encoded.bytes);
        let mut names = combinations
            .rows
            .iter()
            .map(encode)
            .collect::<Result<Vec<_>, _>>()
            .map_err(invalid_key)?;
        names.sort();
        names.dedup();
        Ok(names.into())
    }

    /// Returns the ranges of clusterings that satisfy the restrictions on clustering columns. They are ascending and don't overlap.
    pub fn clustering_slices(&self, ctx: &EvalContext<'_>) -> Result<Vec<ClusteringRange>, CqlError> {
        let (prefixes, slice) = self.bind_slices(ctx)?;
        let Some(slice) = slice else {
            return self.prefix_ranges(&prefixes);
        };
        if slice.ends_with_null(&self.table) {
            return Ok(Vec::new());
        }
        let ranges = self.slice_ranges(&prefixes, &slice)?;
        Ok(ranges.into_iter().map(|(range, _)| range).collect())
    }

    /// Returns the ranges of clusterings that a DELETE deletes.
    pub fn deleted_slices(&self, ctx: &EvalContext<'_>) -> Result<DeletedSlices, CqlError> {
        let (prefixes, slice) = self.bind_slices(ctx)?;
        if prefixes.rows.is_empty() {
            return Ok(DeletedSlices::None);
        }
        let Some(slice) = slice else {
            let ranges = self.prefix_ranges(&prefixes)?;
            return Ok(DeletedSlices::Ranges(vec![(RangeBounds::default(), ranges)]));
        };
        if slice.is_surely_empty(&self.table) {
            return Ok(DeletedSlices::None);
        }
        if slice.has_null() {
            return Ok(DeletedSlices::Null(slice.restriction.first_column()));
        }
        let mut ranges = self.slice_ranges(&prefixes, &slice)?;
        if ranges.is_empty() && !slice.rises(&self.table) {
            return Ok(DeletedSlices::None);
        }
        ranges.sort_by_key(|(_, bounds)| *bounds);
        let groups = ranges.chunk_by(|(_, a), (_, b)| a == b);
        let groups = groups.filter_map(|group| {
            let (_, bounds) = group.first()?;
            Some((*bounds, group.iter().map(|(range, _)| range.clone()).collect()))
        });
        Ok(DeletedSlices::Ranges(groups.collect()))
    }

    /// Binds the restrictions on clustering columns: the prefixes by = and IN, and the slice that follows them.
    fn bind_slices(&self, ctx: &EvalContext<'_>) -> Result<(Combinations, Option<BoundSlice<'_>>), CqlError> {
        let table = &self.table;
        let mut prefixes = Combinations::new();
        let mut position = table.partition_key_count;
        for restriction in self.clustering.iter() {
            if is_filter(restriction, position) {
                break;
            }
            if let Test::Slice(slice) = &restriction.test {
                let slice = BoundSlice::bind(table, restriction, slice, ctx)?;
                return Ok((prefixes, Some(slice)));
            }
            prefixes.push(&equal_tuples(table, restriction, ctx)?)?;
            if prefixes.is_empty() {
                break;
            }
            position = restriction.last_column() + 1;
        }
        Ok((prefixes, None))
    }

    /// Returns the ranges of the rows that begin with one of the prefixes.
    fn prefix_ranges(&self, prefixes: &Combinations) -> Result<Vec<ClusteringRange>, CqlError> {
        let layout = &self.table.layout;
        let ranges = prefixes.rows.iter().map(|prefix| layout.prefix_range(prefix));
        let mut ranges = ranges.collect::<Result<Vec<_>, _>>().map_err(invalid_key)?;
        ranges.retain(|range| !range.is_empty());
        ranges.sort_by(|a, b| a.start.cmp(&b.start));
        ranges.dedup();
        Ok(ranges)
    }

    /// Returns the ranges of the rows that begin with one of the prefixes and are in the slice.
    fn slice_ranges(
        &self,
        prefixes: &Combinations,
        slice: &BoundSlice<'_>,
    ) -> Result<Vec<BoundedRange>, CqlError> {
        let bounds = self.deleted_bounds();
        let mut ranges = Vec::new();
        for prefix in &prefixes.rows {
            let added = slice.add_ranges(&self.table.layout, prefix, bounds, &mut ranges);
            added.map_err(invalid_key)?;
        }
        ranges.retain(|(range, _)| !range.is_empty());
        ranges.sort_by(|(a, _), (b, _)| a.start.cmp(&b.start));
        ranges.dedup();
        Ok(ranges)
    }
}

/// The rows that a DELETE with a slice deletes.
pub enum DeletedSlices {
    /// No rows, because of the values of the bounds alone.
    None,
    /// Ranges of rows by the kind of their bounds. Empty if no value lies between the bounds.
    Ranges(Vec<(RangeBounds, Vec<ClusteringRange>)>),
    /// A slice with a null bound of the column at this index.
    Null(usize),
}

/// Compares partition keys by their values, column by column.
pub(crate) fn compare_keys(table: &Table, a: &[Bytes], b: &[Bytes]) -> Ordering {
    let columns = table.partition_key().iter();
    let compared = columns
        .zip(a.iter().zip(b))
        .map(|(column, (a, b))| match column.is_reversed() {
            true => value::compare(&column.ty, b, a),
            false => value::compare(&column.ty, a, b),
        });
    compared.fold(Ordering::Equal, Ordering::then)
}

/// Returns true if a token is within the bounds. Bounds that filter given keys wrap around if the start is after the end (`TokenFilter`).
fn passes_token(bounds: &TokenBounds, token: i64) -> bool {
    if !is_empty(bounds) {
        return bounds.contains(token);
    }
    match (limit(&bounds.start), limit(&bounds.end)) {
        (Some(start), Some(end)) if start > end => {
            let above = TokenBounds {
                start: bounds.start,
                end: Bound::Unbounded,
            };
            let below = TokenBounds {
                start: Bound::Unbounded,
                end: bounds.end,
            };
            above.contains(token) || below.contains(token)
        }
        _ => false,
    }
}

fn limit(bound: &Bound<i64>) -> Option<i64> {
    match bound {
        Bound::Included(token) | Bound::Excluded(token) => Some(*token),
        Bound::Unbounded => None,
    }
}

fn is_empty(bounds: &TokenBounds) -> bool {
    match (limit(&bounds.start), limit(&bounds.end)) {
        (Some(start), Some(end)) if start == end => {
            matches!(bounds.start, Bound::Excluded(_)) || matches!(bounds.end, Bound::Excluded(_))
        }
        (Some(start), Some(end)) => start > end,
        _ => false,
    }
}
