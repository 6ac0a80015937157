//! Chooses the next compaction. SlateDB's size-tiered scheduler goes first; when it has no proposal, this scheduler looks for garbage.
//!
//! - *Requested by reads* that pass too many dead rows: level 0 and the young runs that are not much larger are joined. That purges the
//!   tombstones whose keys the older runs lack.
//! - *Covered*: when the young runs cover enough of the older rows, or hold enough tombstones that reads pass, all runs are joined.
//! - *Forced* by an operator: level 0 and all runs are joined.
//! - *At rest*: files of level 0 that have not been joined for a while are joined, so that the rows that they cover are counted.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use slatedb::compactor::{
    CompactionScheduler, CompactionSchedulerSupplier, CompactionSpec, CompactorStateView,
    SizeTieredCompactionSchedulerSupplier, SourceId,
};
use slatedb::config::CompactorOptions;
use slatedb::manifest::SortedRun;
use slatedb_common::clock::SystemClock;

use super::CompactionState;

/// Covered rows, of all bytes, from which on all runs are joined: the disk then holds about a quarter more than is alive.
const GARBAGE_PERCENT: u64 = 20;
/// Dead rows in young runs, of the rows of the oldest, from which on reads that ask have all runs joined.
const DEAD_PERCENT: u64 = 1;
/// Dead rows in the oldest run, of its rows, from which on reads that ask have it written anew.
const OLDEST_DEAD_PERCENT: u64 = 20;
/// A young run is joined with younger ones when it is at most this many times larger.
const GROWTH: u64 = 4;
/// Runs of this size are joined whatever the others are.
const SMALL_BYTES: u64 = 16 << 20;
/// Approximate bytes of a row, where the count of rows is unknown.
const ROW_BYTES: u64 = 256;
/// Of a run that was written elsewhere, the share that is taken for garbage.
const UNCOUNTED_PART: u64 = 4;
/// Files of level 0 that are older are joined.
const REST: Duration = Duration::from_secs(30);

/// Gives a tablet's compactor its scheduler.
pub(crate) struct SchedulerFactory {
    pub compactions: Arc<CompactionState>,
    pub clock: Arc<dyn SystemClock>,
}

impl CompactionSchedulerSupplier for SchedulerFactory {
    fn compaction_scheduler(&self, options: &CompactorOptions) -> Box<dyn CompactionScheduler + Send + Sync> {
        Box::new(Scheduler {
            tiered: SizeTieredCompactionSchedulerSupplier::new().compaction_scheduler(options),
            compactions: self.compactions.clone(),
            clock: self.clock.clone(),
        })
    }
}

struct Scheduler {
    tiered: Box<dyn CompactionScheduler + Send + Sync>,
    compactions: Arc<CompactionState>,
    clock: Arc<dyn SystemClock>,
}

impl CompactionScheduler for Scheduler {
    fn propose(&self, view: &CompactorStateView) -> Vec<CompactionSpec> {
        let now_ms = u64::try_from(self.clock.now().timestamp_millis()).unwrap_or(0);
        self.compactions.update(view, now_ms);
        let active: Vec<&CompactionSpec> = view
            .compactions()
            .into_iter()
            .flat_map(|compactions| compactions.recent_compactions())
            .filter(|job| job.active())
            .map(|job| job.spec())
            .collect();
        let mut specs = self.tiered.propose(view);
        let is_elsewhere = self.compactions.elsewhere.is_on();
        if is_elsewhere {
            let jobs = view.compactions().into_iter();
            let jobs = jobs.flat_map(|compactions| compactions.recent_compactions());
            self.compactions.elsewhere.watch(jobs);
        }
        if specs.is_empty() && active.is_empty() {
            let tree = Levels::new(view);
            specs.extend(match is_elsewhere {
                true => self.leave(&tree),
                false => self.clean(&tree),
            });
        }
        self.compactions.set_idle(specs.is_empty() && active.is_empty());
        let takes_level0 = active.iter().any(|spec| spec.has_l0_sources());
        for spec in &specs {
            self.compactions.propose(spec, view, !takes_level0, now_ms);
        }
        specs
    }

    fn validate(&self, view: &CompactorStateView, spec: &CompactionSpec) -> Result<(), slatedb::Error> {
        self.tiered.validate(view, spec)
    }
}

impl Scheduler {
    fn clean(&self, tree: &Levels<'_>) -> Option<CompactionSpec> {
        if self.compactions.take_forced()
            && let Some(spec) = tree.join_everything()
        {
            return Some(spec);
        }
        if self.compactions.take_requested_young()
            && let Some(spec) = tree.join_young()
        {
            return Some(spec);
        }
        let garbage = GarbageEstimate::of(tree, &self.compactions);
        let is_asked = self.compactions.take_requested_all();
        if is_asked && garbage.is_met() || garbage.is_much() {
            return tree.join_all();
        }
        if is_asked && garbage.fills_oldest() {
            return tree.write_oldest_anew();
        }
        self.join_at_rest(tree)
    }

    /// Returns the next compaction for compactors elsewhere, which purge nothing: purging is left for this process.
    fn leave(&self, tree: &Levels<'_>) -> Option<CompactionSpec> {
        if self.compactions.is_requested() || GarbageEstimate::of(tree, &self.compactions).is_much() {
            self.compactions.elsewhere.need_owner();
            return None;
        }
        self.join_at_rest(tree)
    }

    fn join_at_rest(&self, tree: &Levels<'_>) -> Option<CompactionSpec> {
        let since = |newest: u64| {
            let now = u64::try_from(self.clock.now().timestamp_millis()).unwrap_or(0);
            now.saturating_sub(newest)
        };
        let is_at_rest = tree
            .newest_level0_ms()
            .is_some_and(|newest| since(newest) > REST.as_millis() as u64);
        is_at_rest.then(|| tree.join_young()).flatten()
    }
}

/// An estimate of the gain of joining all runs.
struct GarbageEstimate {
    bytes: u64,
    total_bytes: u64,
    dead_rows: u64,
    oldest_rows: u64,
    oldest_dead_rows: u64,
    /// Young runs were written elsewhere, without a count of their tombstones.
    is_young_uncounted: bool,
    is_oldest_uncounted: bool,
}

impl GarbageEstimate {
    fn of(tree: &Levels<'_>, compactions: &CompactionState) -> GarbageEstimate {
        let mut garbage = GarbageEstimate {
            bytes: 0,
            total_bytes: tree.run_bytes(),
            dead_rows: 0,
            oldest_rows: 0,
            oldest_dead_rows: 0,
            is_young_uncounted: false,
            is_oldest_uncounted: false,
        };
        let Some((oldest, young)) = tree.runs.split_last() else {
            return garbage;
        };
        let known = |run: &SortedRun| {
            compactions
                .run(run.id)
                .map(|output| {
                    let get = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
                    (get(&output.rows), get(&output.dead), get(&output.covering))
                })
                .filter(|(rows, ..)| *rows > 0)
        };
        // Written since the tablet was opened, and not by this process.
        let is_uncounted = |run: &SortedRun| compactions.run(run.id).is_some() && known(run).is_none();
        let oldest_output = known(oldest);
        garbage.is_oldest_uncounted = is_uncounted(oldest);
        garbage.oldest_rows = oldest_output.map_or(oldest.estimate_size() / ROW_BYTES, |(rows, ..)| rows);
        garbage.oldest_dead_rows = oldest_output.map_or(0, |(_, dead, _)| dead);
        for run in young {
            match known(run) {
                Some((rows, dead, covering)) => {
                    let (bytes, of_rows) = match oldest_output {
                        Some((rows, ..)) => (oldest.estimate_size(), rows),
                        None => (run.estimate_size(), rows),
                    };
                    garbage.bytes += covering * bytes / of_rows.max(1);
                    garbage.bytes += dead * run.estimate_size() / rows.max(1);
                    garbage.dead_rows += dead;
                }
                None if is_uncounted(run) => {
                    garbage.bytes += run.estimate_size() / UNCOUNTED_PART;
                    garbage.is_young_uncounted = true;
                }
                // Of an unknown run the worst is expected.
                None => garbage.bytes += run.estimate_size(),
            }
        }
        garbage
    }

    fn is_much(&self) -> bool {
        self.bytes > self.total_bytes / 100 * GARBAGE_PERCENT
    }

    /// Returns the oldest run, which was written before its tombstones could go, holds enough of them to be written again.
    fn fills_oldest(&self) -> bool {
        self.is_oldest_uncounted || self.oldest_dead_rows > self.oldest_rows / 100 * OLDEST_DEAD_PERCENT
    }

    fn is_met(&self) -> bool {
        self.is_young_uncounted || self.dead_rows > self.oldest_rows / 100 * DEAD_PERCENT
    }
}

/// A tablet's files and runs, the newest first.
struct Levels<'a> {
    level0: Vec<(SourceId, u64, u64)>,
    runs: &'a [SortedRun],
}

impl<'a> Levels<'a> {
    fn new(view: &'a CompactorStateView) -> Levels<'a> {
        let manifest = view.manifest();
        Levels {
            level0: manifest
                .l0()
                .iter()
                .map(|table| {
                    let made_ms = table.sst.id.value().timestamp_ms();
                    (SourceId::SstView(table.id), table.estimate_size(), made_ms)
                })
                .collect(),
            runs: manifest.compacted(),
        }
    }

    fn run_bytes(&self) -> u64 {
        self.runs.iter().map(SortedRun::estimate_size).sum()
    }

    fn newest_level0_ms(&self) -> Option<u64> {
        self.level0.iter().map(|(_, _, made_ms)| *made_ms).max()
    }

    /// Level 0 and the runs that are not much larger than all that is younger.
    fn join_young(&self) -> Option<CompactionSpec> {
        if self.level0.is_empty() {
            return None;
        }
        let mut bytes: u64 = self.level0.iter().map(|(_, bytes, _)| *bytes).sum();
        let mut sources: Vec<SourceId> = self.level0.iter().map(|(source, ..)| *source).collect();
        let mut destination = self.runs.first().map_or(0, |run| run.id.saturating_add(1));
        for run in self.runs {
            let size = run.estimate_size();
            if size > (bytes * GROWTH).max(SMALL_BYTES) {
                break;
            }
            bytes += size;
            sources.push(SourceId::SortedRun(run.id));
            destination = run.id;
        }
        Some(CompactionSpec::new(sources, destination))
    }

    fn write_oldest_anew(&self) -> Option<CompactionSpec> {
        let oldest = self.runs.last()?;
        Some(CompactionSpec::new(
            vec![SourceId::SortedRun(oldest.id)],
            oldest.id,
        ))
    }

    /// Level 0 and all runs, which become one. A single run is written anew, which purges what can be purged by now.
    fn join_everything(&self) -> Option<CompactionSpec> {
        let level0 = self.level0.iter().map(|(source, ..)| *source);
        let runs = self.runs.iter().map(|run| SourceId::SortedRun(run.id));
        let sources: Vec<SourceId> = level0.chain(runs).collect();
        let destination = self.runs.last().map_or(0, |oldest| oldest.id);
        (!sources.is_empty()).then(|| CompactionSpec::new(sources, destination))
    }

    /// Returns all runs, which become one.
    fn join_all(&self) -> Option<CompactionSpec> {
        let (oldest, young) = self.runs.split_last()?;
        if young.is_empty() {
            return None;
        }
        let sources = self.runs.iter().map(|run| SourceId::SortedRun(run.id)).collect();
        Some(CompactionSpec::new(sources, oldest.id))
    }
}
