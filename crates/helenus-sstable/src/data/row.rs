//! Bodies of rows and markers, of which all bytes are there (`UnfilteredSerializer.deserializeRowBody`, `deserializeMarkerBody`).

use std::sync::Arc;

use bytes::Bytes;

use super::cell::{read_cell, read_ttl};
use super::columns::Subset;
use super::deletion::DeletionTime;
use super::event::{ComplexDeletion, Expiry, Liveness, RangeTombstoneMarker, Row, RowDeletion};
use crate::clustering::{Bound, BoundKind, read_bound, read_values};
use crate::cursor::Cursor;
use crate::error::{ErrorKind, SstableError};
use crate::statistics::{Column, ColumnKind, EncodingStats, SerializationHeader};

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
    let body = body(cursor)?;
    let mut reader = Reader {
        source,
        header,
        row: Row {
            clustering,
            ..Row::default()
        },
        flags,
        cells_max,
    };
    reader.body(body).map_err(SstableError::within_item)?;
    Ok(reader.row)
}

/// Reads the size of a body and returns its bytes, which begin with the size of the previous item.
fn body<'a>(cursor: &mut Cursor<'a>) -> Result<Cursor<'a>, SstableError> {
    let len = cursor.vint_len("size of an item")?;
    cursor.sub_cursor(len, "row or range tombstone marker")
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
    flags: Flags,
    cells_max: usize,
}

impl Reader<'_> {
    /// Reads the body, of which all bytes are there.
    fn body(&mut self, mut body: Cursor<'_>) -> Result<(), SstableError> {
        body.vint("size of the previous item")?;
        self.row.liveness = read_liveness(&mut body, self.header, self.flags)?;
        if self.flags.has(HAS_DELETION) {
            let is_shadowable = self.flags.extended & HAS_SHADOWABLE_DELETION != 0;
            let time = DeletionTime::read(&self.header.encoding, &mut body)?;
            self.row.deletion = time.map(|time| RowDeletion { time, is_shadowable });
        }
        let columns = self.header.columns(self.flags.kind());
        if self.flags.has(HAS_ALL_COLUMNS) {
            // Every cell has a byte at least.
            self.row.cells.reserve_exact(columns.len().min(body.remaining()));
            for column in columns {
                self.column(&mut body, column)?;
            }
        } else {
            let subset = Subset::read(&mut body, columns.len())?;
            for (_, column) in columns
                .iter()
                .enumerate()
                .filter(|(position, _)| subset.contains(*position))
            {
                self.column(&mut body, column)?;
            }
        }
        check_end(&body, "row")
    }

    fn column(&mut self, body: &mut Cursor<'_>, column: &Arc<Column>) -> Result<(), SstableError> {
        match column.is_complex {
            true => self.complex_column(body, column),
            false => self.cell(body, column),
        }
    }

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
        if self.flags.has(HAS_COMPLEX_DELETION)
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

/// Reads the rest of a marker, from its kind on.
pub(super) fn read_marker(
    source: &Bytes,
    cursor: &mut Cursor<'_>,
    header: &SerializationHeader,
) -> Result<RangeTombstoneMarker, SstableError> {
    let Bound { kind, prefix } = read_bound(source, cursor, &header.clustering_types)?;
    let mut body = body(cursor)?;
    let (end, start) =
        read_marker_body(&mut body, &header.encoding, kind).map_err(SstableError::within_item)?;
    Ok(RangeTombstoneMarker {
        kind,
        prefix,
        end,
        start,
    })
}

/// Returns the deletion before the marker and that after it.
fn read_marker_body(
    body: &mut Cursor<'_>,
    encoding: &EncodingStats,
    kind: BoundKind,
) -> Result<(Option<DeletionTime>, Option<DeletionTime>), SstableError> {
    body.vint("size of the previous item")?;
    let end = match kind.is_end() {
        true => DeletionTime::read(encoding, body)?,
        false => None,
    };
    let start = match kind.is_start() {
        true => DeletionTime::read(encoding, body)?,
        false => None,
    };
    check_end(body, "range tombstone marker")?;
    if end.is_none() && start.is_none() {
        return Err(body.corrupt("a range tombstone marker has no deletion"));
    }
    Ok((end, start))
}
