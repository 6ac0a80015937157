//! The state of a tablet's compactions, shared by readers, scheduler, filter and compactor.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hashbrown::hash_map::Entry as Slot;
use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;
use slatedb::compactor::{CompactionSpec, CompactorStateView, SourceId};
use slatedb::manifest::{SortedRun, SsTableId};
use tokio::sync::{Notify, RwLock, watch};

use super::elsewhere::Elsewhere;
use super::history::{CompactionHistory, CompactionId, EndedCompaction, RunningCompaction};
use super::write_times::WriteTimes;
use crate::cache::generations::{CacheGenerations, Slot as CacheSlot};

/// Statistics of a compaction's output, added up from its parts.
#[derive(Debug, Default)]
pub(crate) struct OutputStats {
    pub rows: AtomicU64,
    /// Rows without live cells, kept because they still delete older rows.
    pub dead: AtomicU64,
    /// Estimated number of rows that have an older version in an older run.
    pub covering: AtomicU64,
    /// The greatest sequence number of the inputs. 0 if unknown.
    pub newest_seq: AtomicU64,
    /// Bytes of keys and values processed so far.
    pub done_bytes: AtomicU64,
    /// Time spent on the compaction, in ns.
    pub busy_nanos: AtomicU64,
}

impl OutputStats {
    pub fn add(&self, rows: u64, dead: u64, covering: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.dead.fetch_add(dead, Ordering::Relaxed);
        self.covering.fetch_add(covering, Ordering::Relaxed);
    }

    fn busy(&self) -> Duration {
        Duration::from_nanos(self.busy_nanos.load(Ordering::Relaxed))
    }
}

/// A compaction, from its proposal to its end.
pub(crate) struct CompactionJob {
    id: CompactionId,
    /// Number of input files.
    files: usize,
    pub output: Arc<OutputStats>,
    /// The runs older than the output. `None` if unknown, because another compaction may be adding one.
    pub older: Option<Arc<[SortedRun]>>,
    pub input_bytes: u64,
    /// The greatest sequence number of the inputs; all newer data has greater ones. `None` if unknown.
    pub newest_seq: Option<u64>,
    /// Tables of the destination before the compaction. If they have changed at its end, the compaction has succeeded.
    before: Vec<SsTableId>,
    /// The cache generations that this compaction keeps closed.
    closed: Mutex<HeldGenerations>,
}

/// Cache generations that a compaction keeps closed.
#[derive(Default)]
struct HeldGenerations {
    slots: HashSet<CacheSlot>,
    /// True if all generations are closed, because an earlier process has purged some of the deletions.
    all: bool,
}

/// End and working time of the last compaction.
#[derive(Clone, Copy)]
struct LastRun {
    ended: Instant,
    took: Duration,
}

#[derive(Default)]
struct CompactionJobs {
    jobs: HashMap<u32, Arc<CompactionJob>>,
    /// Statistics of the runs that were written since the tablet was opened.
    runs: HashMap<u32, Arc<OutputStats>>,
    last: Option<LastRun>,
    /// Finished jobs whose output readers may not see yet, each with the number of the manifest that has the output.
    unseen: Vec<(u64, Arc<CompactionJob>)>,
    /// True until the next update has looked for jobs of an earlier process.
    may_resume: bool,
}

/// Counters of slices of partitions that were read since the tablet was opened.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    pub slices: AtomicU64,
    pub live: AtomicU64,
    pub dead: AtomicU64,
}

impl Reads {
    pub fn add(&self, live: u64, dead: u64) {
        self.slices.fetch_add(1, Ordering::Relaxed);
        self.live.fetch_add(live, Ordering::Relaxed);
        if dead > 0 {
            self.dead.fetch_add(dead, Ordering::Relaxed);
        }
    }
}

/// State of a tablet's compactions.
#[derive(Default)]
pub(crate) struct CompactionState {
    tablet: u32,
    history: Arc<CompactionHistory>,
    pub reads: Reads,
    /// Requests by reads that pass too many dead rows: young runs shall be compacted, and then perhaps all.
    requested_young: AtomicBool,
    requested_all: AtomicBool,
    /// True if an operator has requested to join all files to one run.
    forced: AtomicBool,
    requested: Notify,
    /// True if no more compactions shall begin.
    is_stopped: watch::Sender<bool>,
    /// True if the compactor had nothing to do at its last look: nothing to compact, and no compaction in progress.
    is_idle: AtomicBool,
    ended: AtomicU64,
    state: Mutex<CompactionJobs>,
    pub write_times: WriteTimes,
    /// Lock that late writes hold for reading. A compaction takes it for writing before its first decision, and so waits for them.
    pub late: Arc<RwLock<()>>,
    pub generations: CacheGenerations,
    pub elsewhere: Elsewhere,
}

impl CompactionState {
    /// Returns the state of a tablet's compactions. Ended ones are added to `history`.
    pub fn new(tablet: u32, history: Arc<CompactionHistory>) -> CompactionState {
        CompactionState {
            tablet,
            history,
            ..CompactionState::default()
        }
    }

    /// Returns the compactions that are scheduled or running, as far as the owner has seen.
    pub fn running(&self) -> Vec<RunningCompaction> {
        let state = self.state.lock();
        let shown = |job: &Arc<CompactionJob>| RunningCompaction {
            id: job.id,
            tablet: self.tablet,
            files: job.files,
            done_bytes: job.output.done_bytes.load(Ordering::Relaxed).min(job.input_bytes),
            input_bytes: job.input_bytes,
        };
        state.jobs.values().map(shown).collect()
    }

    /// Prepares for the start of a compactor. All generations are closed, because it may continue compactions of an earlier process, whose
    /// purges are unknown.
    pub fn start(&self) {
        if !std::mem::replace(&mut self.state.lock().may_resume, true) {
            self.generations.close_all();
        }
    }

    /// Closes a cache generation, because a job purges a deletion that covers other rows of its partition.
    pub fn purge_started(&self, job: &CompactionJob, slot: CacheSlot) {
        if job.closed.lock().slots.insert(slot) {
            self.generations.close(slot);
        }
    }

    /// Opens the generations of all jobs whose output is in `manifest` or an earlier one, because readers now see it.
    pub fn manifest_visible(&self, manifest: u64) {
        let mut state = self.state.lock();
        state.unseen.retain(|(from, job)| {
            let is_seen = *from <= manifest;
            if is_seen {
                self.open(job);
            }
            !is_seen
        });
    }

    /// Opens the generations that the job has closed.
    fn open(&self, job: &CompactionJob) {
        let closed = std::mem::take(&mut *job.closed.lock());
        closed.slots.iter().for_each(|slot| self.generations.open(*slot));
        if closed.all {
            self.generations.open_all();
        }
    }

    /// Requests compactions because reads pass too many tombstones.
    pub fn request(&self) {
        self.requested_all.store(true, Ordering::Release);
        self.requested_young.store(true, Ordering::Release);
        self.requested.notify_one();
    }

    /// Requests that all files become one run, even if nothing is gained.
    pub fn force(&self) {
        self.forced.store(true, Ordering::Release);
        self.requested.notify_one();
    }

    /// Takes the request of [`CompactionState::force`]. Returns true once for each request.
    pub fn take_forced(&self) -> bool {
        if !self.forced.load(Ordering::Acquire) {
            return false;
        }
        // The idle flag is cleared before the request is taken. Otherwise a waiting caller could find the tablet idle in between.
        self.set_idle(false);
        self.forced.swap(false, Ordering::AcqRel)
    }

    /// Returns true from a call of [`CompactionState::force`] until its compaction has ended, or until no more compactions may begin.
    pub fn is_forced(&self) -> bool {
        let is_under_way = self.forced.load(Ordering::Acquire) || !self.is_idle() || self.has_jobs();
        is_under_way && !*self.is_stopped.borrow()
    }

    /// Waits until a compaction is requested.
    pub async fn requested(&self) {
        self.requested.notified().await;
    }

    /// Stops the compactor, because the tablet is about to be handed over to another owner.
    pub fn stop(&self) {
        self.is_stopped.send_replace(true);
    }

    /// Waits until no more compactions may begin.
    pub async fn stopped(&self) {
        // The result is ignored: the wait can only fail if the sender is dropped, and `self` owns the sender.
        let _ = self
            .is_stopped
            .subscribe()
            .wait_for(|is_stopped| *is_stopped)
            .await;
    }

    pub fn is_idle(&self) -> bool {
        self.is_idle.load(Ordering::Acquire)
    }

    pub fn set_idle(&self, is_idle: bool) {
        self.is_idle.store(is_idle, Ordering::Release);
    }

    pub fn is_requested(&self) -> bool {
        let is_set = |request: &AtomicBool| request.load(Ordering::Acquire);
        is_set(&self.requested_young) || is_set(&self.requested_all) || is_set(&self.forced)
    }

    /// Returns true while a compaction is scheduled or running, as far as the owner has seen.
    pub fn has_jobs(&self) -> bool {
        !self.state.lock().jobs.is_empty()
    }

    /// Takes the request to compact young runs. Returns true once for each request.
    pub fn take_requested_young(&self) -> bool {
        self.requested_young.swap(false, Ordering::AcqRel)
    }

    /// Takes the request to compact all runs. Returns true once for each request.
    pub fn take_requested_all(&self) -> bool {
        self.requested_all.swap(false, Ordering::AcqRel)
    }

    /// Returns true if no compaction is running, and the last one ended at least `least` and at least twice its working time ago. So
    /// compactions take at most a third of the time.
    pub fn is_rested(&self, least: Duration) -> bool {
        let state = self.state.lock();
        state.jobs.is_empty()
            && state
                .last
                .is_none_or(|last| last.ended.elapsed() >= (last.took * 2).max(least))
    }

    /// Returns the number of compactions that have ended.
    pub fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }

    /// Returns the statistics of a run. `None` if unknown.
    pub fn run(&self, id: u32) -> Option<Arc<OutputStats>> {
        self.state.lock().runs.get(&id).cloned()
    }

    /// Returns the job that writes the run `destination`. `None` if there is none.
    pub fn job(&self, destination: u32) -> Option<Arc<CompactionJob>> {
        self.state.lock().jobs.get(&destination).cloned()
    }

    /// Records a compaction that was proposed on `view`. `is_alone` says that no other compaction that takes files of level 0 is in
    /// progress.
    pub fn propose(&self, spec: &CompactionSpec, view: &CompactorStateView, is_alone: bool, now_ms: u64) {
        let Some(destination) = spec.destination() else {
            return;
        };
        let manifest = view.manifest();
        let runs = manifest.compacted();
        let input_bytes = spec
            .sources()
            .iter()
            .map(|source| match source {
                SourceId::SortedRun(id) => runs
                    .iter()
                    .filter(|run| run.id == *id)
                    .map(SortedRun::estimate_size)
                    .sum::<u64>(),
                SourceId::SstView(id) => manifest
                    .l0()
                    .iter()
                    .filter(|table| table.id == *id)
                    .map(|table| table.estimate_size())
                    .sum(),
            })
            .sum();
        // Runs are numbered by age, and compactions only join neighbours. A run that another compaction is about to add can have a number
        // below this one's only if both take files of level 0.
        let older = (is_alone || !spec.has_l0_sources()).then(|| {
            runs.iter()
                .filter(|run| run.id < destination)
                .cloned()
                .collect::<Arc<[SortedRun]>>()
        });
        let mut state = self.state.lock();
        let job = CompactionJob {
            id: CompactionId::next(now_ms),
            files: files_of(spec, view),
            output: Arc::default(),
            older,
            input_bytes,
            newest_seq: state.newest_seq_of(spec, view),
            before: tables_of(runs, destination),
            closed: Mutex::default(),
        };
        state.jobs.insert(destination, Arc::new(job));
    }

    /// Removes the finished jobs and keeps the statistics of their output.
    pub fn update(&self, view: &CompactorStateView, now_ms: u64) {
        let runs = view.manifest().compacted();
        let is_active = |destination: u32| {
            view.compactions().is_some_and(|compactions| {
                compactions
                    .recent_compactions()
                    .any(|job| job.active() && job.spec().destination() == Some(destination))
            })
        };
        self.write_times.flushed(view.manifest().last_l0_seq());
        let mut state = self.state.lock();
        if std::mem::replace(&mut state.may_resume, false) {
            self.resume(&mut state, view, now_ms);
            self.generations.open_all();
        }
        let CompactionJobs {
            jobs,
            runs: known,
            last,
            unseen,
            ..
        } = &mut *state;
        jobs.retain(|destination, job| {
            if is_active(*destination) {
                return true;
            }
            if tables_of(runs, *destination) != job.before {
                known.insert(*destination, job.output.clone());
                self.history.add(EndedCompaction {
                    id: job.id,
                    tablet: self.tablet,
                    ended_ms: now_ms,
                    input_bytes: job.input_bytes,
                    output_bytes: bytes_of(runs, *destination),
                });
            }
            unseen.push((view.manifest().id(), job.clone()));
            self.ended.fetch_add(1, Ordering::Relaxed);
            *last = Some(LastRun {
                ended: Instant::now(),
                took: job.output.busy(),
            });
            false
        });
        known.retain(|id, _| runs.iter().any(|run| run.id == *id));
    }

    /// Takes over jobs of an earlier process. Their output may lack deletions of unknown partitions.
    fn resume(&self, state: &mut CompactionJobs, view: &CompactorStateView, now_ms: u64) {
        let jobs = view
            .compactions()
            .into_iter()
            .flat_map(|jobs| jobs.recent_compactions());
        for destination in jobs
            .filter(|job| job.active())
            .filter_map(|job| job.spec().destination())
        {
            if let Slot::Vacant(vacant) = state.jobs.entry(destination) {
                self.generations.close_all();
                vacant.insert(Arc::new(CompactionJob {
                    id: CompactionId::next(now_ms),
                    files: 0,
                    output: Arc::default(),
                    older: None,
                    input_bytes: 0,
                    newest_seq: None,
                    before: tables_of(view.manifest().compacted(), destination),
                    closed: Mutex::new(HeldGenerations {
                        all: true,
                        ..HeldGenerations::default()
                    }),
                }));
            }
        }
    }
}

impl CompactionJobs {
    /// Returns the sequence number above which all data newer than the compaction's inputs lies. `None` if unknown.
    fn newest_seq_of(&self, spec: &CompactionSpec, view: &CompactorStateView) -> Option<u64> {
        let manifest = view.manifest();
        let newest = match (manifest.l0().iter().next(), manifest.compacted().first()) {
            (Some(table), _) => SourceId::SstView(table.id),
            (None, Some(run)) => SourceId::SortedRun(run.id),
            (None, None) => return None,
        };
        if spec.sources().contains(&newest) {
            return Some(manifest.last_l0_seq());
        }
        let newest_run = spec.sources().iter().find_map(|source| match source {
            SourceId::SortedRun(id) => Some(*id),
            SourceId::SstView(_) => None,
        });
        if spec.has_l0_sources() {
            return None;
        }
        let seq = self.runs.get(&newest_run?)?.newest_seq.load(Ordering::Relaxed);
        (seq > 0).then_some(seq)
    }
}

/// Returns the number of input files of a compaction.
fn files_of(spec: &CompactionSpec, view: &CompactorStateView) -> usize {
    let runs = view.manifest().compacted();
    let files = |source: &SourceId| match source {
        SourceId::SortedRun(id) => tables_of(runs, *id).len(),
        SourceId::SstView(_) => 1,
    };
    spec.sources().iter().map(files).sum()
}

fn bytes_of(runs: &[SortedRun], id: u32) -> u64 {
    let run = runs.iter().filter(|run| run.id == id);
    run.map(SortedRun::estimate_size).sum()
}

fn tables_of(runs: &[SortedRun], id: u32) -> Vec<SsTableId> {
    runs.iter()
        .filter(|run| run.id == id)
        .flat_map(|run| run.sst_views().iter().map(|view| view.sst.id))
        .collect()
}
