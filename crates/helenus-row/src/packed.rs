//! Packed rows: their bytes, written in one pass and read in place. `docs/data-layout.md` gives the layout.
//!
//! Times are stored relative to the row's *base*, so that a row which was written by one INSERT pays for its timestamp and TTL
//! once: the base is the liveness, else the first column's timestamp, else the row deletion's.

use bytes::Bytes;

use crate::error::RowError;
use crate::row::{Cell, CellKind, ColumnId, Deletion, ExactClustering, Expiry, Liveness};
use crate::varint::{Reader, put_bytes, put_signed, put_unsigned};

/// Row flags.
const HAS_LIVENESS: u8 = 1;
const HAS_BASE_EXPIRY: u8 = 1 << 1;
const HAS_DELETION: u8 = 1 << 2;
const HAS_EXACT_CLUSTERING: u8 = 1 << 3;
/// Every column is one cell with the base's timestamp.
const UNIFORM: u8 = 1 << 4;
const ROW_FLAGS: u8 = HAS_LIVENESS | HAS_BASE_EXPIRY | HAS_DELETION | HAS_EXACT_CLUSTERING | UNIFORM;

/// Cell flags; the lowest two bits are the kind.
const KIND_MASK: u8 = 3;
const KIND_LIVE: u8 = 0;
const KIND_EXPIRING: u8 = 1;
const KIND_TOMBSTONE: u8 = 2;
const KIND_COUNTER: u8 = 3;
const OWN_TIMESTAMP: u8 = 1 << 2;
const OWN_EXPIRY: u8 = 1 << 3;
/// The column has many cells.
const COMPLEX: u8 = 1 << 4;
const HAS_COMPLEX_DELETION: u8 = 1 << 5;
const CELL_FLAGS: u8 = KIND_MASK | OWN_TIMESTAMP | OWN_EXPIRY | COMPLEX | HAS_COMPLEX_DELETION;

const MICROS: i64 = 1_000_000;

/// What the times of a row are relative to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Base {
    pub(crate) timestamp_us: i64,
    pub(crate) expiry: Option<Expiry>,
}

/// A packed row, read without copying. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RowRef {
    bytes: Bytes,
    head: Head,
}

/// The head of a packed row, and where its parts lie.
#[derive(Clone, Copy, Debug)]
struct Head {
    liveness: Option<Liveness>,
    deletion: Option<Deletion>,
    base: Base,
    uniform: bool,
    exact_at: Option<usize>,
    columns_at: usize,
}

/// A packed row in borrowed bytes: what merges work on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed<'a> {
    bytes: &'a [u8],
    head: Head,
}

/// A cell within a packed row. `value` borrows from the row: [`RowRef::slice`] makes it `Bytes` without a copy.
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

    /// True if the cell has a value at `now_s`.
    pub fn is_live(&self, now_s: i64) -> bool {
        match self.kind {
            CellKind::Live | CellKind::Counter => true,
            CellKind::Expiring(expiry) => now_s < expiry.expires_at_s,
            CellKind::Tombstone { .. } => false,
        }
    }

    /// The TTL that is left at `now_s` (CQL's `ttl()`); `None` if the cell doesn't expire.
    pub fn ttl_left_s(&self, now_s: i64) -> Option<i32> {
        match self.kind {
            CellKind::Expiring(expiry) => i32::try_from(expiry.expires_at_s - now_s).ok(),
            CellKind::Live | CellKind::Counter | CellKind::Tombstone { .. } => None,
        }
    }

    /// The total, if this is a counter's cell.
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
    base: Base,
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

    /// The clustering values as written, where the key's canonical ones differ from them.
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

    /// The columns, ascending by id.
    pub fn columns(&self) -> Columns<'_> {
        self.packed().columns()
    }

    /// The column, found by walking the ones before it.
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

    /// A slice that a cell borrowed from this row, as `Bytes` that share the row's memory.
    ///
    /// # Panics
    /// If `part` was not borrowed from this row.
    pub fn slice(&self, part: &[u8]) -> Bytes {
        self.bytes.slice_ref(part)
    }

    /// A cell of this row that owns its value, without a copy.
    pub fn own(&self, cell: &CellRef<'_>) -> Cell {
        Cell {
            timestamp_us: cell.timestamp_us,
            kind: cell.kind,
            value: self.slice(cell.value),
        }
    }

    /// The packed bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    fn packed(&self) -> Packed<'_> {
        Packed {
            bytes: &self.bytes,
            head: self.head,
        }
    }
}

impl Head {
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
        let base = Base { timestamp_us, expiry };
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

fn read_exact_clustering<'a>(reader: &mut Reader<'a>, base: Base) -> Result<ExactParts<'a>, RowError> {
    let timestamp_us = base.timestamp_us.wrapping_add(reader.signed()?);
    let count = reader.unsigned()?;
    let mut parts = Vec::new();
    for _ in 0..count {
        parts.push(reader.bytes()?);
    }
    Ok((timestamp_us, parts))
}

impl<'a> Packed<'a> {
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

    pub(crate) fn base(&self) -> Base {
        self.head.base
    }

    /// True if every column is one cell with the base's timestamp.
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
    base: Base,
    /// The least id that can come; `None` after an error or the greatest id.
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
    /// The elements, ascending by path bytes.
    pub fn cells(&self) -> ComplexCells<'a> {
        ComplexCells {
            reader: Reader::new(self.cells),
            base: self.base,
        }
    }

    /// The element of that path, if there is one, dead or alive.
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

/// Iterates over the elements of a column of many cells: (path, cell).
#[derive(Clone, Debug)]
pub struct ComplexCells<'a> {
    reader: Reader<'a>,
    base: Base,
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

#[inline]
fn read_cell<'a>(flags: u8, reader: &mut Reader<'a>, base: Base) -> Result<CellRef<'a>, RowError> {
    if flags & (!CELL_FLAGS | COMPLEX | HAS_COMPLEX_DELETION) != 0 {
        return Err(RowError::Corrupt("unknown cell flags"));
    }
    let timestamp_us = match flags & OWN_TIMESTAMP {
        0 => base.timestamp_us,
        _ => base.timestamp_us.wrapping_add(reader.signed()?),
    };
    let kind = match flags & KIND_MASK {
        KIND_LIVE => CellKind::Live,
        KIND_EXPIRING if flags & OWN_EXPIRY != 0 => CellKind::Expiring(read_expiry(reader, timestamp_us)?),
        KIND_EXPIRING => CellKind::Expiring(
            base.expiry
                .ok_or(RowError::Corrupt("cell with the TTL of a row that has none"))?,
        ),
        KIND_TOMBSTONE => CellKind::Tombstone {
            local_deletion_s: read_seconds(reader, timestamp_us)?,
        },
        _ => CellKind::Counter,
    };
    let value = match kind {
        CellKind::Tombstone { .. } => &[],
        CellKind::Live | CellKind::Expiring(_) | CellKind::Counter => reader.bytes()?,
    };
    Ok(CellRef {
        timestamp_us,
        kind,
        value,
    })
}

/// Seconds of the server's clock, relative to the client's timestamp.
fn read_seconds(reader: &mut Reader<'_>, timestamp_us: i64) -> Result<i64, RowError> {
    Ok(timestamp_us.div_euclid(MICROS).wrapping_add(reader.signed()?))
}

fn put_seconds(out: &mut Vec<u8>, seconds: i64, timestamp_us: i64) {
    put_signed(out, seconds.wrapping_sub(timestamp_us.div_euclid(MICROS)));
}

fn read_expiry(reader: &mut Reader<'_>, timestamp_us: i64) -> Result<Expiry, RowError> {
    let ttl_s = i32::try_from(reader.unsigned()?).map_err(|_| RowError::Corrupt("TTL out of range"))?;
    let expires_at_s = read_seconds(reader, timestamp_us)?.wrapping_add(i64::from(ttl_s));
    Ok(Expiry { ttl_s, expires_at_s })
}

fn put_expiry(out: &mut Vec<u8>, expiry: Expiry, timestamp_us: i64) {
    put_unsigned(out, u64::from(expiry.ttl_s.unsigned_abs()));
    put_seconds(
        out,
        expiry.expires_at_s.wrapping_sub(i64::from(expiry.ttl_s)),
        timestamp_us,
    );
}

fn read_deletion(reader: &mut Reader<'_>, base: Base) -> Result<Deletion, RowError> {
    let timestamp_us = base.timestamp_us.wrapping_add(reader.signed()?);
    Ok(Deletion {
        timestamp_us,
        local_deletion_s: read_seconds(reader, timestamp_us)?,
    })
}

fn put_deletion(out: &mut Vec<u8>, deletion: Deletion, base: Base) {
    put_signed(out, deletion.timestamp_us.wrapping_sub(base.timestamp_us));
    put_seconds(out, deletion.local_deletion_s, deletion.timestamp_us);
}

/// Writes a packed row in one pass: columns first, the head put before them at the end. What the row's own
/// deletions shadow is left out, so equal rows have equal bytes.
#[derive(Debug)]
pub(crate) struct RowWriter {
    liveness: Option<Liveness>,
    deletion: Option<Deletion>,
    base: Option<Base>,
    uniform: bool,
    next_id: u32,
    body: Vec<u8>,
}

/// The most that a head without exact clustering takes: flags, base, expiry, deletion.
const HEAD_LEN_MAX: usize = 1 + 10 + 5 + 10 + 10 + 10;

impl RowWriter {
    pub(crate) fn new(liveness: Option<Liveness>, deletion: Option<Deletion>, capacity: usize) -> RowWriter {
        let liveness =
            liveness.filter(|liveness| !deletion.is_some_and(|d| d.deletes(liveness.timestamp_us)));
        let mut body = Vec::with_capacity(HEAD_LEN_MAX + capacity);
        body.resize(HEAD_LEN_MAX, 0);
        RowWriter {
            liveness,
            deletion,
            base: liveness.map(|liveness| Base {
                timestamp_us: liveness.timestamp_us,
                expiry: liveness.expiry,
            }),
            uniform: true,
            next_id: 0,
            body,
        }
    }

    fn column_id(&mut self, id: ColumnId) {
        put_unsigned(&mut self.body, u64::from(id.0.wrapping_sub(self.next_id)));
        self.next_id = id.0.wrapping_add(1);
    }

    /// Adds a column of one cell; ids ascend.
    #[inline]
    pub(crate) fn simple(&mut self, id: ColumnId, cell: &CellRef<'_>) {
        if self
            .deletion
            .is_some_and(|deletion| deletion.deletes(cell.timestamp_us))
        {
            return;
        }
        let base = *self.base.get_or_insert_with(|| base_of_cell(cell));
        self.uniform &= cell.timestamp_us == base.timestamp_us;
        self.column_id(id);
        put_cell(&mut self.body, cell, base);
    }

    /// Adds a column of many cells; ids ascend, and paths do.
    pub(crate) fn complex(
        &mut self,
        id: ColumnId,
        deletion: Option<Deletion>,
        cells: &[(&[u8], CellRef<'_>)],
    ) {
        let deletion = deletion.filter(|deletion| Some(*deletion) > self.deletion);
        let shadow = deletion.or(self.deletion);
        let mut kept = cells
            .iter()
            .filter(|(_, cell)| !shadow.is_some_and(|shadow| shadow.deletes(cell.timestamp_us)))
            .peekable();
        let base = match (self.base, deletion, kept.peek()) {
            (Some(base), _, _) => base,
            // An overwrite deletes at its timestamp minus one.
            (None, Some(deletion), _) => Base {
                timestamp_us: deletion.timestamp_us.saturating_add(1),
                expiry: None,
            },
            (None, None, Some((_, cell))) => base_of_cell(cell),
            (None, None, None) => return,
        };
        if deletion.is_none() && kept.peek().is_none() {
            return;
        }
        self.base = Some(base);
        self.uniform = false;
        self.column_id(id);
        self.body.push(
            COMPLEX
                | if deletion.is_some() {
                    HAS_COMPLEX_DELETION
                } else {
                    0
                },
        );
        let mut content = Vec::new();
        if let Some(deletion) = deletion {
            put_deletion(&mut content, deletion, base);
        }
        for (path, cell) in kept {
            put_bytes(&mut content, path);
            put_cell(&mut content, cell, base);
        }
        put_bytes(&mut self.body, &content);
    }

    /// The packed row.
    pub(crate) fn finish(mut self, exact: Option<(i64, &[&[u8]])>) -> Bytes {
        let base = self.base.unwrap_or_else(|| Base {
            timestamp_us: self.deletion.map_or(0, |deletion| deletion.timestamp_us),
            expiry: None,
        });
        let mut head = Vec::with_capacity(HEAD_LEN_MAX);
        head.push(self.flags(base, exact.is_some()));
        put_signed(&mut head, base.timestamp_us);
        if let Some(expiry) = base.expiry {
            put_expiry(&mut head, expiry, base.timestamp_us);
        }
        if let Some(deletion) = self.deletion {
            put_deletion(&mut head, deletion, base);
        }
        if let Some((timestamp_us, parts)) = exact {
            put_signed(&mut head, timestamp_us.wrapping_sub(base.timestamp_us));
            put_unsigned(&mut head, parts.len() as u64);
            parts.iter().for_each(|part| put_bytes(&mut head, part));
        }
        let start = HEAD_LEN_MAX.saturating_sub(head.len());
        if head.len() > HEAD_LEN_MAX {
            self.body.splice(..HEAD_LEN_MAX, head);
        } else if let Some(room) = self.body.get_mut(start..HEAD_LEN_MAX) {
            room.copy_from_slice(&head);
        }
        let packed = Bytes::from(self.body);
        packed.slice(start..)
    }

    fn flags(&self, base: Base, exact: bool) -> u8 {
        let flag = |on: bool, flag: u8| if on { flag } else { 0 };
        flag(self.liveness.is_some(), HAS_LIVENESS)
            | flag(base.expiry.is_some(), HAS_BASE_EXPIRY)
            | flag(self.deletion.is_some(), HAS_DELETION)
            | flag(exact, HAS_EXACT_CLUSTERING)
            | flag(self.uniform, UNIFORM)
    }
}

fn base_of_cell(cell: &CellRef<'_>) -> Base {
    Base {
        timestamp_us: cell.timestamp_us,
        expiry: match cell.kind {
            CellKind::Expiring(expiry) => Some(expiry),
            CellKind::Live | CellKind::Tombstone { .. } | CellKind::Counter => None,
        },
    }
}

#[inline]
fn put_cell(out: &mut Vec<u8>, cell: &CellRef<'_>, base: Base) {
    let own_timestamp = cell.timestamp_us != base.timestamp_us;
    let (kind, own_expiry) = match cell.kind {
        CellKind::Live => (KIND_LIVE, false),
        CellKind::Expiring(expiry) => (KIND_EXPIRING, base.expiry != Some(expiry)),
        CellKind::Tombstone { .. } => (KIND_TOMBSTONE, false),
        CellKind::Counter => (KIND_COUNTER, false),
    };
    out.push(kind | if own_timestamp { OWN_TIMESTAMP } else { 0 } | if own_expiry { OWN_EXPIRY } else { 0 });
    if own_timestamp {
        put_signed(out, cell.timestamp_us.wrapping_sub(base.timestamp_us));
    }
    match cell.kind {
        CellKind::Expiring(expiry) if own_expiry => put_expiry(out, expiry, cell.timestamp_us),
        CellKind::Tombstone { local_deletion_s } => {
            put_seconds(out, local_deletion_s, cell.timestamp_us);
            return;
        }
        CellKind::Live | CellKind::Expiring(_) | CellKind::Counter => {}
    }
    put_bytes(out, cell.value);
}
