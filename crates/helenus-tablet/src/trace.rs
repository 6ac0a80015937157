//! Trace steps of requests, recorded with [`step`] while a traced request is polled.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::measurement::{self, StoreMeasurement};

/// Maximum number of steps of a request that are kept. The rest are only counted.
const STEPS_MAX: usize = 400;

/// A step of a traced request.
#[derive(Clone, Debug)]
pub struct Step {
    pub at: Instant,
    pub what: Cow<'static, str>,
    /// The thread that took the step.
    pub thread: Box<str>,
}

/// The recorded steps of one request.
#[derive(Debug, Default)]
struct TraceSteps {
    kept: Vec<Step>,
    left_out: usize,
    blocks_from_cache: u64,
    blocks_from_disk: u64,
}

impl TraceSteps {
    fn add(&mut self, at: Instant, what: Cow<'static, str>) {
        if self.kept.len() >= STEPS_MAX {
            self.left_out += 1;
            return;
        }
        let thread = std::thread::current();
        self.kept.push(Step {
            at,
            what,
            thread: thread.name().unwrap_or_default().into(),
        });
    }
}

static RECORDINGS: LazyLock<Mutex<HashMap<u64, TraceSteps>>> = LazyLock::new(Mutex::default);
static LAST_RECORDING: AtomicU64 = AtomicU64::new(0);

/// Records the steps of a traced request while it runs.
#[derive(Debug)]
pub struct TraceRecorder {
    id: u64,
}

impl TraceRecorder {
    /// Begins to record the steps that are taken while `store` is in the thread.
    pub fn begin(store: &mut StoreMeasurement) -> TraceRecorder {
        let id = LAST_RECORDING.fetch_add(1, Ordering::Relaxed) + 1;
        RECORDINGS.lock().insert(id, TraceSteps::default());
        store.recording = id;
        TraceRecorder { id }
    }

    /// Returns the steps, in order of time.
    pub fn finish(self) -> Vec<Step> {
        let steps = RECORDINGS.lock().remove(&self.id).unwrap_or_default();
        let blocks = steps.blocks_from_cache + steps.blocks_from_disk;
        let (from_cache, from_disk, left_out) =
            (steps.blocks_from_cache, steps.blocks_from_disk, steps.left_out);
        let sums = [
            (blocks > 0)
                .then(|| format!("Blocks in all: {from_cache} from the block cache, {from_disk} from disk")),
            (left_out > 0).then(|| format!("{left_out} more steps are not shown")),
        ];
        let mut kept = steps.kept;
        kept.sort_by_key(|step| step.at);
        for sum in sums.into_iter().flatten() {
            if let Some(last) = kept.last().cloned() {
                let what = sum.into();
                kept.push(Step { what, ..last });
            }
        }
        kept
    }
}

impl Drop for TraceRecorder {
    fn drop(&mut self) {
        RECORDINGS.lock().remove(&self.id);
    }
}

/// Adds a step to the request that this thread polls, if it is traced.
pub fn step<T: Into<Cow<'static, str>>>(what: impl FnOnce() -> T) {
    if is_recording() {
        step_at(Instant::now(), what().into());
    }
}

/// Returns true if the request that this thread polls is traced.
pub fn is_recording() -> bool {
    measurement::recording() != 0
}

/// Adds a step that was taken at `at`.
pub fn step_at(at: Instant, what: Cow<'static, str>) {
    if let Some(steps) = RECORDINGS.lock().get_mut(&measurement::recording()) {
        steps.add(at, what);
    }
}

/// The name of an SSTable in a step: its id, and its run unless it is of level 0.
pub(crate) struct Sstable<I, R> {
    pub id: I,
    pub run: Option<R>,
}

impl<I: fmt::Display, R: fmt::Display> fmt::Display for Sstable<I, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.run {
            Some(run) => write!(f, "SSTable {} of run {run}", self.id),
            None => write!(f, "SSTable {} of level 0", self.id),
        }
    }
}

/// Returns the step for an SSTable that its filter excludes.
pub(crate) fn skipped(sstable: impl fmt::Display) -> String {
    format!("Bloom filter allows skipping {sstable}")
}

/// Returns the step for blocks that were read.
fn blocks(sstable: impl fmt::Display, cached: u64, from_disk: u64) -> String {
    match (cached, from_disk) {
        (1, 0) => format!("Read a block of {sstable} from the block cache"),
        (0, 1) => format!("Read a block of {sstable} from disk"),
        (cached, read) => format!(
            "Read {} blocks of {sstable}: {cached} from the block cache, {read} from disk",
            cached + read
        ),
    }
}

/// Adds the step for a block that was read to the request that this thread polls, if it is traced.
pub(crate) fn block(sstable: impl fmt::Display, is_cached: bool) {
    if !is_recording() {
        return;
    }
    let (cached, from_disk) = (u64::from(is_cached), u64::from(!is_cached));
    if let Some(steps) = RECORDINGS.lock().get_mut(&measurement::recording()) {
        steps.blocks_from_cache += cached;
        steps.blocks_from_disk += from_disk;
        steps.add(Instant::now(), blocks(sstable, cached, from_disk).into());
    }
}
