//! Cells (`db.rows.Cell.Serializer`).
//!
//! ```text
//! flags (1) | [timestamp] | [local deletion time] | [TTL] | [path] | [value]
//! ```

use std::sync::Arc;

use bytes::Bytes;

use super::event::{Cell, CellKind, Expiry, Liveness};
use crate::clustering::read_value;
use crate::cursor::Cursor;
use crate::error::SstableError;
use crate::statistics::{Column, EncodingStats, NO_DELETION_TIME_S};

pub(crate) const IS_DELETED: u8 = 0x01;
pub(crate) const IS_EXPIRING: u8 = 0x02;
pub(crate) const HAS_EMPTY_VALUE: u8 = 0x04;
pub(crate) const USES_ROW_TIMESTAMP: u8 = 0x08;
pub(crate) const USES_ROW_TTL: u8 = 0x10;
const KNOWN: u8 = IS_DELETED | IS_EXPIRING | HAS_EMPTY_VALUE | USES_ROW_TIMESTAMP | USES_ROW_TTL;

/// Reads a cell. `source` holds the cursor's bytes.
pub(super) fn read_cell(
    source: &Bytes,
    cursor: &mut Cursor<'_>,
    encoding: &EncodingStats,
    liveness: Option<&Liveness>,
    column: &Arc<Column>,
) -> Result<Cell, SstableError> {
    let place = cursor.clone();
    let flags = cursor.u8("flags of a cell")?;
    if flags & !KNOWN != 0 {
        return Err(place.corrupt(format!(
            "a cell has the flags {flags:#04x}; 0x1f at most is expected"
        )));
    }
    let has = |flag: u8| flags & flag != 0;
    let timestamp_us = if has(USES_ROW_TIMESTAMP) {
        let row = liveness
            .ok_or_else(|| place.corrupt("a cell refers to the row's timestamp, and the row has none"))?;
        row.timestamp_us
    } else {
        encoding.timestamp(cursor.vint("timestamp of a cell")?)
    };
    let kind = if has(USES_ROW_TTL) {
        let expiry = liveness.and_then(|row| row.expiry);
        expiry
            .map(CellKind::Expiring)
            .ok_or_else(|| place.corrupt("a cell refers to the row's TTL, and the row has none"))?
    } else {
        read_kind(cursor, encoding, has(IS_DELETED), has(IS_EXPIRING))?
    };
    let path = match column.is_complex {
        true => Some(source.slice_ref(cursor.vint_bytes("path of a cell")?)),
        false => None,
    };
    let value = match has(HAS_EMPTY_VALUE) {
        true => Bytes::new(),
        false => source.slice_ref(read_value(cursor, column.value_len, "value of a cell")?),
    };
    Ok(Cell {
        column: Arc::clone(column),
        path,
        timestamp_us,
        kind,
        value,
    })
}

/// Reads deletion time and TTL. As in Cassandra (`BufferCell.isTombstone`), a cell with a TTL is expiring, and one without is deleted if it
/// has a local deletion time.
fn read_kind(
    cursor: &mut Cursor<'_>,
    encoding: &EncodingStats,
    is_deleted: bool,
    is_expiring: bool,
) -> Result<CellKind, SstableError> {
    if !is_deleted && !is_expiring {
        return Ok(CellKind::Live);
    }
    let local_deletion_s = encoding.local_deletion(cursor.vint("local deletion time of a cell")?);
    let ttl_s = if is_expiring {
        read_ttl(cursor, encoding)?
    } else {
        0
    };
    Ok(match (ttl_s, local_deletion_s) {
        (0, NO_DELETION_TIME_S) => CellKind::Live,
        (0, _) => CellKind::Deleted { local_deletion_s },
        _ => CellKind::Expiring(Expiry {
            ttl_s,
            expires_at_s: local_deletion_s,
        }),
    })
}

pub(super) fn read_ttl(cursor: &mut Cursor<'_>, encoding: &EncodingStats) -> Result<i32, SstableError> {
    let place = cursor.clone();
    match encoding.ttl(cursor.vint("TTL")?) {
        ttl_s if ttl_s < 0 => Err(place.corrupt(format!("the TTL {ttl_s} is negative"))),
        ttl_s => Ok(ttl_s),
    }
}
