//! Deletions of partitions, rows, ranges and collections (`db.DeletionTime`).

use crate::cursor::Cursor;
use crate::error::SstableError;
use crate::statistics::EncodingStats;
use crate::statistics::{local_deletion_of_i32, local_deletion_of_u32};
use crate::version::Version;

/// Timestamp of no deletion (`DeletionTime.LIVE`).
const LIVE_TIMESTAMP_US: i64 = i64::MIN;
/// First byte of a partition without deletion, since `oa`. Real deletions begin with their timestamp, whose sign bit is 0.
const LIVE_FLAG: u8 = 0x80;

/// A deletion, which shadows everything written at or before its timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeletionTime {
    pub timestamp_us: i64,
    /// Time of the deletion in s since 1970. [`crate::NO_DELETION_TIME_S`] and negative values are invalid, but exist.
    pub local_deletion_s: i64,
}

impl DeletionTime {
    fn unless_live(timestamp_us: i64, local_deletion_s: i64) -> Option<DeletionTime> {
        (timestamp_us != LIVE_TIMESTAMP_US).then_some(DeletionTime {
            timestamp_us,
            local_deletion_s,
        })
    }

    /// Reads a partition's deletion. `None` if the partition isn't deleted. Before `oa`, the local deletion time comes first
    /// (`DeletionTime.LegacySerializer`).
    pub(super) fn read_of_partition(
        version: Version,
        cursor: &mut Cursor<'_>,
    ) -> Result<Option<DeletionTime>, SstableError> {
        let field = "partition deletion";
        if !version.has_uint_deletion_time() {
            let local_deletion_s = local_deletion_of_i32(cursor.i32(field)?);
            return Ok(DeletionTime::unless_live(cursor.i64(field)?, local_deletion_s));
        }
        let place = cursor.clone();
        match cursor.u8(field)? {
            LIVE_FLAG => Ok(None),
            flag if flag & LIVE_FLAG != 0 => Err(place.corrupt(format!(
                "a partition deletion begins with {flag:#04x}; 0x80 or a positive timestamp is expected"
            ))),
            _ => {
                *cursor = place;
                let timestamp_us = cursor.i64(field)?;
                let local_deletion_s = local_deletion_of_u32(cursor.u32(field)?);
                Ok(Some(DeletionTime {
                    timestamp_us,
                    local_deletion_s,
                }))
            }
        }
    }

    /// Reads a deletion relative to the header's minima. `None` if nothing is deleted.
    pub(super) fn read(
        encoding: &EncodingStats,
        cursor: &mut Cursor<'_>,
    ) -> Result<Option<DeletionTime>, SstableError> {
        let timestamp_us = encoding.timestamp(cursor.vint("timestamp of a deletion")?);
        let local_deletion_s = encoding.local_deletion(cursor.vint("local deletion time")?);
        Ok(DeletionTime::unless_live(timestamp_us, local_deletion_s))
    }
}
