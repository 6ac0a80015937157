//! Rows as selectors, filters and conditions see them.

use bytes::Bytes;

use crate::response::RowsBuilder;

/// A live cell. A column that is not multi-cell has at most one, without a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellView {
    /// A list's timeuuid, a set's element, a map's key, or a user type's field position as a big-endian u16.
    pub path: Option<Bytes>,
    pub value: Bytes,
    pub timestamp_us: i64,
    /// Seconds until the cell expires. `None` if it does not expire.
    pub ttl_s: Option<i32>,
}

/// A row as selectors see it. Columns are given by their indexes in [`crate::schema::Table::columns`].
pub trait RowView {
    /// Returns the column's serialized value, and the whole collection if it is not frozen. `None` if the column is null. In a row that
    /// stands for a partition with static content only, clustering and regular columns are null.
    fn value(&self, column: usize) -> Option<Bytes>;

    /// Returns the column's live cells, in the order of the elements in CQL. Empty for key columns. They are used for `writetime`,
    /// `maxwritetime` and `ttl`, and for elements, slices and fields of values that are not frozen.
    fn cells(&self, column: usize) -> Vec<CellView>;

    /// Returns the live cells of the row as a packed row, in which a column's id is its position in `columns`. All columns are static, or none is.
    /// `None` if the row has no live part, or is not stored.
    fn packed(&self, columns: &[usize]) -> Option<Bytes> {
        let _ = columns;
        None
    }

    /// Appends the column's value as a cell of the result.
    fn write(&self, column: usize, out: &mut RowsBuilder) {
        out.push(self.value(column).as_deref());
    }
}
