//! Chooses the next compaction. SlateDB's size-tiered scheduler goes first; when it has no proposal, this scheduler looks for garbage.
//!
//! - *Requested by reads* that pass too many dead rows: level 0 is joined with the young runs that are not much larger. That purges the
//!   tombstones whose keys the older runs lack.
//! - *Covered*: when the young runs cover enough of the older rows, or hold enough tombstones that reads pass, all runs are joined.
//! - *Forced* by an operator: level 0 and all runs are joined.
//! - *At rest*: level 0 is joined with young runs if it has had no new file for a while. The rows that its files cover are then counted.

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

/// Percentage of garbage bytes above which all runs are joined. At this point the disk holds about a quarter more than the live data.
const GARBAGE_PERCENT: u64 = 20;
/// Percentage of dead rows in young runs, relative to the rows of the oldest run, above which a request by reads joins all runs.
const DEAD_PERCENT: u64 = 1;
/// Percentage of dead rows in the oldest run above which a request by reads rewrites that run.
const OLDEST_DEAD_PERCENT: u64 = 20;
/// Maximum size of a run that is joined, as a multiple of the size of all younger data.
const GROWTH: u64 = 4;
/// Size up to which a run is always joined.
const SMALL_BYTES: u64 = 16 << 20;
/// Approximate bytes of a row, used if the number of rows is unknown.
const ROW_BYTES: u64 = 256;
/// Divisor of the size of a run that another process wrote. The quotient is assumed to be garbage.
const UNCOUNTED_PART: u64 = 4;
/// Age of the newest file of level 0 after which level 0 is joined.
const REST: Duration = Duration::from_secs(30);

/// Creates the scheduler of a tablet's compactor.
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
        let is_requested = self.compactions.take_requested_all();
        if is_requested && garbage.is_met() || garbage.is_much() {
            return tree.join_all();
        }
        if is_requested && garbage.fills_oldest() {
            return tree.rewrite_oldest();
        }
        self.join_at_rest(tree)
    }

    /// Returns the next compaction for compactors elsewhere. Those purge nothing, so a compaction that shall purge is left for the owner.
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

/// Estimate of the garbage that joining all runs would remove.
struct GarbageEstimate {
    bytes: u64,
    total_bytes: u64,
    dead_rows: u64,
    oldest_rows: u64,
    oldest_dead_rows: u64,
    /// True if other processes wrote young runs, whose tombstones are not counted.
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
        // An uncounted run was written since the tablet was opened, by another process.
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
                // An unknown run is assumed to be all garbage.
                None => garbage.bytes += run.estimate_size(),
            }
        }
        garbage
    }

    fn is_much(&self) -> bool {
        self.bytes > self.total_bytes / 100 * GARBAGE_PERCENT
    }

    /// Returns true if the oldest run holds enough tombstones to be rewritten. Those tombstones could not be purged yet when the run was
    /// written.
    fn fills_oldest(&self) -> bool {
        self.is_oldest_uncounted || self.oldest_dead_rows > self.oldest_rows / 100 * OLDEST_DEAD_PERCENT
    }

    fn is_met(&self) -> bool {
        self.is_young_uncounted || self.dead_rows > self.oldest_rows / 100 * DEAD_PERCENT
    }
}

/// A tablet's level-0 files and sorted runs, newest first.
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

    /// Proposes to join level 0 with the runs that are not much larger than all younger data. `None` if level 0 is empty.
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

    fn rewrite_oldest(&self) -> Option<CompactionSpec> {
        let oldest = self.runs.last()?;
        Some(CompactionSpec::new(
            vec![SourceId::SortedRun(oldest.id)],
            oldest.id,
        ))
    }

    /// Proposes to join level 0 and all runs to one run. A single run is rewritten, to purge what can be purged by now. `None` if the
    /// tablet has no files.
    fn join_everything(&self) -> Option<CompactionSpec> {
        let level0 = self.level0.iter().map(|(source, ..)| *source);
        let runs = self.runs.iter().map(|run| SourceId::SortedRun(run.id));
        let sources: Vec<SourceId> = level0.chain(runs).collect();
        let destination = self.runs.last().map_or(0, |oldest| oldest.id);
        (!sources.is_empty()).then(|| CompactionSpec::new(sources, destination))
    }

    /// Proposes to join all runs to one. `None` if there are fewer than two.
    fn join_all(&self) -> Option<CompactionSpec> {
        let (oldest, young) = self.runs.split_last()?;
        if young.is_empty() {
            return None;
        }
        let sources = self.runs.iter().map(|run| SourceId::SortedRun(run.id)).collect();
        Some(CompactionSpec::new(sources, oldest.id))
    }
}
