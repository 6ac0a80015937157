//! What rows mean: merge and compaction, passed in by the floors above, and their adapters to SlateDB.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use bytes::Bytes;
use slatedb::{
    CompactionFilter, CompactionFilterDecision, CompactionFilterError, CompactionFilterSupplier,
    CompactionJobContext, Db, MergeOperator, MergeOperatorError, PrefixExtractor, PrefixTarget, RowEntry,
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
    /// A key of this tablet whose current row must be known before `key` is decided on, such as the header of a partition in whose
    /// middle the run begins. Until the compaction is over the tablet still reads its inputs.
    fn needs(&self, key: &[u8]) -> Option<Bytes> {
        let _ = key;
        None
    }
    /// The answer to [`CompactFilter::needs`].
    fn provide(&mut self, key: &Bytes, row: Option<&Bytes>) -> Result<(), HookError> {
        let _ = (key, row);
        Ok(())
    }
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

/// Makes the filters of a tablet's compactions. The database is known only once it is open.
pub(crate) struct Filters {
    pub hooks: Arc<dyn Hooks>,
    pub db: Arc<OnceLock<Db>>,
}

#[async_trait]
impl CompactionFilterSupplier for Filters {
    async fn create_compaction_filter(
        &self,
        context: &CompactionJobContext,
    ) -> Result<Box<dyn CompactionFilter>, CompactionFilterError> {
        let filter = self.hooks.compaction(&CompactionContext {
            is_last_run: context.is_dest_last_run,
            now_ms: context.compaction_clock_tick,
        });
        Ok(Box::new(Filter {
            filter,
            db: self.db.clone(),
            is_last_run: context.is_dest_last_run,
        }))
    }
}

struct Filter {
    filter: Box<dyn CompactFilter>,
    db: Arc<OnceLock<Db>>,
    is_last_run: bool,
}

impl Filter {
    async fn look_up(&mut self, key: Bytes) -> Result<(), CompactionFilterError> {
        let failed =
            |error: Box<dyn std::error::Error + Send + Sync>| CompactionFilterError::FilterError(error);
        let db = self
            .db
            .get()
            .ok_or_else(|| failed("the tablet is still being opened".into()))?;
        let row = db.get(&key).await.map_err(|error| failed(Box::new(error)))?;
        self.filter
            .provide(&key, row.as_ref())
            .map_err(|error| failed(Box::new(error)))
    }
}

#[async_trait]
impl CompactionFilter for Filter {
    async fn filter(&mut self, entry: &RowEntry) -> Result<CompactionFilterDecision, CompactionFilterError> {
        let (value, is_fold_of_all) = match &entry.value {
            ValueDeletable::Value(value) => (value, true),
            ValueDeletable::Merge(value) => (value, false),
            ValueDeletable::Tombstone => return Ok(CompactionFilterDecision::Keep),
        };
        if let Some(needed) = self.filter.needs(&entry.key) {
            self.look_up(needed).await?;
        }
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
