//! What a SELECT sees of a packed row.

use bytes::Bytes;
use helenus_cql::types::CqlType;

use crate::error::RowError;
use crate::packed::{CellRef, RowRef};
use crate::row::{ColumnId, Deletion, Liveness};

/// A row as it is at one moment: only what is alive.
#[derive(Clone, Debug)]
pub struct LiveRow<'a> {
    /// The row's liveness, if it is (still) alive through it.
    pub liveness: Option<Liveness>,
    /// Ascending by column; a column without live cells is absent.
    pub columns: Vec<(ColumnId, LiveColumn<'a>)>,
}

/// A live column: one cell, or elements ascending by path bytes (not in CQL order: see [`complex_value`]).
#[derive(Clone, Debug)]
pub enum LiveColumn<'a> {
    Simple(CellRef<'a>),
    Complex(Vec<(&'a [u8], CellRef<'a>)>),
}

impl<'a> LiveRow<'a> {
    /// The column, if it has a live cell.
    pub fn column(&self, id: ColumnId) -> Option<&LiveColumn<'a>> {
        let at = self
            .columns
            .binary_search_by_key(&id, |(column, _)| *column)
            .ok()?;
        self.columns.get(at).map(|(_, column)| column)
    }
}

/// What is alive of a row at `now_s`, given the stronger of the partition's deletion and the range tombstone
/// over it ([`crate::header::PartitionHeader::deletion_at`]). `None` if nothing is: a row is alive through its
/// liveness or any live cell; a static row through its cells alone, having no liveness.
///
/// # Errors
/// [`RowError`] if the row is corrupt.
pub fn live_row(
    _row: &RowRef,
    _shadow: Option<Deletion>,
    _now_s: i64,
) -> Result<Option<LiveRow<'_>>, RowError> {
    unimplemented!()
}

/// The elements in the order that CQL gives them: lists by their timeuuids, sets and maps by their element type,
/// user types by field. Elements that compare as equal but differ in bytes (`1.0` and `1.00`) become the newest.
pub fn sort_elements(_ty: &CqlType, _elements: &mut Vec<(&[u8], CellRef<'_>)>) {
    unimplemented!()
}

/// The serialized value, as in result rows, of a column that isn't frozen.
pub fn complex_value(_ty: &CqlType, _elements: &[(&[u8], CellRef<'_>)]) -> Bytes {
    unimplemented!()
}
