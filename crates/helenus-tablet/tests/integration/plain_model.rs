//! A data model of rows without tables, deletions and archive, for tests and examples.

use bytes::Bytes;
use helenus_tablet::{
    ArchiveKeys, CompactFilter, CompactionContext, DataModelError, Decision, FilterOutcome, KeptPartition,
    KeyLayout, OlderOverlap, PartitionMeter, RowCachePolicy, RowMerge, SstableRules, TombstoneArchive,
};

type MergeFn = fn(&[u8], Option<&Bytes>, &[Bytes]) -> Result<Bytes, DataModelError>;

/// A data model. The fields are the answers in which the models of tests differ; the other answers are the same for all of them.
#[derive(Clone, Copy)]
pub struct PlainModel {
    pub merge: MergeFn,
    pub may_be_alive: fn(&[u8], &Bytes) -> bool,
    pub token_of: fn(&[u8]) -> Option<i64>,
    pub partition_prefix_len: fn(&[u8]) -> Option<usize>,
    pub kept_partition: fn(&[u8]) -> Option<KeptPartition>,
    pub compaction: fn(&CompactionContext) -> Box<dyn CompactFilter>,
}

impl PlainModel {
    /// Returns a model whose rows are always alive. Keys have no token and no partition, and compactions drop nothing.
    pub const fn new(merge: MergeFn) -> PlainModel {
        PlainModel {
            merge,
            may_be_alive: |_, _| true,
            token_of: |_| None,
            partition_prefix_len: |_| None,
            kept_partition: |_| None,
            compaction: |_| Box::new(KeepAll),
        }
    }
}

impl RowMerge for PlainModel {
    fn merge(
        &self,
        key: &[u8],
        existing: Option<&Bytes>,
        operands: &[Bytes],
    ) -> Result<Bytes, DataModelError> {
        (self.merge)(key, existing, operands)
    }

    fn may_copy(&self, _key: &[u8]) -> bool {
        true
    }

    fn may_be_alive(&self, key: &[u8], operand: &Bytes) -> bool {
        (self.may_be_alive)(key, operand)
    }
}

impl KeyLayout for PlainModel {
    fn table_of(&self, _key: &[u8]) -> u32 {
        0
    }

    fn token_of(&self, key: &[u8]) -> Option<i64> {
        (self.token_of)(key)
    }

    fn partition_prefix_len(&self, key: &[u8], _complete: bool) -> Option<usize> {
        (self.partition_prefix_len)(key)
    }
}

impl RowCachePolicy for PlainModel {
    fn kept_partition(&self, key: &[u8]) -> Option<KeptPartition> {
        (self.kept_partition)(key)
    }

    fn caches_row(&self, _key: &[u8]) -> bool {
        true
    }
}

/// No tombstone is archived, and no write is late.
impl TombstoneArchive for PlainModel {
    fn oldest_us(&self, _key: &[u8], _operand: &Bytes) -> Result<Option<i64>, DataModelError> {
        Ok(None)
    }

    fn archive(&self, _key: &[u8], _row: &Bytes) -> Result<Option<(Bytes, Bytes)>, DataModelError> {
        Ok(None)
    }

    fn is_archive(&self, _key: &[u8]) -> bool {
        false
    }

    fn archives_over(&self, _key: &[u8]) -> Option<ArchiveKeys> {
        None
    }

    fn archives_of_origin(&self, _key: &[u8], _origin: &[u8]) -> Option<ArchiveKeys> {
        None
    }

    fn apply_archived_tombstones(
        &self,
        _key: &[u8],
        operand: &Bytes,
        _row: Option<&Bytes>,
        _header: Option<&Bytes>,
        _now_ms: i64,
    ) -> Result<Bytes, DataModelError> {
        Ok(operand.clone())
    }
}

impl SstableRules for PlainModel {
    fn compaction(&self, context: &CompactionContext) -> Box<dyn CompactFilter> {
        (self.compaction)(context)
    }

    fn partition_meter(&self) -> Option<Box<dyn PartitionMeter>> {
        None
    }
}

/// A compaction filter that drops nothing.
struct KeepAll;

impl CompactFilter for KeepAll {
    fn entry(
        &mut self,
        _key: &[u8],
        _value: &Bytes,
        _below: OlderOverlap,
    ) -> Result<FilterOutcome, DataModelError> {
        Ok(FilterOutcome {
            decision: Decision::Keep,
            purge_blocked: false,
            is_dead: false,
            purged_covering_deletion: false,
        })
    }
}
