//! Samples of the reads and writes of partitions (Cassandra's `org.apache.cassandra.metrics.Sampler`). Sampling jobs find the most active
//! partitions while they run. A list of the last minutes is always kept, from one request in so many.
//!
//! Reads and writes call [`PartitionSampling::interest`] first, which is one relaxed load while nothing is sampled.

mod job;
pub mod recent;
mod top;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use smallvec::SmallVec;
use uuid::Uuid;

use self::job::Job;
use self::recent::RecentPartitions;
use self::top::Top;

pub use self::job::{SampledTables, Samples, SamplingPlan};

/// Kind of a sampler, with Cassandra's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplerKind {
    Reads,
    Writes,
    LocalReadTime,
    ReadRowCount,
    ReadTombstoneCount,
    /// SSTables per read. This sampler stays empty, because all tables share the files of a tablet.
    ReadSstableCount,
    WriteSize,
    CasContentions,
}

impl SamplerKind {
    /// All kinds, in Cassandra's order.
    pub const ALL: [SamplerKind; 8] = [
        SamplerKind::Reads,
        SamplerKind::Writes,
        SamplerKind::LocalReadTime,
        SamplerKind::ReadRowCount,
        SamplerKind::ReadTombstoneCount,
        SamplerKind::ReadSstableCount,
        SamplerKind::WriteSize,
        SamplerKind::CasContentions,
    ];

    pub fn name(self) -> &'static str {
        match self {
            SamplerKind::Reads => "READS",
            SamplerKind::Writes => "WRITES",
            SamplerKind::LocalReadTime => "LOCAL_READ_TIME",
            SamplerKind::ReadRowCount => "READ_ROW_COUNT",
            SamplerKind::ReadTombstoneCount => "READ_TOMBSTONE_COUNT",
            SamplerKind::ReadSstableCount => "READ_SSTABLE_COUNT",
            SamplerKind::WriteSize => "WRITE_SIZE",
            SamplerKind::CasContentions => "CAS_CONTENTIONS",
        }
    }

    /// Returns the sampler of that name. `None` if there is none.
    pub fn named(name: &str) -> Option<SamplerKind> {
        SamplerKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns true if the values of a key are added up. Otherwise the greatest value of the key counts.
    fn is_sum(self) -> bool {
        matches!(
            self,
            SamplerKind::Reads | SamplerKind::Writes | SamplerKind::CasContentions
        )
    }

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// The set of samplers that an event is recorded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest(u32);

/// The bit of the list of the last minutes, [`RecentPartitions`].
const RECENT: u32 = 1 << 31;

impl Interest {
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Returns true if the event is recorded for that sampler.
    pub fn has(self, kind: SamplerKind) -> bool {
        self.0 & kind.bit() != 0
    }
}

/// Maximum number of sampling jobs at a time.
pub const JOBS_MAX: usize = 8;
/// Maximum length of a sampled key in bytes. Longer keys are left out, so that the memory of a sampler is bounded by its capacity.
pub const KEY_LEN_MAX: usize = 1024;

/// The sampling of a node.
#[derive(Debug, Default)]
pub struct PartitionSampling {
    /// Bits of the samplers that any job uses, and of the list of the last minutes.
    wanted: AtomicU32,
    jobs: ArcSwap<Vec<Arc<Job>>>,
    /// Held while a job begins or ends.
    changing: Mutex<()>,
    pub recent: RecentPartitions,
}

impl PartitionSampling {
    /// Returns those of `kinds` that record an event that happens now.
    pub(crate) fn interest<const N: usize>(&self, kinds: [SamplerKind; N]) -> Interest {
        let wanted = self.wanted.load(Ordering::Relaxed);
        if wanted == 0 {
            return Interest(0);
        }
        let kinds = kinds.into_iter().fold(0, |bits, kind| bits | kind.bit());
        let is_listed = wanted & RECENT != 0
            && kinds & (SamplerKind::Reads.bit() | SamplerKind::Writes.bit()) != 0
            && self.recent.is_due();
        Interest(wanted & kinds | if is_listed { RECENT } else { 0 })
    }

    /// Records an event, if the sampler is among those of `interest`.
    pub(crate) fn record(&self, interest: Interest, kind: SamplerKind, table: Uuid, item: &[u8], value: u64) {
        let is_activity = matches!(kind, SamplerKind::Reads | SamplerKind::Writes);
        let is_listed = is_activity && interest.0 & RECENT != 0;
        if value == 0 || !(interest.has(kind) || is_listed) || item.len() > KEY_LEN_MAX {
            return;
        }
        let key = sample_key(table, item);
        if is_listed {
            self.recent.record(kind, &key);
        }
        if interest.has(kind) {
            for job in self.jobs.load().iter() {
                job.record(kind, table, &key, value);
            }
        }
    }

    /// Begins a sampling job. The returned guard ends it.
    ///
    /// # Errors
    /// A message if [`JOBS_MAX`] jobs are running.
    pub fn begin(self: &Arc<Self>, plan: SamplingPlan) -> Result<RunningSampling, String> {
        let _changing = self.changing.lock();
        let mut jobs = Vec::clone(&self.jobs.load());
        if jobs.len() >= JOBS_MAX {
            return Err(format!(
                "Sampling already in progress: {JOBS_MAX} samplings run, which is the most at a time"
            ));
        }
        let job = Arc::new(Job::new(plan));
        jobs.push(job.clone());
        self.set_jobs(jobs);
        Ok(RunningSampling {
            sampling: self.clone(),
            job,
        })
    }

    /// Sets the interval of the list of the last minutes: one read or write in `interval` is entered. 0 turns the list off.
    pub fn set_recent_interval(&self, interval: u32) {
        let _changing = self.changing.lock();
        self.recent.set_interval(interval);
        self.set_jobs(Vec::clone(&self.jobs.load()));
    }

    fn set_jobs(&self, jobs: Vec<Arc<Job>>) {
        let kinds = jobs.iter().fold(0, |bits, job| bits | job.bits());
        let recent = if self.recent.is_on() { RECENT } else { 0 };
        self.jobs.store(Arc::new(jobs));
        self.wanted.store(kinds | recent, Ordering::Relaxed);
    }
}

/// A running sampling job, which ends when this is dropped.
#[derive(Debug)]
pub struct RunningSampling {
    sampling: Arc<PartitionSampling>,
    job: Arc<Job>,
}

impl RunningSampling {
    /// Ends the job. Returns the greatest values of each sampler, at most `most`.
    pub fn finish(self, most: usize) -> Vec<(SamplerKind, Samples)> {
        self.job.greatest(most)
    }
}

impl Drop for RunningSampling {
    fn drop(&mut self) {
        let _changing = self.sampling.changing.lock();
        let mut jobs = Vec::clone(&self.sampling.jobs.load());
        jobs.retain(|job| !Arc::ptr_eq(job, &self.job));
        self.sampling.set_jobs(jobs);
    }
}

/// One of the greatest values: its table, the key of a partition or the text of a statement, the count, and the count's maximum error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    pub table: Uuid,
    pub item: Vec<u8>,
    pub count: u64,
    pub error: u64,
}

/// Returns the key of a sample: the table's id followed by the item.
fn sample_key(table: Uuid, item: &[u8]) -> SmallVec<[u8; 128]> {
    let mut key = SmallVec::from_slice(table.as_bytes());
    key.extend_from_slice(item);
    key
}

fn split_sample_key(key: &[u8]) -> Option<(Uuid, &[u8])> {
    let (table, item) = key.split_first_chunk()?;
    Some((Uuid::from_bytes(*table), item))
}

fn samples(top: &Top, most: usize) -> Samples {
    let greatest = top.greatest(most).into_iter();
    let sample = |one: top::Counted| {
        let (table, item) = split_sample_key(&one.key)?;
        Some(Sample {
            table,
            item: item.to_vec(),
            count: one.count,
            error: one.error,
        })
    };
    greatest.filter_map(sample).collect()
}

#[cfg(test)]
#[path = "sampling_tests.rs"]
mod tests;
