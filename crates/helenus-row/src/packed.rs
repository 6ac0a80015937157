//! Packed rows, read in place.

use bytes::Bytes;

use crate::error::RowError;
use crate::row::{CellKind, ColumnId, Deletion, Liveness};

/// A packed row, read without copying. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RowRef {
    bytes: Bytes,
}

/// A cell within a packed row. `value` borrows from the row: [`RowRef::slice`] makes it `Bytes` without a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellRef<'a> {
    pub timestamp_us: i64,
    pub kind: CellKind,
    pub value: &'a [u8],
}

/// A column within a packed row.
#[derive(Clone, Debug)]
pub enum ColumnRef<'a> {
    Simple(CellRef<'a>),
    Complex(ComplexRef<'a>),
}

/// A column of many cells within a packed row.
#[derive(Clone, Debug)]
pub struct ComplexRef<'a> {
    pub deletion: Option<Deletion>,
    #[allow(dead_code)]
    cells: &'a [u8],
}

impl RowRef {
    /// Reads the head of a packed row; the columns are read as they are iterated.
    ///
    /// # Errors
    /// [`RowError`] if the head is not that of a packed row.
    pub fn parse(bytes: Bytes) -> Result<RowRef, RowError> {
        Ok(RowRef { bytes })
    }

    pub fn liveness(&self) -> Option<Liveness> {
        unimplemented!()
    }

    pub fn deletion(&self) -> Option<Deletion> {
        unimplemented!()
    }

    /// The clustering values as written, where the key's canonical ones differ from them.
    pub fn exact_clustering(&self) -> Result<Option<Vec<Bytes>>, RowError> {
        unimplemented!()
    }

    /// The columns, ascending by id.
    pub fn columns(&self) -> Columns<'_> {
        unimplemented!()
    }

    /// A slice that a cell borrowed from this row, as `Bytes` that share the row's memory.
    pub fn slice(&self, part: &[u8]) -> Bytes {
        self.bytes.slice_ref(part)
    }

    /// The packed bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

/// Iterates over the columns of a packed row.
#[derive(Clone, Debug)]
pub struct Columns<'a> {
    #[allow(dead_code)]
    rest: &'a [u8],
}

impl<'a> Iterator for Columns<'a> {
    type Item = Result<(ColumnId, ColumnRef<'a>), RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        unimplemented!()
    }
}

impl<'a> ComplexRef<'a> {
    /// The elements, ascending by path bytes.
    pub fn cells(&self) -> ComplexCells<'a> {
        unimplemented!()
    }
}

/// Iterates over the elements of a column of many cells: (path, cell).
#[derive(Clone, Debug)]
pub struct ComplexCells<'a> {
    #[allow(dead_code)]
    rest: &'a [u8],
}

impl<'a> Iterator for ComplexCells<'a> {
    type Item = Result<(&'a [u8], CellRef<'a>), RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        unimplemented!()
    }
}
