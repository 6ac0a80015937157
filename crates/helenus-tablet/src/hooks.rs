//! What rows mean: merge and compaction, passed in by the floors above, and their adapters to SlateDB.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use slatedb::{
    CompactionFilter, CompactionFilterDecision, CompactionFilterError, CompactionFilterSupplier,
    CompactionJobContext, MergeOperator, MergeOperatorError, PrefixExtractor, PrefixTarget, RowEntry,
    ValueDeletable,
};

/// A stored row cannot be understood; the text says why.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct HookError(pub String);

/// The meaning of keys and values, given by the data model.
pub trait Hooks: Send + Sync + 'static {
    /// Folds `operands`, oldest first, into `existing`. Must be associative; the result may itself be an operand later.
    fn merge(&self, key: &[u8], existing: Option<&Bytes>, operands: &[Bytes]) -> Result<Bytes, HookError>;

    /// A filter for one run of a compaction. It sees each key once, in key order, its operands of the compacted files already folded.
    /// A run may begin and end anywhere in a partition, and its other keys may be in another run at the same time.
    fn compaction(&self, context: &CompactionContext) -> Box<dyn CompactFilter>;

    /// How many leading bytes of `key` name its partition. `complete` tells a stored key from the prefix of a scan, for which the
    /// answer must hold for each key that begins with it. Partitions are filtered by it when SSTables are read.
    fn partition_prefix_len(&self, key: &[u8], complete: bool) -> Option<usize> {
        let _ = (key, complete);
        None
    }
}

/// One run of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionContext {
    /// Nothing older than what is compacted lies below.
    pub is_last_run: bool,
    /// Wall-clock time of the compaction, in ms.
    pub now_ms: i64,
}

/// What becomes of an entry in a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Keep,
    /// The entry is nothing, now and with everything older. Before the last run what is older stays below.
    Drop,
    Replace(Bytes),
}

/// State of one run of a compaction, such as the partition deletion seen at the partition's header.
pub trait CompactFilter: Send + Sync {
    /// Decides on the next key. An error abandons the compaction, which is tried again later.
    fn entry(&mut self, key: &[u8], value: &Bytes) -> Result<Decision, HookError>;
    /// All entries have been seen.
    fn end(&mut self) {}
}

pub(crate) struct Merge(pub Arc<dyn Hooks>);

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

pub(crate) struct Filters(pub Arc<dyn Hooks>);

#[async_trait]
impl CompactionFilterSupplier for Filters {
    async fn create_compaction_filter(
        &self,
        context: &CompactionJobContext,
    ) -> Result<Box<dyn CompactionFilter>, CompactionFilterError> {
        let filter = self.0.compaction(&CompactionContext {
            is_last_run: context.is_dest_last_run,
            now_ms: context.compaction_clock_tick,
        });
        Ok(Box::new(Filter {
            filter,
            is_last_run: context.is_dest_last_run,
        }))
    }
}

struct Filter {
    filter: Box<dyn CompactFilter>,
    is_last_run: bool,
}

#[async_trait]
impl CompactionFilter for Filter {
    async fn filter(&mut self, entry: &RowEntry) -> Result<CompactionFilterDecision, CompactionFilterError> {
        let (value, is_fold_of_all) = match &entry.value {
            ValueDeletable::Value(value) => (value, true),
            ValueDeletable::Merge(value) => (value, false),
            ValueDeletable::Tombstone => return Ok(CompactionFilterDecision::Keep),
        };
        let decision = self
            .filter
            .entry(&entry.key, value)
            .map_err(|error| CompactionFilterError::FilterError(Box::new(error)))?;
        Ok(match decision {
            Decision::Keep => CompactionFilterDecision::Keep,
            // A whole value hides the older operands below it: dropped, it would uncover them.
            Decision::Drop if is_fold_of_all && !self.is_last_run => {
                CompactionFilterDecision::Modify(ValueDeletable::Tombstone)
            }
            Decision::Drop => CompactionFilterDecision::Drop,
            Decision::Replace(bytes) if is_fold_of_all => {
                CompactionFilterDecision::Modify(ValueDeletable::Value(bytes))
            }
            Decision::Replace(bytes) => CompactionFilterDecision::Modify(ValueDeletable::Merge(bytes)),
        })
    }

    async fn on_compaction_end(&mut self) -> Result<(), CompactionFilterError> {
        self.filter.end();
        Ok(())
    }
}

pub(crate) struct Partitions(pub Arc<dyn Hooks>);

impl PrefixExtractor for Partitions {
    fn name(&self) -> &str {
        "helenus.partition.1"
    }

    fn prefix_len(&self, target: &PrefixTarget) -> Option<usize> {
        let (bytes, complete) = match target {
            PrefixTarget::Point(key) => (key, true),
            PrefixTarget::Prefix(prefix) => (prefix, false),
        };
        self.0
            .partition_prefix_len(bytes, complete)
            .filter(|&len| len <= bytes.len())
    }
}
