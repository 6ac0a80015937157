//! Reads of an index from one of its ends, which return rows in the order of the indexed values.

use std::sync::Arc;

use bytes::Bytes;
use helenus_cql::error::CqlError;
use helenus_row::{ByteRange, key};

use super::IndexSource;
use super::entry_cursor::{Bases, EntryCursor, EntryStream};
use super::positions::rest_end;
use super::probe::{RowOrder, rest_of_range};
use crate::analysis::select::paging::{PagingState, invalid, mark};
use crate::index::entries::{entry_key, is_by_partition};
use crate::index::value_range::ValueRange;
use crate::rows::RowSelection;
use crate::schema::{Index, Table};

/// A read of an index in the order of its values. The rows of one value have the order of the table, or its reverse.
pub(crate) struct OrderedRead<'a> {
    pub index: &'a Arc<Index>,
    pub range: ValueRange,
    pub is_descending: bool,
    pub bases: Bases,
    pub now_s: i64,
    pub resume: Option<&'a PagingState>,
}

impl IndexSource {
    /// Returns a source of the rows.
    ///
    /// # Errors
    /// `Invalid value for the paging state`, if it belongs to another statement.
    pub fn in_order(
        table: &Table,
        read: OrderedRead<'_>,
        wanted: RowSelection,
    ) -> Result<IndexSource, CqlError> {
        let keys = read.keys(table)?;
        let index = read.index.clone();
        let cursor = match read.is_descending {
            true => EntryCursor::of_range_reversed(index, keys, read.now_s),
            false => EntryCursor::of_range(index, keys, read.now_s),
        };
        let entries = EntryStream::within(cursor, read.bases);
        Ok(IndexSource::new(
            table,
            read.index,
            entries,
            RowOrder::Values,
            read.resume,
            wanted,
        ))
    }
}

impl OrderedRead<'_> {
    /// Returns the keys of the entries that remain to be read.
    fn keys(&self, table: &Table) -> Result<ByteRange, CqlError> {
        let Some(state) = self.resume else {
            return Ok(self.range.keys(self.index));
        };
        let entry = state.entry.as_ref().ok_or_else(invalid)?;
        if mark(self.index.table.id) != entry.index || !self.range.contains(&entry.value) {
            return Err(invalid());
        }
        match self.is_descending {
            true => self.keys_before(table, state, &entry.value),
            false => rest_of_range(table, self.index, &self.range, state, &entry.value),
        }
    }

    /// Returns the keys of the range before the entry of the last page's last row.
    fn keys_before(&self, table: &Table, state: &PagingState, value: &Bytes) -> Result<ByteRange, CqlError> {
        let (index, number) = (self.index, self.index.table.number);
        let of_value = entry_key(index, value.clone());
        let end = match rest_end(table, index, is_by_partition(index, table), state)? {
            Some(clustering) => Some(key::row_key(number, of_value.token, &of_value.bytes, &clustering)),
            None => key::partition_range(number, of_value.token, &of_value.bytes).end,
        };
        let whole = self.range.keys(index);
        let end = match (end, whole.end) {
            (Some(end), Some(last)) => Some(end.min(last)),
            (end, last) => end.or(last),
        };
        Ok(ByteRange {
            start: whole.start,
            end,
        })
    }
}
