//! The parts of a packed row: flags, times relative to the row's base, cells.

use super::CellRef;
use crate::error::RowError;
use crate::row::{CellKind, Deletion, Expiry};
use crate::varint::{Reader, put_bytes, put_signed, put_unsigned};

/// Row flags.
pub(super) const HAS_LIVENESS: u8 = 1;
pub(super) const HAS_BASE_EXPIRY: u8 = 1 << 1;
pub(super) const HAS_DELETION: u8 = 1 << 2;
pub(super) const HAS_EXACT_CLUSTERING: u8 = 1 << 3;
/// Flag: every column is one cell with the base's timestamp.
pub(super) const UNIFORM: u8 = 1 << 4;
pub(super) const ROW_FLAGS: u8 =
    HAS_LIVENESS | HAS_BASE_EXPIRY | HAS_DELETION | HAS_EXACT_CLUSTERING | UNIFORM;

/// Cell flags; the lowest two bits are the kind.
pub(super) const KIND_MASK: u8 = 3;
pub(super) const KIND_LIVE: u8 = 0;
pub(super) const KIND_EXPIRING: u8 = 1;
pub(super) const KIND_TOMBSTONE: u8 = 2;
pub(super) const KIND_COUNTER: u8 = 3;
pub(super) const OWN_TIMESTAMP: u8 = 1 << 2;
pub(super) const OWN_EXPIRY: u8 = 1 << 3;
/// The column has many cells.
pub(super) const COMPLEX: u8 = 1 << 4;
pub(super) const HAS_COMPLEX_DELETION: u8 = 1 << 5;
pub(super) const CELL_FLAGS: u8 = KIND_MASK | OWN_TIMESTAMP | OWN_EXPIRY | COMPLEX | HAS_COMPLEX_DELETION;

pub(super) const MICROS: i64 = 1_000_000;

/// The base to which the times of a row are relative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimeBase {
    pub(crate) timestamp_us: i64,
    pub(crate) expiry: Option<Expiry>,
}

#[inline]
pub(super) fn read_cell<'a>(
    flags: u8,
    reader: &mut Reader<'a>,
    base: TimeBase,
) -> Result<CellRef<'a>, RowError> {
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

/// Reads seconds of the server's clock, which are stored relative to the client's timestamp.
pub(super) fn read_seconds(reader: &mut Reader<'_>, timestamp_us: i64) -> Result<i64, RowError> {
    Ok(timestamp_us.div_euclid(MICROS).wrapping_add(reader.signed()?))
}

pub(super) fn put_seconds(out: &mut Vec<u8>, seconds: i64, timestamp_us: i64) {
    put_signed(out, seconds.wrapping_sub(timestamp_us.div_euclid(MICROS)));
}

pub(super) fn read_expiry(reader: &mut Reader<'_>, timestamp_us: i64) -> Result<Expiry, RowError> {
    let ttl_s = i32::try_from(reader.unsigned()?).map_err(|_| RowError::Corrupt("TTL out of range"))?;
    let expires_at_s = read_seconds(reader, timestamp_us)?.wrapping_add(i64::from(ttl_s));
    Ok(Expiry { ttl_s, expires_at_s })
}

pub(super) fn put_expiry(out: &mut Vec<u8>, expiry: Expiry, timestamp_us: i64) {
    put_unsigned(out, u64::from(expiry.ttl_s.unsigned_abs()));
    put_seconds(
        out,
        expiry.expires_at_s.wrapping_sub(i64::from(expiry.ttl_s)),
        timestamp_us,
    );
}

pub(super) fn read_deletion(reader: &mut Reader<'_>, base: TimeBase) -> Result<Deletion, RowError> {
    let timestamp_us = base.timestamp_us.wrapping_add(reader.signed()?);
    Ok(Deletion {
        timestamp_us,
        local_deletion_s: read_seconds(reader, timestamp_us)?,
    })
}

pub(super) fn put_deletion(out: &mut Vec<u8>, deletion: Deletion, base: TimeBase) {
    put_signed(out, deletion.timestamp_us.wrapping_sub(base.timestamp_us));
    put_seconds(out, deletion.local_deletion_s, deletion.timestamp_us);
}

#[inline]
pub(super) fn put_cell(out: &mut Vec<u8>, cell: &CellRef<'_>, base: TimeBase) {
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
