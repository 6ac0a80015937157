//! The interface for merging and purging rows, which the crates above implement ([`DataModel`]), and the adapters to SlateDB.

mod row_filter;

use std::sync::Arc;

use bytes::Bytes;
use slatedb::{MergeOperator, MergeOperatorError, PrefixExtractor, PrefixTarget};

use crate::priority::yield_if_due;

/// Error of a stored row that cannot be decoded, with the reason.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct DataModelError(pub String);

/// Limits of a partition that is kept in the row cache as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptPartition {
    /// Maximum number of rows that may be alive.
    pub rows_max: usize,
    pub bytes_max: usize,
    /// Maximum number of dead rows that are skipped while the partition is read. Dead rows are not kept.
    pub dead_rows_max: usize,
}

/// The meaning of keys and values, defined by the crates above. Callees that need only a part of it take the trait of this part.
///
/// No method has a default: a model that lacks an answer does not compile. [`RowMerge`] comes first, so that a model is passed on as a
/// `RowMerge` at no cost.
pub trait DataModel:
    RowMerge + KeyLayout + RowCachePolicy + TombstoneArchive + SstableRules + 'static
{
}

impl<M> DataModel for M where
    M: RowMerge + KeyLayout + RowCachePolicy + TombstoneArchive + SstableRules + 'static
{
}

/// The merge of rows, and the properties of rows and operands that follow from it.
pub trait RowMerge: Send + Sync {
    /// Folds `operands`, oldest first, into `existing`. The operation must be associative, because the result may itself be an operand
    /// later.
    fn merge(
        &self,
        key: &[u8],
        existing: Option<&Bytes>,
        operands: &[Bytes],
    ) -> Result<Bytes, DataModelError>;

    /// Returns false if the row at `key` may hold data that another key's deletion covers. Such a row must not be copied into newer files
    /// as a whole. A compaction that purges the deletion removes the data only in older files, so the data would reappear in the copy.
    fn may_copy(&self, key: &[u8]) -> bool;

    /// Returns false if `operand` can make no row at `key` alive: the row is dead afterwards, at every time of reading, unless it was alive
    /// before.
    fn may_be_alive(&self, key: &[u8], operand: &Bytes) -> bool;
}

/// The parts of stored keys.
pub trait KeyLayout: Send + Sync {
    /// Returns the number of the table that a stored key belongs to.
    fn table_of(&self, key: &[u8]) -> u32;

    /// Returns the token of a stored key. Tablets that were split drop rows with tokens of the other half. `None` if the key has no token;
    /// such rows are kept.
    fn token_of(&self, key: &[u8]) -> Option<i64>;

    /// Returns the number of leading bytes of `key` that name its partition. `complete` distinguishes a stored key from the prefix of a
    /// scan. For a prefix, the result must hold for each key that begins with it. Reads of SSTables filter partitions by these bytes.
    fn partition_prefix_len(&self, key: &[u8], complete: bool) -> Option<usize>;
}

/// The content of the row cache.
pub trait RowCachePolicy: Send + Sync {
    /// Returns the limits up to which a partition is kept in the row cache as a whole. `key` is a stored key of the partition, or the
    /// beginning of one. `None` if the partition is not kept. The result may change from `None` before the key is first written, and to
    /// `None` when the key is no longer read.
    fn kept_partition(&self, key: &[u8]) -> Option<KeptPartition>;

    /// Returns false if the row at `key` must not be kept in the row cache.
    fn caches_row(&self, key: &[u8]) -> bool;
}

/// The archive of tombstones, which late writes need after a compaction has purged the originals.
pub trait TombstoneArchive: Send + Sync {
    /// Returns the oldest timestamp in `operand` that a deletion could shadow, in µs. `None` if there is none. Clients choose timestamps,
    /// which need not grow from one operand to the next.
    fn oldest_us(&self, key: &[u8], operand: &Bytes) -> Result<Option<i64>, DataModelError>;

    /// Returns the archive key and the tombstones of the row at `key`. `None` if there is nothing to archive. Archive keys are in the same
    /// tablet, and in no range that is scanned.
    fn archive(&self, key: &[u8], row: &Bytes) -> Result<Option<(Bytes, Bytes)>, DataModelError>;

    /// Returns true if `key` is a key of the archive.
    fn is_archive(&self, key: &[u8]) -> bool;

    /// Returns the archive keys of tombstones that may cover the row at `key`. `None` if its table has no archive.
    fn archives_over(&self, key: &[u8]) -> Option<ArchiveKeys>;

    /// Returns the archive keys of tombstones that may cover the row at `origin`, which lies in pinned tablets. `key` is the key of a row
    /// in a current table whose origin is that row. `None` if there is no archive.
    fn archives_of_origin(&self, key: &[u8], origin: &[u8]) -> Option<ArchiveKeys>;

    /// Returns `operand` without the cells that archived tombstones cover: those of the row at `key`, and those of its partition's header.
    fn apply_archived_tombstones(
        &self,
        key: &[u8],
        operand: &Bytes,
        row: Option<&Bytes>,
        header: Option<&Bytes>,
        now_ms: i64,
    ) -> Result<Bytes, DataModelError>;
}

/// The rules for entries while SSTables are written.
pub trait SstableRules: Send + Sync {
    /// Returns a filter for one run of a compaction. The filter sees each key once, in key order, with the operands of the compacted files
    /// already folded. A run may begin and end anywhere in a partition, and its other keys may be in another run at the same time.
    fn compaction(&self, context: &CompactionContext) -> Box<dyn CompactFilter>;

    /// Returns a meter of the partitions of an SSTable while it is written. `None` if sizes are not measured.
    fn partition_meter(&self) -> Option<Box<dyn PartitionMeter>>;
}

/// Keys of the archive that a late write reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveKeys {
    pub row: Bytes,
    /// Archive key of the partition's header. `None` if no partition of the table ever had a header.
    pub header: Option<Bytes>,
    /// Key of the header itself, whose tombstones a purge of the memtables moves to the archive.
    pub unarchived_header: Option<Bytes>,
}

/// A function that returns the oldest timestamp, in µs, of a table's data that is newer than a compaction's inputs. `i64::MAX` if there is
/// no such data, `i64::MIN` if the timestamp is unknown.
pub type MinNewerTimestamp = Arc<dyn Fn(u32) -> i64 + Send + Sync>;

/// One run of a compaction.
#[derive(Clone)]
pub struct CompactionContext {
    /// Wall-clock time of the compaction, in ms.
    pub now_ms: i64,
    /// Timestamps from which tombstones must be kept, by table.
    pub newer: MinNewerTimestamp,
}

/// The overlap of an entry with older runs that do not take part in the compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OlderOverlap {
    /// The older runs have no version of the entry or of the rows that it deletes.
    Nothing,
    /// The older runs may have versions of the entry, all of which it hides. The older runs may also have rows that the entry deletes.
    Hidden,
    /// The older runs may have versions of the entry, or of the rows that it deletes.
    Something,
}

/// The decision on an entry of a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Keep,
    /// The entry has no content, now or together with everything older. Anything older in lower runs stays.
    Drop,
    Replace(Bytes),
}

/// The decision on an entry, with its properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterOutcome {
    pub decision: Decision,
    /// True if part of the entry would be purged without an overlap in the older runs.
    pub purge_blocked: bool,
    /// True if the entry has no live cells.
    pub is_dead: bool,
    /// True if a deletion that covers other keys of its partition was purged.
    pub purged_covering_deletion: bool,
}

/// State of one run of a compaction, such as the partition deletion seen at the partition's header.
pub trait CompactFilter: Send + Sync {
    /// Returns a key of this tablet whose current row must be known before `key` is decided on. An example is the header of a partition in
    /// whose middle the run begins. `None` if nothing more is needed. The tablet still reads the compaction's inputs until the compaction
    /// is over.
    fn needs(&self, key: &[u8]) -> Option<Bytes> {
        let _ = key;
        None
    }
    /// Receives the current row of the key that [`CompactFilter::needs`] has returned. `None` if there is no such row.
    fn provide(&mut self, key: &Bytes, row: Option<&Bytes>) -> Result<(), DataModelError> {
        let _ = (key, row);
        Ok(())
    }
    /// Decides on the next key. The same key is given again when its overlap with older runs is known better. An error abandons the
    /// compaction, which is retried later.
    fn entry(
        &mut self,
        key: &[u8],
        value: &Bytes,
        below: OlderOverlap,
    ) -> Result<FilterOutcome, DataModelError>;
    /// Returns the range of keys that deletions in the entry at `key` cover: a prefix, and the smallest key behind that prefix. `None` if
    /// they cover only `key` itself.
    fn covers(&self, key: &Bytes) -> Option<(Bytes, Option<Bytes>)> {
        let _ = key;
        None
    }
    /// Ends the run, after all entries have been seen.
    fn end(&mut self) {}
}

/// Measures the partitions of one SSTable, or of one run of a compaction.
pub trait PartitionMeter: Send + Sync {
    /// Adds the next entry that is written, in key order.
    fn add(&mut self, key: &[u8], value: &Bytes);
    /// Ends the measurement, after all entries have been added.
    fn end(&mut self);
}

pub(crate) struct Merge(pub Arc<dyn RowMerge>);

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

pub(crate) struct Partitions(pub Arc<dyn KeyLayout>);

impl PrefixExtractor for Partitions {
    fn name(&self) -> &str {
        "helenus.partition.1"
    }

    fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
        // This function is called once for each row of an SSTable that is written.
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
