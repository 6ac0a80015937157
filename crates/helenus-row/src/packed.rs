//! Packed rows: their bytes, written in one pass and read in place. `docs/data-layout.md` describes the layout.
//!
//! Times are stored relative to the row's *base*, so that a row written by one INSERT stores its timestamp and TTL once. The base is the
//! liveness. Without liveness, it is the timestamp of the first column, or else that of the row deletion.

mod parts;
mod write;

use bytes::Bytes;

use self::parts::{
    COMPLEX, HAS_BASE_EXPIRY, HAS_COMPLEX_DELETION, HAS_DELETION, HAS_EXACT_CLUSTERING, HAS_LIVENESS,
    ROW_FLAGS, TimeBase, UNIFORM, read_cell, read_deletion, read_expiry,
};
use crate::error::RowError;
use crate::row::{Cell, CellKind, ColumnId, Deletion, ExactClustering, Liveness};
use crate::varint::Reader;

pub(crate) use write::RowWriter;

/// A packed row, read without copying. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RowRef {
    bytes: Bytes,
    head: Head,
}

/// The head of a packed row, and the positions of its parts.
#[derive(Clone, Copy, Debug)]
struct Head {
    liveness: Option<Liveness>,
    deletion: Option<Deletion>,
    base: TimeBase,
    uniform: bool,
    exact_at: Option<usize>,
    columns_at: usize,
}

/// A packed row in borrowed bytes, the input of merges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed<'a> {
    bytes: &'a [u8],
    head: Head,
}

/// A cell within a packed row. `value` borrows from the row; [`RowRef::slice`] makes it `Bytes` without a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellRef<'a> {
    pub timestamp_us: i64,
    pub kind: CellKind,
    pub value: &'a [u8],
}

impl CellRef<'_> {
    pub fn is_tombstone(&self) -> bool {
        matches!(self.kind, CellKind::Tombstone { .. })
    }

    /// Returns true if the cell has a value at `now_s`.
    pub fn is_live(&self, now_s: i64) -> bool {
        match self.kind {
            CellKind::Live | CellKind::Counter => true,
            CellKind::Expiring(expiry) => now_s < expiry.expires_at_s,
            CellKind::Tombstone { .. } => false,
        }
    }

    /// Returns the seconds of the TTL left at `now_s` (CQL's `ttl()`). `None` if the cell doesn't expire.
    pub fn ttl_left_s(&self, now_s: i64) -> Option<i32> {
        match self.kind {
            CellKind::Expiring(expiry) => i32::try_from(expiry.expires_at_s - now_s).ok(),
            CellKind::Live | CellKind::Counter | CellKind::Tombstone { .. } => None,
        }
    }

    /// Returns the total of a counter's cell. `None` for other cells.
    pub fn counter_total(&self) -> Option<i64> {
        match self.kind {
            CellKind::Counter => Some(i64::from_be_bytes(self.value.try_into().ok()?)),
            CellKind::Live | CellKind::Expiring(_) | CellKind::Tombstone { .. } => None,
        }
    }
}

/// A column within a packed row.
#[derive(Clone, Copy, Debug)]
pub enum ColumnRef<'a> {
    Simple(CellRef<'a>),
    Complex(ComplexRef<'a>),
}

/// A column of many cells within a packed row.
#[derive(Clone, Copy, Debug)]
pub struct ComplexRef<'a> {
    pub deletion: Option<Deletion>,
    cells: &'a [u8],
    base: TimeBase,
}

impl RowRef {
    /// Reads the head of a packed row; the columns are read as they are iterated.
    ///
    /// # Errors
    /// [`RowError`] if the head is not that of a packed row.
    pub fn parse(bytes: Bytes) -> Result<RowRef, RowError> {
        let head = Head::parse(&bytes)?;
        Ok(RowRef { bytes, head })
    }

    pub fn liveness(&self) -> Option<Liveness> {
        self.head.liveness
    }

    pub fn deletion(&self) -> Option<Deletion> {
        self.head.deletion
    }

    /// Returns the clustering values as written. `None` if the key's canonical values equal them.
    ///
    /// # Errors
    /// [`RowError`] if the row is corrupt.
    pub fn exact_clustering(&self) -> Result<Option<ExactClustering>, RowError> {
        let Some((timestamp_us, parts)) = self.packed().exact_clustering()? else {
            return Ok(None);
        };
        let components = parts.into_iter().map(|part| self.slice(part)).collect();
        Ok(Some(ExactClustering {
            timestamp_us,
            components,
        }))
    }

    /// Returns the columns, ascending by id.
    pub fn columns(&self) -> Columns<'_> {
        self.packed().columns()
    }

    /// Returns a column, found by iterating over the columns before it. `None` if the row does not have it.
    ///
    /// # Errors
    /// [`RowError`] if the row is corrupt.
    pub fn column(&self, id: ColumnId) -> Result<Option<ColumnRef<'_>>, RowError> {
        for column in self.columns() {
            let (found, column) = column?;
            if found >= id {
                return Ok((found == id).then_some(column));
            }
        }
        Ok(None)
    }

    /// Returns a slice that a cell borrowed from this row as `Bytes` that share the row's memory.
    ///
    /// # Panics
    /// If `part` was not borrowed from this row.
    pub fn slice(&self, part: &[u8]) -> Bytes {
        self.bytes.slice_ref(part)
    }

    /// Returns a cell of this row as a cell that owns its value, without a copy.
    pub fn own(&self, cell: &CellRef<'_>) -> Cell {
        Cell {
            timestamp_us: cell.timestamp_us,
            kind: cell.kind,
            value: self.slice(cell.value),
        }
    }

    /// Returns the packed bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub(crate) fn packed(&self) -> Packed<'_> {
        Packed {
            bytes: &self.bytes,
            head: self.head,
        }
    }
}

/// Returns the cell of a simple column in the bytes of a packed row. `None` if the column is absent or the row's deletion covers the cell.
/// Unlike [`RowRef`], this function shares no memory, which suits readers of many small rows.
///
/// # Errors
/// [`RowError`] if the row is corrupt.
#[inline]
pub fn simple_cell(row: &[u8], id: ColumnId) -> Result<Option<CellRef<'_>>, RowError> {
    let packed = Packed::parse(row)?;
    for column in packed.columns() {
        let (found, column) = column?;
        if found < id {
            continue;
        }
        return Ok(match column {
            ColumnRef::Simple(cell) if found == id => {
                let is_deleted = packed
                    .deletion()
                    .is_some_and(|deletion| deletion.deletes(cell.timestamp_us));
                (!is_deleted).then_some(cell)
            }
            ColumnRef::Simple(_) | ColumnRef::Complex(_) => None,
        });
    }
    Ok(None)
}

impl Head {
    #[inline]
    fn parse(bytes: &[u8]) -> Result<Head, RowError> {
        let mut reader = Reader::new(bytes);
        let at = |reader: &Reader<'_>| bytes.len() - reader.rest().len();
        let flags = reader.byte()?;
        if flags & !ROW_FLAGS != 0 {
            return Err(RowError::Corrupt("unknown row flags"));
        }
        let timestamp_us = reader.signed()?;
        let expiry = match flags & HAS_BASE_EXPIRY {
            0 => None,
            _ => Some(read_expiry(&mut reader, timestamp_us)?),
        };
        let base = TimeBase { timestamp_us, expiry };
        let liveness = (flags & HAS_LIVENESS != 0).then_some(Liveness { timestamp_us, expiry });
        let deletion = match flags & HAS_DELETION {
            0 => None,
            _ => Some(read_deletion(&mut reader, base)?),
        };
        let mut exact_at = None;
        if flags & HAS_EXACT_CLUSTERING != 0 {
            exact_at = Some(at(&reader));
            read_exact_clustering(&mut reader, base)?;
        }
        Ok(Head {
            liveness,
            deletion,
            base,
            uniform: flags & UNIFORM != 0,
            exact_at,
            columns_at: at(&reader),
        })
    }
}

/// A timestamp and the clustering values that were written with it.
pub(crate) type ExactParts<'a> = (i64, Vec<&'a [u8]>);

fn read_exact_clustering<'a>(reader: &mut Reader<'a>, base: TimeBase) -> Result<ExactParts<'a>, RowError> {
    let timestamp_us = base.timestamp_us.wrapping_add(reader.signed()?);
    let count = reader.unsigned()?;
    let mut parts = Vec::new();
    for _ in 0..count {
        parts.push(reader.bytes()?);
    }
    Ok((timestamp_us, parts))
}

impl<'a> Packed<'a> {
    #[inline]
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Packed<'a>, RowError> {
        Ok(Packed {
            bytes,
            head: Head::parse(bytes)?,
        })
    }

    pub(crate) fn liveness(&self) -> Option<Liveness> {
        self.head.liveness
    }

    pub(crate) fn deletion(&self) -> Option<Deletion> {
        self.head.deletion
    }

    pub(crate) fn base(&self) -> TimeBase {
        self.head.base
    }

    /// Returns true if every column is one cell with the base's timestamp.
    pub(crate) fn is_uniform(&self) -> bool {
        self.head.uniform
    }

    pub(crate) fn has_exact_clustering(&self) -> bool {
        self.head.exact_at.is_some()
    }

    pub(crate) fn exact_clustering(&self) -> Result<Option<ExactParts<'a>>, RowError> {
        match self.head.exact_at {
            None => Ok(None),
            Some(at) => {
                let mut reader = Reader::new(self.bytes.get(at..).unwrap_or_default());
                read_exact_clustering(&mut reader, self.head.base).map(Some)
            }
        }
    }

    pub(crate) fn columns(&self) -> Columns<'a> {
        Columns {
            reader: Reader::new(self.bytes.get(self.head.columns_at..).unwrap_or_default()),
            base: self.head.base,
            next_id: Some(0),
        }
    }
}

/// Iterates over the columns of a packed row.
#[derive(Clone, Debug)]
pub struct Columns<'a> {
    reader: Reader<'a>,
    base: TimeBase,
    /// The least id that can follow. `None` after an error or the greatest id.
    next_id: Option<u32>,
}

impl<'a> Iterator for Columns<'a> {
    type Item = Result<(ColumnId, ColumnRef<'a>), RowError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let least = self.next_id?;
        let column = self.read(least);
        if column.is_err() {
            self.next_id = None;
        }
        Some(column)
    }
}

impl<'a> Columns<'a> {
    #[inline]
    fn read(&mut self, least: u32) -> Result<(ColumnId, ColumnRef<'a>), RowError> {
        let id = least
            .checked_add(self.reader.u32()?)
            .ok_or(RowError::Corrupt("column id out of range"))?;
        self.next_id = id.checked_add(1);
        let flags = self.reader.byte()?;
        if flags & COMPLEX == 0 {
            let cell = read_cell(flags, &mut self.reader, self.base)?;
            return Ok((ColumnId(id), ColumnRef::Simple(cell)));
        }
        let mut body = Reader::new(self.reader.bytes()?);
        let deletion = match flags & HAS_COMPLEX_DELETION {
            0 => None,
            _ => Some(read_deletion(&mut body, self.base)?),
        };
        let complex = ComplexRef {
            deletion,
            cells: body.rest(),
            base: self.base,
        };
        Ok((ColumnId(id), ColumnRef::Complex(complex)))
    }
}

impl<'a> ComplexRef<'a> {
    /// Returns the elements, ascending by path bytes.
    pub fn cells(&self) -> ComplexCells<'a> {
        ComplexCells {
            reader: Reader::new(self.cells),
            base: self.base,
        }
    }

    /// Returns the element of that path, dead or live. `None` if there is no such element.
    ///
    /// # Errors
    /// [`RowError`] if the row is corrupt.
    pub fn cell(&self, path: &[u8]) -> Result<Option<CellRef<'a>>, RowError> {
        for element in self.cells() {
            let (found, cell) = element?;
            if found >= path {
                return Ok((found == path).then_some(cell));
            }
        }
        Ok(None)
    }
}

/// Iterates over the elements of a column of many cells, as pairs of path and cell.
#[derive(Clone, Debug)]
pub struct ComplexCells<'a> {
    reader: Reader<'a>,
    base: TimeBase,
}

impl<'a> Iterator for ComplexCells<'a> {
    type Item = Result<(&'a [u8], CellRef<'a>), RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let element = self.read();
        if element.is_err() {
            self.reader = Reader::new(&[]);
        }
        Some(element)
    }
}

impl<'a> ComplexCells<'a> {
    fn read(&mut self) -> Result<(&'a [u8], CellRef<'a>), RowError> {
        let path = self.reader.bytes()?;
        let flags = self.reader.byte()?;
        Ok((path, read_cell(flags, &mut self.reader, self.base)?))
    }
}
