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
        let min_local_deletion_s = if is_unsigned {
            i64::from(local_deletion).wrapping_add(i64::from(DELETION_TIME_EPOCH_S))
        } else {
            i64::from(local_deletion.wrapping_add(DELETION_TIME_EPOCH_S))
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

    /// Decodes a local deletion time in s. Before `oa`, a negative one is the expiry of a TTL that overflowed (CASSANDRA-14092). Since
    /// `oa`, negative ones are 32 bits without sign (`Cell.decodeLocalDeletionTime`).
    pub(crate) fn local_deletion(&self, difference: u64) -> i64 {
        if !self.is_unsigned {
            let min = self.min_local_deletion_s as i32;
            return local_deletion_of_i32((difference as i32).wrapping_add(min));
        }
        match (difference as i64).wrapping_add(self.min_local_deletion_s) {
            seconds if seconds < 0 => local_deletion_of_u32(seconds as u32),
            seconds => seconds,
        }
    }

    /// Decodes a TTL in s. Negative ones are corrupt.
    pub(crate) fn ttl(&self, difference: u64) -> i32 {
        (difference as i32).wrapping_add(self.min_ttl_s)
    }
}
