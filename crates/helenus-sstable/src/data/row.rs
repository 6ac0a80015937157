//! Bodies of rows and markers, of which all bytes are there (`UnfilteredSerializer.deserializeRowBody`, `deserializeMarkerBody`).

use std::sync::Arc;

use bytes::Bytes;

use super::cell::{read_cell, read_ttl};
use super::columns::Subset;
use super::deletion::DeletionTime;
use super::event::{ComplexDeletion, Expiry, Liveness, RangeTombstoneMarker, Row, RowDeletion};
use crate::clustering::{BoundKind, read_values};
use crate::column_type::ColumnType;
use crate::cursor::Cursor;
use crate::error::{ErrorKind, SstableError};
use crate::statistics::{Column, ColumnKind, SerializationHeader};

pub(crate) const END_OF_PARTITION: u8 = 0x01;
pub(crate) const IS_MARKER: u8 = 0x02;
pub(crate) const HAS_TIMESTAMP: u8 = 0x04;
pub(crate) const HAS_TTL: u8 = 0x08;
pub(crate) const HAS_DELETION: u8 = 0x10;
pub(crate) const HAS_ALL_COLUMNS: u8 = 0x20;
pub(crate) const HAS_COMPLEX_DELETION: u8 = 0x40;
pub(crate) const HAS_EXTENDED_FLAGS: u8 = 0x80;

pub(crate) const IS_STATIC: u8 = 0x01;
pub(crate) const HAS_SHADOWABLE_DELETION: u8 = 0x02;

/// The flags of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flags {
    pub(super) flags: u8,
    /// 0 if the row has none.
    pub(super) extended: u8,
}

impl Flags {
    fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(super) fn kind(self) -> ColumnKind {
        match self.extended & IS_STATIC {
            0 => ColumnKind::Regular,
            _ => ColumnKind::Static,
        }
    }
}

/// Reads the rest of a row, from its clustering on. `source` holds the cursor's bytes.
pub(super) fn read_row(
    source: &Bytes,
    cursor: &mut Cursor<'_>,
    header: &SerializationHeader,
    flags: Flags,
    cells_max: usize,
) -> Result<Row, SstableError> {
    let clustering = match flags.kind() {
        ColumnKind::Static => Vec::new(),
        ColumnKind::Regular => read_values(source, cursor, &header.clustering_types)?,
    };
    let mut body = body(cursor)?;
    let liveness = read_liveness(&mut body, header, flags)?;
    let deletion = match flags.has(HAS_DELETION) {
        true => DeletionTime::read(&header.encoding, &mut body)?.map(|time| RowDeletion {
            time,
            is_shadowable: flags.extended & HAS_SHADOWABLE_DELETION != 0,
        }),
        false => None,
    };
    let columns = header.columns(flags.kind());
    let subset = match flags.has(HAS_ALL_COLUMNS) {
        true => Subset::All,
        false => Subset::read(&mut body, columns.len())?,
    };
    let row = Row {
        clustering,
        liveness,
        deletion,
        complex_deletions: Vec::new(),
        cells: Vec::new(),
    };
    let mut reader = Reader {
        source,
        header,
        row,
        has_complex_deletion: flags.has(HAS_COMPLEX_DELETION),
        cells_max,
    };
    for (_, column) in columns
        .iter()
        .enumerate()
        .filter(|(position, _)| subset.contains(*position))
    {
        match column.is_complex {
            true => reader.complex_column(&mut body, column)?,
            false => reader.cell(&mut body, column)?,
        }
    }
    check_end(&body, "row")?;
    Ok(reader.row)
}

/// Reads the size of a body and returns its bytes from the size of the previous item on.
fn body<'a>(cursor: &mut Cursor<'a>) -> Result<Cursor<'a>, SstableError> {
    let len = cursor.vint_len("size of an item")?;
    let mut body = cursor.sub_cursor(len, "body of an item")?;
    body.vint("size of the previous item")?;
    Ok(body)
}

fn check_end(body: &Cursor<'_>, item: &str) -> Result<(), SstableError> {
    match body.remaining() {
        0 => Ok(()),
        rest => Err(body.corrupt(format!("the {item} ends {rest} bytes before its size says"))),
    }
}

fn read_liveness(
    body: &mut Cursor<'_>,
    header: &SerializationHeader,
    flags: Flags,
) -> Result<Option<Liveness>, SstableError> {
    if !flags.has(HAS_TIMESTAMP) {
        return match flags.has(HAS_TTL) {
            true => Err(body.corrupt("a row has a TTL without a timestamp")),
            false => Ok(None),
        };
    }
    let timestamp_us = header.encoding.timestamp(body.vint("timestamp of a row")?);
    let expiry = match flags.has(HAS_TTL) {
        true => Some(Expiry {
            ttl_s: read_ttl(body, &header.encoding)?,
            expires_at_s: header.encoding.local_deletion(body.vint("expiry of a row")?),
        }),
        false => None,
    };
    Ok(Some(Liveness { timestamp_us, expiry }))
}

struct Reader<'a> {
    source: &'a Bytes,
    header: &'a SerializationHeader,
    row: Row,
    has_complex_deletion: bool,
    cells_max: usize,
}

impl Reader<'_> {
    fn cell(&mut self, body: &mut Cursor<'_>, column: &Arc<Column>) -> Result<(), SstableError> {
        if self.row.cells.len() >= self.cells_max {
            let problem = format!("a row has more than {} cells, which is the limit", self.cells_max);
            return Err(body.error(ErrorKind::Limit, problem));
        }
        let liveness = self.row.liveness.as_ref();
        let cell = read_cell(self.source, body, &self.header.encoding, liveness, column)?;
        self.row.cells.push(cell);
        Ok(())
    }

    /// Reads a collection or user type: its deletion, the number of its cells and the cells.
    fn complex_column(&mut self, body: &mut Cursor<'_>, column: &Arc<Column>) -> Result<(), SstableError> {
        if self.has_complex_deletion
            && let Some(time) = DeletionTime::read(&self.header.encoding, body)?
        {
            let column = Arc::clone(column);
            self.row.complex_deletions.push(ComplexDeletion { column, time });
        }
        for _ in 0..body.vint("number of cells")? {
            self.cell(body, column)?;
        }
        Ok(())
    }
}

/// Reads the rest of a marker, from its values on.
pub(super) fn read_marker(
    source: &Bytes,
    cursor: &mut Cursor<'_>,
    header: &SerializationHeader,
    kind: BoundKind,
    types: &[ColumnType],
) -> Result<RangeTombstoneMarker, SstableError> {
    let prefix = read_values(source, cursor, types)?;
    let mut body = body(cursor)?;
    let end = match kind.is_end() {
        true => DeletionTime::read(&header.encoding, &mut body)?,
        false => None,
    };
    let start = match kind.is_start() {
        true => DeletionTime::read(&header.encoding, &mut body)?,
        false => None,
    };
    check_end(&body, "range tombstone marker")?;
    if end.is_none() && start.is_none() {
        return Err(body.corrupt("a range tombstone marker has no deletion"));
    }
    Ok(RangeTombstoneMarker {
        kind,
        prefix,
        end,
        start,
    })
}
