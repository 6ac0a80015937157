//! Merge and purge of rows, supplied by the crates above ([`DataModel`]), and the adapters to SlateDB.

mod row_filter;

use std::sync::Arc;

use bytes::Bytes;
use slatedb::{MergeOperator, MergeOperatorError, PrefixExtractor, PrefixTarget};

use crate::priority::yield_if_due;

/// A stored row cannot be understood; the text says why.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct DataModelError(pub String);

/// How large a partition may be that is kept in the row cache as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptPartition {
    /// Rows that may be alive, and their bytes.
    pub rows_max: usize,
    pub bytes_max: usize,
    /// Dead rows that are passed over to find these. They are not kept.
    pub dead_rows_max: usize,
}

/// The meaning of keys and values, given by the data model.
pub trait DataModel: Send + Sync + 'static {
    /// Folds `operands`, oldest first, into `existing`. Must be associative; the result may itself be an operand later.
    fn merge(
        &self,
        key: &[u8],
        existing: Option<&Bytes>,
        operands: &[Bytes],
    ) -> Result<Bytes, DataModelError>;

    /// Returns a filter for one run of a compaction. It sees each key once, in key order, its operands of the compacted files already
    /// folded. A run may begin and end anywhere in a partition, and its other keys may be in another run at the same time.
    fn compaction(&self, context: &CompactionContext) -> Box<dyn CompactFilter>;

    /// Returns false if the row at `key` may hold data that another key's deletion covers. It must then not be copied into newer files as a
    /// whole: a compaction that purges the deletion removes the data in older files, and the copy would reappear.
    fn may_copy(&self, key: &[u8]) -> bool {
        let _ = key;
        true
    }

    /// How large the partition of `key`, a stored key or the beginning of one, may be to be kept in the row cache as a whole; none if it is not
    /// to be kept. The result for a key may change from none before the key is first written, and to none when it is no longer read.
    fn kept_partition(&self, key: &[u8]) -> Option<KeptPartition> {
        let _ = key;
        None
    }

    /// Returns false if the row at `key` is not to be kept in the row cache.
    fn caches_row(&self, key: &[u8]) -> bool {
        let _ = key;
        true
    }

    /// What measures the partitions of an SSTable while it is written; none if nobody asks for their sizes.
    fn partition_meter(&self) -> Option<Box<dyn PartitionMeter>> {
        None
    }

    /// Returns the number of the table that a stored key belongs to.
    fn table_of(&self, key: &[u8]) -> u32 {
        let _ = key;
        0
    }

    /// Returns the oldest timestamp, in µs, in `operand` that a deletion could shadow; `None` if there is none. Clients choose timestamps:
    /// they need not grow from one operand to the next.
    fn oldest_us(&self, key: &[u8], operand: &Bytes) -> Result<Option<i64>, DataModelError> {
        let _ = (key, operand);
        Ok(None)
    }

    /// Returns false if `operand` leaves nothing alive of the row at `key`, whatever the row was and at whatever time it is read, unless it
    /// was alive before.
    fn may_be_alive(&self, key: &[u8], operand: &Bytes) -> bool {
        let _ = (key, operand);
        true
    }

    /// Returns the archive key and the tombstones of the row at `key`, for late writes after a compaction has purged the originals. Archive
    /// keys are in the same tablet, and in no range that is scanned.
    fn archive(&self, key: &[u8], row: &Bytes) -> Result<Option<(Bytes, Bytes)>, DataModelError> {
        let _ = (key, row);
        Ok(None)
    }

    /// Returns true for the keys of the archive.
    fn is_archive(&self, key: &[u8]) -> bool {
        let _ = key;
        false
    }

    /// Where the tombstones over the row at `key` may be archived; none if its table has no archive.
    fn archives_over(&self, key: &[u8]) -> Option<ArchiveKeys> {
        let _ = key;
        None
    }

    /// Where the tombstones over the row at `origin`, which lies in pinned tablets, may be archived, if the row at `key`, of a table of today, has
    /// it as its origin.
    fn archives_of_origin(&self, key: &[u8], origin: &[u8]) -> Option<ArchiveKeys> {
        let _ = (key, origin);
        None
    }

    /// `operand` as it is under archived tombstones: those of the row at `key`, and those of its partition's header.
    fn apply_archived_tombstones(
        &self,
        key: &[u8],
        operand: &Bytes,
        row: Option<&Bytes>,
        header: Option<&Bytes>,
        now_ms: i64,
    ) -> Result<Bytes, DataModelError> {
        let _ = (key, row, header, now_ms);
        Ok(operand.clone())
    }

    /// Returns the token in a stored key. Tablets that were split drop the other half's rows by it; without it they keep them.
    fn token_of(&self, key: &[u8]) -> Option<i64> {
        let _ = key;
        None
    }

    /// Returns the number of leading bytes of `key` that name its partition. `complete` distinguishes a stored key from the prefix of a
    /// scan, for which the result must hold for each key that begins with it. Reads of SSTables filter partitions by it.
    fn partition_prefix_len(&self, key: &[u8], complete: bool) -> Option<usize> {
        let _ = (key, complete);
        None
    }
}

/// Keys of the archive that a late write looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveKeys {
    pub row: Bytes,
    /// None if no partition of the table ever had a header.
    pub header: Option<Bytes>,
    /// The header itself, whose tombstones a purge of the memtables moves to the archive.
    pub unarchived_header: Option<Bytes>,
}

/// The oldest timestamp, in µs, of a table's data that is newer than a compaction's inputs; `i64::MAX` if there is none, `i64::MIN` if it is
/// unknown.
pub type MinNewerTimestamp = Arc<dyn Fn(u32) -> i64 + Send + Sync>;

/// One run of a compaction.
#[derive(Clone)]
pub struct CompactionContext {
    /// Wall-clock time of the compaction, in ms.
    pub now_ms: i64,
    /// A tombstone that is not older than this must be kept.
    pub newer: MinNewerTimestamp,
}

/// The overlap of an entry with older runs that do not take part in the compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OlderOverlap {
    /// No older version of the entry or of the rows that it deletes.
    Nothing,
    /// Possibly older versions of the entry, all of which it hides. Rows that it deletes may be there too.
    Hidden,
    /// Possibly older versions of the entry, or of the rows that it deletes.
    Something,
}

/// The decision on an entry of a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Keep,
    /// The entry is nothing, now and with everything older. Where something is below, that stays.
    Drop,
    Replace(Bytes),
}

/// The decision on an entry, with its properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterOutcome {
    pub decision: Decision,
    /// Part of the entry would be purged if the older runs had no overlap.
    pub purge_blocked: bool,
    /// The entry has no live cells.
    pub is_dead: bool,
    /// A deletion that covers other keys of its partition was purged.
    pub purged_covering_deletion: bool,
}

/// State of one run of a compaction, such as the partition deletion seen at the partition's header.
pub trait CompactFilter: Send + Sync {
    /// Returns a key of this tablet whose current row must be known before `key` is decided on, such as the header of a partition in whose
    /// middle the run begins. Until the compaction is over the tablet still reads its inputs.
    fn needs(&self, key: &[u8]) -> Option<Bytes> {
        let _ = key;
        None
    }
    /// The answer to [`CompactFilter::needs`].
    fn provide(&mut self, key: &Bytes, row: Option<&Bytes>) -> Result<(), DataModelError> {
        let _ = (key, row);
        Ok(())
    }
    /// Decides on the next key, or on the same one again when more is known of the overlap. An error abandons the compaction, which is retried
    /// later.
    fn entry(
        &mut self,
        key: &[u8],
        value: &Bytes,
        below: OlderOverlap,
    ) -> Result<FilterOutcome, DataModelError>;
    /// Returns the keys that deletions in the entry at `key` are about, if there are others than the key itself: their prefix, and the
    /// least key behind those with it.
    fn covers(&self, key: &Bytes) -> Option<(Bytes, Option<Bytes>)> {
        let _ = key;
        None
    }
    /// All entries have been seen.
    fn end(&mut self) {}
}

/// Measures the partitions of one SSTable, or of one run of a compaction.
pub trait PartitionMeter: Send + Sync {
    /// The next entry that is written, in key order.
    fn add(&mut self, key: &[u8], value: &Bytes);
    /// All entries have been seen.
    fn end(&mut self);
}

pub(crate) struct Merge(pub Arc<dyn DataModel>);

impl MergeOperator for Merge {
    fn merge(&self, key: &Bytes, existing: Option<Bytes>, value: Bytes) -> Result<Bytes, MergeOperatorError> {
        self.merge_batch(key, existing, &[value])
    }

    fn merge_batch(
        &self,
        key: &Bytes,
        existing: Option<Bytes>,
        operands: &[Bytes],
    ) -> Result<Bytes, MergeOperatorError> {
        match (&existing, operands) {
            (None, []) => return Err(MergeOperatorError::EmptyBatch),
            (None, [only]) => return Ok(only.clone()),
            (Some(existing), []) => return Ok(existing.clone()),
            _ => {}
        }
        self.0
            .merge(key, existing.as_ref(), operands)
            .map_err(|error| MergeOperatorError::Callback { message: error.0 })
    }
}

pub(crate) struct Partitions(pub Arc<dyn DataModel>);

impl PrefixExtractor for Partitions {
    fn name(&self) -> &str {
        "helenus.partition.1"
    }

    fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
        // Once for each row of an SSTable that is written.
        yield_if_due();
        let (bytes, complete) = match target {
            PrefixTarget::Point(key) => (key, true),
            PrefixTarget::Prefix(prefix) => (prefix, false),
        };
        self.0
            .partition_prefix_len(bytes, complete)
            .filter(|&len| len <= bytes.len())
    }
}
