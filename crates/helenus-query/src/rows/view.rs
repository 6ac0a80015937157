//! What selectors, filters and conditions see of a row.

use bytes::Bytes;

use crate::response::RowsBuilder;

/// A live cell. Of a column that isn't multi-cell there is one at most, without a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellView {
    /// A list's timeuuid, a set's element, a map's key, or a user type's field position as a big-endian u16.
    pub path: Option<Bytes>,
    pub value: Bytes,
    pub timestamp_us: i64,
    /// Seconds that are left to live, if the cell expires.
    pub ttl_s: Option<i32>,
}

/// A row, as selectors see it. Columns are named by their places in [`crate::schema::Table::columns`].
pub trait RowView {
    /// Returns the column's serialized value (of a collection that isn't frozen, the whole of it); nothing if it is null.
    /// In a row that stands for a partition with static content only, clustering and regular columns are null.
    fn value(&self, column: usize) -> Option<Bytes>;

    /// Returns the column's live cells, in the order in which CQL gives the elements; none for key columns.
    /// For `writetime`, `maxwritetime` and `ttl`, and for elements, slices and fields of what isn't frozen.
    fn cells(&self, column: usize) -> Vec<CellView>;

    /// Appends the column's value as a result cell.
    fn write(&self, column: usize, out: &mut RowsBuilder) {
        out.push(self.value(column).as_deref());
    }
}
