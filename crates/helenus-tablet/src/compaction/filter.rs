//! Applies the data model's [`CompactFilter`] to the entries of a compaction, and checks which of their keys the older runs may have.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use helenus_row::TokenRange;
use slatedb::{
    CompactionFilter, CompactionFilterDecision, CompactionFilterError, CompactionFilterSupplier,
    CompactionJobContext, Db, RowEntry, ValueDeletable,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::CompactionState;
use super::overlap::{OlderRuns, Tables};
use super::state::CompactionJob;
use crate::cache::generations;
use crate::cache::generations::CacheGenerations;
use crate::clock::StoreClock;
use crate::data_model::{
    CompactFilter, CompactionContext, DataModel, Decision, FilterOutcome, MinNewerTimestamp, OlderOverlap,
    PartitionMeter,
};
use crate::priority::yield_if_due;

/// Sampling interval of rows: one in this many is looked up in the older runs, to estimate how many of them it covers.
const SAMPLE: u64 = 8;
/// Maximum time to wait for late writes in progress. A compaction that begins before they end purges no tombstone.
const LATE_WRITES_TIMEOUT: Duration = Duration::from_secs(1);
/// Minimum bytes of Bloom filters that may be read for a compaction.
const FILTER_BYTES_MIN: u64 = 8 << 20;

/// Creates the filters of a tablet's compactions. The database becomes known only when it is open.
pub(crate) struct Filters {
    pub model: Arc<dyn DataModel>,
    pub db: Arc<OnceLock<Db>>,
    pub compactions: Arc<CompactionState>,
    pub tables: Arc<Tables>,
    pub clock: Arc<StoreClock>,
    /// Limits the parts of compactions that run concurrently, over all tablets.
    pub slots: Arc<Semaphore>,
    /// Token range of the tablet: rows outside it are dropped. `None` if all rows are kept.
    pub only: Option<TokenRange>,
}

#[async_trait]
impl CompactionFilterSupplier for Filters {
    async fn create_compaction_filter(
        &self,
        context: &CompactionJobContext,
    ) -> Result<Box<dyn CompactionFilter>, CompactionFilterError> {
        let failed = |error| CompactionFilterError::CreationError(Box::new(error));
        let slot = self.slots.clone().acquire_owned().await.map_err(failed)?;
        let job = self.compactions.job(context.destination);
        let filter = self.model.compaction(&CompactionContext {
            // Expiry is decided by the machine's clock, as in reads. The last flush's tick or the store's clock may be far ahead, and would
            // purge cells that reads still return.
            now_ms: self.clock.machine_ms(),
            newer: self.newer(job.as_deref()).await,
        });
        let older = job.as_ref().and_then(|job| {
            let budget = (job.input_bytes / 2).max(FILTER_BYTES_MIN);
            Some(OlderRuns::new(self.tables.clone(), job.older.clone()?, budget))
        });
        Ok(Box::new(Filter {
            filter,
            db: self.db.clone(),
            lowest: context.is_dest_last_run,
            folded_up_to: context.retention_min_seq.unwrap_or(u64::MAX),
            older,
            counts: Counts::default(),
            compactions: self.compactions.clone(),
            job,
            meter: self.model.partition_meter(),
            model: self.model.clone(),
            began: Instant::now(),
            only: self.only,
            _slot: slot,
        }))
    }
}

impl Filters {
    /// Returns the oldest timestamps of data newer than the job's inputs, after late writes in progress have ended. Writes that begin later
    /// look into the archive.
    async fn newer(&self, job: Option<&CompactionJob>) -> MinNewerTimestamp {
        // The wait is limited, because a late write may itself wait for space that only a compaction frees.
        let quiet = tokio::time::timeout(LATE_WRITES_TIMEOUT, self.compactions.late.write()).await;
        let oldest = job
            .and_then(|job| job.newest_seq)
            .filter(|_| quiet.is_ok())
            .and_then(|seq| self.compactions.write_times.newer_than(seq));
        match oldest {
            Some(oldest) => Arc::new(move |table| oldest.get(&table).copied().unwrap_or(i64::MAX)),
            None => Arc::new(|_| i64::MIN),
        }
    }
}

/// Number of entries between two updates of the job's progress.
const REPORT_EVERY: u32 = 1024;

#[derive(Default)]
struct Counts {
    /// Entries and bytes that are not yet added to the job's progress.
    unreported: u32,
    unreported_bytes: u64,
    rows: u64,
    dead: u64,
    covering: u64,
    newest_seq: u64,
}

struct Filter {
    filter: Box<dyn CompactFilter>,
    db: Arc<OnceLock<Db>>,
    /// True if no run is older than the output.
    lowest: bool,
    /// Sequence number up to which each key has one version. Above it, a key may have several versions that snapshots need, so these
    /// entries are kept unchanged.
    folded_up_to: u64,
    older: Option<OlderRuns>,
    counts: Counts,
    compactions: Arc<CompactionState>,
    /// The job of this compaction. `None` if an earlier process began it.
    job: Option<Arc<CompactionJob>>,
    /// Measures the partitions that are written. `None` if the data model does not measure them.
    meter: Option<Box<dyn PartitionMeter>>,
    model: Arc<dyn DataModel>,
    began: Instant,
    only: Option<TokenRange>,
    _slot: OwnedSemaphorePermit,
}

impl Drop for Filter {
    fn drop(&mut self) {
        if let Some(job) = &self.job {
            let nanos = self.began.elapsed().as_nanos() as u64;
            job.output.busy_nanos.fetch_add(nanos, Ordering::Relaxed);
        }
    }
}

impl Filter {
    /// Returns true for a row that the tablet no longer owns since its split. No request reads such a row here.
    fn is_foreign(&self, key: &[u8]) -> bool {
        self.only.is_some_and(|tokens| {
            let token = self.model.token_of(key);
            token.is_some_and(|token| !tokens.contains(token))
        })
    }

    /// Counts an entry as processed.
    fn pass(&mut self, entry: &RowEntry) {
        self.counts.unreported += 1;
        self.counts.unreported_bytes += (entry.key.len() + entry.value.len()) as u64;
        if self.counts.unreported >= REPORT_EVERY {
            self.report();
        }
    }

    fn report(&mut self) {
        let bytes = std::mem::take(&mut self.counts.unreported_bytes);
        self.counts.unreported = 0;
        if let Some(job) = &self.job {
            job.output.done_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

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

    /// Returns true if an older run may have the key. Also true if the older runs are unknown.
    async fn is_below(&mut self, key: &Bytes) -> bool {
        match &mut self.older {
            _ if self.lowest => false,
            Some(older) => older.may_have_key(key).await,
            None => true,
        }
    }

    /// Returns true if an older run may have rows that the entry's deletions cover. Also true if the older runs are unknown.
    async fn is_covered_below(&mut self, key: &Bytes) -> bool {
        let covered = self.filter.covers(key);
        match &mut self.older {
            _ if self.lowest => false,
            Some(older) => match covered {
                None => older.may_have_key(key).await,
                Some((prefix, end)) => older.may_have_prefix(&prefix, end.as_ref()).await,
            },
            None => true,
        }
    }

    fn entry(
        &mut self,
        key: &Bytes,
        value: &Bytes,
        below: OlderOverlap,
    ) -> Result<FilterOutcome, CompactionFilterError> {
        self.filter
            .entry(key, value, below)
            .map_err(|error| CompactionFilterError::FilterError(Box::new(error)))
    }

    async fn decide(
        &mut self,
        key: &Bytes,
        value: &Bytes,
        is_whole: bool,
    ) -> Result<FilterOutcome, CompactionFilterError> {
        let below = match is_whole {
            _ if self.lowest => OlderOverlap::Nothing,
            true => OlderOverlap::Hidden,
            false => OlderOverlap::Something,
        };
        let verdict = self.entry(key, value, below)?;
        if verdict.purge_blocked && !self.is_covered_below(key).await {
            return self.entry(key, value, OlderOverlap::Nothing);
        }
        Ok(verdict)
    }

    /// Keeps the rows of a partition out of the row cache, because its deletion is purged. Caching resumes when readers see the output.
    fn hold_generation(&self, key: &Bytes) {
        let prefix = self.model.partition_prefix_len(key, true);
        if let (Some(job), Some(prefix)) = (&self.job, prefix.and_then(|len| key.get(..len))) {
            self.compactions
                .purge_started(job, CacheGenerations::slot(generations::hash(prefix)));
        }
    }

    /// Adds the written form of an entry to the partition meter.
    fn measure(&mut self, entry: &RowEntry, decision: &CompactionFilterDecision) {
        let Some(meter) = &mut self.meter else {
            return;
        };
        let written = match decision {
            CompactionFilterDecision::Keep => &entry.value,
            CompactionFilterDecision::Modify(written) => written,
            CompactionFilterDecision::Drop => return,
        };
        if let ValueDeletable::Value(value) | ValueDeletable::Merge(value) = written {
            meter.add(&entry.key, value);
        }
    }

    async fn count(&mut self, key: &Bytes, verdict: &FilterOutcome) {
        self.counts.rows += 1;
        self.counts.dead += u64::from(verdict.is_dead);
        if !self.lowest && self.counts.rows.is_multiple_of(SAMPLE) && self.is_below(key).await {
            self.counts.covering += SAMPLE;
        }
    }

    async fn decide_entry(
        &mut self,
        entry: &RowEntry,
    ) -> Result<CompactionFilterDecision, CompactionFilterError> {
        self.counts.newest_seq = self.counts.newest_seq.max(entry.seq);
        if self.is_foreign(&entry.key) {
            return Ok(CompactionFilterDecision::Drop);
        }
        if entry.seq > self.folded_up_to {
            return Ok(CompactionFilterDecision::Keep);
        }
        let (value, is_whole) = match &entry.value {
            ValueDeletable::Value(value) => (value, true),
            ValueDeletable::Merge(value) => (value, false),
            ValueDeletable::Tombstone => {
                return Ok(match self.is_below(&entry.key).await {
                    true => CompactionFilterDecision::Keep,
                    false => CompactionFilterDecision::Drop,
                });
            }
        };
        if let Some(needed) = self.filter.needs(&entry.key) {
            self.look_up(needed).await?;
        }
        let verdict = self.decide(&entry.key, value, is_whole).await?;
        if verdict.purged_covering_deletion {
            self.hold_generation(&entry.key);
        }
        if verdict.decision != Decision::Drop && !self.model.is_archive(&entry.key) {
            self.count(&entry.key, &verdict).await;
        }
        Ok(match verdict.decision {
            Decision::Keep => CompactionFilterDecision::Keep,
            // A whole value hides the older operands below it. Dropping the value would expose them, so a tombstone replaces it.
            Decision::Drop if is_whole && self.is_below(&entry.key).await => {
                CompactionFilterDecision::Modify(ValueDeletable::Tombstone)
            }
            Decision::Drop => CompactionFilterDecision::Drop,
            Decision::Replace(bytes) if is_whole => {
                CompactionFilterDecision::Modify(ValueDeletable::Value(bytes))
            }
            Decision::Replace(bytes) => CompactionFilterDecision::Modify(ValueDeletable::Merge(bytes)),
        })
    }
}

#[async_trait]
impl CompactionFilter for Filter {
    async fn filter(&mut self, entry: &RowEntry) -> Result<CompactionFilterDecision, CompactionFilterError> {
        yield_if_due();
        self.pass(entry);
        let decision = self.decide_entry(entry).await?;
        self.measure(entry, &decision);
        Ok(decision)
    }

    async fn on_compaction_end(&mut self) -> Result<(), CompactionFilterError> {
        self.filter.end();
        if let Some(meter) = &mut self.meter {
            meter.end();
        }
        self.report();
        let counts = std::mem::take(&mut self.counts);
        if let Some(job) = &self.job {
            job.output.add(counts.rows, counts.dead, counts.covering);
            job.output
                .newest_seq
                .fetch_max(counts.newest_seq, Ordering::Relaxed);
        }
        Ok(())
    }
}
