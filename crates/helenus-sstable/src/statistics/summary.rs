//! Minima, maxima and other facts of a whole SSTable (`io.sstable.metadata.StatsMetadata`).

use bytes::Bytes;
use uuid::Uuid;

use super::encoding::{local_deletion_of_i32, local_deletion_of_u32};
use super::header::{SerializationHeader, column_type};
use crate::clustering::{Bound, read_bound};
use crate::cursor::Cursor;
use crate::error::SstableError;
use crate::file_name::STATISTICS;
use crate::version::Version;

/// Bytes of a pair in an `EstimatedHistogram`.
const BUCKET_BYTES: usize = 16;
/// Bytes of a position in the commit log (`CommitLogPosition`).
const POSITION_BYTES: usize = 12;

/// The clusterings that an SSTable can contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoveredClusterings {
    /// Minimum and maximum of each clustering column, up to the first one without. Before `oa`.
    Columns { min: Vec<Bytes>, max: Vec<Bytes> },
    /// A slice, since `oa`.
    Slice { start: Bound, end: Bound },
}

/// Facts of a whole SSTable. Histograms are skipped.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub min_timestamp_us: i64,
    pub max_timestamp_us: i64,
    /// [`super::NO_DELETION_TIME_S`] if there is no deletion and no TTL.
    pub min_local_deletion_s: i64,
    /// [`super::NO_DELETION_TIME_S`] if some data is neither deleted nor expiring.
    pub max_local_deletion_s: i64,
    pub min_ttl_s: i32,
    pub max_ttl_s: i32,
    /// Compressed by uncompressed length. Negative if the SSTable isn't compressed.
    pub compression_ratio: f64,
    /// Level of leveled compaction. 0 with other strategies.
    pub level: i32,
    /// Time of the repair in ms since 1970. 0 if not repaired.
    pub repaired_at_ms: i64,
    pub covered: CoveredClusterings,
    /// True if some counters have local or remote shards.
    pub has_legacy_counter_shards: bool,
    pub cells: i64,
    pub rows: i64,
    /// Session of a repair that has not ended. `None` if there is none, and before `na`.
    pub pending_repair: Option<Uuid>,
    /// True if the SSTable is of a transient replica. False before `na`.
    pub is_transient: bool,
    /// Host that wrote the file. `None` if unknown, and in `md` and `na`.
    pub originating_host_id: Option<Uuid>,
    /// `None` before `oa`.
    pub has_partition_deletions: Option<bool>,
    /// First and last partition key. `None` before `oa`.
    pub key_range: Option<(Bytes, Bytes)>,
    /// Share of the tokens that the SSTable covers. `None` before `oa`; not a number if unknown.
    pub token_space_coverage: Option<f64>,
}

impl Summary {
    pub(super) fn decode(
        version: Version,
        bytes: &Bytes,
        start: u64,
        header: &SerializationHeader,
    ) -> Result<Summary, SstableError> {
        let mut cursor = Cursor::new(bytes, STATISTICS, start);
        decode(version, bytes, &mut cursor, header).map_err(SstableError::within_item)
    }
}

fn decode(
    version: Version,
    bytes: &Bytes,
    cursor: &mut Cursor<'_>,
    header: &SerializationHeader,
) -> Result<Summary, SstableError> {
    skip_list(cursor, BUCKET_BYTES, "histogram of partition sizes")?;
    skip_list(cursor, BUCKET_BYTES, "histogram of cells")?;
    cursor.take(POSITION_BYTES, "upper bound in the commit log")?;
    let min_timestamp_us = cursor.i64("minimum timestamp")?;
    let max_timestamp_us = cursor.i64("maximum timestamp")?;
    let min_local_deletion_s = local_deletion(version, cursor)?;
    let max_local_deletion_s = local_deletion(version, cursor)?;
    let min_ttl_s = cursor.i32("minimum TTL")?;
    let max_ttl_s = cursor.i32("maximum TTL")?;
    let compression_ratio = cursor.f64("compression ratio")?;
    skip_tombstone_histogram(version, cursor)?;
    let level = cursor.i32("level")?;
    let repaired_at_ms = cursor.i64("time of the repair")?;
    let covered = covered_clusterings(version, bytes, cursor, header)?;
    let has_legacy_counter_shards = cursor.bool("mark of legacy counter shards")?;
    let cells = cursor.i64("number of cells")?;
    let rows = cursor.i64("number of rows")?;
    cursor.take(POSITION_BYTES, "lower bound in the commit log")?;
    skip_list(cursor, 2 * POSITION_BYTES, "intervals in the commit log")?;
    let pending_repair = optional_uuid(version.has_pending_repair(), cursor, "pending repair")?;
    let is_transient = version.has_is_transient() && cursor.bool("mark of transient replication")?;
    let originating_host_id = optional_uuid(version.has_originating_host_id(), cursor, "originating host")?;
    let (mut has_partition_deletions, mut key_range, mut token_space_coverage) = (None, None, None);
    if version.has_key_range() {
        has_partition_deletions = Some(cursor.bool("mark of partition deletions")?);
        let first = bytes.slice_ref(cursor.vint_bytes("first key")?);
        key_range = Some((first, bytes.slice_ref(cursor.vint_bytes("last key")?)));
        token_space_coverage = Some(cursor.f64("coverage of the tokens")?);
    }
    Ok(Summary {
        min_timestamp_us,
        max_timestamp_us,
        min_local_deletion_s,
        max_local_deletion_s,
        min_ttl_s,
        max_ttl_s,
        compression_ratio,
        level,
        repaired_at_ms,
        covered,
        has_legacy_counter_shards,
        cells,
        rows,
        pending_repair,
        is_transient,
        originating_host_id,
        has_partition_deletions,
        key_range,
        token_space_coverage,
    })
}

fn skip_list(cursor: &mut Cursor<'_>, item_bytes: usize, field: &'static str) -> Result<(), SstableError> {
    let place = cursor.clone();
    let count = cursor.i32(field)?;
    let len = usize::try_from(count)
        .ok()
        .and_then(|count| count.checked_mul(item_bytes))
        .ok_or_else(|| place.corrupt(format!("{field}: the count {count} is negative")))?;
    cursor.take(len, field).map(drop)
}

/// Skips the histogram of deletion times (`utils.streamhist.TombstoneHistogram`).
fn skip_tombstone_histogram(version: Version, cursor: &mut Cursor<'_>) -> Result<(), SstableError> {
    let bin_bytes = if version.has_uint_deletion_time() { 12 } else { 16 };
    cursor.i32("size of the histogram of deletions")?;
    skip_list(cursor, bin_bytes, "histogram of deletions")
}

fn local_deletion(version: Version, cursor: &mut Cursor<'_>) -> Result<i64, SstableError> {
    let field = "local deletion time";
    if version.has_uint_deletion_time() {
        cursor.u32(field).map(local_deletion_of_u32)
    } else {
        cursor.i32(field).map(local_deletion_of_i32)
    }
}

fn covered_clusterings(
    version: Version,
    bytes: &Bytes,
    cursor: &mut Cursor<'_>,
    header: &SerializationHeader,
) -> Result<CoveredClusterings, SstableError> {
    if version.has_improved_min_max() {
        // The types are those at the time of writing, which may be fewer or others than those of the header.
        let mut types = Vec::new();
        for _ in 0..cursor.vint("number of clustering types")? {
            types.push(column_type(cursor, "clustering type")?.frozen());
        }
        let types = if types.is_empty() {
            &header.clustering_types
        } else {
            &types
        };
        return Ok(CoveredClusterings::Slice {
            start: read_bound(bytes, cursor, types)?,
            end: read_bound(bytes, cursor, types)?,
        });
    }
    let mut values = || {
        let mut values = Vec::new();
        for _ in 0..cursor.u32("number of covered clusterings")? {
            values.push(bytes.slice_ref(cursor.short_bytes("covered clustering")?));
        }
        Ok::<_, SstableError>(values)
    };
    Ok(CoveredClusterings::Columns {
        min: values()?,
        max: values()?,
    })
}

/// Reads a mark and, if it isn't 0, a UUID. `None` if the version has neither.
fn optional_uuid(
    is_present: bool,
    cursor: &mut Cursor<'_>,
    field: &'static str,
) -> Result<Option<Uuid>, SstableError> {
    if !is_present || !cursor.bool(field)? {
        return Ok(None);
    }
    cursor.u128(field).map(|bits| Some(Uuid::from_u128(bits)))
}
