//! Minima that times in Data.db are relative to (`db.rows.EncodingStats`, `db.SerializationHeader.readTimestamp` and its like).

use crate::cursor::Cursor;
use crate::error::SstableError;
use crate::version::Version;

/// Local deletion time of data without deletion and without TTL (`Cell.NO_DELETION_TIME`).
pub const NO_DELETION_TIME_S: i64 = i64::MAX;

/// 2015-09-22 00:00 UTC, which the minima themselves are relative to.
const TIMESTAMP_EPOCH_US: i64 = 1_442_880_000_000_000;
const DELETION_TIME_EPOCH_S: i32 = 1_442_880_000;

/// Minimum times of an SSTable. Times in Data.db are differences to them, which are small and have few bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodingStats {
    pub min_timestamp_us: i64,
    pub min_local_deletion_s: i64,
    pub min_ttl_s: i32,
    /// True if local deletion times have 32 bits without sign.
    is_unsigned: bool,
}

/// Decodes a local deletion time of 4 bytes without sign (`Cell.deletionTimeUnsignedIntegerToLong`).
pub(crate) fn local_deletion_of_u32(seconds: u32) -> i64 {
    match seconds {
        u32::MAX => NO_DELETION_TIME_S,
        _ => i64::from(seconds),
    }
}

/// Decodes a local deletion time of 4 bytes with sign.
pub(crate) fn local_deletion_of_i32(seconds: i32) -> i64 {
    match seconds {
        i32::MAX => NO_DELETION_TIME_S,
        _ => i64::from(seconds),
    }
}

impl EncodingStats {
    /// Decodes the minima. Arithmetic wraps around at the width of Cassandra's fields, because its writers rely on that.
    pub(crate) fn decode(version: Version, cursor: &mut Cursor<'_>) -> Result<EncodingStats, SstableError> {
        let timestamp = cursor.vint("minimum timestamp")? as i64;
        let local_deletion = cursor.vint("minimum local deletion time")? as i32;
        let ttl = cursor.vint("minimum TTL")? as i32;
        let is_unsigned = version.has_uint_deletion_time();
        let local_deletion = local_deletion.wrapping_add(DELETION_TIME_EPOCH_S);
        let min_local_deletion_s = match is_unsigned {
            true => i64::from(local_deletion as u32),
            false => i64::from(local_deletion),
        };
        Ok(EncodingStats {
            min_timestamp_us: timestamp.wrapping_add(TIMESTAMP_EPOCH_US),
            min_local_deletion_s,
            min_ttl_s: ttl,
            is_unsigned,
        })
    }

    /// Decodes a timestamp in µs.
    pub(crate) fn timestamp(&self, difference: u64) -> i64 {
        (difference as i64).wrapping_add(self.min_timestamp_us)
    }

    /// Decodes a local deletion time in s. The difference has 32 bits in all versions, so both are added modulo 2³². Before `oa`, the sum has
    /// a sign, and a negative one is the expiry of a TTL that overflowed (CASSANDRA-14092). Since `oa`, it has none
    /// (`SerializationHeader.writeLocalDeletionTime`, `Cell.decodeLocalDeletionTime`).
    pub(crate) fn local_deletion(&self, difference: u64) -> i64 {
        let seconds = (difference as i32).wrapping_add(self.min_local_deletion_s as i32);
        match self.is_unsigned {
            true => local_deletion_of_u32(seconds as u32),
            false => local_deletion_of_i32(seconds),
        }
    }

    /// Decodes a TTL in s. Negative ones are corrupt.
    pub(crate) fn ttl(&self, difference: u64) -> i32 {
        (difference as i32).wrapping_add(self.min_ttl_s)
    }
}
